"""Methods as users call them: results, stops, refusals, and what is kept on the device."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from oocbfs.errors import FormatError, QueryError, QueueError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Engine, Schedule, Settings
from tests.support.crafting import overwrite
from tests.support.gpu.gpu_graphs import matrix_of, rows_of
from tests.support.gpu.method_checks import ON_DEVICES, search
from tests.support.keywords import keywords
from tests.support.shared import SharedGraphs

pytestmark = pytest.mark.usefixtures("verified")

SOURCE = 3
ON_CPU = ("list", "csr")


@pytest.fixture(scope="module", params=[False, True], ids=["undirected", "directed"])
def graph(request: pytest.FixtureRequest, shared_graphs: SharedGraphs) -> Iterator[Graph]:
    name = f"methods-search-{request.param}"
    path = shared_graphs.make(
        name, lambda: generators.kron(9, 8, seed=4), directed=request.param, order="degree"
    )
    with open_file(path) as opened:
        yield opened


@pytest.mark.parametrize("method", ON_DEVICES)
def test_results_are_those_of_the_cpu(graph: Graph, method: str) -> None:
    expected = graph.bfs(SOURCE, engine="cpu")
    found = graph.bfs(
        SOURCE, engine="emulator", parents=True, validate=True, options=Settings(method=method)
    )
    assert np.array_equal(found.levels, expected.levels)
    assert np.array_equal(found.level_sizes, expected.level_sizes)
    assert found.stats.method == method
    assert sum(level.num_levels for level in found.stats.levels) == found.depth + 1
    frontiers = sum(level.frontier for level in found.stats.levels)
    assert frontiers == found.reached
    assert found.stats.counts is not None
    assert found.stats.counts.edges_examined
    assert found.stats.slow_bytes


@pytest.mark.parametrize("method", ON_CPU)
def test_one_core(graph: Graph, method: str) -> None:
    expected = graph.bfs(SOURCE, engine="cpu")
    found = graph.bfs(
        SOURCE, engine="cpu", parents=True, validate=True, options=Settings(method=method)
    )
    assert np.array_equal(found.levels, expected.levels)
    examined = sum(level.edges_examined or 0 for level in found.stats.levels)
    degrees = [graph.degree(vertex) for vertex in graph.ids()[found.levels >= 0].tolist()]
    assert examined == sum(degrees)
    assert found.stats.threads == 1


def test_semiring_on_one_core(graph: Graph) -> None:
    pytest.importorskip("graphblas", reason="python-graphblas is not installed")
    expected = graph.bfs(
        SOURCE, engine="emulator", parents=True, options=Settings(method="semiring")
    )
    found = graph.bfs(SOURCE, engine="cpu", parents=True, options=Settings(method="semiring"))
    assert np.array_equal(found.levels, expected.levels)
    # The least parent wins: there is only one right tree.
    assert np.array_equal(found.parents, expected.parents)


def test_semiring_says_what_to_install(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphblas", None)
    with pytest.raises(QueryError, match=r"pip install 'oocbfs\[semiring\]'"):
        graph.bfs(SOURCE, engine="cpu", options=Settings(method="semiring"))


def test_semiring_trees_are_the_same_in_every_schedule(graph: Graph) -> None:
    trees = {
        graph.bfs(
            SOURCE,
            engine="emulator",
            parents=True,
            options=Settings(
                method="semiring", schedule=Schedule(seed=seed, blocks=seed, resident_blocks=seed)
            ),
        ).parents.tobytes()
        for seed in (1, 2, 3)
    }
    assert len(trees) == 1


@pytest.mark.parametrize("method", ON_DEVICES)
def test_every_way_to_go_has_a_colour(graph: Graph, tmp_path: Path, method: str) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    found = graph.bfs(SOURCE, engine="emulator", options=Settings(method=method))
    found.plot(tmp_path / "levels.png")
    assert (tmp_path / "levels.png").stat().st_size > 1000


@pytest.mark.parametrize("method", [*ON_DEVICES, *ON_CPU])
def test_stops(graph: Graph, method: str) -> None:
    engine: Engine = "cpu" if method in ON_CPU else "emulator"
    whole = graph.bfs(SOURCE, engine="cpu")
    expected = graph.bfs(SOURCE, engine="cpu", max_depth=2)
    found = graph.bfs(SOURCE, engine=engine, max_depth=2, options=Settings(method=method))
    assert np.array_equal(found.levels, expected.levels)
    assert found.depth == 2
    assert found.stats.levels[-1].direction == "stopped"
    target = int(graph.ids()[np.flatnonzero(whole.levels == 2)[0]])
    to_target = graph.bfs(SOURCE, engine=engine, target=target, options=Settings(method=method))
    assert np.array_equal(to_target.levels, expected.levels)
    alone = graph.bfs(SOURCE, engine=engine, max_depth=0, options=Settings(method=method))
    assert alone.reached == 1


def test_the_schedule_changes_counts_and_no_levels(graph: Graph) -> None:
    found = [
        graph.bfs(
            SOURCE,
            engine="emulator",
            options=Settings(method="two-phase:filter=none", schedule=Schedule(seed=seed)),
        )
        for seed in (1, 2, 3, 4, 1)
    ]
    counts = [done.stats.counts for done in found]
    written = [None if one is None else one.edge_queue_writes for one in counts]
    assert len({str(done.levels.tolist()) for done in found}) == 1
    assert written[0] == written[-1]
    assert len(set(written)) > 1


def test_queues_that_overflow_say_so() -> None:
    """A layered graph: every vertex of a layer finds all of the next, again and again."""
    layers = np.arange(1200).reshape(4, 300)
    edges = [np.stack(np.meshgrid(a, b), -1).reshape(-1, 2) for a, b in pairwise(layers)]
    rows = rows_of(matrix_of(1200, np.concatenate(edges)))
    with search("contract-expand:filter=none", rows, rows, blocks=6, resident_blocks=6) as made:
        made.arguments["edge_capacity"] = 100_000
        with pytest.raises(QueueError) as caught:
            made.run(np.arange(300, dtype=np.uint32))
    words = str(caught.value)
    assert words.startswith("method contract-expand:filter=none: level ")
    assert "its queue has room for 100,000" in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "v9"}, "there is no method 'v9'"),
        ({"method": "v1", "engine": "cpu"}, "v1 does not run on cpu"),
        ({"method": "v1", "engine": "emulator", "direction": "top-down"}, "knows no direction"),
        ({"method": "v1", "engine": "emulator", "resident_tails": "5%"}, "knows no resident_tails"),
        ({"method": "v1", "engine": "emulator", "memory": "4G"}, "knows no memory"),
        ({"schedule": Schedule(resident_blocks=99)}, "resident_blocks cannot be 99"),
    ],
)
def test_refusals(graph: Graph, options: dict[str, object], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        graph.bfs(SOURCE, **keywords(options))


@pytest.mark.parametrize("method", ["v3.3", "v3.3:pull=warp", "v1"])
def test_damaged_rows_are_refused(graph: Graph, method: str, tmp_path: Path) -> None:
    damaged = Path(shutil.copy(graph.path, tmp_path / "damaged.ocg"))
    overwrite(damaged, Kind.TAILS, 0, b"\xff" * (graph._stored.rows.tails.size // 2))
    with (
        open_file(damaged) as opened,
        pytest.raises(FormatError, match="damaged: run 'oocbfs verify'"),
    ):
        opened.bfs(SOURCE, engine="emulator", options=Settings(method=method))

"""Vertices behind the last one with an edge: no engine loads or sweeps them, all know them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.generate import generators
from oocbfs.gpu.load import load_graph
from oocbfs.plan.shape import shape_of
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Direction, Engine, Settings
from tests.support.crafting import overwrite

pytestmark = pytest.mark.usefixtures("verified")

NUM_VERTICES = 1_000
ENGINES: tuple[Engine, ...] = ("cpu", "disk", "emulator")


@pytest.fixture(scope="module", params=["degree-undirected", "degree-directed", "natural-directed"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A path of every other vertex below 200, and vertices without edges."""
    order, direction = request.param.split("-")
    path = tmp_path_factory.mktemp("non_isolated") / "g.ocg"
    edges = np.stack([np.arange(0, 198, 2), np.arange(2, 200, 2)], axis=1)
    edges = np.concatenate([edges, [[NUM_VERTICES - 1, NUM_VERTICES - 1]]])  # a loop, dropped
    oocbfs.convert(edges, path, order=order, directed=direction == "directed", ids="dense")
    opened = open_file(path)
    assert opened.num_vertices == NUM_VERTICES
    return opened


def test_how_many(graph: Graph) -> None:
    degrees = graph._stored.rows.degrees + graph._stored.in_rows.degrees
    assert graph._stored.num_non_isolated == np.flatnonzero(degrees)[-1] + 1 < NUM_VERTICES


def test_no_engine_loads_them(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.bfs(0, engine="disk")
    for rows in (
        graph._stored.disk_rows.out_rows,
        graph._stored.disk_rows.in_rows,
        *graph._stored.non_isolated_rows,
    ):
        assert rows.heads.size == graph._stored.num_non_isolated
        assert rows.starts.size == graph._stored.num_non_isolated + 1
    assert shape_of(graph._stored).num_vertices == graph._stored.num_non_isolated
    sizes = []

    def spy(*arguments: Any, **options: Any) -> Any:
        found = load_graph(*arguments, **options)
        sizes.append(found.num_vertices)
        return found

    for module in ("engines.gpu", "gpu.components"):
        monkeypatch.setattr(f"oocbfs.{module}.load_graph", spy)
    graph.release_device()
    graph.bfs(0, engine="emulator")
    graph.components(engine="emulator")
    assert sizes == [graph._stored.num_non_isolated] * 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sources", [[0], [100], [1], [999, 501], [999, 100], [0, 1, 198]], ids=str)
@pytest.mark.parametrize("direction", ["auto", "bottom-up"])
def test_sources(graph: Graph, engine: Engine, sources: list[int], direction: Direction) -> None:
    found = graph.bfs(
        sources, engine=engine, parents=True, validate=True, options=Settings(direction=direction)
    )
    expected = np.full(NUM_VERTICES, -1)
    for source in sources:
        expected[source] = 0
        if source < 200 and source % 2 == 0:
            near = np.arange(source if graph.directed else 0, 200, 2)
            steps = np.abs(near - source) // 2
            better = (expected[near] < 0) | (steps < expected[near])
            expected[near[better]] = steps[better]
    np.testing.assert_array_equal(found.levels, expected)
    assert (found.parents[expected < 0] == -1).all()
    assert (found.parents[sources] == sources).all()
    assert found.level_sizes.tolist() == np.bincount(expected[expected >= 0]).tolist()
    frontiers = sum(level.frontier for level in found.stats.levels)
    assert frontiers == found.reached


@pytest.mark.parametrize("engine", ENGINES)
def test_limits(graph: Graph, engine: Engine) -> None:
    def reached(source: int, **limits: Any) -> int:
        return graph.bfs(source, engine=engine, **limits).reached

    assert reached(999, max_depth=0) == 1
    assert reached(999, target=999) == 1
    assert reached(0, target=999) == 100
    assert reached(0, target=4) == 3
    assert reached(0, max_depth=5) == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_components(graph: Graph, engine: Engine) -> None:
    found = graph.components(engine=engine)
    expected = np.arange(NUM_VERTICES)
    expected[0:200:2] = 0
    np.testing.assert_array_equal(found.labels, expected)


def test_no_edges_at_all(tmp_path: Path) -> None:
    oocbfs.convert(np.array([[2, 2]]), tmp_path / "g.ocg", ids="dense")
    with open_file(tmp_path / "g.ocg") as graph:
        assert graph._stored.num_non_isolated == 0
        for engine in ENGINES:
            assert graph.bfs(1, engine=engine).levels.tolist() == [-1, 0, -1]
            assert graph.components(engine=engine).labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_without_degrees_are_refused(tmp_path: Path, engine: Any, directed: bool) -> None:
    """Who believes the degrees would leave out vertices that have edges."""
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.kron(8), path, order="degree", directed=directed, codec="raw")
    whole = path.read_bytes()
    with open_file(path) as opened:
        last = opened._stored.num_non_isolated - 1
    # The last row has a head at most, and no tail that would show it.
    for row in (40, last):
        path.write_bytes(whole)
        for kind in (Kind.DEGREES, Kind(Kind.DEGREES + TRANSPOSED))[: 1 + directed]:
            overwrite(path, kind, 4 * row, bytes(4 * (256 - row)))
        with oocbfs.open(path) as graph:
            asks: tuple[Callable[..., object], ...] = graph.components, partial(graph.bfs, 1)
            for ask in asks:
                with pytest.raises(oocbfs.FormatError, match=f"row {row} is damaged"):
                    ask(engine=engine)

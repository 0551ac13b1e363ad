"""Many sources with the tails on disk: the same levels, fewer bytes, budgets that hold."""

import json
import random
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.disk import many as disk_many
from oocbfs.errors import BudgetError, FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.memory import read_bytes
from oocbfs.plan import disk as plan_disk
from oocbfs.plan.host import fast_bytes
from oocbfs.plan.many import DEEP, DiskShare
from oocbfs.search.graph import Graph, open_file
from oocbfs.search.many import plan_searches
from oocbfs.search.many_disk import DiskSearches, Group
from oocbfs.settings import Settings
from tests.support import children
from tests.support.answers import check_against_single
from tests.support.crafting import rewrite
from tests.support.exhaustive import ALL
from tests.support.memory_limit import needed_bytes, run_limited
from tests.support.real_graphs import real_graphs
from tests.support.shared import SharedGraphs
from tests.support.strategies import ORDERS, Pairs, edge_lists, pair_array

WIDTHS = plan_disk.WIDTHS


def from_disk(
    graph: Graph, sources: list[int], width: int, *, emit: Any = "levels", **options: Any
) -> DiskSearches:
    return DiskSearches(graph._stored, emit, 2, DiskShare(width, 4 << 30), **options)


def run_group(graph: Graph, sources: list[int], width: int, **options: Any) -> list[Any]:
    results = from_disk(graph, sources, width, **options).run_together(
        Group(sources, graph._stored.stored(sources), None)
    )
    assert results is not None
    return list(results)


@given(edge_lists(), st.booleans(), st.sampled_from(ORDERS), st.sampled_from(WIDTHS), st.data())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
def test_any_graph(
    tmp_path: Path, edges: Pairs, directed: bool, order: Any, width: int, data: st.DataObject
) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pair_array(edges), path, directed=directed, order=order, force=True)
    with open_file(path) as graph:
        if graph.num_vertices == 0:
            return
        ids = st.sampled_from(graph.ids().tolist())
        sources = data.draw(st.lists(ids, min_size=1, max_size=width))
        check_against_single(graph, run_group(graph, sources, width), sources)


@pytest.mark.parametrize("width", [8, 64])
def test_hubs_that_cross_chunks(hub_graph: Path, width: int) -> None:
    with open_file(hub_graph) as graph:
        sources = [5, 6, 599_999, 77_777, 5, 123, 4567, 599_000]
        check_against_single(graph, run_group(graph, sources, width), sources)


@pytest.fixture(scope="module", params=[False, True], ids=["undirected", "directed"])
def kron(request: pytest.FixtureRequest, shared_graphs: SharedGraphs) -> Path:
    directed = request.param
    name = "kron17-directed" if directed else "kron17"
    return shared_graphs.make(name, lambda: generators.kron(17), directed=directed)


def some_sources(graph: Graph, count: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(5)
    return rng.choice(np.flatnonzero(graph._stored.stored_degrees), count, replace=False)


def test_what_is_read_is_read_for_all(kron: Path) -> None:
    """The kernel counts these bytes; they are about a tenth of what single searches read."""
    with open_file(kron) as graph:
        stored = some_sources(graph, 64)
        graph._stored.disk_rows.load()
        before = read_bytes()
        found = disk_many.search_many(graph._stored.disk_rows, stored, None, width=64, threads=2)
        if before:
            assert read_bytes() - before == found.disk_bytes
        singles = [graph.bfs(int(id_), engine="disk") for id_ in graph._stored.ids_of(stored)]
        alone = sum(single.stats.slow_bytes or 0 for single in singles)
        assert 0 < found.disk_bytes < 0.15 * alone
        # Both directions in one step, and steps in which some wait.
        assert any(found.top_down)
        assert any(found.bottom_up)
        moving = [a | b for a, b in zip(found.top_down, found.bottom_up, strict=True)]
        assert any(later & ~now for now, later in pairwise(moving))
        for number, single in enumerate(singles):
            sizes = np.trim_zeros(found.sizes[:, number], "b")
            np.testing.assert_array_equal(sizes, single.level_sizes)


def test_alone_and_pairs(kron: Path) -> None:
    with open_file(kron) as graph:
        sources = [int(id_) for id_ in graph._stored.ids_of(some_sources(graph, 3))]
        targets = [graph._stored.stored(list(range(10, 10 + k))) for k in range(3)]
        work = from_disk(graph, sources, 8, emit="pairs")
        group = Group(sources, graph._stored.stored(sources), targets)
        together = work.run_together(group)
        assert together is not None
        shared = work.disk_bytes
        for one, other in zip(together, work.run_alone(group), strict=True):
            np.testing.assert_array_equal(one.distances, other.distances)
            np.testing.assert_array_equal(one.level_sizes, other.level_sizes)
        assert work.disk_bytes > shared > 0
        until = from_disk(graph, sources, 8, emit="pairs", until_found=True)
        sooner = until.run_together(group)
        assert sooner is not None
        for one, other in zip(sooner, work.run_alone(group), strict=True):
            np.testing.assert_array_equal(one.distances, other.distances)
        alone = from_disk(graph, sources, 8)
        check_against_single(graph, list(alone.run_alone(group._replace(targets=None))), sources)


def test_sources_stop_where_their_targets_are_found(kron: Path) -> None:
    with open_file(kron) as graph:
        stored = some_sources(graph, 16)
        graph._stored.disk_rows.load()
        rows, shape = graph._stored.disk_rows, (16, graph.num_vertices)
        whole, found = np.empty(shape, np.int8), np.empty(shape, np.int8)
        asked: dict[str, Any] = {"width": 16, "threads": 2}
        on = disk_many.search_many(rows, stored, whole, **asked)
        targets = [np.flatnonzero(whole[number] == number % 3) for number in range(16)]
        done = disk_many.search_many(rows, stored, found, **asked, targets=targets)
        for number, wanted in enumerate(targets):
            assert (found[number, wanted] == number % 3).all()
            assert found[number].max() == number % 3
            assert done.sizes[number % 3 + 1 :, number].sum() == 0
        assert done.disk_bytes < on.disk_bytes


def test_deep_graphs_are_given_up(tmp_path: Path) -> None:
    n = 200
    oocbfs.convert((np.arange(n - 1), np.arange(1, n)), tmp_path / "path.ocg")
    with open_file(tmp_path / "path.ocg") as graph:
        graph._stored.disk_rows.load()
        for levels, too_deep in ((200, False), (199, True)):
            found = disk_many.search_many(
                graph._stored.disk_rows,
                graph._stored.stored([0]),
                None,
                width=8,
                threads=1,
                max_levels=levels,
            )
            assert found.too_deep == too_deep
        assert (
            from_disk(graph, [0], 8).run_together(Group([0], graph._stored.stored([0]), None))
            is None
        )


def test_damaged_tails_are_noticed(kron: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "g.ocg"
    damaged.write_bytes(kron.read_bytes())
    for offset in range(100, 105):
        rewrite(damaged, Kind.TAILS, offset, 0x7F | 0x80)
    with open_file(damaged) as graph, pytest.raises(FormatError, match="verify"):
        disk_many.search_many(graph._stored.disk_rows, np.arange(8), None, width=8, threads=2)


@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_real_graphs(path: Path, shared_graphs: SharedGraphs) -> None:
    with open_file(shared_graphs.convert(path, order="auto")) as graph:
        ids = graph.ids()
        sources = np.random.default_rng(7).choice(ids, 12, replace=ids.size < 12).tolist()
        results = from_disk(graph, sources, 16).run_together(
            Group(sources, graph._stored.stored(sources), None)
        )
        if results is None:
            assert max(graph.bfs(source).depth for source in sources) >= DEEP
        else:
            check_against_single(graph, list(results), sources)


def check_widths(path: str) -> None:
    """Narrower words with less memory."""
    with open_file(path) as graph:
        graph._stored.disk_rows.load()
        non_isolated = graph._stored.disk_rows.num_non_isolated
        for width in WIDTHS:
            disk_many.load(width)
        plan_searches(graph._stored, "summary", "auto", Settings(memory=8 << 30))
        with pytest.raises(BudgetError, match="a search needs"):
            graph.bfs_many([0], memory="1M", strategy="together")
        for width in (64, 32, 16):
            # Levels of all sources and two rows of them are in memory, and pages of the order.
            levels = (width + 2 + 4) * graph.num_vertices
            scratch = plan_disk.MANY_BYTES + plan_disk.words_bytes(non_isolated, width) + levels
            budget = fast_bytes(graph._stored) + scratch + (2 << 20)
            share = plan_searches(graph._stored, "levels", "together", Settings(memory=budget)).disk
            assert share is not None
            assert share.width == width, (share, width)


@pytest.fixture(scope="module")
def uniform(shared_graphs: SharedGraphs) -> Path:
    """A graph with so many vertices that the words of 64 sources do not fit into small budgets."""
    return shared_graphs.make("uniform21", lambda: generators.uniform(21, 2), order="degree")


@pytest.mark.long
def test_widths_follow_the_budget(uniform: Path) -> None:
    """In a process of its own: what other tests left in this one's memory counts too."""
    code = "import sys; from tests.disk import test_disk_many as t; t.check_widths(sys.argv[1])"
    done = children.run(
        [sys.executable, "-c", code, uniform], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
# Of levels, and of summaries.
@pytest.mark.parametrize("seed", range(6 if ALL else 2))
def test_batches_are_never_killed(uniform: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    emit = "levels" if seed % 3 == 0 else "summary"
    budget = rng.randrange(215 << 20, 330 << 20)
    command = [sys.executable, "-m", "oocbfs", "batch", str(uniform), "--random=9", "--emit", emit]
    limited = ["-o", str(tmp_path / "limited"), "--memory", str(budget), "--json"]
    done = run_limited([*command, *limited], int(1.1 * budget))
    if done.returncode == 1:
        assert needed_bytes(done.stderr) > budget
        assert not (tmp_path / "limited").exists()
        return
    assert done.returncode == 0, done
    if emit == "levels":
        assert json.loads(done.stdout)["disk_bytes"] > 0
    children.run([*command, "-o", str(tmp_path / "free")], check=True, capture_output=True)
    for file in (tmp_path / "free").rglob("*.*"):
        assert (
            file.read_bytes()
            == (tmp_path / "limited" / file.relative_to(tmp_path / "free")).read_bytes()
        )

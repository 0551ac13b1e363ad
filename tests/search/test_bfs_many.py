"""Searches from many sources at once against single ones, SciPy and networkx."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import BudgetError, FormatError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.kernels.many import search as kernels
from oocbfs.kernels.many import spread as many_spread
from oocbfs.plan.many import ManyPlan, from_mapping
from oocbfs.search.graph import open_file
from oocbfs.search.many import Searches, bfs_many
from tests.support.answers import check_against_single, scipy_levels
from tests.support.crafting import rewrite
from tests.support.real_graphs import real_graphs
from tests.support.shared import SharedGraphs
from tests.support.strategies import ORDERS, Pairs, edge_lists, pair_array

STRATEGIES: tuple[Any, ...] = ("auto", "together", "one-per-core")


@given(
    edge_lists(),
    st.booleans(),
    st.sampled_from(ORDERS),
    st.sampled_from(STRATEGIES),
    st.sampled_from([1, 2, 4]),
    st.data(),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
def test_any_graph(
    tmp_path: Path,
    edges: Pairs,
    directed: bool,
    order: Any,
    strategy: Any,
    threads: int,
    data: st.DataObject,
) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pair_array(edges), path, directed=directed, order=order, force=True)
    with open_file(path) as graph:
        if graph.num_vertices == 0:
            assert list(graph.bfs_many([])) == []
            return
        ids = st.sampled_from(graph.ids().tolist())
        sources = [int(i) for i in data.draw(st.lists(ids, min_size=1, max_size=70))]
        found = graph.bfs_many(sources, emit="levels", strategy=strategy, threads=threads)
        check_against_single(graph, list(found), sources)


@pytest.fixture(scope="module")
def kron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "kron.ocg"
    oocbfs.convert(generators.kron(14), path, order="degree")
    return path


def levels_of(planes: Any, number: int) -> Any:
    """Return the levels of stored vertices from one source."""
    levels = np.empty(planes.shape[1], np.int32)
    many_spread.spread_deep(levels, planes, np.empty(0, np.uint32), number)
    return levels


@pytest.mark.parametrize("threads", [1, 2, 6])
@pytest.mark.parametrize("alpha", [1e-9, 30.0, 1e9])
def test_every_direction(kron: Path, threads: int, alpha: float) -> None:
    """All top-down, as it comes, all bottom-up: the same levels."""
    with open_file(kron) as graph:
        rng = np.random.default_rng(threads)
        sources = rng.integers(0, graph.num_vertices, 64).astype(np.uint32)
        found = kernels.search_many(
            graph._stored.rows,
            graph._stored.in_rows,
            sources,
            levels=True,
            threads=threads,
            alpha=alpha,
        )
        matrix = graph.to_scipy()
        for number, source in enumerate(graph._stored.ids_of(sources).tolist()):
            levels = levels_of(found.planes, number)
            expected = scipy_levels(matrix, graph._stored.position(source), directed=False)
            np.testing.assert_array_equal(levels, expected[graph._stored.order])
        both = [(int(r["top_down"]), int(r["bottom_up"])) for r in found.records]
        if alpha == 30.0:
            assert any(top_down and bottom_up for top_down, bottom_up in both)
        elif alpha < 1:
            assert not any(bottom_up for _, bottom_up in both)


def test_one_search_examines_few_edges(kron: Path) -> None:
    with open_file(kron) as graph:
        rng = np.random.default_rng(5)
        sources = rng.choice(np.flatnonzero(graph._stored.rows.degrees), 64, replace=False)
        found = kernels.search_many(
            graph._stored.rows, graph._stored.in_rows, sources.astype(np.uint32)
        )
        assert found.records["edges"].sum() < graph.num_arcs


@pytest.mark.parametrize("directed", [False, True])
def test_centralities_are_those_of_networkx(tmp_path: Path, directed: bool) -> None:
    """networkx measures distances *to* a vertex: for directed graphs, in the reversed one."""
    for seed in range(5):
        drawn = networkx.gnp_random_graph(60, 0.03, seed=seed, directed=directed)
        edges = np.array(drawn.edges(), np.uint64).reshape(-1, 2)
        path = tmp_path / f"{seed}.ocg"
        oocbfs.convert(edges, path, directed=directed, ids="compact")
        with open_file(path) as graph:
            ids = graph.ids().tolist()
            linked = networkx.DiGraph() if directed else networkx.Graph()
            linked.add_edges_from(edges.tolist())
            backwards = linked.reverse() if directed else linked
            closeness = networkx.closeness_centrality(backwards)
            harmonic = networkx.harmonic_centrality(backwards)
            for result in graph.bfs_many(ids):
                assert result.closeness == pytest.approx(closeness[result.source], rel=1e-12)
                assert result.harmonic == pytest.approx(harmonic[result.source], rel=1e-12)
                distances = networkx.single_source_shortest_path_length(linked, result.source)
                assert result.eccentricity == max(distances.values())
                assert result.reached == len(distances)


def test_deep_graphs_run_one_per_core(tmp_path: Path) -> None:
    n = 3000
    oocbfs.convert((np.arange(n - 1), np.arange(1, n)), tmp_path / "path.ocg")
    sources = list(range(0, n, 100))
    with open_file(tmp_path / "path.ocg") as graph:
        results = list(graph.bfs_many(sources, emit="levels"))
        assert {result.strategy for result in results} == {"one-per-core"}
        check_against_single(graph, results, sources)
        forced = list(graph.bfs_many(sources, emit="levels", strategy="together"))
        assert {result.strategy for result in forced} == {"together"}
        check_against_single(graph, forced, sources)
        few = list(graph.bfs_many(sources[:3]))
        assert {result.strategy for result in few} == {"one-per-core"}


@pytest.mark.parametrize(("count", "strategy"), [(7, "one-per-core"), (8, "together")])
def test_few_sources(kron: Path, count: int, strategy: str) -> None:
    with open_file(kron) as graph:
        results = list(graph.bfs_many(range(count)))
    assert {result.strategy for result in results} == {strategy}


@pytest.mark.parametrize(("num_levels", "strategy"), [(64, "together"), (65, "one-per-core")])
def test_many_levels(tmp_path: Path, num_levels: int, strategy: str) -> None:
    oocbfs.convert((np.arange(num_levels - 1), np.arange(1, num_levels)), tmp_path / "path.ocg")
    with open_file(tmp_path / "path.ocg") as graph:
        results = list(graph.bfs_many([0] * 8, emit="levels"))
        assert {result.strategy for result in results} == {strategy}
        check_against_single(graph, results, [0] * 8)


@pytest.mark.parametrize(
    ("num_vertices", "others", "bottom_up"),
    [
        (1600, 1400, True),  # 100 edges of 3,000: as many as alpha, which is 30, asks for
        (1600, 1401, False),
        (3199, 0, True),
        (3200, 0, False),  # 100 edges are a frontier worth no look at all vertices
    ],
)
def test_when_a_source_goes_bottom_up(
    tmp_path: Path, num_vertices: int, others: int, bottom_up: bool
) -> None:
    """A star of 100 rays, a path of other edges, and vertices without any."""
    rays = np.stack((np.zeros(100, np.int64), np.arange(1, 101)), axis=1)
    path = np.stack((np.arange(101, 101 + others), np.arange(102, 102 + others)), axis=1)
    edges = np.concatenate([rays, path, [[num_vertices - 1, num_vertices - 1]]])
    oocbfs.convert(edges, tmp_path / "g.ocg", ids="dense", order="natural")
    with open_file(tmp_path / "g.ocg") as graph:
        assert (graph.num_vertices, graph.num_edges) == (num_vertices, 100 + others)
        found = kernels.search_many(
            graph._stored.rows, graph._stored.in_rows, np.zeros(1, np.uint32)
        )
    assert bool(found.records["bottom_up"][0]) == bottom_up
    assert bool(found.records["top_down"][0]) != bottom_up


@pytest.mark.parametrize("depth", [126, 127, 128])
@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_types_change_where_they_must(tmp_path: Path, depth: int, strategy: Any) -> None:
    oocbfs.convert((np.arange(depth), np.arange(1, depth + 1)), tmp_path / "path.ocg")
    with open_file(tmp_path / "path.ocg") as graph:
        sources = [0, depth // 2]
        results = list(graph.bfs_many(sources, emit="levels", strategy=strategy))
        check_against_single(graph, results, sources)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pairs(kron: Path, strategy: Any) -> None:
    with open_file(kron) as graph:
        rng = np.random.default_rng(9)
        sources = rng.integers(0, graph.num_vertices, 70).tolist()
        targets = [rng.integers(0, graph.num_vertices, k % 4).tolist() for k in range(70)]
        found = graph.bfs_many(sources, emit="pairs", targets=targets, strategy=strategy)
        for result, wanted in zip(found, targets, strict=True):
            assert result.distances is not None
            single = graph.bfs(result.source)
            assert result.distances.tolist() == [single.level_of(target) for target in wanted]


def test_budget(kron: Path) -> None:
    """Fewer rows at a time, then one per core, then fewer of those, then nothing."""
    n = 1000
    together = n * kernels.bytes_per_vertex(4, levels=True)
    whole = ManyPlan("auto", 4)
    for free, expected in (
        (together + 128 * n, replace(whole, most_alone=7)),
        (together + 128 * n - 1, replace(whole, rows_at_once=63, most_alone=7)),
        (together + 2 * n, replace(whole, rows_at_once=1, most_alone=3)),
    ):
        assert from_mapping(n, "levels", free, whole) == expected
    for free, most_alone in ((together + 2 * n - 1, 2), (104 * n - 1, 1), (78 * n, 1)):
        alone = from_mapping(n, "levels", free, whole)
        assert alone is not None
        assert (alone.strategy, alone.most_alone) == ("one-per-core", most_alone)
    assert from_mapping(n, "levels", 78 * n - 1, whole) is None
    assert from_mapping(n, "levels", together, replace(whole, strategy="together")) is None
    summary = n * kernels.bytes_per_vertex(4, levels=False)
    assert from_mapping(n, "summary", summary, whole) == replace(whole, most_alone=1)
    with open_file(kron) as graph:
        sources = list(range(20))
        for fitted in (
            replace(whole, rows_at_once=3),
            replace(whole, strategy="one-per-core", most_alone=1),
        ):
            with Searches(graph._stored, "levels", fitted) as work:
                check_against_single(graph, list(work.run(sources)), sources)
        for strategy in STRATEGIES:
            with pytest.raises(BudgetError, match="needs"):
                graph.bfs_many(sources, memory="1M", strategy=strategy)
    with open_file(kron, memory="1M") as graph, pytest.raises(BudgetError, match="needs"):
        graph.bfs_many(sources)


def test_refusals(kron: Path) -> None:
    with open_file(kron) as graph:
        with pytest.raises(QueryError, match="has no vertex"):
            graph.bfs_many([0, graph.num_vertices])
        with pytest.raises(QueryError, match="summary, levels, pairs"):
            graph.bfs_many([0], emit="parents")  # type: ignore[arg-type]
        with pytest.raises(QueryError, match="targets"):
            graph.bfs_many([0], emit="pairs")
        with pytest.raises(QueryError, match="as many lists"):
            graph.bfs_many([0, 1], emit="pairs", targets=[[1]])


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_damaged_tails_are_noticed(kron: Path, tmp_path: Path, alpha: float) -> None:
    damaged = tmp_path / "g.ocg"
    damaged.write_bytes(kron.read_bytes())
    for place in range(0, 4000, 7):
        rewrite(damaged, Kind.TAILS, place, 0x7F | 0x80)
    with open_file(damaged) as graph:
        sources = np.arange(64, dtype=np.uint32)
        rows = graph._stored.rows
        assert kernels.search_many(rows, rows, sources, alpha=alpha, threads=2).malformed
        with pytest.raises(FormatError, match="verify"):
            list(graph.bfs_many(graph._stored.ids_of(sources).tolist()))


@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_real_graphs(path: Path, shared_graphs: SharedGraphs) -> None:
    with open_file(shared_graphs.convert(path, order="auto")) as graph:
        rng = np.random.default_rng(7)
        sources = rng.choice(graph.ids(), 20, replace=graph.num_vertices < 20).tolist()
        check_against_single(graph, list(graph.bfs_many(sources, emit="levels")), sources)
        if graph.num_vertices <= 100_000:
            found = graph.bfs_many(sources, emit="levels", strategy="together")
            check_against_single(graph, list(found), sources)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("alpha", [1e-9, 30.0, 1e9])
def test_sources_stop_where_their_targets_are_found(kron: Path, threads: int, alpha: float) -> None:
    """Each stops by itself; distances are those of searches that go on, -1 of what is isolated."""
    with open_file(kron) as graph:
        rng = np.random.default_rng(8)
        connected = np.flatnonzero(graph._stored.stored_degrees)
        sources = rng.choice(connected, 64, replace=False)
        rows = graph._stored.rows, graph._stored.in_rows, sources.astype(np.uint32)
        whole = kernels.search_many(*rows, levels=True, threads=threads)
        levels = np.stack([levels_of(whole.planes, number) for number in range(64)])
        deepest = levels.max(axis=1)
        # Of some a neighbour, of some the farthest, of some what nobody reaches, of some nothing.
        isolated = np.flatnonzero(graph._stored.stored_degrees == 0)
        targets = [
            (
                np.flatnonzero(levels[number] == 1)[:3],
                np.flatnonzero(levels[number] == deepest[number])[:2],
                isolated[:1],
                np.empty(0, np.int64),
            )[number % 4]
            for number in range(64)
        ]
        found = kernels.search_many(
            *rows, levels=True, threads=threads, alpha=alpha, targets=targets
        )
        for number, wanted in enumerate(targets):
            distances = levels_of(found.planes, number)[wanted]
            np.testing.assert_array_equal(distances, levels[number, wanted])
            went_on = (found.records["top_down"] | found.records["bottom_up"]) >> number & 1
            assert went_on.sum() == max([0, *distances.tolist()])


def distances_of(results: Any) -> list[list[int]]:
    return [result.distances.tolist() for result in results]


def test_pairs_until_they_are_found(
    shared_graphs: SharedGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distances are the same, and whoever checks them searches on."""
    path = shared_graphs.make("batch-kron12", lambda: generators.kron(12))
    sources = list(range(9))
    targets = [list(range(number, 4096, 512)) for number in sources]
    with oocbfs.open(path) as graph:
        expected = distances_of(graph.bfs_many(sources, targets=targets, emit="pairs"))

        def run(strategy: Any) -> Any:
            asked: Any = graph._stored, sources, targets, "pairs", strategy, oocbfs.Settings()
            return distances_of(bfs_many(*asked, until_found=True))

        assert all(run(strategy) == expected for strategy in STRATEGIES)
        monkeypatch.setenv("OOCBFS_VERIFY", "1")
        assert run("together") == expected

"""Searches through shards give what the engine gives: levels exactly, parents by the rules."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs import memory
from oocbfs.arrays import ResultArrays
from oocbfs.cluster import budget
from oocbfs.cluster.coordinator import Packed
from oocbfs.cluster.driver import search
from oocbfs.cluster.exchange import ShardQuery
from oocbfs.cluster.results import AllResults
from oocbfs.cluster.sharding import shard
from oocbfs.errors import BudgetError, QueryError
from oocbfs.query import Query
from oocbfs.search.sharded import ShardedGraph, open_sharded
from oocbfs.settings import Settings
from tests.support.exhaustive import ALL, crossing
from tests.support.keywords import keywords
from tests.support.real_graphs import GRAPHS, needs_graphs, real_graphs
from tests.support.shared import SharedGraphs
from tests.support.strategies import DIRECTIONS, ORDERS, Pairs, edge_lists, pair_array

pytestmark = pytest.mark.usefixtures("verified")

PARTS = (1, 2, 3, 7)


def check_shards(path: Path, folder: Path, sources: list[Any], **options: Any) -> None:
    """Compare a sharded graph with the same graph in one file, from these sources."""
    with oocbfs.open(path) as whole, open_sharded(folder) as parts:
        for source in sources:
            wanted = whole.bfs(source, engine="cpu")
            # Which checks parents and levels, edge by edge.
            found = parts.bfs(source, parents=True, validate=True, **keywords(options))
            np.testing.assert_array_equal(found.levels, wanted.levels)
            np.testing.assert_array_equal(found.level_sizes, wanted.level_sizes)
            assert found.stats.edges_traversed == wanted.stats.edges_traversed
            np.testing.assert_array_equal(
                parts.bfs(source, **keywords(options)).levels, wanted.levels
            )
            np.testing.assert_array_equal(packed_levels(parts, source, **options), found.levels)
        labels = parts.components().labels
        np.testing.assert_array_equal(labels, whole.components(engine="cpu").labels)


def packed_levels(graph: ShardedGraph, source: Any, direction: Any = "auto") -> Any:
    """Search with every message packed; parents come along, and are checked against levels."""
    stored = np.unique(graph._stored.stored(source)).astype(np.uint32)
    results = AllResults(graph._stored.shape.cut, ResultArrays(), parents=True)
    exchange = Packed(graph._stored.refs(Settings(threads=2)), graph._stored.stored_degrees)
    edges = int(graph._stored.stored_degrees[stored].sum())
    query = ShardQuery(Query(stored, True, direction), graph._stored.shape, edges)
    outcome = search(exchange, query, results)
    parents = results.parents
    levels = np.empty(graph.num_vertices, np.int32)
    results.fill(levels, graph._stored.stored_degrees, graph.num_arcs, outcome.sizes)
    reached = levels > 0
    np.testing.assert_array_equal(levels[parents[reached]], levels[reached] - 1)
    return levels if graph._stored.order is None else levels[np.argsort(graph._stored.order)]


@settings(max_examples=100 if ALL else 12, suppress_health_check=list(HealthCheck))
@given(
    edges=edge_lists(),
    order=st.sampled_from(ORDERS),
    directed=st.booleans(),
    parts=st.sampled_from(PARTS),
    direction=st.sampled_from(DIRECTIONS),
    codec=st.sampled_from(["raw", "zstd"]),
    data=st.data(),
)
def test_any_graph(
    edges: Pairs,
    order: Any,
    directed: bool,
    parts: int,
    direction: str,
    codec: Any,
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path, folder = Path(name) / "g.ocg", Path(name) / "parts"
        oocbfs.convert(pair_array(edges), path, order=order, directed=directed, ids="compact")
        shard(path, folder, parts=parts, codec=codec)
        with oocbfs.open(path) as graph:
            ids = graph.ids().tolist()
        if ids:
            sources = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3))
            if max(ids) < 2**63:
                check_shards(path, folder, [sources], direction=direction)


def long_rows() -> Any:
    """Make a hub of many segments, and a path of many levels of one vertex."""
    path = np.stack([np.arange(40_000, 40_300), np.arange(40_001, 40_301)], axis=1)
    return np.concatenate([hubs(), path, [[40_000, 3]]])


def hubs() -> Any:
    """Make a hub of many segments among others."""
    rng = np.random.default_rng(7)
    hub = np.stack([np.full(30_000, 3), np.arange(30_000) + 10], axis=1)
    return np.concatenate([hub, rng.integers(0, 30_000, (60_000, 2))])


@pytest.mark.parametrize(("order", "directed", "parts"), crossing(ORDERS, (False, True), PARTS))
def test_orders(
    shared_graphs: SharedGraphs, tmp_path: Path, order: Any, directed: bool, parts: int
) -> None:
    name = f"cluster-orders-{order}-{directed}"
    path = shared_graphs.make(name, long_rows, order=order, directed=directed)
    shard(path, tmp_path / "parts", parts=parts)
    check_shards(path, tmp_path / "parts", [3, [11, 40_100]])


def real() -> list[Any]:
    """Some graphs, or all of them in all orders, directed and not."""
    few = ("wiki-Vote.txt", "airfoil1.graph", "facebook_combined.txt.gz")
    files = [path for path in real_graphs() if ALL or path.name in few]
    options = crossing(ORDERS, (False, True), PARTS)
    return [
        pytest.param(file, *options[number % len(options)], id=f"{file.name}-{number}")
        for number, file in enumerate(files * (len(options) if ALL else 1))
    ]


@needs_graphs
@pytest.mark.parametrize(("file", "order", "directed", "parts"), real())
def test_real_graphs(
    shared_graphs: SharedGraphs,
    tmp_path: Path,
    file: Path,
    order: Any,
    directed: bool,
    parts: int,
) -> None:
    assert file.is_relative_to(GRAPHS)
    path = shared_graphs.convert(file, order=order, directed=directed)
    shard(path, tmp_path / "parts", parts=parts)
    with oocbfs.open(path) as graph:
        picked = np.random.default_rng(3).integers(0, graph.num_vertices, 2)
        sources = graph.ids()[picked].tolist()
    check_shards(path, tmp_path / "parts", sources)


def edges_by_level(graph: Any, levels: Any) -> Any:
    """Sum the degrees of the vertices of each level."""
    degrees = np.asarray(graph.degree(graph.ids().tolist()))
    return np.bincount(levels[levels >= 0], weights=degrees[levels >= 0]).astype(int)


@pytest.mark.parametrize(("order", "directed", "parts"), crossing(ORDERS, (False, True), (2, 7)))
def test_tails_on_disk(
    shared_graphs: SharedGraphs, tmp_path: Path, order: Any, directed: bool, parts: int
) -> None:
    path = shared_graphs.make(
        f"cluster-disk-{order}-{directed}", hubs, order=order, directed=directed
    )
    shard(path, tmp_path / "parts", parts=parts, codec="zstd" if directed else "raw")
    with oocbfs.open(path) as whole, open_sharded(tmp_path / "parts") as cut:
        for direction in DIRECTIONS:
            wanted = whole.bfs(3, engine="cpu").levels
            found = cut.bfs(
                3, engine="disk", parents=True, validate=True, options=Settings(direction=direction)
            )
            np.testing.assert_array_equal(found.levels, wanted)
            # What leads on is counted by degrees, wherever tails are, and decides on the direction.
            records = [level.exchange or {} for level in found.stats.levels]
            counted = [record["frontier_edges"] for record in records]
            assert directed or counted == edges_by_level(whole, wanted).tolist()
            if direction == "top-down":
                assert found.stats.slow_bytes_by_tier["disk"] > 0
        labels = cut.components(engine="disk").labels
        np.testing.assert_array_equal(labels, whole.components(engine="cpu").labels)


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("directed", [False, True])
def test_small_components_are_found_by_tails_on_disk(
    tmp_path: Path, directed: bool, codec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads alone do not join them, and what is read in several pieces is read whole."""
    monkeypatch.setattr("oocbfs.cluster.shards.file.PIECE_BYTES", 1 << 10)
    rng = np.random.default_rng(8)
    paths = rng.permutation(9000).reshape(-1, 6)
    edges = np.concatenate([paths[:, [i, i + 1]] for i in range(5)])
    edges = np.concatenate((edges, 9000 + rng.integers(0, 3000, (9000, 2))))
    oocbfs.convert(edges, tmp_path / "g.ocg", directed=directed)
    shard(tmp_path / "g.ocg", tmp_path / "parts", parts=3, codec=codec)
    with oocbfs.open(tmp_path / "g.ocg") as whole, open_sharded(tmp_path / "parts") as cut:
        wanted = whole.components(engine="cpu").labels
        assert np.unique(wanted).size > 1500
        np.testing.assert_array_equal(cut.components(engine="disk").labels, wanted)
        np.testing.assert_array_equal(cut.components(engine="cpu").labels, wanted)


def test_a_budget_decides_where_tails_are(
    shared_graphs: SharedGraphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared_graphs.make("cluster-disk-degree-False", hubs, order="degree", directed=False)
    manifest = shard(path, tmp_path / "parts", parts=3)
    needed = sum(part.bytes for part in manifest.shards)
    monkeypatch.setattr(memory, "used_bytes", lambda: 0)
    monkeypatch.setattr(budget, "SEARCH_BYTES", 0)
    with oocbfs.open(path) as whole, open_sharded(tmp_path / "parts") as cut:
        wanted = whole.bfs(3).levels
        for allowed, on_disk in ((2 * needed, False), (needed, True)):
            found = cut.bfs(3, memory=allowed, options=Settings(direction="top-down"))
            np.testing.assert_array_equal(found.levels, wanted)
            assert ("disk" in found.stats.slow_bytes_by_tier) == on_disk
        with pytest.raises(BudgetError, match=r"part-0\.ocg: a search needs .* of memory"):
            cut.bfs(3, memory=60_000)
        with pytest.raises(BudgetError, match="a search needs"):
            cut.bfs(3, memory=1000, engine="cpu")


def test_stops_where_it_is_told_to(social: Path, folder: Path) -> None:
    with oocbfs.open(social) as whole, open_sharded(folder) as parts:
        stops: list[dict[str, Any]] = [{"max_depth": 0}, {"max_depth": 2}, {"target": 77}]
        for options in stops:
            wanted, found = whole.bfs(5, **options), parts.bfs(5, validate=True, **options)
            np.testing.assert_array_equal(found.levels, wanted.levels)
            assert [level.direction for level in found.stats.levels][-1] == "stopped"
        assert found.path_to(77) == wanted.path_to(77)
        assert parts.neighbors(5).tolist() == whole.neighbors(5).tolist()
        assert parts.in_neighbors(5).tolist() == whole.in_neighbors(5).tolist()
        assert parts.degree(5) == whole.degree(5)


def test_what_no_shard_knows_is_refused(folder: Path) -> None:
    with open_sharded(folder) as graph:
        with pytest.raises(QueryError, match="has no vertex 9999"):
            graph.bfs(9999)
        with pytest.raises(QueryError, match="at least one source"):
            graph.bfs([])
        with pytest.raises(QueryError, match="knows no method"):
            graph.bfs(5, options=Settings(method="v3.3"))
    with (
        oocbfs.open(folder, cluster="elsewhere") as graph,
        pytest.raises(QueryError, match=r"no cluster 'elsewhere'.*local:N"),
    ):
        graph.bfs(5)


def test_validation_finds_what_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A level, a parent or a vertex that is wrong is named."""
    fill = AllResults.fill

    def wrong(what: str) -> Any:
        def filled(self: AllResults, *arguments: Any) -> int:
            vertex = int(np.flatnonzero(self.levels == 2)[0])
            if what == "level":
                self.levels[vertex] = 7
            else:
                self.parents[vertex] = vertex
            return fill(self, *arguments)

        return filled

    with open_sharded(folder) as graph:
        for what in ("level", "parent"):
            monkeypatch.setattr(AllResults, "fill", wrong(what))
            with pytest.raises(QueryError, match="validation failed at vertex"):
                graph.bfs(5, parents=True, validate=True)

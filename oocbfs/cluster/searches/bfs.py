"""Traverse a graph in parts and bring the results into input ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays
from oocbfs.cluster.budget import result_arrays
from oocbfs.cluster.driver import AllResults, LevelRecord, Outcome, traverse
from oocbfs.cluster.levels import Watch
from oocbfs.cluster.searches.result import PartResult
from oocbfs.cluster.searches.validation import validate
from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads
from oocbfs.results.bfs import BfsResult, Stats
from oocbfs.results.levels import STOPPED, Level
from oocbfs.results.naming import check_parents, name_levels, name_parents
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.graph import ShardedGraph


def bfs(
    graph: ShardedGraph,
    sources: Ids,
    *,
    parents: bool,
    settings: Settings,
    force: bool,
    gather: bool = True,
) -> BfsResult:
    """Traverse from ids; see ``ShardedGraph.bfs``."""
    start = time.perf_counter()
    settings.check()
    if not sources.size:
        raise QueryError("a traversal needs at least one source")
    if parents:
        check_parents(graph)
    exchange = graph.exchange(settings)
    threads = available_threads(settings.threads)
    stored = np.unique(graph.stored(sources)).astype(np.uint32)
    target = None if settings.target is None else graph.stored_one(settings.target)
    arrays = result_arrays(graph, parents=parents, settings=settings)
    results = AllResults(
        graph.shape.cut,
        np.asarray(arrays.allocate(graph.num_vertices, np.uint32)) if parents else None,
        arrays,
    )
    results.start(stored)
    began = time.perf_counter()
    with Watch(graph, exchange, show=settings.progress, force=force) as watch:
        outcome = traverse(
            exchange,
            graph.shape,
            stored,
            int(graph.degrees[stored].sum(dtype=np.int64)),
            results,
            parents=parents,
            direction=settings.direction,
            max_depth=settings.max_depth,
            target=target,
            on_level=watch.on_level,
        )
    found = time.perf_counter()
    if settings.validate:
        levels = results.fill(np.empty(graph.num_vertices, np.int32))
        validate(graph, stored, levels, results.parents, len(outcome.records))
    edges = results.count_edges(graph.degrees, graph.num_edges, threads)
    named, named_parents = _name(graph, results, arrays, settings) if gather else (None, None)
    end = time.perf_counter()
    stats = Stats(
        engine=exchange.name,
        threads=threads,
        seconds=end - start,
        load_seconds=began - start,
        traversal_seconds=found - began,
        naming_seconds=end - found,
        edges_traversed=edges if graph.directed else edges // 2,
        levels=_levels(outcome),
        slow_bytes_by_tier=_tiers(outcome),
        graph_bytes=graph.graph_bytes,
    )

    def again() -> NDArray[np.int64]:
        return bfs(graph, sources, parents=True, settings=settings, force=force).parents

    sizes = np.array(outcome.sizes, np.int64)
    listed = graph.given(sources).tolist()
    if named is None:
        return PartResult(graph, listed, results, sizes, stats, again)
    return BfsResult(graph, listed, named, sizes, stats, named_parents, again)


def _name(
    graph: ShardedGraph, results: AllResults, arrays: ResultArrays, settings: Settings
) -> tuple[NDArray[np.int32], NDArray[np.int64] | None]:
    """Bring all levels, and parents if there are any, into the order of the ids."""
    threads = available_threads(settings.threads)
    named = arrays.allocate(graph.num_vertices, np.int32)
    if settings.memory is None or graph.order is None:
        results.fill(named, None if graph.order is None else graph.ranks, threads)
    else:  # a budget has no room for the ranks of all vertices
        named = name_levels(graph, results.fill(named), arrays, threads)
    named_parents = None
    if results.parents is not None:
        named_parents = name_parents(graph, results.parents, arrays, threads)
    return named, named_parents


def _levels(outcome: Outcome) -> list[Level]:
    """Give one entry a level, and one for a level where the traversal was to stop."""
    levels = [_level(record) for record in outcome.records]
    if len(outcome.sizes) > len(levels):
        levels.append(Level(STOPPED, outcome.sizes[-1], 0, 0, 0, 0.0))
    return levels


def _level(record: LevelRecord) -> Level:
    traffic = record.traffic
    exchange: dict[str, Any] = {**vars(traffic), "edges_by_part": list(record.by_part)}
    return Level(
        direction="bottom-up" if record.up else "top-down",
        frontier=record.frontier,
        edges_examined=record.edges,
        heads_answered=record.heads,
        tail_bytes=record.tail_bytes,
        seconds=record.seconds,
        slow_bytes=_moved(record),
        exchange={**exchange, "frontier_edges": record.frontier_edges},
    )


def _moved(record: LevelRecord) -> dict[str, int]:
    """Give what came from disk and what travelled, where anything did."""
    tiers = {
        "disk": record.disk_bytes,
        "messages": record.traffic.sent + record.traffic.received,
    }
    return {tier: moved for tier, moved in tiers.items() if moved}


def _tiers(outcome: Outcome) -> dict[str, int]:
    sums: dict[str, int] = {}
    for record in outcome.records:
        for tier, moved in _moved(record).items():
            sums[tier] = sums.get(tier, 0) + moved
    return sums

"""Traverse a graph in parts and bring the results into input ids."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays
from oocbfs.cluster.budget import result_arrays
from oocbfs.cluster.driver import LevelRecord, Outcome
from oocbfs.cluster.exchange import Query
from oocbfs.cluster.levels import Terms, Watch
from oocbfs.cluster.results import AllResults
from oocbfs.cluster.searches.result import PartResult
from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.results.bfs import BfsResult, Stats
from oocbfs.results.levels import STOPPED, Level
from oocbfs.results.naming import check_parents, name_levels, name_parents
from oocbfs.results.validation import Levels, validate
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.stored_parts import StoredParts

_NOTHING = np.empty(0, np.int32)


def bfs(
    graph: StoredParts,
    sources: Ids,
    *,
    parents: bool,
    settings: Settings,
) -> BfsResult:
    """Traverse from ids; see ``AnyGraph.bfs``."""
    start, compiled = clock(), compile_seconds()
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
    pool = graph.result_pool if settings.memory is None else None
    # Only sources may have no edges and a level.
    most = max(graph.shape.connected, int(stored[-1]) + 1)
    results = AllResults(graph.shape.cut, arrays, parents=parents, most=most, pool=pool)
    began = clock()
    query = Query(
        graph.shape,
        stored,
        int(graph.stored_degrees[stored].sum(dtype=np.int64)),
        parents=parents,
        direction=settings.direction,
        max_depth=settings.max_depth,
        target=target,
    )
    terms = Terms(graph.path, graph.shape.connected, exchange.name, exchange.level_seconds)
    with Watch(terms, force=settings.force, show=settings.progress) as watch:
        outcome = exchange.search(query, results, watch)
    found = clock()
    sums = (graph.stored_degrees, graph.num_arcs, outcome.sizes)
    if settings.gather:
        named, edges = fill_levels(graph, results, outcome, arrays, settings)
    else:
        edges = results.fill(_NOTHING, *sums, threads=threads)
    named_parents = None
    if parents and settings.gather:
        named_parents = name_parents(graph, results.parents, arrays, threads)
    end = clock()
    stats = Stats(
        engine=exchange.name,
        threads=threads,
        seconds=end - start,
        load_seconds=began - start,
        compile_seconds=compile_seconds() - compiled,
        traversal_seconds=found - began,
        naming_seconds=end - found,
        edges_traversed=edges if graph.directed else edges // 2,
        levels=_levels(outcome),
        slow_bytes_by_tier=_tiers(outcome),
        graph_bytes=graph.graph_bytes,
    )

    again = partial(bfs, graph, sources, parents=True, settings=settings)
    sizes = np.array(outcome.sizes, np.int64)
    listed = graph.given(sources).tolist()
    if settings.gather:
        result = BfsResult(graph, listed, named, sizes, stats, named_parents, again)
    else:
        result = PartResult(graph, listed, results, sizes, stats, again)
    if settings.checks:
        all_of_them = (0, graph.num_vertices)
        handed_out = Levels(
            result.levels_between(*all_of_them),
            result.parents_between(*all_of_them) if parents else None,
            sizes,
            len(outcome.records),
        )
        bounded = settings.memory is not None
        validate(graph, sources, handed_out, threads=threads, bounded=bounded)
    return result


def fill_levels(
    graph: StoredParts,
    results: AllResults,
    outcome: Outcome,
    arrays: ResultArrays,
    settings: Settings,
) -> tuple[NDArray[np.int32], int]:
    """Bring all levels into the order of the ids; gives them, and the edges of what was reached."""
    threads = available_threads(settings.threads)
    named = arrays.allocate(graph.num_vertices, np.int32)
    # A budget has no room for the ranks of all vertices.
    ranks = graph.ranks if settings.memory is None and graph.order is not None else None
    sums = (graph.stored_degrees, graph.num_arcs, outcome.sizes)
    edges = results.fill(named, *sums, ranks, threads)
    if settings.memory is not None and graph.order is not None:
        named = name_levels(graph, named, arrays, threads)
    return named, edges


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

"""One search from beginning to end, whichever engine runs it.

Ids become stored vertices, an engine is chosen and says what it needs, results get their room, the
engine runs, what it found is brought into the order of ids and checked, and becomes a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.engines import engine_named
from oocbfs.engines.base import Engine, ReachesTooMuch
from oocbfs.engines.choice import CHOICES, Choice, run_on_best
from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, over_ranges
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.kernels.results import levels as kernels
from oocbfs.plan.host import why_disk
from oocbfs.query import ById, Output, Query, Reached, Run
from oocbfs.results.bfs import BfsResult, Stats
from oocbfs.results.levels import LevelTable
from oocbfs.results.to_ids import count_sizes, levels_to_ids, parents_to_ids
from oocbfs.search.decision import decide_bfs
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.stored_shards import StoredShards
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.graph.vertices import Vertex


# A search of so few levels of so many vertices may reach few of them.
_FEW_LEVELS = 8
_MANY_VERTICES = 1 << 17


def bfs(
    graph: AnyStored, source: Vertex | Iterable[Vertex], *, parents: bool, settings: Settings
) -> BfsResult:
    """Search a graph from one source, or from the nearest of several; see ``AnyGraph.bfs``."""
    began = clock(), compile_seconds()
    settings.check()
    only = only_engine(graph, settings)
    if only is not None:
        refuse(only, graph, settings)
        settings = only.settle(settings)
    with graph.reading():
        sources = graph.as_ids(source)
        if not sources.size:
            raise QueryError("a search needs at least one source")
        memory_plan = (
            decide_bfs(cast("StoredGraph", graph), parents, settings)
            if only is None
            else only.needs(graph, settings)
        )
        query = Query(
            _stored(graph, sources, only).astype(np.uint32),
            parents,
            settings.direction,
            settings.max_depth,
            None
            if settings.target is None
            else int(_stored(graph, graph.as_one(settings.target), only)[0]),
        )
        threads = available_threads(settings.threads)
        out = Output(graph.num_vertices, memory_plan, threads, parents)
        run, choice = _run(graph, query, out, settings, only)
        by_id = run.by_id or _to_ids(graph, out, run, settings)
        seconds = clock() - began[0]
        stats = _stats(
            graph, run, by_id, choice, settings.method, seconds, compile_seconds() - began[1]
        )
        result = _result(graph, sources, run, by_id, stats, settings)
        if settings.checks:
            _validate(graph, sources, result, run, parents, settings)
        if run.engine == "disk":
            graph.release()
    return result


def only_engine(graph: AnyStored, settings: Settings) -> Engine | None:
    """Return the engine that alone can do what was asked for; None if there is a choice."""
    if settings.method != "auto":
        return engine_named("shards" if graph.is_sharded else "lab")
    if settings.devices is not None:
        return engine_named("devices")
    if settings.engine not in CHOICES:
        return engine_named(settings.engine)
    if reaches_little(graph, settings):
        return engine_named("point")
    return engine_named("shards") if graph.is_sharded else None


def reaches_little(graph: AnyStored, settings: Settings) -> bool:
    """Return whether a search may reach so little that tables are better than arrays.

    Where it does not, the engine ``point`` notices that soon.
    """
    return (
        settings.engine == "auto"
        and settings.max_depth is not None
        and settings.max_depth <= _FEW_LEVELS
        and settings.direction == "auto"
        and graph.num_vertices >= _MANY_VERTICES
        and not graph.is_sharded
        and not settings.checks
    )


def refuse(engine: Engine, graph: AnyStored, settings: Settings) -> None:
    """Refuse what an engine cannot do."""
    if (reason := engine.refusal(graph, settings)) is not None:
        raise QueryError(reason)


def _stored(graph: AnyStored, ids: Ids, only: Engine | None) -> NDArray[np.int64]:
    """Return stored vertices; for a few, without turning the order of all around."""
    if only is None or only.name != "point":
        return graph.stored(ids)
    return cast("StoredGraph", graph).lookup.stored(graph.positions(ids))


def _run(
    graph: AnyStored, query: Query, out: Output, settings: Settings, only: Engine | None
) -> tuple[Run, Choice]:
    """Search on the engine asked for, or on the best there is."""
    if only is not None:
        try:
            return only.run(graph, query, out, settings), Choice(only.name)
        except ReachesTooMuch:
            settings = replace(settings, engine="auto")
            out.memory_plan = decide_bfs(cast("StoredGraph", graph), query.parents, settings)
    return run_on_best(
        out.memory_plan.engine,
        settings,
        lambda engine: engine.run(graph, query, out, settings),
        lambda: why_disk(cast("StoredGraph", graph)),
    )


def _to_ids(graph: AnyStored, out: Output, run: Run, settings: Settings) -> ById:
    """Bring levels and parents of stored vertices into the order of ids, with all threads."""
    start = clock()
    reached = run.reached or _count_reached(graph, out, run.depth)
    if run.engine == "disk" and settings.memory is not None:
        # Pages of the file count as memory, and the file has no room there.
        graph.release()
    parents = None
    levels = levels_to_ids(graph, out.room, out.arrays, out.threads)
    if out.parents is not None:
        parents = parents_to_ids(graph, out.parents, out.arrays, out.threads)
    return ById(levels, parents, reached, clock() - start)


def _count_reached(graph: AnyStored, out: Output, depth: int) -> Reached:
    sizes = count_sizes(out.levels, depth, out.threads)
    counts = over_ranges(
        kernels.count_reached, out.num_vertices, out.threads, out.levels, graph.stored_degrees
    )
    return Reached(np.trim_zeros(sizes, "b"), sum(arcs for _, arcs in counts))


def _stats(
    graph: AnyStored,
    run: Run,
    by_id: ById,
    choice: Choice,
    method: str,
    seconds: float,
    compiling: float,
) -> Stats:
    """Return how a search went."""
    sizes, arcs = by_id.reached
    return Stats(
        engine=run.engine,
        threads=run.threads,
        seconds=seconds,
        load_seconds=seconds - run.seconds - by_id.seconds,
        compile_seconds=compiling,
        search_seconds=run.seconds,
        to_ids_seconds=by_id.seconds,
        edges_traversed=arcs if graph.directed else arcs // 2,
        levels=LevelTable(run.records, run.depth, sizes, tuple(run.slow_bytes_by_tier), run.beside),
        slow_bytes_by_tier=run.slow_bytes_by_tier,
        graph_bytes=graph.sizes.graph_bytes,
        fallback=choice.fallback,
        engine_reason=run.note or choice.reason,
        method=method,
        around=run.around,
    )


def _result(
    graph: AnyStored,
    sources: Ids,
    run: Run,
    by_id: ById,
    stats: Stats,
    settings: Settings,
) -> BfsResult:
    """Put a result together; one of shards may stay where it is."""
    again = partial(bfs, graph, sources, parents=True, settings=settings)
    known, sizes = graph.given(sources).tolist(), by_id.reached.sizes
    if by_id.levels is None:
        if run.engine == "point":
            from oocbfs.point.reached import ReachedResult

            stored = cast("StoredGraph", graph)
            return ReachedResult(stored, known, run.kept, sizes, stats, again)
        from oocbfs.cluster.sharded_result import ShardedResult

        return ShardedResult(cast("StoredShards", graph), known, run.kept, sizes, stats, again)
    return BfsResult(graph, known, by_id.levels, sizes, stats, by_id.parents, again)


def _validate(
    graph: AnyStored,
    sources: Ids,
    result: BfsResult,
    run: Run,
    parents: bool,
    settings: Settings,
) -> None:
    """Check what is handed out; a search that stops early leaves its last level unexpanded."""
    from oocbfs.results.validation import Levels, validate

    every = (0, graph.num_vertices)
    handed_out = Levels(
        result.levels_between(*every),
        result.parents_between(*every) if parents else None,
        result.level_sizes,
        run.depth,
    )
    threads, bounded = available_threads(settings.threads), settings.memory is not None
    validate(graph, sources, handed_out, threads=threads, bounded=bounded)

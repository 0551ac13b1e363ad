"""Run a traversal on an engine and bring its results into input ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, over_ranges
from oocbfs.kernels.bfs import traverse as cpu
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.kernels.results import levels as kernels
from oocbfs.methods import AUTO, MethodChoice, parse_method
from oocbfs.plan.disk import DEFAULT_CACHE_BYTES
from oocbfs.plan.host import Division, divide, expect_code, traversal_needs, why_disk
from oocbfs.results.bfs import BfsOutcome, BfsResult, Named, Reached, Stats, Task
from oocbfs.results.levels import STOPPED, Level, LevelTable
from oocbfs.results.naming import check_parents, count_sizes, name_levels, name_parents
from oocbfs.results.validation import Levels, validate
from oocbfs.search.code import traversal_code
from oocbfs.search.engine import Choice, choose_engine, run_on_best
from oocbfs.settings import Engine, Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.graph.vertices import Vertex

_NO_ORDER = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.uint64)
_DIRECTIONS = {"auto": cpu.AUTO, "top-down": cpu.TOP_DOWN, "bottom-up": cpu.BOTTOM_UP}


def bfs(
    graph: StoredGraph, source: Vertex | Iterable[Vertex], *, parents: bool, settings: Settings
) -> BfsResult:
    """Traverse a graph; see ``Graph.bfs``."""
    start, compiled = clock(), compile_seconds()
    settings.check()
    method = parse_method(settings.method)
    if method.name != AUTO:
        settings = replace(settings, engine=_engine_of(method, settings))
    if settings.devices is not None and settings.engine == "auto":
        settings = replace(settings, engine="cuda")
    sources = graph.as_ids(source)
    if not sources.size:
        raise QueryError("a traversal needs at least one source")
    with graph.reading():
        return _bfs(graph, sources, parents, method, settings, (start, compiled))


def _bfs(
    graph: StoredGraph,
    sources: Ids,
    parents: bool,
    method: MethodChoice,
    settings: Settings,
    began: tuple[float, float],
) -> BfsResult:
    """Traverse from ids; ``began`` is when, and how long kernels were compiled before that."""
    graph.expect_unpacking()
    by_method = method.name != AUTO
    division = _undivided(graph, settings) if by_method else decide(graph, parents, settings)
    stored = graph.stored(sources)
    target = None if settings.target is None else graph.stored_one(settings.target)
    levels = division.arrays.allocate(graph.num_vertices, np.int32)
    # Kernels know only plain arrays, mapped or not.
    task = Task(
        stored.astype(np.uint32),
        np.asarray(levels),
        target,
        parents,
        division.arrays,
        available_threads(settings.threads),
    )
    if by_method:
        found, (engine, fallback, reason) = _by_method(graph, task, settings)
    else:
        found, (engine, fallback, reason) = _run(graph, task, settings, division)
    on_cores = engine in ("cpu", "disk") and not by_method
    named = found.named or _name(graph, task, levels, found, settings)
    seconds = clock() - began[0]
    if settings.checks:
        # A traversal that stops early leaves its last level unexpanded.
        handed_out = Levels(named.levels, named.parents, named.sizes, found.depth)
        bounded = settings.memory is not None
        validate(graph, sources, handed_out, threads=task.threads, bounded=bounded)
    if engine == "disk":
        graph.release()
    edges = named.edges if graph.directed else named.edges // 2
    records = found.records
    stats = Stats(
        engine=engine,
        threads=task.threads if on_cores else 1,
        seconds=seconds,
        load_seconds=seconds - found.seconds - named.seconds,
        compile_seconds=compile_seconds() - began[1],
        traversal_seconds=found.seconds,
        naming_seconds=named.seconds,
        edges_traversed=edges,
        levels=LevelTable(records, found.depth, named.sizes)
        if isinstance(records, np.ndarray)
        else _count_frontiers(records, found, named.sizes),
        slow_bytes_by_tier=found.slow_bytes_by_tier,
        graph_bytes=graph.sizes.graph_bytes,
        fallback=fallback,
        engine_reason=found.note or reason,
        method=str(method) if by_method else AUTO,
        around=found.around,
    )

    again = partial(bfs, graph, sources, parents=True, settings=settings)
    known = graph.given(sources).tolist()
    return BfsResult(graph, known, named.levels, named.sizes, stats, named.parents, again)


def _name(
    graph: StoredGraph,
    task: Task,
    levels: NDArray[np.int32],
    found: BfsOutcome,
    settings: Settings,
) -> Named:
    """Bring levels and parents of stored vertices into the order of ids, with all threads."""
    start = clock()
    reached = found.reached or _count_reached(graph, task, found.depth)
    _let_go(graph, settings)
    return Named(
        levels=name_levels(graph, levels, task.arrays, task.threads),
        parents=None
        if task.parents is None
        else name_parents(graph, task.parents, task.arrays, task.threads),
        sizes=reached.sizes,
        edges=reached.edges,
        seconds=clock() - start,
    )


def _count_reached(graph: StoredGraph, task: Task, depth: int) -> Reached:
    sizes = count_sizes(task.levels, depth, task.threads)
    degrees, size = graph.stored_degrees, task.levels.size
    counts = over_ranges(kernels.count_reached, size, task.threads, task.levels, degrees)
    return Reached(np.trim_zeros(sizes, "b"), sum(edges for _, edges in counts))


def decide(graph: StoredGraph, parents: bool, settings: Settings) -> Division:
    """Decide what stays in memory, and with a budget on the engine too; see ``plan.host``."""
    if not settings.on_host:
        return _undivided(graph, settings)
    expect_code(graph.path, traversal_code(graph, parents, settings), settings.memory)
    cpu.load()
    threads = available_threads(settings.threads)
    needs = traversal_needs(graph, with_parents=parents, validate=settings.checks, threads=threads)
    return divide(graph, needs, settings, load_disk)


def _undivided(graph: StoredGraph, settings: Settings) -> Division:
    return Division(settings.engine, ResultArrays(pool=graph.result_pool), DEFAULT_CACHE_BYTES)


def _engine_of(method: MethodChoice, settings: Settings) -> Engine:
    """Give the engine for a method, and refuse what it does not know."""
    for name, given in (
        ("direction", settings.direction != "auto"),
        ("resident_tails", settings.resident_tails is not None),
        ("memory", settings.memory is not None),
    ):
        if given:
            option = name.replace("_", "-")
            raise QueryError(f"method {method.name} knows no --{option}: leave it out")
    engine = choose_engine(settings.engine, settings).engine
    method.check_engine(engine)
    return cast(Engine, engine)


def _by_method(graph: StoredGraph, task: Task, settings: Settings) -> tuple[BfsOutcome, Choice]:
    """Traverse as a paper does."""
    if settings.engine == "cpu":
        from oocbfs.methods.on_cpu import on_cpu

        return on_cpu(graph, task, settings), Choice("cpu")
    from oocbfs.methods.engine import on_device

    return on_device(graph, task, settings), Choice(settings.engine)


def load_disk() -> None:
    """Compile the kernels of the engine that reads from disk, or load them from the cache."""
    from oocbfs.disk import bfs as disk

    disk.load()


def _let_go(graph: StoredGraph, settings: Settings) -> None:
    """Let go of the file's pages, if they count as memory and the file has no room there."""
    if settings.memory is not None and graph.has_disk_rows:
        graph.release()


def _run(
    graph: StoredGraph, task: Task, settings: Settings, division: Division
) -> tuple[BfsOutcome, Choice]:
    """Traverse on the engine asked for, or on the best there is."""

    def on_device(engine: str) -> BfsOutcome:
        if settings.devices is not None:
            from oocbfs.devices.engine import on_devices

            return on_devices(graph, engine, task, settings)
        from oocbfs.gpu.engine import on_device

        return on_device(graph, engine, task, settings)

    return run_on_best(
        division.engine,
        settings,
        on_cpu=lambda: _on_cpu(graph, task, settings),
        on_disk=lambda: _on_disk(graph, task, settings, division.cache_bytes),
        on_device=on_device,
        why_disk=lambda: why_disk(graph),
    )


def _on_cpu(graph: StoredGraph, task: Task, settings: Settings) -> BfsOutcome:
    """Traverse on all cores, straight from the mapped file."""
    cpu.load()
    # A budget has no room for the ranks of all vertices.
    in_order = settings.memory is None
    # Who searches a second time is likely to search a third time.
    rows, in_rows = graph.decoded_rows if in_order and graph.kept_scratch else graph.connected_rows
    if rows.heads.size < task.levels.size and task.sources.max() >= rows.heads.size:
        rows, in_rows = graph.rows, graph.in_rows
    parents: NDArray[Any] | None = None
    if not in_order:
        parents = task.parents
    elif task.with_parents:
        check_parents(graph)
        parents = task.arrays.allocate(task.levels.size, np.int64)
    start = clock()
    done = cpu.traverse(
        rows,
        in_rows,
        task.sources,
        task.levels,
        parents,
        names=_names(graph, task) if in_order else None,
        threads=task.threads,
        direction=_DIRECTIONS[settings.direction],
        max_depth=-1 if settings.max_depth is None else settings.max_depth,
        target=-1 if task.target is None else task.target,
        kept=graph.kept_scratch if in_order else None,
    )
    seconds = clock() - start
    if done.malformed:
        raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
    named = Named(task.levels, parents, done.sizes, done.edges, done.naming_seconds)
    return BfsOutcome(
        done.depth, seconds - done.naming_seconds, done.records, {}, named if in_order else None
    )


def _names(graph: StoredGraph, task: Task) -> cpu.Names:
    """Say how stored vertices become positions and, for parents, ids."""
    ids = _NO_IDS if graph.listed_ids is None else graph.listed_ids
    first_id = graph.first_id if task.with_parents else 0
    if graph.order is None:
        return cpu.Names(_NO_ORDER, _NO_ORDER, ids, first_id)
    return cpu.Names(graph.ranks, graph.order, ids, first_id)


def _on_disk(graph: StoredGraph, task: Task, settings: Settings, cache_bytes: int) -> BfsOutcome:
    """Traverse on all cores, heads and starts in memory, tails on disk."""
    from oocbfs.disk import bfs as disk

    disk.load()
    rows = graph.disk_rows
    with rows.lock:
        rows.load()
        _let_go(graph, settings)
        start = clock()
        done = disk.traverse(
            rows,
            task.sources.astype(np.int64),
            task.levels,
            task.parents,
            cache_bytes=cache_bytes,
            threads=task.threads,
            direction=_DIRECTIONS[settings.direction],
            max_depth=-1 if settings.max_depth is None else settings.max_depth,
            target=-1 if task.target is None else task.target,
        )
        seconds = clock() - start
    moved = int(done.records["disk_bytes"].sum())
    return BfsOutcome(done.depth, seconds, done.records, {"disk": moved})


def _count_frontiers(
    records: list[Level], found: BfsOutcome, sizes: NDArray[np.int64]
) -> list[Level]:
    """Give the records the sizes of their levels, and one to the level where a traversal stopped.

    One launch on a device may run levels after that of the target.
    """
    levels: list[Level] = []
    first = 0
    for record in records:
        count = min(record.num_levels, found.depth - first)
        frontier = int(sizes[first : first + count].sum())
        if (frontier, count) != (record.frontier, record.num_levels):
            record = replace(record, frontier=frontier, num_levels=count)
        levels.append(record)
        first += count
    if sizes.size > found.depth:
        edges = None if any(level.edges_examined is None for level in levels) else 0
        moved = dict.fromkeys(found.slow_bytes_by_tier, 0)
        levels.append(Level(STOPPED, int(sizes[-1]), edges, 0, 0, 0.0, slow_bytes=moved))
    return levels

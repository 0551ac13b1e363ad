"""Run a traversal on an engine and bring its results into input ids."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, over_ranges
from oocbfs.kernels.bfs import traverse as cpu
from oocbfs.kernels.results import levels as kernels
from oocbfs.plan.host import Division, divide, traversal_needs
from oocbfs.results.bfs import STOPPED, BfsOutcome, BfsResult, Level, Stats, Task
from oocbfs.results.naming import name_levels, name_parents
from oocbfs.search.engine import Choice, run_on_best
from oocbfs.search.validation import validate
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

_DIRECTIONS = {"auto": cpu.AUTO, "top-down": cpu.TOP_DOWN, "bottom-up": cpu.BOTTOM_UP}


def bfs(
    graph: StoredGraph, source: int | Iterable[int], *, parents: bool, settings: Settings
) -> BfsResult:
    """Traverse a graph; see ``Graph.bfs``."""
    settings.check()
    sources = graph.as_ids(source)
    if not sources.size:
        raise QueryError("a traversal needs at least one source")
    with graph.reading():
        return _bfs(graph, sources, parents, settings)


def _bfs(graph: StoredGraph, sources: Ids, parents: bool, settings: Settings) -> BfsResult:
    """Traverse from ids."""
    graph.expect_unpacking()
    division = _divide(graph, parents, settings)
    arrays = division.arrays
    stored = graph.stored(sources)
    target = None if settings.target is None else graph.stored_one(settings.target)
    levels = arrays.allocate(graph.num_vertices, np.int32)
    found_parents = arrays.allocate(graph.num_vertices, np.uint32) if parents else None
    # Kernels know only plain arrays, mapped or not.
    plain_parents = None if found_parents is None else np.asarray(found_parents)
    task = Task(stored.astype(np.uint32), np.asarray(levels), plain_parents, target)
    found, (engine, fallback) = _run(graph, task, settings, division)
    threads = available_threads(settings.threads) if engine in ("cpu", "disk") else 1
    sizes = _level_sizes(levels, found.depth + 1)
    if settings.validate:
        # A traversal that stops early leaves its last level unexpanded.
        validate(graph, stored, levels, found_parents, last_level=found.depth, threads=threads)
    edges = sum(
        count
        for _, count in over_ranges(
            kernels.count_reached, levels.size, threads, task.levels, graph.degrees
        )
    )
    start = time.perf_counter()
    named_levels = name_levels(graph, levels, arrays, threads)
    del levels, task
    named_parents = (
        None if found_parents is None else name_parents(graph, found_parents, arrays, threads)
    )
    if engine == "disk":
        graph.release()
    stats = Stats(
        engine=engine,
        threads=threads,
        seconds=found.seconds,
        map_seconds=time.perf_counter() - start,
        edges_traversed=edges if graph.directed else edges // 2,
        levels=_count_frontiers(found, sizes),
        slow_bytes_by_tier=found.slow_bytes_by_tier,
        graph_bytes=graph.sizes.graph_bytes,
        fallback=fallback,
    )

    def again() -> NDArray[np.int64]:
        return bfs(graph, sources, parents=True, settings=settings).parents

    return BfsResult(graph, sources.tolist(), named_levels, sizes, stats, named_parents, again)


def _divide(graph: StoredGraph, parents: bool, settings: Settings) -> Division:
    """Decide what stays in memory, and with a budget on the engine too; see ``plan.host``."""
    if not settings.on_host:
        return Division(settings.engine)
    cpu.load()
    threads = available_threads(settings.threads)
    needs = traversal_needs(
        graph, with_parents=parents, validate=settings.validate, threads=threads
    )
    return divide(graph, needs, settings, load_disk)


def load_disk() -> None:
    """Compile the kernels of the engine that reads from disk, or load them from the cache."""
    from oocbfs.disk import bfs as disk

    disk.load()


def _run(
    graph: StoredGraph, task: Task, settings: Settings, division: Division
) -> tuple[BfsOutcome, Choice]:
    """Traverse on the engine asked for, or on the best there is."""

    def on_device(engine: str) -> BfsOutcome:
        from oocbfs.gpu.engine import on_device

        return on_device(graph, engine, task, settings)

    return run_on_best(
        division.engine,
        settings,
        on_cpu=lambda: _on_cpu(graph, task, settings),
        on_disk=lambda: _on_disk(graph, task, settings, division.cache_bytes),
        on_device=on_device,
    )


def _on_cpu(graph: StoredGraph, task: Task, settings: Settings) -> BfsOutcome:
    """Traverse on all cores, straight from the mapped file."""
    rows, in_rows = graph.rows, graph.in_rows
    cpu.load()
    start = time.perf_counter()
    done = cpu.traverse(
        rows,
        in_rows,
        task.sources,
        task.levels,
        task.parents,
        threads=available_threads(settings.threads),
        alpha=settings.alpha,
        beta=settings.beta,
        direction=_DIRECTIONS[settings.direction],
        max_depth=-1 if settings.max_depth is None else settings.max_depth,
        target=-1 if task.target is None else task.target,
    )
    seconds = time.perf_counter() - start
    if done.malformed:
        raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
    return BfsOutcome(done.depth, seconds, _levels(done.records, done.depth), {})


def _on_disk(graph: StoredGraph, task: Task, settings: Settings, cache_bytes: int) -> BfsOutcome:
    """Traverse on all cores, heads and starts in memory, tails on disk."""
    from oocbfs.disk import bfs as disk

    rows = graph.disk_rows
    with rows.lock:
        rows.load()
        start = time.perf_counter()
        done = disk.traverse(
            rows,
            task.sources.astype(np.int64),
            task.levels,
            task.parents,
            cache_bytes=cache_bytes,
            threads=available_threads(settings.threads),
            direction=_DIRECTIONS[settings.direction],
            max_depth=-1 if settings.max_depth is None else settings.max_depth,
            target=-1 if task.target is None else task.target,
        )
        seconds = time.perf_counter() - start
    records = _levels(done.records, done.depth)
    return BfsOutcome(
        done.depth, seconds, records, {"disk": sum(r.slow_bytes["disk"] for r in records)}
    )


def _levels(records: NDArray[np.void], depth: int) -> list[Level]:
    """Describe the levels that were expanded; the last record may sum up many."""
    from_disk = "disk_bytes" in (records.dtype.names or ())
    return [
        Level(
            direction=("top-down", "bottom-up")[int(record["direction"])],
            frontier=int(record["frontier"]),
            edges_examined=int(record["edges"]),
            heads_answered=int(record["heads"]),
            tail_bytes=int(record["tail_bytes"]),
            seconds=float(record["seconds"]),
            num_levels=1 if number < records.size else depth - records.size + 1,
            slow_bytes={"disk": int(record["disk_bytes"])} if from_disk else {},
        )
        for number, record in enumerate(records, 1)
    ]


def _count_frontiers(found: BfsOutcome, sizes: NDArray[np.int64]) -> list[Level]:
    """Give the records the sizes of their levels, and one to the level where a traversal stopped.

    Engines do not know better: two threads may queue a vertex that both found, and one launch may
    run levels after that of the target.
    """
    levels: list[Level] = []
    first = 0
    for record in found.records:
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


def _level_sizes(levels: NDArray[np.int32], most: int) -> NDArray[np.int64]:
    sizes = np.zeros(most + 1, np.int64)
    kernels.count_levels(sizes, np.asarray(levels), 0, levels.size)
    return np.trim_zeros(sizes, "b")

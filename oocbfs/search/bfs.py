"""Run a traversal on an engine and bring its results into input ids."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, over_ranges
from oocbfs.gpu.nvidia import ask_driver
from oocbfs.kernels.bfs import traverse as cpu
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.results import levels as kernels
from oocbfs.plan.host import Division, divide
from oocbfs.results.bfs import STOPPED, BfsResult, Found, Level, Stats, Task
from oocbfs.results.naming import name_levels, name_parents
from oocbfs.settings import (
    DEPTHS,
    Direction,
    Engine,
    check_choice,
    check_positive,
    check_whole,
)

if TYPE_CHECKING:
    from oocbfs.graph.graph import Graph

_DIRECTIONS = {"auto": cpu.AUTO, "top-down": cpu.TOP_DOWN, "bottom-up": cpu.BOTTOM_UP}
_NO_PARENTS = np.empty(0, np.uint32)


class Settings(NamedTuple):
    """How to traverse; see ``Graph.bfs``."""

    threads: int | None = None
    direction: Direction = "auto"
    alpha: float = 15.0
    beta: float = 2.0
    max_depth: int | None = None
    target: int | None = None
    validate: bool = False
    engine: Engine = "auto"
    vram: str | int | None = None
    resident_tails: str | int | None = None
    progress: bool = False
    memory: int | None = None
    tmp: str | os.PathLike[str] | None = None

    def check(self) -> None:
        """Refuse what no engine knows."""
        check_choice("engine", self.engine, Engine)
        check_choice("direction", self.direction, Direction)
        check_positive("alpha", self.alpha)
        check_positive("beta", self.beta)
        check_whole("max_depth", self.max_depth, DEPTHS)


def bfs(
    graph: Graph, source: int | Iterable[int], *, parents: bool, settings: Settings
) -> BfsResult:
    """Traverse a graph; see ``Graph.bfs``."""
    settings.check()
    sources = graph.as_ids(source)
    if not sources.size:
        raise QueryError("a traversal needs at least one source")
    with graph.reading():
        return _bfs(graph, sources, parents, settings)


def _bfs(graph: Graph, sources: Ids, parents: bool, settings: Settings) -> BfsResult:
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
    found, engine, fallback = _run(graph, task, settings, division)
    threads = available_threads(settings.threads) if engine in ("cpu", "disk") else 1
    sizes = _level_sizes(levels, found.depth + 1)
    if settings.validate:
        # A traversal that stops early leaves its last level unexpanded.
        check(graph, stored, levels, found_parents, last_level=found.depth, threads=threads)
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


def _divide(graph: Graph, parents: bool, settings: Settings) -> Division:
    """Decide what stays in memory, and with a budget on the engine too; see ``budget.divide``."""
    on_device = settings.engine in ("cuda", "emulator")
    if on_device or (settings.engine == "auto" and settings.memory is None):
        return Division(settings.engine)
    cpu.load()
    return divide(
        graph,
        settings.engine,
        settings.memory,
        with_parents=parents,
        validate=settings.validate,
        threads=available_threads(settings.threads),
        tmp=settings.tmp,
    )


def _run(
    graph: Graph, task: Task, settings: Settings, division: Division
) -> tuple[Found, str, str | None]:
    """Traverse on the engine asked for, or on the best there is; say which, and why no better."""
    engine = division.engine
    fallback = unused_device(settings.engine, settings.vram, settings.resident_tails)
    if engine == "disk":
        return _on_disk(graph, task, settings, division.cache_bytes), engine, fallback
    if engine == "auto":
        engine, fallback = choose_engine(asked=fallback is not None)
    if engine != "cpu":
        from oocbfs.gpu.engine import UNUSABLE, on_device

        try:
            found = on_device(graph, engine, task, settings)
        except UNUSABLE as error:
            if settings.engine != "auto":
                raise
            fallback = str(error)
        else:
            return found, engine, None
    return _on_cpu(graph, task, settings), "cpu", fallback


def unused_device(engine: Engine, *sizes: str | int | None) -> str | None:
    """Tell why the CPU heeds no sizes of device memory; None if there are none."""
    if all(size is None for size in sizes):
        return None
    why = "--memory" if engine == "auto" else f"--engine {engine}"
    return f"by {why}; --vram and --resident-tails are for GPUs"


def choose_engine(*, asked: bool = False) -> tuple[str, str | None]:
    """Look for a GPU without importing CuPy; give the engine, and why not the GPU if it was wanted.

    Whoever installed CuPy, or asked for device memory, wants the GPU and is told; others would only be
    bothered.
    """
    problem = ask_driver().problem
    if find_spec("cupy") is None:
        missing = problem or "CuPy is not installed: pip install 'oocbfs[gpu]'"
        return "cpu", missing if asked else None
    return ("cuda", None) if problem is None else ("cpu", f"CuPy is installed, but {problem}")


def _on_cpu(graph: Graph, task: Task, settings: Settings) -> Found:
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
    return Found(done.depth, seconds, _levels(done.records, done.depth), {})


def _on_disk(graph: Graph, task: Task, settings: Settings, cache_bytes: int) -> Found:
    """Traverse on all cores, heads and starts in memory, tails on disk."""
    from oocbfs.disk import bfs as disk_bfs

    rows = graph.disk_rows
    with rows.lock:
        rows.load()
        start = time.perf_counter()
        done = disk_bfs.traverse(
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
    return Found(done.depth, seconds, records, {"disk": sum(r.slow_bytes["disk"] for r in records)})


def _levels(records: NDArray[np.void], depth: int) -> list[Level]:
    """Describe the levels that were expanded; if they are too many, the last record sums up the rest."""
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


def _count_frontiers(found: Found, sizes: NDArray[np.int64]) -> list[Level]:
    """Give the records the sizes of their levels, and the level where a traversal stopped one of its own.

    Engines do not know better: two threads may queue a vertex that both found, and one launch may run
    levels behind that of the target.
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


def check(
    graph: Graph,
    sources: NDArray[np.int64],
    levels: NDArray[np.int32],
    parents: NDArray[np.uint32] | None,
    *,
    last_level: int,
    threads: int,
) -> None:
    """Check a traversal of stored vertices by the rules of Graph500.

    1. the sources are on level 0, alone, and their own parents;
    2. every other vertex reached has a parent one level up, to which an edge leads;
    3. every edge spans at most one level;
    4. no edge leads from the reached set out of it.

    Raises
    ------
    QueryError
        If a rule is broken.
    """
    tree = _NO_PARENTS if parents is None else parents
    if not np.array_equal(np.flatnonzero(levels == 0), np.unique(sources)):
        raise QueryError("validation failed: level 0 is not the set of sources")
    if tree.size and not (tree[sources] == sources).all():
        raise QueryError("validation failed: a source is not its own parent")
    if tree.size and not np.array_equal(tree == NO_HEAD, levels < 0):
        raise QueryError("validation failed: parents and levels do not cover the same vertices")
    confirmed = np.zeros(levels.size, np.uint8)
    rows = graph.rows
    for problem, row in over_ranges(
        kernels.check_levels,
        levels.size,
        threads,
        confirmed,
        levels,
        tree,
        rows.heads,
        rows.bases,
        rows.starts,
        rows.shift,
        rows.tails,
        last_level,
        not graph.directed,
    ):
        if problem:
            vertex = int(graph.ids_of(np.array([row]))[0])
            raise QueryError(f"validation failed at vertex {vertex}: {kernels.PROBLEMS[problem]}")
    orphans = np.flatnonzero((levels > 0) & (confirmed == 0))
    if orphans.size:
        vertex = int(graph.ids_of(orphans[:1])[0])
        raise QueryError(
            f"validation failed at vertex {vertex}: no edge from a parent one level up"
        )

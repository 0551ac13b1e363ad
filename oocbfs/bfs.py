"""Run a traversal on an engine and bring its results into input ids."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.ordered import available_threads, ordered_map
from oocbfs.kernels import bfs as cpu
from oocbfs.kernels import results as kernels
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.nvidia import ask_driver
from oocbfs.result import BfsResult, Found, Level, Stats, Task

if TYPE_CHECKING:
    from oocbfs.graph import Graph

Engine = Literal["auto", "cpu", "cuda", "emulator"]
Direction = Literal["auto", "top-down", "bottom-up"]
_DIRECTIONS = {"auto": cpu.AUTO, "top-down": cpu.TOP_DOWN, "bottom-up": cpu.BOTTOM_UP}
_NO_PARENTS = np.empty(0, np.uint32)
_NO_ORDER = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.uint64)
_PIECE = 1 << 18


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


def bfs(
    graph: Graph, source: int | Iterable[int], *, parents: bool, settings: Settings
) -> BfsResult:
    """Traverse a graph; see ``Graph.bfs``."""
    sources = [int(source)] if isinstance(source, (int, np.integer)) else [int(s) for s in source]
    if not sources:
        raise QueryError("a traversal needs at least one source")
    if settings.max_depth is not None and settings.max_depth < 0:
        raise QueryError(f"the depth cannot be negative: {settings.max_depth}")
    rows = graph.rows
    stored = graph.stored(sources)
    target = None if settings.target is None else int(graph.stored(settings.target)[0])
    levels = np.empty(graph.num_vertices, np.int32)
    found_parents = np.empty(graph.num_vertices, np.uint32) if parents else None
    task = Task(stored.astype(np.uint32), levels, found_parents, target)
    found, engine, fallback = _run(graph, task, settings)
    threads = available_threads(settings.threads) if engine == "cpu" else 1
    sizes = _level_sizes(levels, found.depth + 1)
    if settings.validate:
        # A traversal that stops early leaves its last level unexpanded.
        check(graph, stored, levels, found_parents, last_level=found.depth, threads=threads)
    edges = sum(
        count
        for _, count in _pieces(kernels.count_reached, levels.size, threads, levels, rows.degrees)
    )
    start = time.perf_counter()
    named_levels = _rename_levels(graph, levels, threads)
    del levels, task
    named_parents = (
        None if found_parents is None else _rename_parents(graph, found_parents, threads)
    )
    stats = Stats(
        engine=engine,
        threads=threads,
        seconds=found.seconds,
        map_seconds=time.perf_counter() - start,
        edges_traversed=edges if graph.directed else edges // 2,
        levels=found.records,
        slow_bytes=found.slow_bytes,
        graph_bytes=rows.heads.nbytes + rows.tails.nbytes,
        fallback=fallback,
    )

    def again() -> NDArray[np.int64]:
        return bfs(graph, sources, parents=True, settings=settings).parents

    return BfsResult(graph, sources, named_levels, sizes, stats, named_parents, again)


def _run(graph: Graph, task: Task, settings: Settings) -> tuple[Found, str, str | None]:
    """Traverse on the engine asked for, or on the best there is; say which, and why no better."""
    engine: str = settings.engine
    fallback = None
    if engine == "auto":
        engine, fallback = choose_engine()
    if engine != "cpu":
        from oocbfs.gpu_engine import UNUSABLE, on_device

        try:
            found = on_device(graph, engine, task, settings)
        except UNUSABLE as error:
            if settings.engine != "auto":
                raise
            fallback = str(error)
        else:
            return found, engine, None
    return _on_cpu(graph, task, settings), "cpu", fallback


def choose_engine() -> tuple[str, str | None]:
    """Look for a GPU without importing CuPy; give the engine, and why not the GPU if it was wanted.

    Whoever installed CuPy wants the GPU and is told; others would only be bothered.
    """
    if find_spec("cupy") is None:
        return "cpu", None
    problem = ask_driver().problem
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
    return Found(done.depth, seconds, _levels(done.records, task.levels))


def _levels(records: NDArray[np.void], levels: NDArray[np.int32]) -> list[Level]:
    """Describe the levels; the last record sums up all that follow if there are too many.

    Frontiers are counted from the levels: two threads may queue a vertex that both found.
    """
    sizes = np.append(_level_sizes(levels, int(levels.max(initial=0)) + 1), 0)
    frontiers = sizes[: records.size].copy()
    frontiers[-1:] += sizes[records.size : -1].sum()
    return [
        Level(
            direction=("top-down", "bottom-up")[int(record["direction"])],
            frontier=int(frontier),
            edges_examined=int(record["edges"]),
            heads_answered=int(record["heads"]),
            tail_bytes=int(record["tail_bytes"]),
            seconds=float(record["seconds"]),
        )
        for record, frontier in zip(records, frontiers, strict=True)
    ]


def _pieces(kernel: Callable[..., Any], size: int, threads: int, *arguments: object) -> list[Any]:
    """Run a kernel over ranges of 0 … size-1 in parallel; its last two arguments are the range."""

    def work(first: int) -> Any:  # noqa: ANN401
        return kernel(*arguments, first, min(first + _PIECE, size))

    return list(ordered_map(work, range(0, size, _PIECE), threads))


def _level_sizes(levels: NDArray[np.int32], most: int) -> NDArray[np.int64]:
    sizes = np.zeros(most + 1, np.int64)
    kernels.count_levels(sizes, levels, 0, levels.size)
    return np.trim_zeros(sizes, "b")


def _rename_levels(graph: Graph, levels: NDArray[np.int32], threads: int) -> NDArray[np.int32]:
    """Levels by natural position."""
    if graph.order is None:
        return levels
    out = np.empty_like(levels)
    _pieces(kernels.rename_levels, levels.size, threads, out, levels, graph.order)
    return out


def _rename_parents(graph: Graph, parents: NDArray[np.uint32], threads: int) -> NDArray[np.int64]:
    """Parents by natural position, as input ids."""
    if graph.num_vertices and graph.largest_id >= 2**63:
        raise QueryError(
            f"{graph.path}: parents cannot be given as numbers, because ids reach {graph.largest_id}; "
            "convert the graph with smaller ids"
        )
    out = np.empty(parents.size, np.int64)
    order = _NO_ORDER if graph.order is None else graph.order
    ids = _NO_IDS if graph.listed_ids is None else graph.listed_ids
    _pieces(kernels.rename_parents, parents.size, threads, out, parents, order, ids, graph.first_id)
    return out


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
    for problem, row in _pieces(
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

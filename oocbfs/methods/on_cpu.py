"""The methods that run on one core: lists of edges, plain CSR, and a product of sparse matrices."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.methods.choice import MethodChoice
from oocbfs.methods.rows import decode_columns, row_offsets
from oocbfs.query import Output, Query, Run
from oocbfs.results.levels import LevelLog

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# Finds the next level from vertices of the last one; gives what it found, and the edges it looked
# at, where these are counted.
Expand = Callable[[int, NDArray[np.uint32]], tuple[NDArray[np.uint32], int | None]]


class _Work(NamedTuple):
    """What is filled, and the plain rows; ``both``: edges go both ways."""

    levels: NDArray[np.int32]
    parents: NDArray[np.uint32]
    offsets: NDArray[np.uint64]
    columns: NDArray[np.uint32]
    both: bool


def run_on_cpu(graph: StoredGraph, method: MethodChoice, query: Query, out: Output) -> Run:
    """Fill levels and parents of stored vertices."""
    make = {"list": _by_lists, "csr": _by_rows, "semiring": _by_product}
    offsets = row_offsets(graph.rows)
    columns = np.empty(int(offsets[-1]), np.uint32)
    decode_columns(columns, graph.rows)
    levels, parents = out.levels, out.parents
    if parents is None:
        parents = np.empty(levels.size, np.uint32)
    sources = np.unique(query.sources)
    levels[:], parents[:] = -1, NO_HEAD
    levels[sources], parents[sources] = 0, sources
    work = _Work(levels, parents, offsets, columns, not graph.directed)
    expand = make[method.name](work)
    log = LevelLog()
    frontier, start = sources, time.perf_counter()
    most = levels.size if query.max_depth is None else query.max_depth
    while frontier.size and len(log) < most:
        if query.target is not None and levels[query.target] >= 0:
            break
        begin = time.perf_counter()
        found, examined = expand(len(log) + 1, frontier)
        seconds = time.perf_counter() - begin
        edges = -1 if examined is None else examined
        log.add("top-down", frontier.size, edges=edges, seconds=seconds)
        frontier = found
    return Run("cpu", 1, len(log), time.perf_counter() - start, log.records, {})


def _by_lists(work: _Work) -> Expand:
    """Walk from edge to edge of a vertex; an edge knows where the next one is."""
    from oocbfs.kernels.methods.sequential import link_edges, list_ends, list_level

    rows = work.offsets, work.columns, work.both
    places = work.columns.size if work.both else 2 * work.columns.size
    firsts, nexts = np.empty(work.levels.size, np.int64), np.empty(places, np.int64)
    ends = np.empty(places, np.uint32)
    link_edges(firsts, nexts, *rows)
    list_ends(ends, *rows)
    return _queued(work, list_level, firsts, nexts, ends)


def _by_rows(work: _Work) -> Expand:
    from oocbfs.kernels.methods.sequential import csr_level

    return _queued(work, csr_level, work.offsets, work.columns)


def _queued(
    work: _Work,
    expand_level: Callable[..., tuple[int, int]],
    *rows: NDArray[Any],
) -> Expand:
    queue = np.empty(work.levels.size, np.uint32)

    def expand(level: int, frontier: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], int]:
        queue[: frontier.size] = frontier
        count = frontier.size
        # What is found goes behind the frontier: together they are distinct vertices.
        end, examined = expand_level(work.levels, work.parents, queue, 0, count, *rows, level)
        return queue[count:end].copy(), int(examined)

    return expand


def _by_product(work: _Work) -> Expand:
    """Multiply the frontier, each vertex with its own number, by the matrix: the least wins."""
    try:
        import graphblas
    except ImportError as error:
        raise QueryError(
            "method semiring needs python-graphblas on the CPU: pip install 'oocbfs[semiring]'"
        ) from error
    levels, parents, size = work.levels, work.parents, work.levels.size
    ones = np.ones(work.columns.size, np.int64)
    matrix = graphblas.Matrix.from_csr(work.offsets, work.columns, ones, ncols=size)
    sources = np.flatnonzero(levels == 0)
    visited = graphblas.Vector.from_coo(sources, np.ones(sources.size, bool), size=size)

    def expand(level: int, frontier: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], None]:
        numbers = frontier.astype(np.int64)
        vector = graphblas.Vector.from_coo(numbers, numbers, size=size)
        product = vector.vxm(matrix, graphblas.semiring.min_first).new(mask=~visited.S)
        found, least = product.to_coo()
        levels[found], parents[found] = level, least
        visited(product.S) << True
        return found.astype(np.uint32), None

    return expand

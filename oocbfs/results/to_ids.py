"""From stored vertices to ids: results in the order of the ids, a piece at a time if needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays, fresh, is_mapped, let_go
from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.kernels.results import components as components_names
from oocbfs.kernels.results import levels as kernels
from oocbfs.plan.host import PIECE_BYTES

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

LevelType = TypeVar("LevelType", np.int8, np.int32)
# With more levels than this, one thread counts: sums of each range would take more than levels do.
_MOST_COUNTED = 4096
_NO_ORDER = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.uint64)


def count_sizes(levels: NDArray[np.int32], depth: int, threads: int) -> NDArray[np.int64]:
    """Count the vertices of each level up to one more than a depth."""

    def count(first: int, stop: int) -> NDArray[np.int64]:
        sizes = np.zeros(depth + 2, np.int64)
        kernels.count_levels(sizes, levels, first, stop)
        return sizes

    if depth > _MOST_COUNTED:
        return count(0, levels.size)
    parts = over_ranges(count, levels.size, threads)
    return np.sum(parts, axis=0, initial=0, dtype=np.int64) if parts else count(0, 0)


def levels_to_ids(
    graph: AnyStored, levels: NDArray[LevelType], arrays: ResultArrays, threads: int
) -> NDArray[LevelType]:
    """Levels by natural position."""
    if graph.order is None:
        return levels
    out = arrays.allocate(levels.size, levels.dtype)
    _fill(out, kernels.levels_to_ids, threads, levels, graph.order)
    return out


def check_parents(graph: AnyStored) -> None:
    """Refuse to give parents whose ids are damaged or have no room in 64 bits with a sign."""
    graph.check_ids()
    if graph.num_vertices and graph.largest_id >= 2**63:
        raise QueryError(
            f"{graph.path}: parents cannot be given as numbers, because ids reach "
            f"{graph.largest_id}; convert the graph with smaller ids"
        )


def parents_to_ids(
    graph: AnyStored, parents: NDArray[np.uint32], arrays: ResultArrays, threads: int
) -> NDArray[np.int64]:
    """Parents by natural position, as input ids."""
    check_parents(graph)
    out = arrays.allocate(parents.size, np.int64)
    order = _NO_ORDER if graph.order is None else graph.order
    ids = _NO_IDS if graph.listed_ids is None else graph.listed_ids
    _fill(out, kernels.parents_to_ids, threads, parents, order, ids, graph.first_id)
    return out


def components_to_ids(
    graph: AnyStored, labels: NDArray[np.uint32], arrays: ResultArrays, threads: int
) -> tuple[Ids, NDArray[np.uint32]]:
    """Smallest id of each vertex's component, and its size, both by natural position.

    ``labels`` are roots, the smallest stored vertices; they become smallest natural positions.
    """
    n = labels.size
    if graph.order is not None:
        least = arrays.allocate(n, np.uint32)
        least[:] = n
        # Kernels know only plain arrays, mapped or not.
        over_ranges(components_names.find_least, n, threads, *_plain((least, labels, graph.order)))
        over_ranges(components_names.replace_labels, n, threads, *_plain((labels, least)))
        arrays.release(least)
        del least
    counts = arrays.allocate(n, np.uint32)
    counts[:] = 0
    over_ranges(components_names.count_members, n, threads, np.asarray(counts), labels)
    out = arrays.allocate(n, np.uint64)
    order = _NO_ORDER if graph.order is None else graph.order
    ids = _NO_IDS if graph.listed_ids is None else graph.listed_ids
    first_id = np.uint64(graph.first_id)
    _fill(out, components_names.components_to_ids, threads, labels, order, ids, first_id)
    return out, counts


def _fill(out: NDArray[Any], kernel: Callable[..., Any], threads: int, *arguments: object) -> None:
    """Scatter into an array in memory, or piece by piece into one in a file: in order there."""
    if not is_mapped(out):
        over_ranges(kernel, out.size, threads, out, 0, *_plain(arguments))
        return
    piece = fresh(PIECE_BYTES // out.itemsize, out.dtype)
    for base in range(0, out.size, piece.size):
        part = piece[: min(piece.size, out.size - base)]
        over_ranges(kernel, out.size, threads, part, base, *_plain(arguments))
        out[base : base + part.size] = part
        let_go(out)


def _plain(arguments: tuple[object, ...]) -> list[object]:
    """Return mapped arrays as plain ones: kernels know no other type."""
    return [np.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]

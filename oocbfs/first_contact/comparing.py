"""Compare what a device found with what the CPU finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays
from oocbfs.errors import OocbfsError
from oocbfs.first_contact.graphs import Case
from oocbfs.formats.io.ordered import available_threads
from oocbfs.gpu.result import GpuResult
from oocbfs.kernels.components.connect import connect
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.results.to_ids import levels_to_ids, parents_to_ids
from oocbfs.results.validation import Levels, validate


class DifferenceError(OocbfsError):
    """An answer of a device that is not the CPU's, or breaks a rule."""


def by_stored(
    case: Case, done: GpuResult, in_order: bool
) -> tuple[NDArray[np.int32], NDArray[np.uint32] | None]:
    """Return levels and parents of stored vertices, which a device may give in the order of ids."""
    levels, parents, order = done.levels, done.parents, case.stored.order
    if not in_order or order is None:
        return levels, parents
    order = np.asarray(order)
    if parents is not None:
        stored_at = np.empty(order.size, np.uint32)
        stored_at[order] = np.arange(order.size, dtype=np.uint32)
        by_id = parents[order]
        known = by_id < order.size
        by_id[known] = stored_at[by_id[known]]
        parents = by_id
    return levels[order], parents


def compare_levels(case: Case, source: int, levels: NDArray[Any]) -> None:
    """Compare levels of stored vertices with those that the CPU finds."""
    _equal(f"levels from stored vertex {source}", levels, case.levels(source))


def compare_search(
    case: Case, source: int, levels: NDArray[Any], parents: NDArray[np.uint32] | None
) -> None:
    """Compare levels exactly; check parents by the rules of Graph500."""
    compare_levels(case, source, levels)
    if parents is None:
        return
    graph = case.stored
    stray = np.flatnonzero((parents >= graph.num_vertices) & (parents != NO_HEAD))
    if stray.size:
        raise DifferenceError(f"stored vertex {stray[0]} has the parent {parents[stray[0]]}")
    threads, arrays = available_threads(), ResultArrays()
    by_id = levels_to_ids(graph, np.ascontiguousarray(levels, np.int32), arrays, threads)
    tree = parents_to_ids(graph, parents, arrays, threads)
    sizes = np.bincount(by_id[by_id >= 0])
    found = Levels(by_id, tree, sizes, sizes.size)
    validate(graph, graph.ids_of(np.array([source])), found, threads=threads)


def compare_stopped(
    case: Case, source: int, levels: NDArray[Any], parents: NDArray[np.uint32] | None
) -> None:
    """Compare a search that was to stop at a neighbour: nothing further has a level or a parent."""
    expected = case.levels(source).copy()
    expected[expected > 1] = -1
    _equal(f"levels next to stored vertex {source}", levels, expected)
    if parents is not None:
        _equal("vertices with a parent", parents != NO_HEAD, expected >= 0)


def compare_labels(case: Case, labels: NDArray[Any], expected: NDArray[Any] | None = None) -> None:
    """Compare labels with those expected, by default the CPU's, by stored vertex."""
    if expected is None:
        graph = case.stored
        expected = np.empty(graph.num_vertices, np.uint32)
        in_rows = graph.in_rows if graph.directed else None
        connect(graph.rows, in_rows, expected, threads=available_threads())
    _equal("labels", labels, expected)


def _equal(what: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    if found.shape != expected.shape:
        raise DifferenceError(f"{what}: {found.size:,} instead of {expected.size:,}")
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        first = wrong[0]
        raise DifferenceError(
            f"{what}: {wrong.size:,} of {found.size:,} differ, the first at stored vertex {first}: "
            f"{found[first]} instead of {expected[first]}"
        )

"""Divide a memory budget before a traversal: what stays in memory, and whether tails stay on disk.

The mapped file costs nothing that the kernel cannot take back, so a graph whose file is within the budget
is traversed from its mapping. Otherwise heads and starts go into memory of our own, tails are read
as they are needed, and results that have no room any more live in mapped files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from oocbfs import memory
from oocbfs.arrays import ResultArrays
from oocbfs.errors import BudgetError

if TYPE_CHECKING:
    from oocbfs.graph.graph import Graph

# Python objects, allocator waste, and the pieces in which results are counted and written.
_MARGIN_BYTES = 24 << 20
# A part of a mapped result that is put together in memory.
WINDOW_BYTES = 16 << 20

# Told which file is about to be unpacked, and how much memory that takes.
on_unpacking: Callable[[str, int], object] = lambda path, num_bytes: None


@dataclass(frozen=True)
class Division:
    """What a traversal may take: an engine, room for its results, and a cache for tails on disk."""

    engine: str = "cpu"
    arrays: ResultArrays = field(default_factory=ResultArrays)
    cache_bytes: int = 0


def divide(
    graph: Graph,
    engine: str,
    budget_bytes: int | None,
    *,
    with_parents: bool,
    validate: bool,
    threads: int,
    tmp: str | os.PathLike[str] | None,
) -> Division:
    """Decide how a traversal keeps within a budget; None is without bound.

    Raises
    ------
    BudgetError
        If nothing fits; says how much would.
    """
    n = graph.num_vertices
    # Levels of stored vertices and of ids, and parents of both.
    results_bytes = 4 * n + (4 * n if graph.is_reordered else 0) + 12 * n * with_parents
    check_bytes = 4 * n * validate
    mapped_bytes = used_bytes() + results_bytes + check_bytes + _mapped_work(graph, threads)
    if engine == "auto":
        mapped_bytes = max(mapped_bytes, graph.sizes.file_bytes)
    if engine != "disk":
        if budget_bytes is None or mapped_bytes <= budget_bytes:
            return Division()
        if engine == "cpu":
            raise _too_small(graph, mapped_bytes, budget_bytes)
    _refuse_compressed(graph)
    from oocbfs.disk import bfs as disk_bfs

    disk_bfs.load()
    if budget_bytes is None:
        return Division("disk", cache_bytes=disk_bfs.DEFAULT_CACHE_BYTES)
    least_bytes = (
        used_bytes()
        + (0 if graph.has_disk_rows else graph.sizes.fast_bytes)
        + check_bytes
        + disk_bfs.bitmap_bytes(n)
        + disk_bfs.SCRATCH_BYTES
        + disk_bfs.LEAST_CACHE_BYTES
        + WINDOW_BYTES
    )
    if least_bytes > budget_bytes:
        if engine == "auto":
            least_bytes = min(least_bytes, mapped_bytes)
        raise _too_small(graph, least_bytes, budget_bytes)
    free_bytes = budget_bytes - least_bytes
    cache_bytes = disk_bfs.LEAST_CACHE_BYTES + max(0, free_bytes - results_bytes)
    return Division("disk", ResultArrays(free_bytes, tmp or spill_folder(graph)), cache_bytes)


def divide_components(
    graph: Graph,
    engine: str,
    budget_bytes: int | None,
    *,
    tmp: str | os.PathLike[str] | None,
) -> Division:
    """Decide how connected components keep within a budget, as ``divide`` does for traversals."""
    n = graph.num_vertices
    # Counts, and labels as ids, beside the labels of stored vertices; smallest positions come and go before.
    results_bytes = 12 * n
    mapped_bytes = used_bytes() + 4 * n + results_bytes + graph.sizes.unpacked_bytes
    if engine == "auto":
        mapped_bytes = max(mapped_bytes, graph.sizes.file_bytes)
    if engine != "disk":
        if budget_bytes is None or mapped_bytes <= budget_bytes:
            return Division()
        if engine == "cpu":
            raise _too_small(graph, mapped_bytes, budget_bytes, "finding components")
    _refuse_compressed(graph)
    from oocbfs.disk import components as disk_components

    disk_components.load()
    if budget_bytes is None:
        return Division("disk")
    least_bytes = (
        used_bytes()
        + (0 if graph.has_disk_rows else graph.sizes.fast_bytes)
        + 4 * n
        + disk_components.SCRATCH_BYTES
        + WINDOW_BYTES
    )
    if least_bytes > budget_bytes:
        if engine == "auto":
            least_bytes = min(least_bytes, mapped_bytes)
        raise _too_small(graph, least_bytes, budget_bytes, "finding components")
    return Division("disk", ResultArrays(budget_bytes - least_bytes, tmp or spill_folder(graph)))


def _refuse_compressed(graph: Graph) -> None:
    if graph.sizes.unpacked_bytes:
        raise BudgetError(
            f"{graph.path}: a compressed graph cannot be traversed from disk, and takes "
            f"{memory.format_size(graph.sizes.unpacked_bytes)} of memory unpacked: allow more, or "
            "convert it without --zstd"
        )


def allow_unpacking(
    path: str | os.PathLike[str], unpacked_bytes: int, budget_bytes: int | None = None
) -> None:
    """Refuse to unpack a compressed graph that would not fit, before it takes the memory.

    Raises
    ------
    BudgetError
        If it is more than the budget leaves, or than the machine has.
    """
    free_bytes = memory.available_bytes()
    if budget_bytes is not None:
        free_bytes = min(free_bytes, max(0, budget_bytes - used_bytes()))
    if unpacked_bytes > free_bytes:
        raise BudgetError(
            f"{path}: takes {memory.format_size(unpacked_bytes)} of memory unpacked, and "
            f"{memory.format_size(free_bytes)} may be taken: allow more, or convert it without --zstd"
        )
    on_unpacking(os.fspath(path), unpacked_bytes)


def pinnable_bytes(graph: Graph, budget_bytes: int | None, *, with_parents: bool) -> int:
    """Tell how much host memory a traversal on a device may pin; without a budget, what is free."""
    if budget_bytes is None:
        return memory.available_bytes()
    # Levels of stored vertices, as they come from the device, and of ids; the same of parents.
    results_bytes = graph.num_vertices * (12 + 16 * with_parents)
    return budget_bytes - used_bytes() - results_bytes


def spill_folder(graph: Graph) -> Path | None:
    """Give the folder for results that have no room: the system's is often a part of the memory."""
    folder = Path(graph.path).parent
    return folder if os.access(folder, os.W_OK) else None


def used_bytes() -> int:
    """Tell what the process occupies already, and what escapes all counting."""
    return memory.program_bytes() + memory.anonymous_bytes() + _MARGIN_BYTES


def _mapped_work(graph: Graph, threads: int) -> int:
    """Tell what the in-memory engine takes beside its results: queue, bitmaps, scratch."""
    n = graph.num_vertices
    bitmaps = (n // 8 + 16) * max(3, threads + 1)
    return 4 * n + bitmaps + (1 << 20) * threads + graph.sizes.unpacked_bytes


def _too_small(
    graph: Graph, least_bytes: int, budget_bytes: int, what: str = "a traversal"
) -> BudgetError:
    return BudgetError(
        f"{graph.path}: {what} needs {memory.format_size(least_bytes)} of memory and may take "
        f"{memory.format_size(budget_bytes)}: allow more"
    )

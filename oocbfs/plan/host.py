"""Divide a memory budget before a traversal: what stays in memory, and whether tails stay on disk.

The mapped file costs nothing that the kernel cannot take back, so a graph whose file is within the
budget is traversed from its mapping. Otherwise heads and starts go into memory of our own, tails
are read as they are needed, and results that have no room any more live in mapped files.
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
from oocbfs.plan import disk
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_graph import AnyGraph
    from oocbfs.graph.stored import StoredGraph

# A part of a mapped result that is put together in memory.
PIECE_BYTES = 16 << 20
# Files that are smaller are read in no time, and files are warm if this share of them is cached.
_LEAST_COLD_BYTES = 512 << 20
_WARM_SHARE = 0.5


@dataclass(frozen=True)
class Division:
    """What a search may take: an engine, memory for its results, and a cache for tails on disk."""

    engine: str = "cpu"
    arrays: ResultArrays = field(default_factory=ResultArrays)
    cache_bytes: int = 0


@dataclass(frozen=True)
class Needs:
    """What a search takes beside the graph: its results, and more on the mapping or from disk.

    With a cache for tails on disk, ``least_cache_bytes`` are the least it can do with.
    """

    what: str
    results_bytes: int
    mapped_bytes: int
    disk_bytes: int
    least_cache_bytes: int = 0
    default_cache_bytes: int = 0


def traversal_needs(
    graph: StoredGraph, *, with_parents: bool, validate: bool, threads: int
) -> Needs:
    """Tell what a traversal from one source takes."""
    n = graph.num_vertices
    check_bytes = 4 * n * validate
    queue_bytes = 4 * n
    byte_levels_bytes = n
    bitmaps_bytes = (n // 8 + 16) * max(3, threads + 1)
    scratch_bytes = (1 << 20) * threads
    return Needs(
        what="a traversal",
        # Levels of stored vertices and of ids, and parents of both.
        results_bytes=4 * n + (4 * n if graph.is_reordered else 0) + 12 * n * with_parents,
        mapped_bytes=check_bytes + queue_bytes + byte_levels_bytes + bitmaps_bytes + scratch_bytes,
        disk_bytes=check_bytes + disk.bitmap_bytes(n) + disk.TRAVERSAL_BYTES,
        least_cache_bytes=disk.LEAST_CACHE_BYTES,
        default_cache_bytes=disk.DEFAULT_CACHE_BYTES,
    )


def components_needs(graph: StoredGraph) -> Needs:
    """Tell what connected components take."""
    labels_bytes = 4 * graph.num_vertices
    return Needs(
        what="finding components",
        # Counts, and labels as ids; smallest positions come and go before.
        results_bytes=12 * graph.num_vertices,
        mapped_bytes=labels_bytes,
        disk_bytes=labels_bytes + disk.COMPONENTS_BYTES,
    )


def divide(
    graph: StoredGraph, needs: Needs, settings: Settings, load_disk: Callable[[], object]
) -> Division:
    """Decide how a search keeps within a budget, if it has one.

    ``load_disk`` loads the engine that reads from disk, whose code takes memory too.

    Raises
    ------
    BudgetError
        If nothing fits; says how much would.
    """
    engine, budget_bytes = settings.engine, settings.memory
    mapped_bytes = memory.used_bytes() + needs.results_bytes + needs.mapped_bytes
    mapped_bytes += graph.sizes.unpacked_bytes
    if engine == "auto":
        mapped_bytes = max(mapped_bytes, graph.sizes.file_bytes)
    if engine != "disk":
        if budget_bytes is None:
            return Division(arrays=ResultArrays(pool=graph.result_pool))
        if mapped_bytes <= budget_bytes:
            return Division()
        if engine == "cpu":
            raise _too_small(graph, needs.what, mapped_bytes, budget_bytes)
    _refuse_compressed(graph)
    load_disk()
    if budget_bytes is None:
        return Division("disk", cache_bytes=needs.default_cache_bytes)
    least_bytes = (
        memory.used_bytes()
        + (0 if graph.has_disk_rows else graph.sizes.fast_bytes)
        + needs.disk_bytes
        + needs.least_cache_bytes
        + PIECE_BYTES
    )
    if least_bytes > budget_bytes:
        if engine == "auto":
            least_bytes = min(least_bytes, mapped_bytes)
        raise _too_small(graph, needs.what, least_bytes, budget_bytes)
    free_bytes = budget_bytes - least_bytes
    cache_bytes = needs.least_cache_bytes
    if cache_bytes:
        cache_bytes += max(0, free_bytes - needs.results_bytes)
    arrays = ResultArrays(free_bytes, settings.tmp or spill_folder(graph))
    return Division("disk", arrays, cache_bytes)


def why_disk(graph: StoredGraph) -> str | None:
    """Tell why a search without a budget is faster from disk, if it is: the file is not cached.

    In the order of degrees, heads answer for most vertices, and a level needs few pages of the
    tails: reading those takes a third of the time that a mapping takes, which brings their
    neighbours, too. In other orders most pages are needed, and the mapping is faster. The next
    search of an open graph is from the mapping anyway, if the file has room in memory: then all the
    later ones are faster.
    """
    file_bytes = graph.sizes.file_bytes
    if graph.sizes.unpacked_bytes or file_bytes < _LEAST_COLD_BYTES or not graph.is_by_degree:
        return None
    if graph.has_disk_rows and file_bytes < memory.available_bytes():
        return None
    share = graph.cached_share()
    if share is None or share > _WARM_SHARE:
        return None
    return f"{1 - share:.0%} of the file is not in memory yet"


def _refuse_compressed(graph: StoredGraph) -> None:
    if graph.sizes.unpacked_bytes:
        raise BudgetError(
            f"{graph.path}: a compressed graph cannot be traversed from disk, and takes "
            f"{memory.format_size(graph.sizes.unpacked_bytes)} of memory unpacked: allow more, or "
            "convert it without --zstd"
        )


def pinnable_bytes(graph: AnyGraph, budget_bytes: int | None, *, with_parents: bool) -> int:
    """Tell how much host memory a traversal on a device may pin; without a budget, what is free."""
    if budget_bytes is None:
        return memory.available_bytes()
    # Levels of stored vertices, as they come from the device, and of ids; the same of parents.
    results_bytes = graph.num_vertices * (12 + 16 * with_parents)
    return budget_bytes - memory.used_bytes() - results_bytes


def spill_folder(graph: StoredGraph) -> Path | None:
    """Give the folder for results that have no room: the system's is often a part of the memory."""
    folder = Path(graph.path).parent
    return folder if os.access(folder, os.W_OK) else None


def _too_small(graph: StoredGraph, what: str, least_bytes: int, budget_bytes: int) -> BudgetError:
    return BudgetError(
        f"{graph.path}: {what} needs {memory.format_size(least_bytes)} of memory and may take "
        f"{memory.format_size(budget_bytes)}: allow more"
    )

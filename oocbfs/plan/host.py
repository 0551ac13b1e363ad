"""Plan the memory of a search: what stays in memory, and whether tails stay on disk.

A budget is a limit of the whole process: the program with its code, the pages of the file that it
maps, and all that it allocates. So a graph is searched from its mapping if the whole file has room
beside the rest. Otherwise heads and starts go into memory of our own and tails are read as they are
needed. What a search writes at random stays in memory; results in the order of the ids that have no
room any more live in mapped files, and are let go of piece by piece.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from oocbfs import memory
from oocbfs.arrays import ResultArrays
from oocbfs.errors import BudgetError
from oocbfs.formats.container.layout import CHUNK_BYTES
from oocbfs.formats.io.ordered import available_threads
from oocbfs.formats.io.zstd_library import CONTEXT_BYTES
from oocbfs.kernels.compiling import Code, compile_apart, missing
from oocbfs.kernels.frames import READ_AT
from oocbfs.plan import disk
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.plan.described import Described

    # What is known of a graph, whether it is there or not.
    Sized: TypeAlias = StoredGraph | Described

# A part of a mapped result that is put together in memory, and of tails that a check reads.
PIECE_BYTES = 16 << 20
# What each thread takes that unpacks what stays in memory, and malloc does not always give back:
# frames as they are read, scratch, and its stack.
_UNPACKING_BYTES = CHUNK_BYTES + READ_AT + CONTEXT_BYTES + (128 << 10)
# What another process takes that compiles one kernel, beside the pages that it shares with this
# one, and what this one takes if it has to compile them all.
_COMPILING_BYTES = 128 << 20
# Files that are smaller are read in no time, and files are warm if this share of them is cached.
_LEAST_COLD_BYTES = 512 << 20
_WARM_SHARE = 0.5


@dataclass(frozen=True)
class MemoryPlan:
    """What a search may take: an engine, memory for its results, and a cache for tails on disk.

    ``needed_bytes`` are the least budget with which this engine runs.
    """

    engine: str = "cpu"
    arrays: ResultArrays = field(default_factory=ResultArrays)
    cache_bytes: int = 0
    needed_bytes: int = 0


@dataclass(frozen=True)
class Needs:
    """What a search takes beside the graph, on the mapping or from disk.

    From disk it holds ``held_bytes`` all the time, ``kept_bytes`` of result arrays that are written
    at random, ``search_bytes`` and a cache while it searches, and ``to_ids_bytes`` while it brings
    its results into the order of the ids.
    """

    what: str
    mapped_bytes: int
    results_bytes: int
    held_bytes: int
    kept_bytes: int
    search_bytes: int
    to_ids_bytes: int
    least_cache_bytes: int = 0
    default_cache_bytes: int = 0

    @property
    def disk_bytes(self) -> int:
        """The least that this takes from disk."""
        searching = self.search_bytes + self.least_cache_bytes
        return self.held_bytes + self.kept_bytes + max(searching, self.to_ids_bytes + PIECE_BYTES)


def search_needs(graph: Sized, *, with_parents: bool, validate: bool, threads: int) -> Needs:
    """Return what a search from one source takes."""
    n = graph.num_vertices
    check_bytes = (4 * n + PIECE_BYTES + graph.sizes.fast_bytes) * validate
    queue_bytes = 4 * n
    byte_levels_bytes = n
    bitmaps_bytes = (n // 8 + 16) * max(3, threads + 1)
    scratch_bytes = (1 << 20) * threads
    # Levels of stored vertices and of ids, and parents of both.
    stored_bytes = 4 * n * (1 + with_parents)
    by_id_bytes = 4 * n * graph.is_reordered + 8 * n * with_parents
    # Who has no budget for the graph itself looks vertices up in memory.
    ranks_bytes = 4 * n * (graph.is_reordered and graph.budget_bytes is None)
    return Needs(
        what="a search",
        results_bytes=stored_bytes + by_id_bytes,
        mapped_bytes=stored_bytes
        + by_id_bytes
        + ranks_bytes
        + check_bytes
        + queue_bytes
        + byte_levels_bytes
        + bitmaps_bytes
        + scratch_bytes,
        held_bytes=ranks_bytes + _unpacking_bytes(graph),
        kept_bytes=stored_bytes,
        search_bytes=disk.bitmap_bytes(n)
        + disk.SEARCH_BYTES
        + disk.more_threads_bytes(threads)
        + disk.scratch_bytes(threads) * graph.sizes.has_framed_tails,
        # Degrees are read, and then the order with the ids of parents; pages are let go of in
        # between. A check looks at what is handed out.
        to_ids_bytes=max(4 * n, _order_bytes(graph, with_ids=with_parents)) + check_bytes,
        least_cache_bytes=disk.LEAST_CACHE_BYTES,
        default_cache_bytes=disk.DEFAULT_CACHE_BYTES,
    )


def components_needs(graph: StoredGraph, *, validate: bool) -> Needs:
    """Return what connected components take."""
    n = graph.num_vertices
    labels_bytes = 4 * n
    # Smallest positions come and go before the counts.
    counts_bytes = 4 * n
    by_id_bytes = 8 * n
    check_bytes = (8 * n + PIECE_BYTES + graph.sizes.fast_bytes) * validate
    return Needs(
        what="finding components",
        results_bytes=counts_bytes + by_id_bytes,
        mapped_bytes=labels_bytes + counts_bytes + by_id_bytes + check_bytes,
        held_bytes=labels_bytes + _unpacking_bytes(graph),
        kept_bytes=counts_bytes,
        search_bytes=disk.COMPONENTS_BYTES + disk.scratch_bytes() * graph.sizes.has_framed_tails,
        to_ids_bytes=_order_bytes(graph, with_ids=True) + check_bytes,
    )


def _unpacking_bytes(graph: Sized) -> int:
    """Return what unpacking will leave, if it has not yet."""
    still_to_come = graph.sizes.has_frames and not graph.has_disk_rows
    return _UNPACKING_BYTES * available_threads() * still_to_come


def _order_bytes(graph: Sized, *, with_ids: bool) -> int:
    """Return what the pages take that say where the results of stored vertices go."""
    return 4 * graph.num_vertices * graph.is_reordered + graph.sizes.ids_bytes * with_ids


def expect_code(path: str, codes: Iterable[Code], budget_bytes: int | None) -> None:
    """Compile what a search within a budget needs and the cache does not have, in other processes.

    Raises
    ------
    BudgetError
        If compiling does not fit; says how much it needs.
    """
    if budget_bytes is None or not (codes := missing(codes)):
        return
    needed_bytes = memory.used_bytes() + _COMPILING_BYTES
    if needed_bytes > budget_bytes:
        raise BudgetError(
            f"{path}: compiling kernels, once, needs {memory.format_size(needed_bytes)} of memory "
            f"and may take {memory.format_size(budget_bytes)}: allow more, or run "
            "'oocbfs doctor --compile' first",
            needed_bytes,
        )
    compile_apart(codes)


def plan_memory(
    graph: StoredGraph, needs: Needs, settings: Settings, load_disk: Callable[[], object]
) -> MemoryPlan:
    """Decide how a search keeps within a budget, if it has one.

    ``load_disk`` loads the engine that reads from disk, whose code takes memory too.

    Raises
    ------
    BudgetError
        If nothing fits; says how much would.
    """
    engine, budget_bytes = settings.engine, settings.memory
    disk_bytes = graph.fast_bytes + needs.disk_bytes + needs.default_cache_bytes
    memory.expect_addresses(graph.sizes.file_bytes + max(needs.mapped_bytes, disk_bytes))
    mapped_bytes = mapping_bytes(graph) + needs.mapped_bytes
    if engine != "disk":
        if budget_bytes is None:
            pooled = ResultArrays(pool=graph.result_pool)
            return MemoryPlan(arrays=pooled, needed_bytes=mapped_bytes)
        if mapped_bytes <= budget_bytes:
            return MemoryPlan(needed_bytes=mapped_bytes)
        if engine == "cpu":
            raise _too_small(graph, needs.what, mapped_bytes, budget_bytes)
    _refuse_archive(graph, mapped_bytes)
    load_disk()
    least_bytes = fast_bytes(graph) + needs.disk_bytes
    if budget_bytes is None:
        return MemoryPlan("disk", cache_bytes=needs.default_cache_bytes, needed_bytes=least_bytes)
    if least_bytes > budget_bytes:
        if engine == "auto":
            least_bytes = min(least_bytes, mapped_bytes)
        raise _too_small(graph, needs.what, least_bytes, budget_bytes)
    free_bytes = budget_bytes - least_bytes
    cache_bytes = needs.least_cache_bytes
    if cache_bytes:
        cache_bytes += max(0, free_bytes - needs.results_bytes)
    arrays = ResultArrays(needs.kept_bytes + free_bytes, settings.tmp or spill_folder(graph))
    return MemoryPlan("disk", arrays, cache_bytes, least_bytes)


def unbounded_plan(graph: AnyStored, engine: str) -> MemoryPlan:
    """Return what a search may take that no budget bounds."""
    return MemoryPlan(engine, ResultArrays(pool=graph.result_pool), disk.DEFAULT_CACHE_BYTES)


def mapping_bytes(graph: Sized) -> int:
    """Return what the process takes with all of the file's pages, and what they unpack to."""
    file_bytes = graph.sizes.file_bytes + graph.sizes.unpacked_bytes
    return memory.used_bytes(graph.disk_rows_bytes) + file_bytes


def fast_bytes(graph: Sized) -> int:
    """Return what the process takes with heads and starts in memory, and tails on disk."""
    return memory.used_bytes(graph.disk_rows_bytes) + graph.fast_bytes


def why_disk(graph: StoredGraph) -> str | None:
    """Return why a search without a budget is from disk, if it is: it is faster if not cached.

    In the order of degrees, heads answer for most vertices, and a level needs few pages of the
    tails: reading those takes a third of the time that a mapping takes, which brings their
    neighbours, too. In other orders most pages are needed, and the mapping is faster. The next
    search of an open graph is from the mapping anyway, if the file has room in memory: then all the
    later ones are faster.
    """
    if graph.lacks_room:
        size = memory.format_size(graph.sizes.unpacked_bytes)
        return f"the graph has no room in memory, where it takes {size} unpacked"
    if graph.sizes.is_archive or graph.sizes.has_framed_tails or not graph.is_by_degree:
        return None
    if graph.has_disk_rows and graph.sizes.file_bytes < memory.available_bytes():
        return None
    share = _cold_share(graph)
    return None if share is None else f"{share:.0%} of the file is not in memory yet"


def is_cold(graph: StoredGraph) -> bool:
    """Return whether a file is large and mostly not in memory."""
    return _cold_share(graph) is not None


def _cold_share(graph: StoredGraph) -> float | None:
    """Return which share of a large file is not in memory; None if that is little or unknown."""
    if graph.sizes.file_bytes < _LEAST_COLD_BYTES:
        return None
    share = graph.cached_share()
    return None if share is None or share > _WARM_SHARE else 1 - share


def _refuse_archive(graph: StoredGraph, mapped_bytes: int) -> None:
    if graph.sizes.is_archive:
        raise BudgetError(
            f"{graph.path}: a graph of the older compressed kind cannot be searched from disk, and "
            f"takes {memory.format_size(graph.sizes.unpacked_bytes)} of memory unpacked: allow "
            "more, or convert it again",
            mapped_bytes,
        )


def pinnable_bytes(graph: AnyStored, budget_bytes: int | None, *, with_parents: bool) -> int:
    """Return how much host memory a search on a device may pin; without a budget, all free."""
    if budget_bytes is None:
        return memory.available_bytes()
    # Levels of stored vertices, as they come from the device, and of ids; the same of parents.
    results_bytes = graph.num_vertices * (12 + 16 * with_parents)
    return budget_bytes - memory.used_bytes() - results_bytes


def spill_folder(graph: StoredGraph) -> Path | None:
    """Return the folder for results that have no room: the system's is often in memory."""
    folder = Path(graph.path).parent
    return folder if os.access(folder, os.W_OK) else None


def _too_small(graph: StoredGraph, what: str, least_bytes: int, budget_bytes: int) -> BudgetError:
    return BudgetError(
        f"{graph.path}: {what} needs {memory.format_size(least_bytes)} of memory and may take "
        f"{memory.format_size(budget_bytes)}: allow more",
        least_bytes,
    )

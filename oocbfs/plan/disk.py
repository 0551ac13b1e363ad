"""How much memory engines take whose tails stay on disk, beside the graph and the results."""

from __future__ import annotations

from oocbfs.formats.io.zstd_library import CONTEXT_BYTES
from oocbfs.kernels.bfs.search import MAX_RECORDS
from oocbfs.kernels.disk.small_level import QUEUE_SIZE, SMALL_BYTES
from oocbfs.kernels.disk.stream import BUFFER_BYTES, STORED_BYTES
from oocbfs.kernels.frames import READ_AT
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.record import LEVEL_RECORD

# Threads that read, each with one read in flight.
READERS = 16
# What a reader takes in any case: its buffer, and its stack.
_READER_BYTES = BUFFER_BYTES + (128 << 10)
LEAST_CACHE_BYTES = 4 << 20
DEFAULT_CACHE_BYTES = 256 << 20
# A reader with the ids that it finds.
_SEARCHER_BYTES = _READER_BYTES + 8 * BATCH
# What does not depend on the graph: readers, ids, queue, a row, and records with a column for the
# disk.
SEARCH_BYTES = (
    READERS * _SEARCHER_BYTES
    + 8 * QUEUE_SIZE
    + SMALL_BYTES
    + (LEVEL_RECORD.itemsize + 8) * MAX_RECORDS
)
COMPONENTS_BYTES = READERS * _READER_BYTES
# Of searches from many sources: readers, ids and sums.
MANY_BYTES = READERS * (_READER_BYTES + 4 * BATCH + 8 * 64 * 4)
# How many sources may be searched together.
WIDTHS = (64, 32, 16, 8)


def scratch_bytes(threads: int = 0) -> int:
    """Return what readers, or more threads, take besides where tails are in frames."""
    return max(threads, READERS) * (READ_AT + STORED_BYTES + CONTEXT_BYTES)


def more_threads_bytes(threads: int) -> int:
    """Return what a search takes besides with more threads than readers."""
    return max(0, threads - READERS) * _SEARCHER_BYTES


def bitmap_bytes(num_vertices: int) -> int:
    """Return what the four bitmaps of a search take."""
    return 4 * 8 * ((num_vertices + 63) // 64 + 1)


def words_bytes(num_vertices: int, width: int) -> int:
    """Return what the words of a search from so many sources take."""
    return 2 * num_vertices * width // 8

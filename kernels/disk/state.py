"""What the threads of a search share whose tails stay on disk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Words of every control array. The cursor has a cache line (8 words) of its own.
CURSOR = 0
# Sums over the threads of a step, and how it failed.
FOUND, EDGES, HEADS, TAIL_BYTES, DISK_BYTES, FAILED, SYSTEM_ERROR, FRAME = range(8, 16)
SUMS = slice(FOUND, FAILED)
# What the rows of the next frontier, and of the vertices whose heads missed, cost to read.
FRONTIER_PAGES, FRONTIER_READS, ROW_BYTES, PENDING_PAGES, PENDING_READS = range(16, 21)
COSTS = slice(FRONTIER_PAGES, PENDING_READS + 1)
# What the driver tells the threads, and what is kept between two levels.
LEVEL, FRONTIER_BITMAP, NEXT_BITMAP, VISITED_BITMAP, PENDING_BITMAP = range(24, 29)
BITMAPS = slice(FRONTIER_BITMAP, PENDING_BITMAP + 1)
FRONTIER_SIZE, QUEUE, FILLED, NUM_MISSING, DEPTH, LARGEST = range(29, 35)
CONTROL_WORDS = 40

# How a step failed: a tail holds what no converter wrote, the file cannot be read, or a frame of
# the out- or in-tails (a word tells which one) cannot be unpacked.
MALFORMED, READ_FAILED, DAMAGED, DAMAGED_IN = range(1, 5)


class DiskState(NamedTuple):
    """The arrays that the threads of a search share.

    bitmaps
        Four that take turns as frontier, next frontier, visited and pending (vertices whose heads
        missed); control words say which is which.
    buffers, ids
        Scratch, one row a thread.
    queue
        Frontier and next frontier of small levels.
    cache, tags, marks, missing
        Slots for blocks of tails; the block in each, the level that wanted it last, and the blocks
        that a level still lacks.
    row
        A row that lies in more than one block.
    """

    levels: NDArray[np.int32]
    parents: NDArray[np.uint32]
    bitmaps: NDArray[np.uint64]
    buffers: NDArray[np.uint8]
    ids: NDArray[np.uint32]
    queue: NDArray[np.uint32]
    cache: NDArray[np.uint8]
    tags: NDArray[np.int64]
    marks: NDArray[np.int32]
    missing: NDArray[np.int64]
    row: NDArray[np.uint8]
    records: NDArray[np.void]
    control: NDArray[np.int64]

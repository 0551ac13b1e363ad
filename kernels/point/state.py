"""What a search of a small reach works on: one thread's, and nothing of it as large as the graph.

Entries are vertices in the order in which they were found, which is that of a queue: each level is
a piece of it. A table leads from vertices to entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.array_types import (
    I32Array,
    I64Array,
    I64Grid,
    ReadI64Array,
    U8Array,
    U32Array,
    U64Array,
)
from oocbfs.kernels.constants import FRAME_BYTES, SEGMENT_BYTES, SLACK_BYTES
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.rows import Rows
from oocbfs.kernels.structs import at_address

# Words of every control array. ENTRIES are those that are there, FOUND how far what is found is
# filled; EDGES, ROWS and PAGES count what was looked at, until somebody sets them to 0;
# SYSTEM_ERROR is the number of a read that failed, or of a damaged frame, OUTCOME how a call ended,
# FRAMES how many frames were unpacked.
ENTRIES, FOUND, EDGES, ROWS, PAGES, SYSTEM_ERROR, OUTCOME, FRAMES = range(8)
# The first word that is free for searches.
FREE_WORD = 8
CONTROL_WORDS = 32

# How a walk over rows ended: at its end, because it was told to, because there is no room for more
# entries or for what is found, or because a row is damaged, the file cannot be read, or a frame is
# damaged.
WHOLE, STOPPED, NO_ENTRY_ROOM, NO_ROOM, MALFORMED, READ_FAILED, DAMAGED = range(7)

# Rows from disk whose reads are under way at a time.
ROWS_AHEAD = 128
# Sections that rows are read from, and what is known of each: where it begins in the file, the size
# of its contents, how they are packed, and its first entry of ``frames``, -1 if it has none.
HEADS, STARTS, TAILS = range(3)
AT, RAW_BYTES, CODING, FIRST_FRAME = range(4)
# Unpacked frames of a section that are kept.
KEPT_FRAMES = 32
# What is read of a long tail at a time.
BUFFER_SEGMENTS = 64
BUFFER_BYTES = BUFFER_SEGMENTS * SEGMENT_BYTES
# How many entries there is room for at first.
FIRST_ENTRIES = 1 << 10
FIRST_FOUND = 1 << 12
# By how much there is more when that is not enough.
GROWTH = 4
# Entries have 31 bits in a slot.
MOST_ENTRIES = 1 << 30


class SingleRows(NamedTuple):
    """One direction of a graph of which a few rows are read, mapped or on disk.

    Of its ``rows`` nothing was checked: kernels read nothing outside the arrays, and follow no id
    that is no vertex. ``descriptor`` is -1 where rows are in memory; otherwise arrays are empty,
    but for bases, and ``places`` has a row for each section, ``frames`` where the frames of each
    begin in it, and where its last one ends. Sections count from ``first_section`` on: others are
    those of the other direction.
    """

    rows: Rows
    tail_bytes: int
    places: I64Grid
    frames: ReadI64Array
    descriptor: int = -1
    decompress: int = 0
    first_section: int = 0


class Reach(NamedTuple):
    """What was reached, and what one thread needs to go on.

    slots
        The table: of the vertex of an entry, and which entry; see ``kernels.point.table``.
    queue, owners, levels
        Of each entry: its vertex, the entry that it was found from, and its level.
    found
        What a search lists: paths, or rows.
    ids
        The ids that a walk is at, with room for those of a segment more.
    buffer, spans
        Bytes of a tail from disk; head, begin and end of rows that are being read.
    unpacked, numbers, tags
        Frames that were unpacked, as bytes and as numbers, and which they are; none where sections
        have no frames.
    scratch
        What unpacking takes; see ``kernels.frames``.
    control
        The words above, and those of a search.
    """

    slots: U64Array
    queue: U32Array
    owners: U32Array
    levels: I32Array
    found: U32Array
    ids: U32Array
    buffer: U8Array
    spans: I64Grid
    unpacked: U8Array
    numbers: U32Array
    tags: I64Array
    scratch: U8Array
    control: I64Array


single_rows_at, reach_at = at_address(SingleRows), at_address(Reach)


def make_reach(entries: int = FIRST_ENTRIES, scratch: NDArray[np.uint8] | None = None) -> Reach:
    """Make an empty reach with room for so many entries, a power of 2.

    With scratch, it has room for frames.
    """
    num_frames = 0 if scratch is None else (TAILS + 1) * KEPT_FRAMES
    unpacked = np.empty(num_frames * FRAME_BYTES, np.uint8)
    return Reach(
        slots=np.zeros(2 * entries, np.uint64),
        queue=np.empty(entries, np.uint32),
        owners=np.empty(entries, np.uint32),
        levels=np.empty(entries, np.int32),
        found=np.empty(FIRST_FOUND, np.uint32),
        ids=np.empty(BATCH, np.uint32),
        buffer=np.zeros(BUFFER_BYTES + SLACK_BYTES, np.uint8),
        spans=np.zeros((3, ROWS_AHEAD), np.int64),
        unpacked=unpacked,
        numbers=unpacked.view(np.uint32),
        tags=np.full(num_frames, -1, np.int64),
        scratch=np.empty(0, np.uint8) if scratch is None else scratch,
        control=np.zeros(CONTROL_WORDS, np.int64),
    )


def grown(reach: Reach, factor: int = GROWTH) -> Reach:
    """Return a reach with more room for entries, and none of them; all else stays as it is."""
    entries = factor * reach.queue.size
    reach.control[ENTRIES] = 0
    return reach._replace(
        slots=np.zeros(2 * entries, np.uint64),
        queue=np.empty(entries, np.uint32),
        owners=np.empty(entries, np.uint32),
        levels=np.empty(entries, np.int32),
    )


def with_more_found(reach: Reach, factor: int = GROWTH) -> Reach:
    """Return a reach with more room for what is found; what is there stays there."""
    found = np.empty(factor * reach.found.size, np.uint32)
    filled = int(reach.control[FOUND])
    found[:filled] = reach.found[:filled]
    return reach._replace(found=found)


def num_bytes(reach: Reach) -> int:
    """Return the memory that a reach takes."""
    return sum(array.nbytes for array in reach) - reach.numbers.nbytes

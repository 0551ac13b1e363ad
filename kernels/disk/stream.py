"""Tails read from disk in the order of the file: one stream for all engines whose tails stay there.

The threads take chunks of the tails one after the other. Of a chunk they read only the pages that
hold wanted rows, with small gaps between them: such an *extent* comes in one read. There are many
more threads than cores: each waits for one read at a time, so their number is how many reads are in
flight. A row that crosses into the next chunk is cut where one of its segments begins, so that many
threads share a hub.

What is wanted may shrink while others work, also between a read and its use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocbfs.kernels.atomics import atomic_add, inlined, kernel
from oocbfs.kernels.constants import FRAME_BYTES, SEGMENT_BYTES
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import PAGE_BYTES, read_pages
from oocbfs.kernels.region import take_chunk
from oocbfs.kernels.rows import row_begin

# Tails that a thread takes at a time, and at most reads at once.
CHUNK_BYTES = 1 << 18
# What a thread's buffer holds: a chunk, and the rest of the pages in which it begins and ends.
BUFFER_BYTES = CHUNK_BYTES + 2 * PAGE_BYTES
# What scratch has room for: the frames that hold so much, and the rest of their pages.
STORED_BYTES = BUFFER_BYTES + 2 * FRAME_BYTES + 2 * PAGE_BYTES
# Pages between two wanted rows that are cheaper to read than another read would be.
GAP_PAGES = 4


class ReadCost(NamedTuple):
    """What reading some rows in the order of the file takes, and the page where they end."""

    end_page: int
    pages: int
    reads: int


# No rows: even those on the first page take a read.
NO_ROWS = ReadCost(end_page=-GAP_PAGES - 1, pages=0, reads=0)


class Extent(NamedTuple):
    """What one read brings: bytes of the rows first … end-1, as far as they lie in the chunk.

    No row between end and next_row is wanted.
    """

    first: int
    end: int
    next_row: int
    chunk_begin: int
    chunk_end: int
    first_page: int
    end_page: int


@kernel
def add_row(cost, begin, end):
    """Return what reading rows takes with one more, whose tail is at begin … end-1."""
    if begin >= end:
        return cost
    first_page = begin // PAGE_BYTES
    end_page = (end - 1) // PAGE_BYTES + 1
    if first_page > cost.end_page + GAP_PAGES:
        return ReadCost(end_page, cost.pages + end_page - first_page, cost.reads + 1)
    more_pages = max(0, end_page - cost.end_page)
    return ReadCost(cost.end_page + more_pages, cost.pages + more_pages, cost.reads)


@kernel
def _row_at(rows, offset):
    """Find the row that holds the tail byte at this offset."""
    low, high = np.int64(0), np.int64(rows.heads.size)
    while low < high:
        middle = (low + high) >> 1
        if row_begin(rows, middle + 1) > offset:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _next_segment(begin, offset):
    """Return the offset of the first segment, from offset on, of a row that begins at ``begin``."""
    return begin + (offset - begin + SEGMENT_BYTES - 1) // SEGMENT_BYTES * SEGMENT_BYTES


@kernel
def _row_part(rows, u, chunk_begin, chunk_end):
    """Return begin and end of what belongs to a chunk of row u: whole segments, maybe none."""
    row, row_end = row_begin(rows, u), row_begin(rows, u + 1)
    begin = _next_segment(row, chunk_begin) if chunk_begin > row else row
    end = min(row_end, _next_segment(row, chunk_end)) if chunk_end < row_end else row_end
    return begin, end


@inlined
def part_in_buffer(rows, u, extent):
    """Return begin and end of a row's part in the buffer that the extent was read into."""
    begin, end = _row_part(rows, u, extent.chunk_begin, extent.chunk_end)
    shift = extent.first_page * PAGE_BYTES
    return begin - shift, end - shift


def make_stream(find_wanted, next_wanted, use_extent):
    """Make the kernel that reads the rows that are wanted and uses them.

    Parameters
    ----------
    find_wanted(state)
        Returns numbers that tell which rows are wanted; called before every read.
    next_wanted(rows, state, wanted, u, end)
        Returns the first vertex from u on whose row is wanted by these numbers, or the end.
    use_extent(rows, state, wanted, extent, buffer, thread)
        Uses the rows in the buffer that are still wanted; returns edges and tail bytes, or -1 edges
        if a row is malformed.
    """

    @kernel
    def next_extent(rows, state, wanted, u, stop, chunk_begin, chunk_end):
        """Find the next wanted rows that one read brings; first is ``stop`` if there are none."""
        first = end = stop
        first_page = end_page = np.int64(-1)
        u = next_wanted(rows, state, wanted, u, stop)
        while u < stop:
            begin, part_end = _row_part(rows, u, chunk_begin, chunk_end)
            if begin < part_end:
                page = begin // PAGE_BYTES
                if end_page < 0:
                    first, first_page = u, page
                elif page > end_page + GAP_PAGES:
                    break
                end_page = max(end_page, (part_end - 1) // PAGE_BYTES + 1)
                end = u + 1
            u = next_wanted(rows, state, wanted, u + 1, stop)
        return Extent(first, end, u, chunk_begin, chunk_end, first_page, end_page)

    @kernel
    def stream(rows, disk, state, thread):
        """Take chunks of the tails until none are left; read their wanted rows and use them."""
        control, buffer = state.control, state.buffers[thread]
        scratch = buffer[BUFFER_BYTES:]
        edges = 0
        num_bytes = 0
        while control[words.FAILED] == 0:
            chunk_begin, chunk_end = take_chunk(control, words.CURSOR, CHUNK_BYTES, disk.tail_bytes)
            if chunk_begin == chunk_end:
                break
            u, stop = _row_at(rows, chunk_begin), _row_at(rows, chunk_end - 1) + 1
            while control[words.FAILED] == 0:
                wanted = find_wanted(state)
                extent = next_extent(rows, state, wanted, u, stop, chunk_begin, chunk_end)
                if extent.first >= stop:
                    break
                begin, end = extent.first_page * PAGE_BYTES, extent.end_page * PAGE_BYTES
                if not read_pages(buffer, 0, end - begin, disk, begin, control, scratch):
                    break
                more_edges, more_bytes = use_extent(rows, state, wanted, extent, buffer, thread)
                if more_edges < 0:
                    control[words.FAILED] = words.MALFORMED
                    break
                edges += more_edges
                num_bytes += more_bytes
                u = extent.next_row
        atomic_add(control, words.EDGES, edges)
        atomic_add(control, words.TAIL_BYTES, num_bytes)

    return stream

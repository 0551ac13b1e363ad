"""A walk over the rows of some entries, mapped or read from disk one by one.

From disk, a row takes three reads: its head, where its tail begins and ends, and its tail. Of up to
ROWS_AHEAD rows the first two are asked for at once, then the third, so that the disk has that many
to do at a time, while one thread waits for them in turn. Where the page cache has them, they are
copies of a few bytes.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel, load_word, prefetch
from oocbfs.kernels.constants import HALF_BITS, LOW_HALF, SEGMENT_BYTES
from oocbfs.kernels.gather import gather_segment
from oocbfs.kernels.point import state as words
from oocbfs.kernels.point.read import expect_contents, read_contents

_AHEAD = 4
# Rows of spans.
_HEAD, _BEGIN, _END = range(3)


@inlined
def tail_begin(rows, u, start):
    """Return where row u's tail begins, whose entry of the starts is given; never outside."""
    offset = rows.bases[u >> rows.shift] + np.uint64(start)
    return np.int64(min(offset, np.uint64(rows.tail_bytes)))


@inlined
def degree_of(rows, u):
    """Return what a row costs to walk over: its degree; from disk, where rows cost reads, 1."""
    return np.int64(1) if rows.degrees.size == 0 else np.int64(rows.degrees[u])


@inlined
def expect_row(rows, u):
    """Ask for the begin of a row that is in memory: its head, and where its tail is."""
    prefetch(rows.heads, u)
    prefetch(rows.starts, u)


@inlined
def expect_tail(rows, u):
    """Ask for the tail of such a row."""
    prefetch(rows.tails, tail_begin(rows, u, rows.starts[u]))


def make_walk(visit):
    """Make the walk that shows the ids of rows to ``visit``.

    ``visit(rows, reach, entry, count)`` looks at reach.ids[:count], neighbours of the vertex of an
    entry, and gives WHOLE, or how the walk ends. A row comes in pieces of at most
    SEGMENT_BYTES + 1 ids.
    """

    @kernel
    def show_tail(rows, reach, entry, count, tails, begin, end):
        """Show the ids of tails[begin:end], whole segments, after ``count`` ids that are there."""
        status = np.int64(words.WHOLE)
        offset = begin
        while True:
            segment_end = min(offset + SEGMENT_BYTES, end)
            count = gather_segment(reach.ids, count, tails, offset, segment_end, rows.num_ids)
            if count < 0:
                return np.int64(words.MALFORMED)
            reach.control[words.EDGES] += count
            status = visit(rows, reach, entry, count)
            offset = segment_end
            if status != words.WHOLE or offset >= end:
                return status
            count = np.int64(0)

    @kernel
    def walk_mapped(rows, reach, first, stop):
        """Walk over rows that are in memory."""
        heads, starts, tails, queue = rows.heads, rows.starts, rows.tails, reach.queue
        for entry in range(first, min(first + 2 * _AHEAD, stop)):
            expect_row(rows, np.int64(queue[entry]))
        for entry in range(first, min(first + _AHEAD, stop)):
            expect_tail(rows, np.int64(queue[entry]))
        for entry in range(first, stop):
            if entry + 2 * _AHEAD < stop:
                expect_row(rows, np.int64(queue[entry + 2 * _AHEAD]))
            if entry + _AHEAD < stop:
                expect_tail(rows, np.int64(queue[entry + _AHEAD]))
            u = np.int64(queue[entry])
            begin = tail_begin(rows, u, starts[u])
            end = tail_begin(rows, u + 1, starts[u + 1])
            head = heads[u]
            reach.ids[0] = head
            count = np.int64(head < rows.num_ids)
            if begin > end or (count == 0 and begin < end):
                return np.int64(words.MALFORMED)
            status = show_tail(rows, reach, entry, count, tails, begin, end)
            if status != words.WHOLE:
                return status
        return np.int64(words.WHOLE)

    @kernel
    def read_spans(rows, reach, first, stop):
        """Read the heads of rows and where their tails are, and ask for the tails."""
        spans, buffer = reach.spans, reach.buffer
        if stop - first > 1:
            for entry in range(first, stop):
                u = np.int64(reach.queue[entry])
                expect_contents(rows, words.HEADS, 4 * u, np.int64(4))
                expect_contents(rows, words.STARTS, 4 * u, np.int64(8))
        for entry in range(first, stop):
            u = np.int64(reach.queue[entry])
            i = entry - first
            status = read_contents(rows, reach, words.HEADS, 4 * u, np.int64(4))
            if status != words.WHOLE:
                return status
            spans[_HEAD, i] = np.int64(load_word(buffer, 0) & LOW_HALF)
            status = read_contents(rows, reach, words.STARTS, 4 * u, np.int64(8))
            if status != words.WHOLE:
                return status
            word = load_word(buffer, 0)
            begin, end = (
                tail_begin(rows, u, word & LOW_HALF),
                tail_begin(rows, u + 1, word >> HALF_BITS),
            )
            has_head = spans[_HEAD, i] < rows.num_ids
            if begin > end or (begin < end and not has_head):
                return np.int64(words.MALFORMED)
            spans[_BEGIN, i], spans[_END, i] = begin, end
            if begin < end and stop - first > 1:
                size = min(end - begin, np.int64(words.BUFFER_BYTES))
                expect_contents(rows, words.TAILS, begin, size)
        return np.int64(words.WHOLE)

    @kernel
    def show_from_disk(rows, reach, entry, i):
        """Show a row whose span is known, a piece of its tail at a time."""
        spans, buffer = reach.spans, reach.buffer
        begin, end = spans[_BEGIN, i], spans[_END, i]
        reach.ids[0] = np.uint32(spans[_HEAD, i])
        count = np.int64(spans[_HEAD, i] < rows.num_ids)
        while True:
            size = min(end - begin, np.int64(words.BUFFER_BYTES))
            status = np.int64(words.WHOLE)
            if size > 0:
                status = read_contents(rows, reach, words.TAILS, begin, size)
            if status != words.WHOLE:
                return status
            status = show_tail(rows, reach, entry, count, buffer, np.int64(0), size)
            begin += size
            if status != words.WHOLE or begin >= end:
                return status
            count = np.int64(0)

    @kernel
    def walk_disk(rows, reach, first, stop):
        """Walk over rows that are on disk, some of them under way at a time."""
        for begin in range(first, stop, words.ROWS_AHEAD):
            end = min(begin + words.ROWS_AHEAD, stop)
            status = read_spans(rows, reach, begin, end)
            if status != words.WHOLE:
                return status
            for entry in range(begin, end):
                status = show_from_disk(rows, reach, entry, entry - begin)
                if status != words.WHOLE:
                    return status
        return np.int64(words.WHOLE)

    @kernel
    def walk(rows, reach, first, stop):
        """Walk over the rows of the entries first … stop-1; say how it ended."""
        reach.control[words.ROWS] += stop - first
        if rows.descriptor < 0:
            return walk_mapped(rows, reach, first, stop)
        return walk_disk(rows, reach, first, stop)

    return walk

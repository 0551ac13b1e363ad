"""Wide levels of a traversal whose tails stay on disk.

The heads pass needs no disk. What it leaves pending is then answered by one of two *streams*: bottom-up
through the tails of the pending vertices, or top-down through those of the frontier. Both go through
the tails in the order of the file, in chunks that the threads take one after the other, and read
only the pages that hold wanted rows, with small gaps between them. There are many more threads than
cores: each waits for one read at a time, so their number is how many reads are in flight.

A row that crosses into the next chunk is cut where one of its segments begins, so that many threads
share a hub. A sweep ends the level: levels, visited bits, and what the next frontier costs to read.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, atomic_or, count_ones, kernel, trailing_zeros
from oocbfs.kernels.bfs.bottom_up import probe_segments, test_few_heads, test_heads
from oocbfs.kernels.bfs.frontier import mark
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES
from oocbfs.kernels.disk.read import PAGE_BYTES, read_pages
from oocbfs.kernels.disk.state import (
    CURSOR,
    EDGES,
    FAILED,
    FOUND,
    FRONT,
    FRONT_PAGES,
    FRONT_READS,
    HEADS,
    LEVEL,
    MALFORMED,
    NEXT,
    PENDING,
    PENDING_PAGES,
    PENDING_READS,
    ROW_BYTES,
    TAIL_BYTES,
    VISITED,
)
from oocbfs.kernels.region import ONE, ZERO
from oocbfs.kernels.rows import BATCH, FULL, gather_segment, row_begin

# Tails that a thread takes at a time, and at most reads at once.
CHUNK_BYTES = 1 << 18
# Pages between two wanted rows that are cheaper to read than another read would be.
GAP_PAGES = 4
_WORD_CHUNK = 512
_FEW = 16


@kernel
def add_row(reach, pages, reads, begin, end):
    """Count what reading one more row takes behind all those before, which end at page ``reach``."""
    if begin < end:
        first = begin // PAGE_BYTES
        last = (end - 1) // PAGE_BYTES + 1
        if first > reach + GAP_PAGES:
            reads += 1
            pages += last - first
        else:
            pages += max(0, last - reach)
        reach = max(reach, last)
    return reach, pages, reads


@kernel
def heads_pass(rows, state):
    """Answer open vertices by their heads; make the bitmap of the next frontier and of those pending."""
    heads, control = rows.heads, state.control
    front, after = state.bitmaps[control[FRONT]], state.bitmaps[control[NEXT]]
    visited, pending = state.bitmaps[control[VISITED]], state.bitmaps[control[PENDING]]
    with_parents = state.parents.size != 0
    n = heads.size
    num_words = (n + 63) >> 6
    tested = 0
    answered = 0
    pages = 0
    reads = 0
    while True:
        taken = atomic_add(control, CURSOR, _WORD_CHUNK)
        if taken >= num_words:
            break
        reach = np.int64(-GAP_PAGES - 1)
        for w in range(taken, min(taken + _WORD_CHUNK, num_words)):
            open_bits = ~visited[w]
            first = w * 64
            if open_bits == ZERO:
                after[w] = ZERO
                pending[w] = ZERO
                continue
            if first + 64 <= n and count_ones(open_bits) > _FEW:
                hits, none = test_heads(heads, front, first)
            else:
                hits, none = test_few_heads(heads, front, first, open_bits)
            hits &= open_bits
            after[w] = hits
            visited[w] |= hits | none
            tested += count_ones(open_bits & ~none)
            answered += count_ones(hits)
            open_bits &= ~(hits | none)
            if with_parents:
                while hits != ZERO:
                    u = first + trailing_zeros(hits)
                    state.parents[u] = heads[u]
                    hits &= hits - ONE
            left = ZERO
            while open_bits != ZERO:
                b = trailing_zeros(open_bits)
                open_bits &= open_bits - ONE
                begin, end = row_begin(rows, first + b), row_begin(rows, first + b + 1)
                left |= np.uint64(begin < end) << np.uint64(b)
                reach, pages, reads = add_row(reach, pages, reads, begin, end)
            pending[w] = left
    atomic_add(control, EDGES, tested)
    atomic_add(control, HEADS, answered)
    atomic_add(control, PENDING_PAGES, pages)
    atomic_add(control, PENDING_READS, reads)


@kernel
def sweep(rows, state):
    """Give the next frontier its level and count it, and what its rows will cost to read."""
    control, levels = state.control, state.levels
    after, visited = state.bitmaps[control[NEXT]], state.bitmaps[control[VISITED]]
    level = np.int32(control[LEVEL])
    num_words = (levels.size + 63) >> 6
    found = 0
    pages = 0
    reads = 0
    num_bytes = 0
    while True:
        taken = atomic_add(control, CURSOR, _WORD_CHUNK)
        if taken >= num_words:
            break
        reach = np.int64(-GAP_PAGES - 1)
        for w in range(taken, min(taken + _WORD_CHUNK, num_words)):
            bits = after[w]
            if bits == ZERO:
                continue
            visited[w] |= bits
            found += count_ones(bits)
            mark(levels, w * 64, bits, level)
            while bits != ZERO:
                u = w * 64 + trailing_zeros(bits)
                bits &= bits - ONE
                begin, end = row_begin(rows, u), row_begin(rows, u + 1)
                num_bytes += end - begin
                reach, pages, reads = add_row(reach, pages, reads, begin, end)
    atomic_add(control, FOUND, found)
    atomic_add(control, FRONT_PAGES, pages)
    atomic_add(control, FRONT_READS, reads)
    atomic_add(control, ROW_BYTES, num_bytes)


@kernel
def _claim(state, ids, owners, count):
    """Claim ids on the visited bitmap while others do the same, for the next frontier."""
    control, parents = state.control, state.parents
    after, visited = state.bitmaps[control[NEXT]], state.bitmaps[control[VISITED]]
    for i in range(count):
        v = ids[i]
        bit = ONE << np.uint64(v & 63)
        word = np.int64(v >> 6)
        if visited[word] & bit == ZERO and atomic_or(visited, word, bit) & bit == ZERO:
            atomic_or(after, word, bit)
            if parents.size != 0:
                parents[v] = owners[i]


@kernel
def visit_heads(rows, state, thread):
    """Claim the heads of the frontier."""
    heads, control = rows.heads, state.control
    front = state.bitmaps[control[FRONT]]
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    num_words = (heads.size + 63) >> 6
    count = 0
    edges = 0
    while True:
        taken = atomic_add(control, CURSOR, _WORD_CHUNK)
        if taken >= num_words:
            break
        for w in range(taken, min(taken + _WORD_CHUNK, num_words)):
            bits = front[w]
            while bits != ZERO:
                u = w * 64 + trailing_zeros(bits)
                bits &= bits - ONE
                ids[count] = heads[u]
                owners[count] = u
                count += np.int64(heads[u] != NO_HEAD)
            if count >= BATCH - 64:
                _claim(state, ids, owners, count)
                edges += count
                count = 0
    _claim(state, ids, owners, count)
    atomic_add(control, EDGES, edges + count)


@kernel
def row_at(rows, place):
    """Find the first row that ends behind this place, or begins there."""
    low, high = np.int64(0), np.int64(rows.heads.size)
    while low < high:
        middle = (low + high) >> 1
        if row_begin(rows, middle + 1) > place:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _next_wanted(wanted, u, stop):
    """Find the next vertex from u on whose bit is set; stop if there is none before."""
    if u >= stop:
        return stop
    w = u >> 6
    bits = wanted[w] & (~ZERO << np.uint64(u & 63))
    while bits == ZERO:
        w += 1
        if w * 64 >= stop:
            return stop
        bits = wanted[w]
    return min(w * 64 + trailing_zeros(bits), stop)


@kernel
def row_part(rows, u, low, high):
    """Give the part of row u that belongs to the chunk low … high-1: whole segments, maybe none."""
    begin, end = row_begin(rows, u), row_begin(rows, u + 1)
    last = end
    if high < end:
        last = min(end, begin + (high - begin + SEGMENT_BYTES - 1) // SEGMENT_BYTES * SEGMENT_BYTES)
    if low > begin:
        begin += (low - begin + SEGMENT_BYTES - 1) // SEGMENT_BYTES * SEGMENT_BYTES
    return begin, last


@kernel
def _next_extent(rows, wanted, found, u, stop, low, high):
    """Find the next wanted rows that one read brings, those already found left out.

    Gives the first row, the one behind the last, the first page and the page behind the last.
    """
    first = _next_wanted(wanted, u, stop)
    begin = end = np.int64(-1)
    u = first
    while u < stop:
        place, last = row_part(rows, u, low, high)
        if place < last and found[u >> 6] >> np.uint64(u & 63) & ONE == ZERO:
            if begin < 0:
                first = u
                begin = place // PAGE_BYTES
            elif place // PAGE_BYTES > end + GAP_PAGES:
                return first, u, begin, end
            end = max(end, (last - 1) // PAGE_BYTES + 1)
        u = _next_wanted(wanted, u + 1, stop)
    return first if begin >= 0 else stop, stop, begin, end


@kernel
def _probe_extent(rows, state, wanted, first, stop, low, high, buffer, shift):
    """Look for frontier vertices in the pending rows of one read; give edges and bytes, or -1."""
    control = state.control
    front, after = state.bitmaps[control[FRONT]], state.bitmaps[control[NEXT]]
    n = rows.heads.size
    edges = 0
    num_bytes = 0
    u = _next_wanted(wanted, first, stop)
    while u < stop:
        at, end = row_part(rows, u, low, high)
        # What was found before the read was planned has no bytes in the buffer.
        if at < end and after[u >> 6] >> np.uint64(u & 63) & ONE == ZERO:
            v, more_edges, more_bytes = probe_segments(buffer, n, front, at - shift, end - shift)
            if v >= n:
                return np.int64(-1), num_bytes
            edges += more_edges
            num_bytes += more_bytes
            if v >= 0:
                atomic_or(after, u >> 6, ONE << np.uint64(u & 63))
                if state.parents.size != 0:
                    state.parents[u] = v
        u = _next_wanted(wanted, u + 1, stop)
    return edges, num_bytes


@kernel
def _expand_extent(rows, state, wanted, first, stop, low, high, buffer, shift, thread):
    """Claim the neighbours in the frontier's rows of one read; give edges and bytes, or -1."""
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    n = rows.heads.size
    edges = 0
    num_bytes = 0
    count = np.int64(0)
    u = _next_wanted(wanted, first, stop)
    while u < stop:
        at, end = row_part(rows, u, low, high)
        num_bytes += max(0, end - at)
        while at < end:
            segment_end = min(at + SEGMENT_BYTES, end)
            gathered = gather_segment(ids, count, buffer, at - shift, segment_end - shift, n)
            if gathered < 0:
                return np.int64(-1), num_bytes
            owners[count:gathered] = u
            count = gathered
            if count >= FULL:
                _claim(state, ids, owners, count)
                edges += count
                count = np.int64(0)
            at = segment_end
        u = _next_wanted(wanted, u + 1, stop)
    _claim(state, ids, owners, count)
    return edges + count, num_bytes


@kernel
def stream(rows, disk, state, upward, thread):
    """Take chunks of the tails until none are left, read what they hold of wanted rows, and use it."""
    control, buffer = state.control, state.buffers[thread]
    wanted = state.bitmaps[control[PENDING] if upward else control[FRONT]]
    # Bottom-up, part of a hub may have been answered meanwhile. A frontier vertex never is.
    found = state.bitmaps[control[NEXT]]
    edges = 0
    num_bytes = 0
    while control[FAILED] == 0:
        low = atomic_add(control, CURSOR, CHUNK_BYTES)
        if low >= disk.tail_bytes:
            break
        high = min(low + CHUNK_BYTES, disk.tail_bytes)
        u, stop = row_at(rows, low), row_at(rows, high - 1) + 1
        while control[FAILED] == 0:
            first, u, begin, end = _next_extent(rows, wanted, found, u, stop, low, high)
            if first >= stop:
                break
            shift = begin * PAGE_BYTES
            if not read_pages(buffer, 0, (end - begin) * PAGE_BYTES, disk, shift, control):
                break
            if upward:
                more_edges, more_bytes = _probe_extent(
                    rows, state, wanted, first, u, low, high, buffer, shift
                )
            else:
                more_edges, more_bytes = _expand_extent(
                    rows, state, wanted, first, u, low, high, buffer, shift, thread
                )
            if more_edges < 0:
                control[FAILED] = MALFORMED
                break
            edges += more_edges
            num_bytes += more_bytes
    atomic_add(control, EDGES, edges)
    atomic_add(control, TAIL_BYTES, num_bytes)

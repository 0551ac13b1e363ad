"""Large levels of a traversal whose tails stay on disk.

The heads pass needs no disk. What it leaves pending is then answered by one of two streams:
bottom-up through the rows of the pending vertices, or top-down through those of the frontier. A
sweep ends the level: levels, visited bits, and what the next frontier costs to read.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import (
    atomic_add,
    atomic_or,
    count_ones,
    inlined,
    kernel,
    trailing_zeros,
)
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.passes import make_pass
from oocbfs.kernels.disk.stream import NO_ROWS, add_row, make_stream, part_in_buffer
from oocbfs.kernels.gather import BATCH, FULL, gather_segment
from oocbfs.kernels.heads import test_open_heads
from oocbfs.kernels.probe import probe_segments
from oocbfs.kernels.region import ONE, ZERO
from oocbfs.kernels.rows import row_begin

# Words of a bitmap that a thread takes at a time.
_WORD_CHUNK = 512


@inlined
def _add_rows(rows, first, bits, cost):
    """Add the rows of a word's bits to what is read.

    Gives the bits of those that have tails, the bytes of these, and the cost with them.
    """
    with_tails = ZERO
    num_bytes = np.int64(0)
    while bits != ZERO:
        b = trailing_zeros(bits)
        bits &= bits - ONE
        begin, end = row_begin(rows, first + b), row_begin(rows, first + b + 1)
        with_tails |= np.uint64(begin < end) << np.uint64(b)
        num_bytes += end - begin
        cost = add_row(cost, begin, end)
    return with_tails, num_bytes, cost


@kernel
def _test_words(rows, state, first_word, end_word, thread):
    """Answer open vertices by their heads; make the bitmaps next frontier and pending."""
    heads, control = rows.heads, state.control
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    next_frontier = state.bitmaps[control[words.NEXT_BITMAP]]
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    pending = state.bitmaps[control[words.PENDING_BITMAP]]
    with_parents = state.parents.size != 0
    tested = 0
    answered = 0
    cost = NO_ROWS
    for w in range(first_word, end_word):
        open_bits = ~visited[w]
        first = w * 64
        if open_bits == ZERO:
            next_frontier[w] = ZERO
            pending[w] = ZERO
            continue
        hits, none = test_open_heads(heads, rows.num_ids, frontier, first, open_bits)
        next_frontier[w] = hits
        visited[w] |= hits | none
        tested += count_ones(open_bits & ~none)
        answered += count_ones(hits)
        open_bits &= ~(hits | none)
        if with_parents:
            while hits != ZERO:
                u = first + trailing_zeros(hits)
                state.parents[u] = heads[u]
                hits &= hits - ONE
        pending[w], _, cost = _add_rows(rows, first, open_bits, cost)
    atomic_add(control, words.EDGES, tested)
    atomic_add(control, words.HEADS, answered)
    atomic_add(control, words.PENDING_PAGES, cost.pages)
    atomic_add(control, words.PENDING_READS, cost.reads)


@kernel
def _mark(values, first, bits, value):
    """Store value in values[first + b] for every bit b that is set."""
    if count_ones(bits) > 12:
        for b in range(64):
            if bits >> np.uint64(b) & ONE != ZERO:
                values[first + b] = value
    else:
        while bits != ZERO:
            values[first + trailing_zeros(bits)] = value
            bits &= bits - ONE


@kernel
def _sweep_words(rows, state, first_word, end_word, thread):
    """Give the next frontier its level and count it, and what its rows will cost to read."""
    control, levels = state.control, state.levels
    next_frontier = state.bitmaps[control[words.NEXT_BITMAP]]
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    level = np.int32(control[words.LEVEL])
    found = 0
    num_bytes = 0
    cost = NO_ROWS
    for w in range(first_word, end_word):
        bits = next_frontier[w]
        if bits == ZERO:
            continue
        visited[w] |= bits
        found += count_ones(bits)
        _mark(levels, w * 64, bits, level)
        _, more_bytes, cost = _add_rows(rows, w * 64, bits, cost)
        num_bytes += more_bytes
    atomic_add(control, words.FOUND, found)
    atomic_add(control, words.FRONTIER_PAGES, cost.pages)
    atomic_add(control, words.FRONTIER_READS, cost.reads)
    atomic_add(control, words.ROW_BYTES, num_bytes)


@kernel
def _claim(state, ids, owners, count):
    """Claim ids on the visited bitmap while others do the same, for the next frontier."""
    parents = state.parents
    next_frontier = state.bitmaps[state.control[words.NEXT_BITMAP]]
    visited = state.bitmaps[state.control[words.VISITED_BITMAP]]
    for i in range(count):
        v = ids[i]
        bit = ONE << np.uint64(v & 63)
        word = np.int64(v >> 6)
        if visited[word] & bit == ZERO and atomic_or(visited, word, bit) & bit == ZERO:
            atomic_or(next_frontier, word, bit)
            if parents.size != 0:
                parents[v] = owners[i]


@kernel
def _visit_words(rows, state, first_word, end_word, thread):
    """Claim the heads of the frontier."""
    heads, frontier = rows.heads, state.bitmaps[state.control[words.FRONTIER_BITMAP]]
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    count = 0
    edges = 0
    for w in range(first_word, end_word):
        bits = frontier[w]
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
    atomic_add(state.control, words.EDGES, edges + count)


heads_pass = make_pass(_WORD_CHUNK, _test_words)
visit_heads = make_pass(_WORD_CHUNK, _visit_words)
sweep = make_pass(_WORD_CHUNK, _sweep_words)


@inlined
def _pending(state):
    """Name the bitmap of the rows that a stream bottom-up wants."""
    return state.control[words.PENDING_BITMAP]


@inlined
def _frontier(state):
    """Name the bitmap of the rows that a stream top-down wants."""
    return state.control[words.FRONTIER_BITMAP]


@kernel
def next_bit(bitmap, u, end):
    """Find the next vertex from u on whose bit is set, or the end."""
    if u >= end:
        return end
    w = u >> 6
    bits = bitmap[w] & (~ZERO << np.uint64(u & 63))
    while bits == ZERO:
        w += 1
        if w * 64 >= end:
            return end
        bits = bitmap[w]
    return min(w * 64 + trailing_zeros(bits), end)


@inlined
def _next_wanted(rows, state, wanted, u, end):
    """Find the next vertex from u on that is wanted and was not found meanwhile.

    Other threads write the bitmap of those found all the time. So each bit is tested by a branch,
    which is easy to predict: if the next vertex depended on that word, a core would wait for it.
    """
    bitmap, found = state.bitmaps[wanted], state.bitmaps[state.control[words.NEXT_BITMAP]]
    u = next_bit(bitmap, u, end)
    while u < end and found[u >> 6] >> np.uint64(u & 63) & ONE != ZERO:
        u = next_bit(bitmap, u + 1, end)
    return u


@kernel
def _probe_extent(rows, state, wanted, extent, buffer, thread):
    """Look for frontier vertices in the pending rows of one read; give edges and bytes, or -1."""
    frontier = state.bitmaps[state.control[words.FRONTIER_BITMAP]]
    next_frontier = state.bitmaps[state.control[words.NEXT_BITMAP]]
    n = rows.heads.size
    edges = 0
    num_bytes = 0
    u = _next_wanted(rows, state, wanted, extent.first, extent.end)
    while u < extent.end:
        begin, end = part_in_buffer(rows, u, extent)
        if begin < end:
            v, more_edges, more_bytes = probe_segments(
                buffer, n, frontier, state.ids[thread], begin, end
            )
            if v >= n:
                return np.int64(-1), num_bytes
            edges += more_edges
            num_bytes += more_bytes
            if v >= 0:
                atomic_or(next_frontier, u >> 6, ONE << np.uint64(u & 63))
                if state.parents.size != 0:
                    state.parents[u] = v
        u = _next_wanted(rows, state, wanted, u + 1, extent.end)
    return edges, num_bytes


@kernel
def _expand_extent(rows, state, wanted, extent, buffer, thread):
    """Claim the neighbours in the frontier's rows of one read; give edges and bytes, or -1."""
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    n = rows.heads.size
    edges = 0
    num_bytes = 0
    count = np.int64(0)
    u = _next_wanted(rows, state, wanted, extent.first, extent.end)
    while u < extent.end:
        begin, end = part_in_buffer(rows, u, extent)
        num_bytes += max(0, end - begin)
        while begin < end:
            segment_end = min(begin + SEGMENT_BYTES, end)
            gathered = gather_segment(ids, count, buffer, begin, segment_end, n)
            if gathered < 0:
                return np.int64(-1), num_bytes
            owners[count:gathered] = u
            count = gathered
            if count >= FULL:
                _claim(state, ids, owners, count)
                edges += count
                count = np.int64(0)
            begin = segment_end
        u = _next_wanted(rows, state, wanted, u + 1, extent.end)
    _claim(state, ids, owners, count)
    return edges + count, num_bytes


stream_up = make_stream(_pending, _next_wanted, _probe_extent)
stream_down = make_stream(_frontier, _next_wanted, _expand_extent)

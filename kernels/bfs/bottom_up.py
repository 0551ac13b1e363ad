"""Bottom-up step: vertices that are not visited look for one neighbour in the frontier.

Beamer, Asanović and Patterson (SC 2012) turned the search around; the rest is for heads and
tails. A thread owns the words of the chunk it took, so nothing here is atomic. The heads of a
whole word are tested without a branch. The vertices whose heads missed are probed in rounds: each
round decodes one more neighbour of all that are still pending, so that no guess of a branch can
be wrong and the rows' cache misses overlap. A round appends the vertices that hit and keeps the
others, without a branch too.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import (
    atomic_add,
    count_ones,
    inlined,
    kernel,
    prefetch,
    trailing_zeros,
)
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.frontier import mark
from oocbfs.kernels.bfs.state import PENDING
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.region import CURSOR, ONE, ZERO, take_chunk
from oocbfs.kernels.rows import make_tail_walk, row_begin, take_varint

_WORD_CHUNK = 64
# With fewer open vertices than this in a word, their heads are tested one by one.
_FEW = 16


@kernel
def test_heads(heads, frontier, first):
    """Test 64 heads at once; give the bits of those in the frontier and of those that are none."""
    hits = ZERO
    none = ZERO
    pad = np.uint64(frontier.size - 1)
    num_heads = np.uint64(heads.size)
    for b in range(64):
        head = np.uint64(heads[first + b])
        word = frontier[min(head >> np.uint64(6), pad)]
        hits |= (word >> (head & np.uint64(63)) & ONE) << np.uint64(b)
        none |= np.uint64(head >= num_heads) << np.uint64(b)
    return hits, none


@kernel
def test_few_heads(heads, frontier, first, bits):
    """Test the heads of these bits one by one."""
    hits = ZERO
    none = ZERO
    while bits != ZERO:
        b = trailing_zeros(bits)
        head = heads[first + b]
        if head >= heads.size:
            none |= ONE << np.uint64(b)
        else:
            hits |= (frontier[head >> 6] >> np.uint64(head & 63) & ONE) << np.uint64(b)
        bits &= bits - ONE
    return hits, none


@inlined
def test_open_heads(heads, frontier, first, open_bits):
    """Test the heads of a word's open vertices: all 64 without a branch, or few one by one.

    Gives the bits of those whose head is in the frontier, and of those that have none.
    """
    if first + 64 <= heads.size and count_ones(open_bits) > _FEW:
        hits, none = test_heads(heads, frontier, first)
        return hits & open_bits, none & open_bits
    return test_few_heads(heads, frontier, first, open_bits)


@inlined
def _look_for_frontier(found, frontier, v):
    """Take v if it is in the frontier."""
    hit = frontier[v >> 6] >> np.uint64(v & 63) & ONE != ZERO
    return v if hit else found, hit


_probe_tail = make_tail_walk(_look_for_frontier)


@kernel
def probe_segments(tails, n, frontier, begin, end):
    """Look for a frontier vertex in the segments of a tail.

    Gives it, or -1 if there is none, or n if the tail is malformed; edges and bytes looked at.
    """
    found, edges, num_bytes = _probe_tail(tails, begin, end, n, np.int64(-1), frontier)
    return n if edges < 0 else found, edges, num_bytes


@inlined
def _find(state, u, parent):
    """Put u into the next frontier."""
    control = state.control
    bit = ONE << np.uint64(u & 63)
    state.bitmaps[control[words.NEXT_BITMAP], u >> 6] |= bit
    state.bitmaps[control[words.VISITED_BITMAP], u >> 6] |= bit
    state.levels[u] = np.int32(control[words.LEVEL])
    if state.parents.size != 0:
        state.parents[u] = parent


@inlined
def _answer_by_heads(heads, state, w):
    """Test the heads of a word; give how many were tested, how many hit, and what is open."""
    control, bitmaps, parents = state.control, state.bitmaps, state.parents
    frontier = bitmaps[control[words.FRONTIER_BITMAP]]
    next_frontier = bitmaps[control[words.NEXT_BITMAP]]
    visited = bitmaps[control[words.VISITED_BITMAP]]
    open_bits = ~visited[w]
    if open_bits == ZERO:
        next_frontier[w] = ZERO
        return 0, 0, ZERO
    first = w * 64
    hits, none = test_open_heads(heads, frontier, first, open_bits)
    next_frontier[w] = hits
    visited[w] |= hits | none
    num_hits = 0
    if hits != ZERO:
        num_hits = count_ones(hits)
        mark(state.levels, first, hits, np.int32(control[words.LEVEL]))
        if parents.size != 0:
            bits = hits
            while bits != ZERO:
                u = first + trailing_zeros(bits)
                parents[u] = heads[u]
                bits &= bits - ONE
    return count_ones(open_bits & ~none), num_hits, open_bits & ~(hits | none)


@kernel
def _probe_long_row(rows, state, u, begin, end):
    """Probe a tail of several segments at once; give 1 if it hit, edges and bytes."""
    control = state.control
    n = rows.heads.size
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    v, edges, num_bytes = probe_segments(rows.tails, n, frontier, begin, end)
    if v >= n:
        control[words.FAILED] = 1
    elif v >= 0:
        _find(state, u, v)
    return np.int64(0 <= v < n), edges, num_bytes


@kernel
def _probe_round(
    rows, frontier, pending, offsets, ends, last, num_pending, hits, found_by, num_hits
):
    """Decode one neighbour of each pending vertex; give the pending left (or -1), hits, bytes."""
    tails = rows.tails
    n = rows.heads.size
    pad = np.int64(frontier.size - 1)
    left = 0
    num_bytes = 0
    malformed = False
    for i in range(num_pending):
        u = pending[i]
        end = ends[i]
        begin = offsets[i]
        delta, offset = take_varint(tails, begin)
        num_bytes += offset - begin
        v = last[i] + delta + 1
        malformed |= (v >= n) | (offset > end)
        hit = np.int64(frontier[min(v >> 6, pad)] >> np.uint64(v & 63) & ONE)
        hits[num_hits] = u
        found_by[num_hits] = v
        num_hits += hit
        pending[left] = u
        ends[left] = end
        offsets[left] = offset
        last[left] = v
        left += np.int64(offset < end) & (hit ^ 1)
    if malformed:
        left = -1
    return left, num_hits, num_bytes


@kernel
def _probe_pending(rows, state, thread, num_pending):
    """Probe the tails of pending vertices, find those that hit; give their number, edges, bytes."""
    control, ids, offsets = state.control, state.ids[thread], state.offsets[thread]
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    hits, found_by = ids[PENDING : 2 * PENDING + 1], ids[2 * PENDING + 1 :]
    ends, last = offsets[PENDING : 2 * PENDING], offsets[2 * PENDING :]
    edges = 0
    num_bytes = 0
    num_hits = 0
    while num_pending > 0:
        edges += num_pending
        num_pending, num_hits, more_bytes = _probe_round(
            rows, frontier, ids, offsets, ends, last, num_pending, hits, found_by, num_hits
        )
        num_bytes += more_bytes
    if num_pending < 0:
        control[words.FAILED] = 1
    for i in range(num_hits):
        _find(state, np.int64(hits[i]), found_by[i])
    return num_hits, edges, num_bytes


@kernel
def bottom_up(rows, state, thread):
    """Take chunks of words until none are left; count vertices, edges, heads and tail bytes."""
    tails, control = rows.tails, state.control
    ids, offsets = state.ids[thread], state.offsets[thread]
    num_words = (rows.heads.size + 63) >> 6
    tested = 0
    answered = 0
    found = 0
    edges = 0
    num_bytes = 0
    num_pending = np.int64(0)
    while control[words.FAILED] == 0:
        first_word, end_word = take_chunk(control, CURSOR, _WORD_CHUNK, num_words)
        if first_word == end_word:
            break
        for w in range(first_word, end_word):
            more_tested, more_answered, open_bits = _answer_by_heads(rows.heads, state, w)
            tested += more_tested
            answered += more_answered
            while open_bits != ZERO:
                u = w * 64 + trailing_zeros(open_bits)
                open_bits &= open_bits - ONE
                begin, end = row_begin(rows, u), row_begin(rows, u + 1)
                prefetch(tails, begin)
                prefetch(tails, begin + 64)
                if end - begin > SEGMENT_BYTES:
                    hits, more_edges, more_bytes = _probe_long_row(rows, state, u, begin, end)
                    found += hits
                    edges += more_edges
                    num_bytes += more_bytes
                    continue
                ids[num_pending] = u
                offsets[num_pending] = begin
                offsets[num_pending + PENDING] = end
                offsets[num_pending + 2 * PENDING] = -1
                num_pending += np.int64(begin < end)
            if num_pending > PENDING - 64:
                hits, more_edges, more_bytes = _probe_pending(rows, state, thread, num_pending)
                found += hits
                edges += more_edges
                num_bytes += more_bytes
                num_pending = np.int64(0)
    hits, more_edges, more_bytes = _probe_pending(rows, state, thread, num_pending)
    atomic_add(control, words.TESTED, tested)
    atomic_add(control, words.FOUND, found + answered + hits)
    atomic_add(control, words.EDGES, edges + tested + more_edges)
    atomic_add(control, words.HEADS, answered)
    atomic_add(control, words.TAIL_BYTES, num_bytes + more_bytes)

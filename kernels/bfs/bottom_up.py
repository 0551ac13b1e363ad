"""Bottom-up step: vertices that nobody visited look for one neighbour in the frontier.

A thread owns the words of the chunk it took, so nothing here is atomic. The heads of a whole word
are tested without a branch. The vertices whose heads missed are probed in rounds: each round decodes
one more neighbour of all that are still pending, so that no guess of a branch can be wrong and the
rows' cache misses overlap. A round appends who hit and keeps who did not, again without a branch.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, count_ones, inlined, kernel, prefetch, trailing_zeros
from oocbfs.kernels.bfs.frontier import mark
from oocbfs.kernels.bfs.state import (
    BYTES,
    EDGES,
    FAILED,
    FOUND,
    FRONT,
    HEADS,
    LEVEL,
    NEXT,
    PENDING,
    TESTED,
    VISITED,
)
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.region import CURSOR, ONE, ZERO, take_chunk
from oocbfs.kernels.rows import make_tail_walk, row_begin, take_varint

_WORD_CHUNK = 64
# With fewer open vertices than this in a word, their heads are tested one by one.
_FEW = 16


@kernel
def test_heads(heads, front, first):
    """Test 64 heads at once; give the bits of those in the frontier and of those that are none."""
    hits = ZERO
    none = ZERO
    pad = np.uint64(front.size - 1)
    num_heads = np.uint64(heads.size)
    for b in range(64):
        head = np.uint64(heads[first + b])
        word = front[min(head >> np.uint64(6), pad)]
        hits |= (word >> (head & np.uint64(63)) & ONE) << np.uint64(b)
        none |= np.uint64(head >= num_heads) << np.uint64(b)
    return hits, none


@kernel
def test_few_heads(heads, front, first, bits):
    """Test the heads of these bits one by one."""
    hits = ZERO
    none = ZERO
    while bits != ZERO:
        b = trailing_zeros(bits)
        head = heads[first + b]
        if head >= heads.size:
            none |= ONE << np.uint64(b)
        else:
            hits |= (front[head >> 6] >> np.uint64(head & 63) & ONE) << np.uint64(b)
        bits &= bits - ONE
    return hits, none


@inlined
def test_open_heads(heads, front, first, open_bits):
    """Test the heads of a word's open vertices: all 64 without a branch, or few one by one.

    Gives the bits of those whose head is in the frontier, and of those that have none.
    """
    if first + 64 <= heads.size and count_ones(open_bits) > _FEW:
        hits, none = test_heads(heads, front, first)
        return hits & open_bits, none & open_bits
    return test_few_heads(heads, front, first, open_bits)


@inlined
def _look_for_frontier(found, front, v):
    """Take v if it is in the frontier."""
    hit = front[v >> 6] >> np.uint64(v & 63) & ONE != ZERO
    return v if hit else found, hit


_probe_tail = make_tail_walk(_look_for_frontier)


@kernel
def probe_segments(tails, n, front, begin, end):
    """Look for a frontier vertex in the segments of a tail.

    Gives it, or -1 if there is none, or n if the tail is malformed; edges and bytes looked at.
    """
    found, edges, num_bytes = _probe_tail(tails, begin, end, n, np.int64(-1), front)
    return n if edges < 0 else found, edges, num_bytes


@kernel
def _probe_round(rows, front, pending, places, ends, last, num_pending, hits, found_by, num_hits):
    """Decode one neighbour of each pending vertex; give the pending left (or -1), hits, bytes."""
    tails = rows.tails
    n = rows.heads.size
    pad = np.int64(front.size - 1)
    left = 0
    num_bytes = 0
    malformed = False
    for i in range(num_pending):
        u = pending[i]
        end = ends[i]
        begin = places[i]
        delta, at = take_varint(tails, begin)
        num_bytes += at - begin
        v = last[i] + delta + 1
        malformed |= (v >= n) | (at > end)
        hit = np.int64(front[min(v >> 6, pad)] >> np.uint64(v & 63) & ONE)
        hits[num_hits] = u
        found_by[num_hits] = v
        num_hits += hit
        pending[left] = u
        ends[left] = end
        places[left] = at
        last[left] = v
        left += np.int64(at < end) & (hit ^ 1)
    if malformed:
        left = -1
    return left, num_hits, num_bytes


@kernel
def _probe_pending(rows, state, front, ids, places, num_pending):
    """Probe the tails of ids[:num_pending], mark those who hit, and give their number."""
    control, levels, parents = state.control, state.levels, state.parents
    after, visited = state.bitmaps[control[NEXT]], state.bitmaps[control[VISITED]]
    hits, found_by = ids[PENDING : 2 * PENDING + 1], ids[2 * PENDING + 1 :]
    ends, last = places[PENDING : 2 * PENDING], places[2 * PENDING :]
    level = np.int32(control[LEVEL])
    edges = 0
    num_bytes = 0
    num_hits = 0
    while num_pending > 0:
        edges += num_pending
        num_pending, num_hits, more_bytes = _probe_round(
            rows, front, ids, places, ends, last, num_pending, hits, found_by, num_hits
        )
        num_bytes += more_bytes
    if num_pending < 0:
        control[FAILED] = 1
    for i in range(num_hits):
        u = np.int64(hits[i])
        bit = ONE << np.uint64(u & 63)
        after[u >> 6] |= bit
        visited[u >> 6] |= bit
        levels[u] = level
        if parents.size != 0:
            parents[u] = found_by[i]
    return num_hits, edges, num_bytes


@kernel
def bottom_up(rows, state, thread):
    """Take chunks of words until none are left; count vertices, edges, heads and tail bytes."""
    heads, tails, levels, parents = rows.heads, rows.tails, state.levels, state.parents
    control = state.control
    front, after = state.bitmaps[control[FRONT]], state.bitmaps[control[NEXT]]
    visited = state.bitmaps[control[VISITED]]
    ids, places = state.ids[thread], state.places[thread]
    level = np.int32(control[LEVEL])
    n = heads.size
    num_words = (n + 63) >> 6
    tested = 0
    found = 0
    edges = 0
    answered = 0
    num_bytes = 0
    num_pending = np.int64(0)
    while control[FAILED] == 0:
        first_word, end_word = take_chunk(control, CURSOR, _WORD_CHUNK, num_words)
        if first_word == end_word:
            break
        for w in range(first_word, end_word):
            open_bits = ~visited[w]
            if open_bits == ZERO:
                after[w] = ZERO
                continue
            first = w * 64
            bits, none = test_open_heads(heads, front, first, open_bits)
            after[w] = bits
            visited[w] |= bits | none
            tested += count_ones(open_bits & ~none)
            open_bits &= ~(bits | none)
            if bits != ZERO:
                answered += count_ones(bits)
                mark(levels, first, bits, level)
                if parents.size != 0:
                    while bits != ZERO:
                        u = first + trailing_zeros(bits)
                        parents[u] = heads[u]
                        bits &= bits - ONE
            while open_bits != ZERO:
                u = first + trailing_zeros(open_bits)
                open_bits &= open_bits - ONE
                at = row_begin(rows, u)
                end = row_begin(rows, u + 1)
                prefetch(tails, at)
                prefetch(tails, at + 64)
                if end - at > SEGMENT_BYTES:
                    v, more_edges, more_bytes = probe_segments(tails, n, front, at, end)
                    edges += more_edges
                    num_bytes += more_bytes
                    if v >= n:
                        control[FAILED] = 1
                    elif v >= 0:
                        bit = ONE << np.uint64(u & 63)
                        after[w] |= bit
                        visited[w] |= bit
                        levels[u] = level
                        found += 1
                        if parents.size != 0:
                            parents[u] = v
                    continue
                ids[num_pending] = u
                places[num_pending] = at
                places[num_pending + PENDING] = end
                places[num_pending + 2 * PENDING] = -1
                num_pending += np.int64(at < end)
            if num_pending > PENDING - 64:
                hits, more_edges, more_bytes = _probe_pending(
                    rows, state, front, ids, places, num_pending
                )
                found += hits
                edges += more_edges
                num_bytes += more_bytes
                num_pending = 0
    hits, more_edges, more_bytes = _probe_pending(rows, state, front, ids, places, num_pending)
    atomic_add(control, TESTED, tested)
    atomic_add(control, FOUND, found + answered + hits)
    atomic_add(control, EDGES, edges + tested + more_edges)
    atomic_add(control, HEADS, answered)
    atomic_add(control, BYTES, num_bytes + more_bytes)

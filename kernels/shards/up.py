"""Bottom-up on a part: its vertices that are not visited look for one neighbour in the frontier.

As ``kernels.bfs.bottom_up``: first the heads of whole words, then the tails of what they left. A
thread owns the words of the chunks it took, so nothing is atomic.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import apart, atomic_add, count_ones, inlined, prefetch, trailing_zeros
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.heads import test_open_heads
from oocbfs.kernels.probe import FOUND_BY, HITS, PENDING, probe_pending, probe_segments
from oocbfs.kernels.region import CURSOR, ONE, ZERO, chunk_for, take_chunk
from oocbfs.kernels.rows import row_begin
from oocbfs.kernels.shards import state as words

_LEAST_WORDS, _MOST_WORDS = 4, 64


@inlined
def _find(state, u, parent):
    """Note that row u has a neighbour in the frontier."""
    state.found[u >> 6] |= ONE << np.uint64(u & 63)
    if state.parents.size != 0:
        state.parents[u] = parent


@inlined
def _answer_by_heads(rows, state, w):
    """Test the heads of a word; give how many were tested, how many hit, and what is open."""
    open_bits = ~state.visited[w]
    if w * 64 + 64 > rows.heads.size:
        open_bits &= ~ZERO >> np.uint64(w * 64 + 64 - rows.heads.size)
    if open_bits == ZERO:
        return np.int64(0), np.int64(0), ZERO
    hits, none = test_open_heads(rows.heads, rows.num_ids, state.frontier, w * 64, open_bits)
    state.found[w] = hits
    if state.parents.size != 0:
        bits = hits
        while bits != ZERO:
            u = w * 64 + trailing_zeros(bits)
            state.parents[u] = rows.heads[u]
            bits &= bits - ONE
    return count_ones(open_bits & ~none), count_ones(hits), open_bits & ~(hits | none)


@inlined
def _probe(rows, state, ids, offsets, num_pending):
    """Probe pending rows, and find those that hit; give edges and bytes looked at."""
    num_hits, edges, num_bytes, malformed = probe_pending(
        rows, state.frontier, ids, offsets, num_pending
    )
    if malformed:
        state.control[words.FAILED] = 1
    for i in range(num_hits):
        _find(state, np.int64(ids[HITS + i]), ids[FOUND_BY + i])
    return edges, num_bytes


@apart
def up(rows, state, thread):
    """Take chunks of words until none are left; found words are zero before."""
    tails, control = rows.tails, state.control
    ids, offsets = state.ids[thread], state.offsets[thread]
    num_words = (rows.heads.size + 63) >> 6
    chunk = chunk_for(num_words, _LEAST_WORDS, _MOST_WORDS)
    tested = 0
    answered = 0
    edges = 0
    num_bytes = 0
    num_pending = np.int64(0)
    while control[words.FAILED] == 0:
        first, end_word = take_chunk(control, CURSOR, chunk, num_words)
        if first == end_word:
            break
        for w in range(first, end_word):
            more_tested, more_answered, open_bits = _answer_by_heads(rows, state, w)
            tested += more_tested
            answered += more_answered
            while open_bits != ZERO:
                u = w * 64 + trailing_zeros(open_bits)
                open_bits &= open_bits - ONE
                begin, end = row_begin(rows, u), row_begin(rows, u + 1)
                prefetch(tails, begin)
                prefetch(tails, begin + 64)
                if end - begin > SEGMENT_BYTES:
                    v, more_edges, more_bytes = probe_segments(
                        tails, rows.num_ids, state.frontier, ids[BATCH:], begin, end
                    )
                    edges += more_edges
                    num_bytes += more_bytes
                    if v >= rows.num_ids:
                        control[words.FAILED] = 1
                    elif v >= 0:
                        _find(state, u, v)
                    continue
                ids[num_pending] = u
                offsets[num_pending] = begin
                offsets[num_pending + PENDING] = end
                offsets[num_pending + 2 * PENDING] = -1
                num_pending += np.int64(begin < end)
            if num_pending > PENDING - 64:
                more_edges, more_bytes = _probe(rows, state, ids, offsets, num_pending)
                edges += more_edges
                num_bytes += more_bytes
                num_pending = np.int64(0)
    more_edges, more_bytes = _probe(rows, state, ids, offsets, num_pending)
    atomic_add(control, words.TESTED, tested)
    atomic_add(control, words.HEADS, answered)
    atomic_add(control, words.EDGES, edges + tested + more_edges)
    atomic_add(control, words.TAIL_BYTES, num_bytes + more_bytes)

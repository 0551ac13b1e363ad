"""Bottom-up step: vertices that are not visited look for one neighbour in the frontier.

Beamer, Asanović and Patterson (SC 2012) turned the search around; the rest is for heads and
tails. A thread owns the words of the chunk it took, so nothing here is atomic. The heads of a
whole word are tested without a branch. The vertices whose heads missed are probed in rounds: each
round decodes two more neighbours of all that are still pending, so that no guess of a branch can
be wrong and the rows' cache misses overlap (see ``kernels.probe``).
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import (
    apart,
    atomic_add,
    count_ones,
    inlined,
    kernel,
    prefetch,
    trailing_zeros,
)
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.frontier import mark_levels
from oocbfs.kernels.bfs.state import DEEP, OTHER_WORDS, SAMPLED_WORDS, UNREACHED
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.heads import test_open_heads
from oocbfs.kernels.probe import (
    PENDING,
    PROBED_BYTES,
    add_pending,
    hit_at,
    probe_decoded,
    probe_pending,
    probe_segments,
)
from oocbfs.kernels.region import CURSOR, ONE, ZERO, chunk_for, take_chunk
from oocbfs.kernels.rows import row_begin
from oocbfs.kernels.vectors import store_where

_LEAST_WORDS, _MOST_WORDS = 4, 64
# The edges of a frontier are estimated from one word of eight.
WEIGHED_WORDS = 8
_UNWEIGHED = 64 * (WEIGHED_WORDS - 1)


@inlined
def _find(state, u, parent):
    """Put u into the next frontier."""
    control = state.control
    bit = ONE << np.uint64(u & 63)
    state.bitmaps[control[words.NEXT_BITMAP], u >> 6] |= bit
    state.bitmaps[control[words.VISITED_BITMAP], u >> 6] |= bit
    level = control[words.LEVEL]
    state.levels[u] = np.uint8(min(level, DEEP))
    if level >= DEEP:
        state.deep_levels[u] = level
    if state.parents.size != 0:
        state.parents[u] = parent


@inlined
def _answer_by_heads(rows, state, w):
    """Test the heads of a word; give how many were tested, how many hit, and what is open."""
    control, bitmaps, parents, heads = state.control, state.bitmaps, state.parents, rows.heads
    frontier = bitmaps[control[words.FRONTIER_BITMAP]]
    next_frontier = bitmaps[control[words.NEXT_BITMAP]]
    visited = bitmaps[control[words.VISITED_BITMAP]]
    open_bits = ~visited[w]
    if open_bits == ZERO:
        next_frontier[w] = ZERO
        return 0, 0, ZERO
    first = w * 64
    hits, none = test_open_heads(heads, rows.num_ids, frontier, first, open_bits)
    next_frontier[w] = hits
    visited[w] |= hits | none
    num_hits = 0
    if hits != ZERO:
        num_hits = count_ones(hits)
        mark_levels(state, first, hits)
        if parents.size != 0:
            bits = hits
            while bits != ZERO:
                u = first + trailing_zeros(bits)
                parents[u] = heads[u]
                bits &= bits - ONE
    return count_ones(open_bits & ~none), num_hits, open_bits & ~(hits | none)


@inlined
def _weigh(degrees, u):
    """Give the degree of a vertex if its word is one of those by which frontiers are weighed."""
    return np.int64(degrees[u]) if u & _UNWEIGHED == 0 else np.int64(0)


@inlined
def _sum_degrees(degrees, w, bits):
    """Sum up the degrees of some vertices of a word."""
    total = np.int64(0)
    while bits != ZERO:
        total += np.int64(degrees[w * 64 + trailing_zeros(bits)])
        bits &= bits - ONE
    return total


@inlined
def _answer_by_rows(rows, degrees, state, w, open_bits):
    """Probe the decoded rows of a word; give how many hit, edges, and edges of the weighed."""
    control, bitmaps = state.control, state.bitmaps
    frontier = bitmaps[control[words.FRONTIER_BITMAP]]
    hits, edges = probe_decoded(rows, frontier, state.parents, w, open_bits)
    weight = np.int64(0)
    if hits != ZERO:
        bitmaps[control[words.NEXT_BITMAP], w] |= hits
        bitmaps[control[words.VISITED_BITMAP], w] |= hits
        mark_levels(state, w * 64, hits)
        if w % WEIGHED_WORDS == 0:
            weight = _sum_degrees(degrees, w, hits)
    return count_ones(hits), edges, weight


@kernel
def _probe_long_row(rows, state, thread, u, begin, end):
    """Probe a tail of several segments at once; give 1 if it hit, edges and bytes."""
    control = state.control
    n = rows.heads.size
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    ids = state.ids[thread, BATCH:]
    v, edges, num_bytes = probe_segments(rows.tails, n, frontier, ids, begin, end)
    if v >= n:
        control[words.FAILED] = 1
    elif v >= 0:
        _find(state, u, v)
    return np.int64(0 <= v < n), edges, num_bytes


@kernel
def _probe_pending(rows, degrees, state, thread, num_pending):
    """Probe the tails of pending vertices, and find those that hit.

    Gives their number, the edges and bytes looked at, and the edges of those that are weighed.
    """
    control, ids, memory = state.control, state.ids[thread], state.probing[thread]
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    num_hits, edges, num_bytes, malformed = probe_pending(rows, frontier, ids, memory, num_pending)
    if malformed:
        control[words.FAILED] = 1
    weight = np.int64(0)
    for i in range(num_hits):
        u, parent = hit_at(memory, i)
        _find(state, u, parent)
        weight += _weigh(degrees, u)
    return num_hits, edges, num_bytes, weight


@apart
def bottom_up(rows, degrees, state, thread):
    """Take chunks of words until none are left; count vertices, edges, heads and tail bytes.

    ``degrees`` are those of the rows that a top-down step would expand.
    """
    tails, control = rows.tails, state.control
    ids, memory = state.ids[thread], state.probing[thread]
    num_words = (rows.heads.size + 63) >> 6
    tailed_words = (rows.num_tailed + 63) >> 6
    which, shift = control[words.WHICH_WORDS], np.int64(0)
    if which == SAMPLED_WORDS:
        shift = control[words.SAMPLE_SHIFT]
    chunk = chunk_for(num_words >> shift, _LEAST_WORDS, _MOST_WORDS)
    skipped = (np.int64(1) << control[words.SAMPLE_SHIFT]) - 1
    tested = 0
    answered = 0
    found = 0
    edges = 0
    num_bytes = 0
    weight = np.int64(0)
    num_pending = np.int64(0)
    while control[words.FAILED] == 0:
        first, end_word = take_chunk(control, CURSOR, chunk, (num_words - 1 >> shift) + 1)
        if first == end_word:
            break
        for number in range(first, end_word):
            w = number << shift
            if which == OTHER_WORDS and w & skipped == 0:
                continue
            more_tested, more_answered, open_bits = _answer_by_heads(rows, state, w)
            tested += more_tested
            answered += more_answered
            if more_answered != 0 and w % WEIGHED_WORDS == 0:
                bits = state.bitmaps[control[words.NEXT_BITMAP], w]
                weight += _sum_degrees(degrees, w, bits)
            if w >= tailed_words:
                continue
            if open_bits != ZERO and rows.neighbours.size != 0:
                hits, more_edges, more_weight = _answer_by_rows(rows, degrees, state, w, open_bits)
                weight += more_weight
                found += hits
                edges += more_edges
                continue
            while open_bits != ZERO:
                u = w * 64 + trailing_zeros(open_bits)
                open_bits &= open_bits - ONE
                begin, end = row_begin(rows, u), row_begin(rows, u + 1)
                prefetch(tails, begin)
                prefetch(tails, begin + PROBED_BYTES)
                if end - begin > SEGMENT_BYTES:
                    hits, more_edges, more_bytes = _probe_long_row(
                        rows, state, thread, u, begin, end
                    )
                    weight += hits * _weigh(degrees, u)
                    found += hits
                    edges += more_edges
                    num_bytes += more_bytes
                    continue
                num_pending = add_pending(ids, memory, num_pending, u, begin, end)
            if num_pending > PENDING - 64:
                hits, more_edges, more_bytes, more_weight = _probe_pending(
                    rows, degrees, state, thread, num_pending
                )
                weight += more_weight
                found += hits
                edges += more_edges
                num_bytes += more_bytes
                num_pending = np.int64(0)
    hits, more_edges, more_bytes, more_weight = _probe_pending(
        rows, degrees, state, thread, num_pending
    )
    atomic_add(control, words.FRONTIER_EDGES, WEIGHED_WORDS * (weight + more_weight))
    atomic_add(control, words.TESTED, tested)
    atomic_add(control, words.FOUND, found + answered + hits)
    atomic_add(control, words.EDGES, edges + tested + more_edges)
    atomic_add(control, words.HEADS, answered)
    atomic_add(control, words.TAIL_BYTES, num_bytes + more_bytes)


@kernel
def undo_sample(rows, state):
    """Forget what a bottom-up step found in the sampled words."""
    control = state.control
    next_frontier = state.bitmaps[control[words.NEXT_BITMAP]]
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    num_words = (rows.heads.size + 63) >> 6
    for w in range(0, num_words, np.int64(1) << control[words.SAMPLE_SHIFT]):
        visited[w] &= ~next_frontier[w]
        store_where(state.levels, w * 64, next_frontier[w], np.uint8(UNREACHED))

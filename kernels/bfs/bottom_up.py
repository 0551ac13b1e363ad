"""Bottom-up step: vertices that are not visited look for one neighbour in the frontier.

Beamer, Asanović and Patterson (SC 2012) turned the search around; the rest is for heads and
tails. A thread owns the words of the chunk it took, so nothing here is atomic. The heads of a
whole word are tested without a branch. The vertices whose heads missed are probed in rounds: each
round decodes one more neighbour of all that are still pending, so that no guess of a branch can
be wrong and the rows' cache misses overlap. A round appends the vertices that hit and keeps the
others, without a branch too. After a round with few hits, each row that is left is read to its end:
then most of them miss, and rows are read faster one after the other.
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
from oocbfs.kernels.bfs.state import DEEP, OTHER_WORDS, PENDING, SAMPLED_WORDS, UNREACHED
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import BATCH, take_varint
from oocbfs.kernels.heads import test_open_heads
from oocbfs.kernels.probe import probe_decoded, probe_segment, probe_segments
from oocbfs.kernels.region import CURSOR, ONE, ZERO, chunk_for, take_chunk
from oocbfs.kernels.rows import row_begin
from oocbfs.kernels.vectors import store_where

_LEAST_WORDS, _MOST_WORDS = 4, 64
# A round of probes is followed by another if one of so many hit.
_WORTH_A_ROUND = 8
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
def _probe_pending(rows, degrees, state, thread, num_pending):
    """Probe the tails of pending vertices, and find those that hit.

    Gives their number, the edges and bytes looked at, and the edges of those that are weighed.
    """
    control, ids, offsets = state.control, state.ids[thread], state.offsets[thread]
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    hits, found_by = ids[PENDING : 2 * PENDING + 1], ids[2 * PENDING + 1 :]
    scratch = ids[BATCH:]
    n = rows.heads.size
    ends, last = offsets[PENDING : 2 * PENDING], offsets[2 * PENDING :]
    edges = 0
    num_bytes = 0
    num_hits = 0
    few_hits = False
    while num_pending > 0 and not few_hits:
        edges += num_pending
        num_tried, hits_before = num_pending, num_hits
        num_pending, num_hits, more_bytes = _probe_round(
            rows, frontier, ids, offsets, ends, last, num_pending, hits, found_by, num_hits
        )
        num_bytes += more_bytes
        few_hits = _WORTH_A_ROUND * (num_hits - hits_before) < num_tried
    for i in range(num_pending):
        u = ids[i]
        v, more_edges, offset = probe_segment(
            rows.tails, n, frontier, scratch, offsets[i], ends[i], last[i]
        )
        edges += more_edges
        num_bytes += offset - offsets[i]
        if v >= n:
            num_pending = -1
            break
        hits[num_hits] = u
        found_by[num_hits] = v
        num_hits += np.int64(v >= 0)
    if num_pending < 0:
        control[words.FAILED] = 1
    weight = np.int64(0)
    for i in range(num_hits):
        u = np.int64(hits[i])
        _find(state, u, found_by[i])
        weight += _weigh(degrees, u)
    return num_hits, edges, num_bytes, weight


@apart
def bottom_up(rows, degrees, state, thread):
    """Take chunks of words until none are left; count vertices, edges, heads and tail bytes.

    ``degrees`` are those of the rows that a top-down step would expand.
    """
    tails, control = rows.tails, state.control
    ids, offsets = state.ids[thread], state.offsets[thread]
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
            more_tested, more_answered, open_bits = _answer_by_heads(rows.heads, state, w)
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
                prefetch(tails, begin + 64)
                if end - begin > SEGMENT_BYTES:
                    hits, more_edges, more_bytes = _probe_long_row(
                        rows, state, thread, u, begin, end
                    )
                    weight += hits * _weigh(degrees, u)
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

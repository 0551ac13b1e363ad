"""Bottom-up on parts: their vertices that are not visited look for one neighbour in the frontier.

As ``kernels.bfs.bottom_up``: first the heads of whole words, then the tails of what they left. A
thread owns the words of the chunks it took, so nothing is atomic.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import apart, atomic_add, count_ones, inlined, prefetch, trailing_zeros
from oocbfs.kernels.bfs.bottom_up import WEIGHED_WORDS
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.heads import test_open_heads
from oocbfs.kernels.probe import (
    PENDING,
    PROBED_BYTES,
    add_pending,
    hit_at,
    probe_pending,
    probe_segments,
)
from oocbfs.kernels.region import ONE, ZERO, chunk_for, take_chunk
from oocbfs.kernels.rows import row_begin
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.take import mark_level, sum_degrees, words_below

_LEAST_WORDS, _MOST_WORDS = 4, 64


@inlined
def _find(rows, degrees, state, shard, u, parent):
    """Find row u; give its degree if its word is one of those by which frontiers are weighed."""
    w = u >> 6
    place = w * state.stride + state.shards[shard, words.PLACE]
    bit = ONE << np.uint64(u & 63)
    state.found[place] |= bit
    state.visited[place] |= bit
    mark_level(state, place * 64, bit)
    if state.parents.size != 0:
        state.parents[place * 64 + (u & 63)] = parent
    return np.int64(degrees[u]) if w % WEIGHED_WORDS == 0 else np.int64(0)


@inlined
def _answer_by_heads(rows, state, w, place):
    """Test the heads of a word; give how many were tested, how many hit, and what is open."""
    open_bits = ~state.visited[place]
    if w * 64 + 64 > rows.heads.size:
        open_bits &= ~ZERO >> np.uint64(w * 64 + 64 - rows.heads.size)
    if open_bits == ZERO:
        state.found[place] = ZERO
        return np.int64(0), np.int64(0), ZERO
    hits, none = test_open_heads(rows.heads, rows.num_ids, state.frontier, w * 64, open_bits)
    state.found[place] = hits
    state.visited[place] |= hits | none
    num_hits = np.int64(0)
    if hits != ZERO:
        num_hits = count_ones(hits)
        mark_level(state, place * 64, hits)
        bits = hits if state.parents.size != 0 else ZERO
        while bits != ZERO:
            b = trailing_zeros(bits)
            state.parents[place * 64 + b] = rows.heads[w * 64 + b]
            bits &= bits - ONE
    return count_ones(open_bits & ~none), num_hits, open_bits & ~(hits | none)


@inlined
def _probe(rows, degrees, state, shard, ids, memory, num_pending):
    """Probe pending rows, and find those that hit; give hits, edges, bytes, and their weight."""
    num_hits, edges, num_bytes, malformed = probe_pending(
        rows, state.frontier, ids, memory, num_pending
    )
    if malformed:
        state.control[words.FAILED] = shard + 1
    weight = np.int64(0)
    for i in range(num_hits):
        u, parent = hit_at(memory, i)
        weight += _find(rows, degrees, state, shard, u, parent)
    return num_hits, edges, num_bytes, weight


@apart
def up(rows, degrees, state, shard, thread):
    """Take chunks of a part's words until none are left; ``degrees`` are those of its out-rows."""
    tails, control, counts = rows.tails, state.control, state.counts[shard]
    ids, memory = state.ids[thread], state.probing[thread]
    num_words = words_below(state, shard, control[words.CONNECTED])
    first_place = state.shards[shard, words.PLACE]
    tailed_words = (rows.num_tailed + 63) >> 6
    chunk = chunk_for(num_words, _LEAST_WORDS, _MOST_WORDS)
    tested = 0
    answered = 0
    found = 0
    edges = 0
    num_bytes = 0
    weight = np.int64(0)
    num_pending = np.int64(0)
    while control[words.FAILED] == 0:
        first, end_word = take_chunk(counts, words.WORD_CURSOR, chunk, num_words)
        if first == end_word:
            break
        for w in range(first, end_word):
            place = w * state.stride + first_place
            more_tested, more_answered, open_bits = _answer_by_heads(rows, state, w, place)
            tested += more_tested
            answered += more_answered
            if more_answered != 0 and w % WEIGHED_WORDS == 0:
                weight += sum_degrees(degrees, w, state.found[place])
            if w >= tailed_words:
                continue
            while open_bits != ZERO:
                u = w * 64 + trailing_zeros(open_bits)
                open_bits &= open_bits - ONE
                begin, end = row_begin(rows, u), row_begin(rows, u + 1)
                prefetch(tails, begin)
                prefetch(tails, begin + PROBED_BYTES)
                if end - begin > SEGMENT_BYTES:
                    v, more_edges, more_bytes = probe_segments(
                        tails, rows.num_ids, state.frontier, ids[BATCH:], begin, end
                    )
                    edges += more_edges
                    num_bytes += more_bytes
                    if v >= rows.num_ids:
                        control[words.FAILED] = shard + 1
                    elif v >= 0:
                        weight += _find(rows, degrees, state, shard, u, v)
                        found += 1
                    continue
                num_pending = add_pending(ids, memory, num_pending, u, begin, end)
            if num_pending > PENDING - 64:
                hits, more_edges, more_bytes, more_weight = _probe(
                    rows, degrees, state, shard, ids, memory, num_pending
                )
                found += hits
                edges += more_edges
                num_bytes += more_bytes
                weight += more_weight
                num_pending = np.int64(0)
    hits, more_edges, more_bytes, more_weight = _probe(
        rows, degrees, state, shard, ids, memory, num_pending
    )
    atomic_add(counts, words.FOUND, found + answered + hits)
    atomic_add(counts, words.FOUND_EDGES, WEIGHED_WORDS * (weight + more_weight))
    atomic_add(counts, words.TESTED, tested)
    atomic_add(counts, words.HEADS, answered)
    atomic_add(counts, words.EDGES, edges + tested + more_edges)
    atomic_add(counts, words.TAIL_BYTES, num_bytes + more_bytes)

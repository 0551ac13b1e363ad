"""Bottom-up step: vertices that are not visited look for one neighbour in the frontier.

Beamer, Asanović and Patterson (SC 2012) turned the search around; the rest is for heads and
tails. A thread owns the words of the chunk it took, so nothing here is atomic. The heads of a
whole word are tested without a branch. The vertices whose heads missed are probed in rounds: each
round decodes two more neighbours of all that are still pending, so that no guess of a branch can
be wrong and the rows' cache misses overlap (see ``kernels.bottom_up.probe``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import (
    apart,
    atomic_add,
    count_ones,
    inlined,
    kernel,
    prefetch,
    trailing_zeros,
)
from oocbfs.kernels.bitmaps import DEEP, mark_levels, sum_degrees
from oocbfs.kernels.bottom_up.heads import answer_by_heads
from oocbfs.kernels.bottom_up.probe import (
    PENDING,
    PROBED_BYTES,
    add_pending,
    hit_at,
    probe_decoded,
    probe_pending,
    probe_segments,
)
from oocbfs.kernels.constants import ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.region import chunk_for, take_chunk
from oocbfs.kernels.rows import row_begin

_LEAST_WORDS, _MOST_WORDS = 4, 64
# The edges of a frontier are estimated from one word of eight.
SUMMED_WORDS = 8


class View(NamedTuple):
    """What a step looks at, and where the words of rows are in it.

    What is the same number in all steps of an engine costs nothing: LLVM folds it.

    frontier
        A bit for each vertex, and a word of zeros more.
    next_frontier, visited, first, stride
        Word w of the rows is word first + w * stride of these, and of levels and parents.
    counts, cursor
        Where sums are added, and the cursor among them.
    num_words, shift, mask, left_out
        The words to go over: one of 2**shift, without those where w & mask is left_out.
    """

    first: int
    stride: int
    num_words: int
    shift: int
    mask: int
    left_out: int
    cursor: int
    counts: NDArray[np.int64]
    frontier: NDArray[np.uint64]
    next_frontier: NDArray[np.uint64]
    visited: NDArray[np.uint64]


def make_bottom_up(words, view_of, with_decoded):
    """Make the step of an engine.

    Parameters
    ----------
    words
        The module that says where control words and counts are.
    view_of(rows, state, shard)
        Return the View of a shard's rows.
    with_decoded
        Whether rows may be decoded besides.
    """

    @inlined
    def find(state, view, degrees, u, parent):
        """Put row u into the next frontier; return its degree if its word is summed, or 0."""
        place = view.first + (u >> 6) * view.stride
        v = place * 64 + (u & 63)
        bit = ONE << np.uint64(u & 63)
        view.next_frontier[place] |= bit
        view.visited[place] |= bit
        level = state.control[words.LEVEL]
        if state.levels.size != 0:
            state.levels[v] = np.uint8(min(level, DEEP))
            if level >= DEEP:
                state.deep_levels[v] = level
        if state.parents.size != 0:
            state.parents[v] = parent
        return np.int64(degrees[u]) if (u >> 6) % SUMMED_WORDS == 0 else np.int64(0)

    @inlined
    def mark(state, place, hits):
        """Set the level of the vertices of a word that were found."""
        level = state.control[words.LEVEL]
        mark_levels(state.levels, state.deep_levels, level, place * 64, hits)

    @inlined
    def test_heads(rows, state, view, w):
        """Find those of a word whose heads hit; return the bits of these, and of the open ones."""
        place = view.first + w * view.stride
        visited = view.visited[place]
        if visited == ~ZERO:
            view.next_frontier[place] = ZERO
            return ZERO, ZERO
        hits, none, open_bits = answer_by_heads(
            rows, view.frontier, state.parents, visited, w, place
        )
        view.next_frontier[place] = hits
        view.visited[place] = visited | hits | none
        if hits != ZERO:
            mark(state, place, hits)
        return hits, open_bits

    @inlined
    def answer_by_rows(rows, state, view, w, open_bits):
        """Probe the decoded rows of a word; return the bits that hit, and edges."""
        hits, edges = probe_decoded(rows, view.frontier, state.parents, w, open_bits)
        if hits != ZERO:
            view.next_frontier[w] |= hits
            view.visited[w] |= hits
            mark(state, w, hits)
        return hits, edges

    @kernel
    def probe_long_row(rows, degrees, state, shard, thread, u, begin, end):
        """Probe a tail of several segments at once; return as ``probe`` does."""
        view = view_of(rows, state, shard)
        n, ids = rows.num_ids, state.ids[thread, BATCH:]
        v, edges, num_bytes = probe_segments(rows.tails, n, view.frontier, ids, begin, end)
        degree_sum = np.int64(0)
        if v >= n:
            state.control[words.FAILED] = shard + 1
        elif v >= 0:
            degree_sum = find(state, view, degrees, u, v)
        return np.int64(0 <= v < n), edges, num_bytes, degree_sum

    @kernel
    def probe(rows, degrees, state, shard, thread, num_pending):
        """Probe the tails of pending vertices, and find those that hit.

        Returns their number, the edges and bytes looked at, and the degrees that are summed.
        """
        view = view_of(rows, state, shard)
        ids, memory = state.ids[thread], state.probing[thread]
        num_hits, edges, num_bytes, malformed = probe_pending(
            rows, view.frontier, ids, memory, num_pending
        )
        if malformed:
            state.control[words.FAILED] = shard + 1
        degree_sum = np.int64(0)
        for i in range(num_hits):
            u, parent = hit_at(memory, i)
            degree_sum += find(state, view, degrees, u, parent)
        return num_hits, edges, num_bytes, degree_sum

    @apart
    def bottom_up(rows, degrees, state, shard, thread):
        """Take chunks of words until none are left; count vertices, edges, heads and tail bytes.

        ``degrees`` are those of the rows that a top-down step would expand.
        """
        tails, control = rows.tails, state.control
        view = view_of(rows, state, shard)
        ids, memory = state.ids[thread], state.probing[thread]
        tailed_words = (rows.num_tailed + 63) >> 6
        num_taken = (view.num_words - 1 >> view.shift) + 1
        chunk = chunk_for(view.num_words >> view.shift, _LEAST_WORDS, _MOST_WORDS)
        tested = 0
        answered = 0
        found = 0
        edges = 0
        num_bytes = 0
        degree_sum = np.int64(0)
        num_pending = np.int64(0)
        while control[words.FAILED] == 0:
            first, end_word = take_chunk(view.counts, view.cursor, chunk, num_taken)
            if first == end_word:
                break
            for number in range(first, end_word):
                w = number << view.shift
                if w & view.mask == view.left_out:
                    continue
                hits, open_bits = test_heads(rows, state, view, w)
                tested += count_ones(hits | open_bits)
                answered += count_ones(hits)
                if w % SUMMED_WORDS == 0:
                    degree_sum += sum_degrees(degrees, w, hits)
                if w >= tailed_words:
                    continue
                if with_decoded and open_bits != ZERO and rows.neighbours.size != 0:
                    hits, more_edges = answer_by_rows(rows, state, view, w, open_bits)
                    found += count_ones(hits)
                    edges += more_edges
                    if w % SUMMED_WORDS == 0:
                        degree_sum += sum_degrees(degrees, w, hits)
                    continue
                while open_bits != ZERO:
                    u = w * 64 + trailing_zeros(open_bits)
                    open_bits &= open_bits - ONE
                    begin, end = row_begin(rows, u), row_begin(rows, u + 1)
                    prefetch(tails, begin)
                    prefetch(tails, begin + PROBED_BYTES)
                    if end - begin > SEGMENT_BYTES:
                        num_hits, more_edges, more_bytes, more_degrees = probe_long_row(
                            rows, degrees, state, shard, thread, u, begin, end
                        )
                        degree_sum += more_degrees
                        found += num_hits
                        edges += more_edges
                        num_bytes += more_bytes
                        continue
                    num_pending = add_pending(ids, memory, num_pending, u, begin, end)
                if num_pending > PENDING - 64:
                    num_hits, more_edges, more_bytes, more_degrees = probe(
                        rows, degrees, state, shard, thread, num_pending
                    )
                    degree_sum += more_degrees
                    found += num_hits
                    edges += more_edges
                    num_bytes += more_bytes
                    num_pending = np.int64(0)
        num_hits, more_edges, more_bytes, more_degrees = probe(
            rows, degrees, state, shard, thread, num_pending
        )
        counts = view.counts
        atomic_add(counts, words.FRONTIER_EDGES, SUMMED_WORDS * (degree_sum + more_degrees))
        atomic_add(counts, words.TESTED, tested)
        atomic_add(counts, words.FOUND, found + answered + num_hits)
        atomic_add(counts, words.EDGES, edges + tested + more_edges)
        atomic_add(counts, words.HEADS, answered)
        atomic_add(counts, words.TAIL_BYTES, num_bytes + more_bytes)

    return bottom_up

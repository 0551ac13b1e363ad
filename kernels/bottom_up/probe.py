"""Bottom-up by rows: a vertex asks whether one of its other neighbours is in the frontier."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel, trailing_zeros
from oocbfs.kernels.constants import ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.gather import take_varint, take_word

# Vertices that one thread probes at a time. Words of its memory for them: where the rest of a row
# begins, where it ends, the id before, and, for those that hit, itself and what it hit, packed. One
# more may be written than is kept.
PENDING = 256
_ENDS, _LAST, _HITS = PENDING, 2 * PENDING, 3 * PENDING
PROBE_WORDS = _HITS + PENDING + 1
# So many bytes of a row are probed in the first rounds: they may lie in two cache lines.
PROBED_BYTES = 32
# A round of probes is followed by another if one of so many hit.
_WORTH_A_ROUND = 4


@kernel
def probe_segment(tails, n, frontier, ids, offset, end, v):
    """Look for a frontier vertex among the ids that follow v in a segment, 8 bytes at a time.

    Returns it, -1 if there is none, n if the segment is malformed; edges looked at, and offset.
    ``ids`` is scratch.
    """
    edges = np.int64(0)
    while offset < end:
        count, offset, v = take_word(ids, np.int64(0), tails, offset, end, v)
        if v >= n or offset > end:
            return n, edges, offset
        hits = ZERO
        for i in range(count):
            u = ids[i]
            hits |= (frontier[u >> 6] >> np.uint64(u & 63) & ONE) << np.uint64(i)
        if hits != ZERO:
            first = trailing_zeros(hits)
            return np.int64(ids[first]), edges + first + 1, offset
        edges += count
    return np.int64(-1), edges, offset


@kernel
def probe_segments(tails, n, frontier, ids, begin, end):
    """Look for a frontier vertex in the segments of a tail.

    Returns it, or -1 if there is none, or n if the tail is malformed; edges and bytes looked at.
    """
    offset = begin
    edges = np.int64(0)
    found = np.int64(-1)
    while offset < end and found < 0:
        segment_end = min(offset + SEGMENT_BYTES, end)
        found, more_edges, offset = probe_segment(
            tails, n, frontier, ids, offset, segment_end, np.int64(-1)
        )
        edges += more_edges
    return found, edges, offset - begin


@kernel
def _decode_two(rows, offsets, ends, last, num_pending, firsts):
    """Decode two neighbours of each pending vertex, into firsts and last, and move its offset.

    Where a row has one neighbour left, both are this one. Returns how many neighbours and bytes
    that are, and whether a row is malformed.
    """
    tails = rows.tails
    n = np.uint64(rows.num_ids)
    edges = num_pending
    num_bytes = 0
    malformed = False
    for i in range(num_pending):
        begin, end = offsets[i], ends[i]
        delta, middle = take_varint(tails, begin)
        v = last[i] + delta + 1
        # Where the row ends, this is of another row, and not used.
        delta, offset = take_varint(tails, middle)
        has_second = middle < end
        second = v + delta + 1 if has_second else v
        offset = offset if has_second else middle
        malformed |= (np.uint64(second) >= n) | (offset > end)
        edges += np.int64(has_second)
        num_bytes += offset - begin
        firsts[i] = v
        last[i] = second
        offsets[i] = offset
    return edges, num_bytes, malformed


@kernel
def _keep_open(frontier, pending, offsets, ends, last, num_pending, firsts, hits, first):
    """Append the pending vertices that hit to hits[first:], and keep those with more neighbours.

    Returns how many are kept, where the hits end, and the neighbours that were not looked at,
    because the one before hit.
    """
    pad = np.uint64(frontier.size - 1)
    num_hits = np.uint64(first)
    left = ZERO
    spared = ZERO
    for i in range(num_pending):
        u, v, second = pending[i], np.uint64(firsts[i]), np.uint64(last[i])
        offset, end = offsets[i], ends[i]
        hit = frontier[min(v >> np.uint64(6), pad)] >> (v & np.uint64(63)) & ONE
        word = frontier[min(second >> np.uint64(6), pad)]
        any_hit = word >> (second & np.uint64(63)) & ONE | hit
        spared += hit & np.uint64(v != second)
        # A shift, because LLVM makes a branch of a choice, which cannot be guessed.
        found_by = np.uint32((v << np.uint64(32) | second) >> (hit << np.uint64(5)))
        hits[num_hits] = np.uint64(u) << np.uint64(32) | np.uint64(found_by)
        num_hits += any_hit
        pending[left] = u
        offsets[left] = offset
        ends[left] = end
        last[left] = second
        left += np.uint64(offset < end) & ~any_hit
    return np.int64(left), np.int64(num_hits), np.int64(spared)


@inlined
def add_pending(ids, memory, num_pending, u, begin, end):
    """Let vertex u wait to be probed, unless its tail is empty; return how many wait."""
    ids[num_pending] = u
    memory[num_pending] = begin
    memory[num_pending + _ENDS] = end
    memory[num_pending + _LAST] = -1
    return num_pending + np.int64(begin < end)


@inlined
def hit_at(memory, i):
    """Return the i-th vertex that hit, and what it hit."""
    packed = np.uint64(memory[i + _HITS])
    return np.int64(packed >> np.uint64(32)), np.uint32(packed)


@kernel
def probe_pending(rows, frontier, ids, memory, num_pending):
    """Probe the tails of pending vertices, at most a segment each, in rounds.

    A round decodes two neighbours of each, then takes out the vertices that hit, and those whose
    rows end, without a branch: two loops, because one has more to keep at hand than there are
    registers. After a round with few hits, each row that is left is read to its end: then most of
    them miss, and rows are read faster one after the other. Returns how many hit, the edges and
    bytes looked at, and whether a row is malformed.
    """
    offsets, ends, last, hits = memory, memory[_ENDS:], memory[_LAST:], memory[_HITS:]
    scratch = ids[PENDING:]
    edges = 0
    num_bytes = 0
    num_hits = 0
    few_hits = False
    while num_pending > 0 and not few_hits:
        num_tried, hits_before = num_pending, num_hits
        more_edges, more_bytes, malformed = _decode_two(
            rows, offsets, ends, last, num_pending, scratch
        )
        if malformed:
            return num_hits, edges, num_bytes, True
        num_pending, num_hits, spared = _keep_open(
            frontier, ids, offsets, ends, last, num_pending, scratch, hits, num_hits
        )
        edges += more_edges - spared
        num_bytes += more_bytes
        few_hits = _WORTH_A_ROUND * (num_hits - hits_before) < num_tried
    for i in range(num_pending):
        v, more_edges, offset = probe_segment(
            rows.tails, rows.num_ids, frontier, scratch, offsets[i], ends[i], last[i]
        )
        edges += more_edges
        num_bytes += offset - offsets[i]
        if v >= rows.num_ids:
            return num_hits, edges, num_bytes, True
        hits[num_hits] = np.int64(ids[i]) << 32 | v
        num_hits += np.int64(v >= 0)
    return num_hits, edges, num_bytes, False


@inlined
def _in_frontier(frontier, v):
    """Return 1 if a vertex is in the frontier, else 0."""
    return frontier[v >> 6] >> np.uint64(v & 63) & ONE


@inlined
def _probe_two(rows, frontier, parents, w, open_bits):
    """Probe the first two neighbours after the heads of a word's open vertices, decoded.

    Most tails are as short as that, and which of them hit cannot be guessed: so there is no branch.
    Returns the bits that hit, those of longer rows that did not, and the edges looked at.
    """
    firsts, neighbours = rows.firsts, rows.neighbours
    hits, left = ZERO, ZERO
    edges = np.int64(0)
    while open_bits != ZERO:
        b = trailing_zeros(open_bits)
        open_bits &= open_bits - ONE
        u = w * 64 + b
        begin = np.int64(firsts[u]) + 1
        size = np.int64(firsts[u + 1]) - begin
        # What follows a row is another one, or spare.
        first = _in_frontier(frontier, neighbours[begin]) & np.uint64(size > 0)
        second = _in_frontier(frontier, neighbours[begin + 1]) & np.uint64(size > 1)
        hit = first | second
        hits |= hit << np.uint64(b)
        left |= (np.uint64(size > 2) & ~hit) << np.uint64(b)
        edges += min(size, 2 - np.int64(first))
        if parents.size != 0 and hit != ZERO:
            parents[u] = neighbours[begin + np.int64(first ^ ONE)]
    return hits, left, edges


@inlined
def probe_decoded(rows, frontier, parents, w, open_bits):
    """Probe the decoded rows of a word's open vertices: two ids after the head, then eight at once.

    Returns the bits of those that hit, whose parents are set if there are any, and the edges looked
    at.
    """
    firsts, neighbours = rows.firsts, rows.neighbours
    all_hits, open_bits, edges = _probe_two(rows, frontier, parents, w, open_bits)
    while open_bits != ZERO:
        bit = open_bits & (ZERO - open_bits)
        u = w * 64 + trailing_zeros(open_bits)
        open_bits ^= bit
        end = np.int64(firsts[u + 1])
        for first in range(np.int64(firsts[u]) + 3, end, 8):
            hits = ZERO
            for i in range(8):
                hits |= _in_frontier(frontier, neighbours[first + i]) << np.uint64(i)
            hits &= ~ZERO >> np.uint64(64 - min(end - first, 8))
            if hits != ZERO:
                number = trailing_zeros(hits)
                edges += number + 1
                all_hits |= bit
                if parents.size != 0:
                    parents[u] = neighbours[first + number]
                break
            edges += min(end - first, 8)
    return all_hits, edges

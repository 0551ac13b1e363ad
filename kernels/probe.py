"""Bottom-up by rows: a vertex asks whether one of its other neighbours is in the frontier."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel, trailing_zeros
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import take_varint, take_word
from oocbfs.kernels.region import ONE, ZERO

# Vertices that one thread probes at a time.
PENDING = 256
# Where in the scratch of a thread those go that hit, and what they hit. One more may be written
# than is kept.
HITS, FOUND_BY = PENDING, 2 * PENDING + 1
# Scratch for ids of one row comes after.
_ROW_IDS = 3 * PENDING + 2
# A round of probes is followed by another if one of so many hit.
_WORTH_A_ROUND = 4


@kernel
def probe_segment(tails, n, frontier, ids, offset, end, v):
    """Look for a frontier vertex among the ids that follow v in a segment, 8 bytes at a time.

    Gives it, or -1 if there is none, or n if the segment is malformed; edges looked at, and offset.
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

    Gives it, or -1 if there is none, or n if the tail is malformed; edges and bytes looked at.
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
def _probe_round(
    rows, frontier, pending, offsets, ends, last, num_pending, hits, found_by, num_hits
):
    """Decode two neighbours of each pending vertex.

    Gives the pending left (or -1), hits, and the edges and bytes that were looked at: where the
    first neighbour hit, the second was not.
    """
    tails = rows.tails
    n = rows.num_ids
    pad = np.int64(frontier.size - 1)
    left = 0
    edges = 0
    num_bytes = 0
    malformed = False
    for i in range(num_pending):
        u = pending[i]
        end = ends[i]
        begin = offsets[i]
        delta, middle = take_varint(tails, begin)
        v = last[i] + delta + 1
        # Where a row ends, the last one is decoded again, and not used.
        has_second = np.int64(middle < end)
        delta, offset = take_varint(tails, middle if has_second != 0 else begin)
        second = v + (delta + 1) * has_second
        offset = offset if has_second != 0 else middle
        malformed |= (second >= n) | (offset > end)
        hit = np.int64(frontier[min(v >> 6, pad)] >> np.uint64(v & 63) & ONE)
        any_hit = np.int64(frontier[min(second >> 6, pad)] >> np.uint64(second & 63) & ONE) | hit
        edges += 1 + (has_second & (hit ^ 1))
        num_bytes += (middle if hit != 0 else offset) - begin
        hits[num_hits] = u
        found_by[num_hits] = v if hit != 0 else second
        num_hits += any_hit
        pending[left] = u
        ends[left] = end
        offsets[left] = offset
        last[left] = second
        left += np.int64(offset < end) & (any_hit ^ 1)
    if malformed:
        left = -1
    return left, num_hits, edges, num_bytes


@kernel
def probe_pending(rows, frontier, ids, offsets, num_pending):
    """Probe the tails of pending vertices, at most a segment each, in rounds.

    The vertices are ids[:num_pending]; their tails begin at offsets[:PENDING] and end at
    offsets[PENDING : 2 * PENDING]; the last third holds the ids before, -1. A round appends the
    vertices that hit and keeps the others, without a branch. After a round with few hits, each row
    that is left is read to its end: then most of them miss, and rows are read faster one after the
    other. Gives how many hit (they are in ids[HITS:], what they hit in ids[FOUND_BY:]), the edges
    and bytes looked at, and whether a row is malformed.
    """
    hits, found_by, scratch = ids[HITS:FOUND_BY], ids[FOUND_BY:_ROW_IDS], ids[_ROW_IDS:]
    ends, last = offsets[PENDING : 2 * PENDING], offsets[2 * PENDING :]
    edges = 0
    num_bytes = 0
    num_hits = 0
    few_hits = False
    while num_pending > 0 and not few_hits:
        num_tried, hits_before = num_pending, num_hits
        num_pending, num_hits, more_edges, more_bytes = _probe_round(
            rows, frontier, ids, offsets, ends, last, num_pending, hits, found_by, num_hits
        )
        edges += more_edges
        num_bytes += more_bytes
        few_hits = _WORTH_A_ROUND * (num_hits - hits_before) < num_tried
    for i in range(num_pending):
        v, more_edges, offset = probe_segment(
            rows.tails, rows.num_ids, frontier, scratch, offsets[i], ends[i], last[i]
        )
        edges += more_edges
        num_bytes += offset - offsets[i]
        if v >= rows.num_ids:
            num_pending = -1
            break
        hits[num_hits] = ids[i]
        found_by[num_hits] = v
        num_hits += np.int64(v >= 0)
    return num_hits, edges, num_bytes, num_pending < 0


@inlined
def _in_frontier(frontier, v):
    """Give 1 if a vertex is in the frontier, else 0."""
    return frontier[v >> 6] >> np.uint64(v & 63) & ONE


@inlined
def _probe_two(rows, frontier, parents, w, open_bits):
    """Probe the first two neighbours after the heads of a word's open vertices, decoded.

    Most tails are as short as that, and which of them hit cannot be guessed: so there is no branch.
    Gives the bits that hit, those of longer rows that did not, and the edges looked at.
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

    Gives the bits of those that hit, whose parents are set if there are any, and the edges looked
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

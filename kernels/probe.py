"""Bottom-up by rows: a vertex asks whether one of its other neighbours is in the frontier."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel, trailing_zeros
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import take_word
from oocbfs.kernels.region import ONE, ZERO


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

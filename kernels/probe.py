"""Bottom-up by tails: a vertex asks whether one of the ids in its tail is in the frontier."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import kernel, trailing_zeros
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

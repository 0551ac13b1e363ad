"""The local order: vertices that are near each other in the graph are near each other in memory."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.cache import compiled

_U32 = types.Array(types.uint32, 1, "C")
_U64 = types.Array(types.uint64, 1, "C")
_READ_ONLY = types.Array(types.uint32, 1, "C", readonly=True)
_I64S = types.Array(types.int64, 1, "C")
_I64 = types.int64
NOWHERE = np.uint32(0xFFFFFFFF)


# Words of the progress of a ranking: the number of vertices placed, the earliest of them that may
# have a neighbour not placed, how many of its first neighbours are, and the first vertex
# that may have none.
COUNT, EARLIEST, SEEN, FIRST = range(4)
PROGRESS_WORDS = 4


@compiled(types.void(_U32, _U64, _U64, _I64), types.void(_U32, _U32, _U64, _I64))
def split_arcs(neighbours, lengths, arcs, column_bits):
    """Take the second ends of arcs, and count them in the lengths of their rows."""
    bits = np.uint64(column_bits)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for i in range(arcs.size):
        neighbours[i] = arcs[i] & mask
        lengths[arcs[i] >> bits] += 1


@njit(nogil=True)
def _row(ends, u):
    """Return the begin and the end of the row of u."""
    return np.int64(ends[u - 1]) if u > 0 else np.int64(0), np.int64(ends[u])


@compiled(types.void(_U32, _U32, _I64S, _READ_ONLY, _U64, _I64, _I64))
def grow(stored_at, placed, progress, neighbours, ends, size, most):
    """Place vertices cluster by cluster, until ``most`` rows were looked at or none are left.

    A cluster is a ball of at most ``size`` vertices that grows breadth first among those not
    placed. It starts next to the earliest vertex placed that still has such a neighbour, so that
    clusters follow their neighbours, or else at the first vertex not placed.
    """
    n = stored_at.size
    count = progress[COUNT]
    earliest = progress[EARLIEST]
    seen = progress[SEEN]
    first = progress[FIRST]
    looked = 0
    while count < n and looked < most:
        if earliest < count:
            begin, end = _row(ends, np.int64(placed[earliest]))
            while begin + seen < end and stored_at[neighbours[begin + seen]] != NOWHERE:
                seen += 1
            looked += 1
            if begin + seen == end:
                earliest += 1
                seen = 0
                continue
            seed = np.int64(neighbours[begin + seen])
        else:
            while stored_at[first] != NOWHERE:
                first += 1
            seed = first
        stored_at[seed] = count
        placed[count] = seed
        grown = count
        limit = min(n, count + size)
        count += 1
        while grown < count < limit:
            begin, end = _row(ends, np.int64(placed[grown]))
            for k in range(begin, end):
                v = neighbours[k]
                if stored_at[v] == NOWHERE and count < limit:
                    stored_at[v] = count
                    placed[count] = v
                    count += 1
            grown += 1
            looked += 1
    progress[COUNT] = count
    progress[EARLIEST] = earliest
    progress[SEEN] = seen
    progress[FIRST] = first

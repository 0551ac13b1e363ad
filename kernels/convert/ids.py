"""Numbers for ids: which ids occur, and the position of an id among those that do."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.atomics import count_ones
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import ONE

_U32 = types.Array(types.uint32, 1, "C")
_U64 = types.Array(types.uint64, 1, "C")
_READ_U64 = types.Array(types.uint64, 1, "C", readonly=True)
_LOW6 = np.uint64(63)


@compiled(types.void(_U64, _READ_U64))
def mark(bitmap, ids):
    """Set the bit of every id; all must be inside the bitmap."""
    for x in ids:
        bitmap[x >> np.uint64(6)] |= ONE << (x & _LOW6)


@compiled(types.boolean(_U64, _READ_U64, _READ_U64))
def pack_ids(out, sources, targets):
    """Put both ends of each edge into 64 bits; returns whether they fit, each into 32."""
    bits = np.uint64(0)
    for i in range(sources.size):
        bits |= sources[i] | targets[i]
        out[i] = sources[i] << np.uint64(32) | targets[i]
    return bits >> np.uint64(32) == np.uint64(0)


@compiled(types.int64(_U32, _U64))
def count_before(counts, bitmap):
    """For each word of the bitmap, count the bits before it; returns the number of all bits."""
    total = 0
    for w in range(bitmap.size):
        counts[w] = total
        total += count_ones(bitmap[w])
    return total


@compiled(types.void(_U64, _READ_U64, _U64, _U32))
def position_in_bitmap(out, ids, bitmap, counts):
    """Position of each id among the set bits; every id's bit is set."""
    for i in range(ids.size):
        w = ids[i] >> np.uint64(6)
        below = (ONE << (ids[i] & _LOW6)) - ONE
        out[i] = counts[w] + count_ones(bitmap[w] & below)


@compiled(types.void(_U64, _READ_U64, _READ_U64, _U32, types.uint64))
def position_in_list(out, ids, listed, first, shift):
    """Position of each id in a sorted list that holds them all.

    ``first[t]`` is the position of the first listed id with leading bits (id >> shift) from t on.
    """
    for i in range(ids.size):
        t = ids[i] >> shift
        low = np.int64(first[t])
        high = np.int64(first[t + ONE])
        while low < high:
            middle = (low + high) >> 1
            if listed[middle] < ids[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low


@compiled(types.int64(_U64, _U64, _U64, types.int64, types.boolean))
def edge_keys(out, sources, targets, column_bits, directed):
    """Pack edges that are not loops into keys, undirected ones with the smaller end first."""
    bits = np.uint64(column_bits)
    kept = 0
    for i in range(sources.size):
        u, v = sources[i], targets[i]
        if u == v:
            continue
        if u > v and not directed:
            u, v = v, u
        out[kept] = u << bits | v
        kept += 1
    return kept

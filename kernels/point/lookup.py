"""Stored vertices of a few positions, where nobody turned the order around: a pass over it."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, READ_I64, READ_U32, U32, U64
from oocbfs.kernels.cache import compiled

# Elements that are compared together before anybody looks which was it.
_BLOCK = 512


@compiled(types.int64(I64, READ_U32, types.int64, READ_I64, U64), _nrt=False)
def find_positions(stored, order, first, wanted, bits):
    """Find wanted positions in a piece of the order, whose first element is vertex ``first``.

    ``wanted`` ascends. ``stored`` gets the vertices; returns how many were found. ``bits`` has a
    bit for each position that is wanted; where it is empty, only one or two are.
    """
    found = 0
    if bits.size == 0:
        one, other = np.uint32(wanted[0]), np.uint32(wanted[wanted.size - 1])
        for begin in range(0, order.size, _BLOCK):
            end = min(begin + _BLOCK, order.size)
            hits = 0
            for i in range(begin, end):
                hits += np.int64(order[i] == one) | np.int64(order[i] == other)
            if hits != 0:
                for i in range(begin, end):
                    for k in range(wanted.size):
                        if np.int64(order[i]) == wanted[k]:
                            stored[k] = first + i
                            found += 1
        return found
    for i in range(order.size):
        position = np.int64(order[i])
        word = position >> 6
        if word < bits.size and bits[word] >> np.uint64(position & 63) & np.uint64(1):
            low, high = 0, wanted.size - 1
            while low < high:
                middle = (low + high) >> 1
                if wanted[middle] < position:
                    low = middle + 1
                else:
                    high = middle
            stored[low] = first + i
            found += 1
    return found


@compiled(types.void(U32, types.int64, types.int64, READ_U32), _nrt=False)
def turn_around(stored, low, first, order):
    """Note the vertices of a piece of the order, from ``first`` on, at their positions less low.

    Those at other positions are left out.
    """
    for i in range(order.size):
        place = np.int64(order[i]) - low
        if 0 <= place < stored.size:
            stored[place] = first + i

"""From planes of bits to levels: one row a source, vertices at their natural positions.

Planes hold, for each vertex and source, the bits of the level plus 1, so that 0 is "not reached".
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U32
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.vectors import add_where

_PLANES = types.Array(types.uint64, 2, "C")
_I64 = types.int64
# Matrices of bits that are turned together, one in each lane of a vector.
_LANES = 8
# Positions whose levels are gathered before they are copied to the rows.
_TILE = 64 * _LANES
# Levels plus 1 of so many bits fit a signed byte.
BYTE_PLANES = 7


@inlined
def _transpose(words):
    """Turn matrices of 64 words of 64 bits: bit s of words[v] becomes bit v of words[s].

    Blocks are swapped, half as large each time: Warren, Hacker's Delight, 7-3.
    """
    width = 32
    mask = np.uint64(0xFFFFFFFF)
    while width != 0:
        shift = np.uint64(width)
        for block in range(0, 64, 2 * width):
            for i in range(block, block + width):
                for lane in range(_LANES):
                    swap = (words[i, lane] >> shift ^ words[i + width, lane]) & mask
                    words[i, lane] ^= swap << shift
                    words[i + width, lane] ^= swap
        width >>= 1
        mask ^= mask << np.uint64(width)


@inlined
def _gather(words, plane, stored_at, first, count):
    """Collect the words of a tile's positions, zeros after the last."""
    for i in range(count):
        v = np.int64(stored_at[first + i]) if stored_at.size else first + i
        words[i & 63, i >> 6] = plane[v]
    for i in range(count, _TILE):
        words[i & 63, i >> 6] = np.uint64(0)


@compiled(types.void(types.Array(types.int8, 2, "C"), _PLANES, READ_U32, _I64, _I64, _I64))
def spread_bytes(out, planes, stored_at, source, first, stop):
    """Fill the levels of the sources from ``source`` on at positions first … stop-1.

    ``stored_at`` are the stored vertices at the positions; empty if they are the same. There are at
    most BYTE_PLANES planes.
    """
    words = np.empty((64, _LANES), np.uint64)
    tile = np.empty(64 * _TILE, np.uint8)
    for begin in range(first, stop, _TILE):
        count = min(_TILE, stop - begin)
        tile[:] = 255
        for p in range(planes.shape[0]):
            _gather(words, planes[p], stored_at, begin, count)
            _transpose(words)
            for row in range(out.shape[0]):
                for lane in range(_LANES):
                    offset = row * _TILE + 64 * lane
                    add_where(tile, offset, words[source + row, lane], np.uint8(1 << p))
        for row in range(out.shape[0]):
            levels = out[row, begin : begin + count]
            part = tile[row * _TILE : row * _TILE + count].view(np.int8)
            for i in range(count):
                levels[i] = part[i]


@compiled(types.void(types.Array(types.int32, 1, "C"), _PLANES, READ_U32, _I64))
def spread_deep(out, planes, stored_at, source):
    """Fill the levels of one source, however many planes there are."""
    for position in range(out.size):
        v = np.int64(stored_at[position]) if stored_at.size else position
        value = np.uint64(0)
        for p in range(planes.shape[0]):
            value |= (planes[p, v] >> np.uint64(source) & np.uint64(1)) << np.uint64(p)
        out[position] = np.int32(value) - 1

"""From planes of bits to levels: one row a source, vertices at their natural positions.

Planes hold, for each vertex and source, the bits of the level plus 1, so that 0 is "not reached".
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.atomics import add_where, inlined

_PLANES = types.Array(types.uint64, 2, "C")
_READ_U32 = types.Array(types.uint32, 1, "C", readonly=True)
_I64 = types.int64
# Positions whose levels are gathered before they are copied to the rows.
TILE = 512
# Levels plus 1 of so many bits fit a signed byte.
BYTE_PLANES = 7


@inlined
def _transpose(words):
    """Turn 64 words of 64 bits: bit s of words[v] becomes bit v of words[s]."""
    width = 32
    mask = np.uint64(0xFFFFFFFF)
    while width != 0:
        shift = np.uint64(width)
        for block in range(0, 64, 2 * width):
            for i in range(block, block + width):
                swap = (words[i] >> shift ^ words[i + width]) & mask
                words[i] ^= swap << shift
                words[i + width] ^= swap
        width >>= 1
        mask ^= mask << np.uint64(width)


@inlined
def _gather(words, plane, ranks, first, count):
    """Collect the words of 64 positions, zeros behind the last."""
    for i in range(count):
        words[i] = plane[np.int64(ranks[first + i]) if ranks.size else first + i]
    for i in range(count, 64):
        words[i] = np.uint64(0)


@njit(
    types.void(types.Array(types.int8, 2, "C"), _PLANES, _READ_U32, _I64, _I64, _I64),
    cache=True,
    nogil=True,
)
def spread_bytes(out, planes, ranks, source, first, stop):
    """Give the sources from ``source`` on their levels at positions first … stop-1.

    ``ranks`` are the stored vertices at the positions; empty if they are the same. There are at most
    BYTE_PLANES planes.
    """
    words = np.empty(64, np.uint64)
    tile = np.empty(64 * TILE, np.uint8)
    for begin in range(first, stop, TILE):
        end = min(begin + TILE, stop)
        tile[:] = 255
        for base in range(begin, end, 64):
            for p in range(planes.shape[0]):
                _gather(words, planes[p], ranks, base, min(64, end - base))
                _transpose(words)
                for row in range(out.shape[0]):
                    place = row * TILE + base - begin
                    add_where(tile, place, words[source + row], np.uint8(1 << p))
        for row in range(out.shape[0]):
            levels = out[row, begin:end]
            part = tile[row * TILE : row * TILE + end - begin].view(np.int8)
            for i in range(levels.size):
                levels[i] = part[i]


@njit(
    types.void(types.Array(types.int32, 1, "C"), _PLANES, _READ_U32, _I64),
    cache=True,
    nogil=True,
)
def spread_deep(out, planes, ranks, source):
    """Give one source its levels, however many planes there are."""
    for position in range(out.size):
        v = np.int64(ranks[position]) if ranks.size else position
        value = np.uint64(0)
        for p in range(planes.shape[0]):
            value |= (planes[p, v] >> np.uint64(source) & np.uint64(1)) << np.uint64(p)
        out[position] = np.int32(value) - 1

"""Bitmaps as messages: as they are, or as the distances between their ones or zeros, as varints."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U8, READ_U64, U8, U64
from oocbfs.kernels.atomics import count_ones, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.region import ONE, ZERO
from oocbfs.kernels.varint import get_varint, put_varint

_I64 = types.int64
# What can be wrong with a message: nothing, or it is no list of bits of this bitmap.
FINE, DAMAGED = range(2)


@compiled(_I64(READ_U64))
def count_bits(bitmap):
    """Count the set bits."""
    size = np.int64(0)
    for w in range(bitmap.size):
        size += count_ones(bitmap[w])
    return size


@compiled(_I64(U8, READ_U64, types.uint64))
def put_bits(out, bitmap, flip):
    """Write the distances between bits that differ from ``flip``'s; give the bytes, or -1.

    It gives up with -1 as soon as there is no room for five bytes more.
    """
    offset = np.int64(0)
    previous = np.int64(-1)
    for w in range(bitmap.size):
        bits = bitmap[w] ^ flip
        while bits != ZERO:
            if offset + 5 > out.size:
                return np.int64(-1)
            v = w * 64 + trailing_zeros(bits)
            offset = put_varint(out, offset, v - previous - 1)
            previous = v
            bits &= bits - ONE
    return offset


@compiled(_I64(U64, READ_U8, types.uint64))
def take_bits(bitmap, data, flip):
    """Undo ``put_bits``; the bitmap gets every bit of ``flip`` first. Gives FINE or DAMAGED."""
    bitmap[:] = flip
    offset = np.int64(0)
    v = np.int64(-1)
    while offset < data.size:
        delta, offset = get_varint(data, offset, data.size)
        v += delta + 1
        if offset < 0 or delta < 0 or v < 0 or v >= 64 * bitmap.size:
            return DAMAGED
        bitmap[v >> 6] ^= ONE << np.uint64(v & 63)
    return FINE

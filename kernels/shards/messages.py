"""Sets of numbers as messages, in the code of Elias and Fano.

A number is written by the steps from its predecessor's high part to its own in unary, that many
zeros and a one, and then its low bits as they are (Elias, J. ACM 1974; Fano, 1971). Whatever the
numbers are, that takes a bit and the low bits for each of them, and one for each high part there
is: the length of a message is known before it is written. No code takes less than some half bit a
number less where they are spread evenly.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U64, U64
from oocbfs.kernels.atomics import count_ones, inlined, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import ONE, ZERO

_I64 = types.int64
# What can be wrong with a message: nothing, or it is no list of bits of this bitmap.
FINE, DAMAGED = range(2)
# Words that a decoder may read after the last one that counts.
SPARE_WORDS = 2


@compiled(_I64(READ_U64))
def count_bits(bitmap):
    """Count the set bits."""
    size = np.int64(0)
    for w in range(bitmap.size):
        size += count_ones(bitmap[w])
    return size


@compiled(_I64(READ_U64, types.uint64))
def count_words(bitmap, rest):
    """Count the words up to the last one that is not like the rest."""
    size = bitmap.size
    while size > 0 and bitmap[size - 1] == rest:
        size -= 1
    return size


@compiled(types.void(U64, READ_U64, types.uint64, _I64))
def put_bits(out, bitmap, flip, low_bits):
    """Write the bits that differ from those of ``flip``; ``out`` is zero before, and has room."""
    low = np.uint64(low_bits)
    end = np.int64(0)
    previous = np.int64(0)
    for w in range(bitmap.size):
        bits = bitmap[w] ^ flip
        while bits != ZERO:
            v = w * 64 + trailing_zeros(bits)
            bits &= bits - ONE
            end += (v >> low_bits) - previous
            previous = v >> low_bits
            code = ONE | (np.uint64(v) & ((ONE << low) - ONE)) << ONE
            place = np.uint64(end & 63)
            out[end >> 6] |= code << place
            if (end & 63) + low_bits + 1 > 64:
                out[(end >> 6) + 1] = code >> (np.uint64(64) - place)
            end += low_bits + 1


@inlined
def _window(data, place):
    """Return the 64 bits from a place on."""
    low = data[place >> 6] >> np.uint64(place & 63)
    # Two shifts, because one by 64 would be none.
    high = data[(place >> 6) + 1] << np.uint64(63 - (place & 63)) << ONE
    return low | high


@compiled(_I64(U64, READ_U64, types.uint64, _I64, _I64))
def take_bits(bitmap, data, flip, low_bits, count):
    """Undo ``put_bits`` of so many bits; data has SPARE_WORDS more. Returns FINE or DAMAGED."""
    bitmap[:] = flip
    mask = (ONE << np.uint64(low_bits)) - ONE
    room = 64 * np.int64(data.size - SPARE_WORDS)
    num_bits = 64 * np.int64(bitmap.size)
    place = np.int64(0)
    high = np.int64(0)
    last = np.int64(-1)
    for _ in range(count):
        while place < room and _window(data, place) == ZERO:
            high += 64
            place += 64
        if place >= room:
            return DAMAGED
        zeros = trailing_zeros(_window(data, place))
        high += zeros
        place += zeros + 1
        if place + low_bits > room:
            return DAMAGED
        v = high << low_bits | np.int64(_window(data, place) & mask)
        place += low_bits
        if v <= last or v >= num_bits:
            return DAMAGED
        last = v
        bitmap[v >> 6] ^= ONE << np.uint64(v & 63)
    return FINE

"""Ascending keys as their gaps, each in about as many bits as it needs: what waits on disk.

Gaps are coded as Rice did (1979), in blocks of 64. A block begins with the number of low bits, in
six bits, which is chosen so that the block becomes short. A gap is what is left above its low bits,
as so many zeros and a one, and then the low bits. More than 24 zeros are never written: 25 of them
and 64 bits are a gap as it is.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from oocbfs.kernels.array_types import READ_U8, U64
from oocbfs.kernels.atomics import leading_zeros, load_word, trailing_zeros
from oocbfs.kernels.cache import compiled

_I64 = types.int64
_BLOCK = 64
_SIZE_BITS = 6
_MOST_ZEROS = 24
# So that the zeros and the low bits are in two words of which 57 bits are known.
_MOST_LOW_BITS = 56
_MOST = np.uint64(_MOST_ZEROS + 64)  # about what a gap takes that is written as it is
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)


def packed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return ascending keys, packed."""
    out = np.empty(_most_words(keys.size), np.uint64)
    return out[: pack_keys(out, keys)].copy()


def unpacked(data: NDArray[np.uint64], num_keys: int) -> NDArray[np.uint64]:
    """Return the keys that were packed."""
    keys = np.empty(num_keys, np.uint64)
    unpack_keys(keys, data.view(np.uint8))
    return keys


def _most_words(num_keys: int) -> int:
    """Return how many words packed keys can take."""
    num_blocks = -(-num_keys // _BLOCK)
    return (num_keys * (_MOST_ZEROS + 2 + 64) + num_blocks * _SIZE_BITS) // 64 + 3


@njit(inline="always")
def _put(out, place, word, used, value, num_bits):
    """Append at most 63 bits to the word that is being filled; returns place, word and used.

    Without a branch, because none could be guessed.
    """
    filled = word | value << used
    out[place] = filled
    over = value >> _ONE >> np.uint64(63) - used
    used += num_bits
    is_full = used >> np.uint64(6)
    return place + np.int64(is_full), over if is_full else filled, used & np.uint64(63)


@njit(nogil=True)
def _num_zeros(gaps, low_bits):
    """Return how many bits more than the low bits the gaps of a block take, or about so many."""
    total = np.uint64(0)
    for gap in gaps:
        total += min(gap >> low_bits, _MOST)
    return total


@njit(nogil=True)
def _choose_low_bits(gaps, span):
    """Return the number of low bits with which a block is shortest, or nearly so."""
    num_gaps = np.uint64(gaps.size)
    most = np.uint64(64 - leading_zeros(span // num_gaps | _ONE))
    low_bits = min(most, np.uint64(_MOST_LOW_BITS))
    best = _num_zeros(gaps, low_bits)
    while low_bits > np.uint64(0):
        zeros = _num_zeros(gaps, low_bits - _ONE)
        if zeros >= best + num_gaps:
            break
        best = zeros
        low_bits -= _ONE
    return low_bits


@compiled(_I64(U64, U64))
def pack_keys(out, keys):
    """Write ascending keys, the first as its gap from 0; returns the number of words.

    ``out`` has space for as many as they can take. The last one is spare, for who reads by words.
    """
    gaps = np.empty(_BLOCK, np.uint64)
    place = 0
    word = np.uint64(0)
    used = np.uint64(0)
    previous = np.uint64(0)
    for first in range(0, keys.size, _BLOCK):
        count = min(_BLOCK, keys.size - first)
        before = previous
        for i in range(count):
            gaps[i] = keys[first + i] - previous
            previous = keys[first + i]
        low_bits = _choose_low_bits(gaps[:count], previous - before)
        mask = (_ONE << low_bits) - _ONE
        place, word, used = _put(out, place, word, used, low_bits, np.uint64(_SIZE_BITS))
        for i in range(count):
            gap = gaps[i]
            zeros = gap >> low_bits
            size = zeros + _ONE + low_bits
            if zeros <= np.uint64(_MOST_ZEROS) and size <= np.uint64(63):
                code = (gap & mask) << _ONE << zeros | _ONE << zeros
                place, word, used = _put(out, place, word, used, code, size)
            elif zeros <= np.uint64(_MOST_ZEROS):
                place, word, used = _put(out, place, word, used, _ONE << zeros, zeros + _ONE)
                place, word, used = _put(out, place, word, used, gap & mask, low_bits)
            else:
                zeros = np.uint64(_MOST_ZEROS + 1)
                place, word, used = _put(out, place, word, used, _ONE << zeros, zeros + _ONE)
                place, word, used = _put(out, place, word, used, gap & _LOW32, _HALF)
                place, word, used = _put(out, place, word, used, gap >> _HALF, _HALF)
    out[place] = word
    out[place + 1] = np.uint64(0)
    return place + 2


@compiled(types.void(U64, READ_U8))
def unpack_keys(out, data):
    """Undo ``pack_keys`` for out.size keys."""
    key = np.uint64(0)
    bit = 0
    for first in range(0, out.size, _BLOCK):
        low_bits = load_word(data, bit >> 3) >> np.uint64(bit & 7) & np.uint64(63)
        bit += _SIZE_BITS
        mask = (_ONE << low_bits) - _ONE
        for i in range(first, min(first + _BLOCK, out.size)):
            word = load_word(data, bit >> 3) >> np.uint64(bit & 7)
            zeros = trailing_zeros(word)
            bit += zeros + 1
            if zeros <= _MOST_ZEROS:
                word >>= np.uint64(zeros + 1)
                if low_bits > np.uint64(32):  # 57 bits less the zeros are not enough
                    word = load_word(data, bit >> 3) >> np.uint64(bit & 7)
                key += np.uint64(zeros) << low_bits | word & mask
                bit += np.int64(low_bits)
            else:
                low = load_word(data, bit >> 3) >> np.uint64(bit & 7) & _LOW32
                bit += 32
                high = load_word(data, bit >> 3) >> np.uint64(bit & 7) & _LOW32
                bit += 32
                key += high << _HALF | low
            out[i] = key

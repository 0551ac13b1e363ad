"""Names as bytes of an array: read eight at a time, compared, hashed and checked.

A name is never empty and holds no NUL, so that zeros may stand for what follows its end: names
compare by their bytes, as UTF-8 does by code points, and a prefix comes first.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from oocbfs.kernels.array_types import READ_U8, READ_U16, READ_U32, U64
from oocbfs.kernels.atomics import inlined, kernel, leading_zeros, load_word
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import ALL_ONES, GOLDEN, HALF_BITS, ZERO

# The longest name in bytes, and what is wrong with others.
MAX_NAME_BYTES = (1 << 16) - 1
GOOD, EMPTY, TOO_LONG, HAS_NUL, NOT_UTF8 = range(5)

_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x0101010101010101)
_SECOND_FACTOR = np.uint64(0xD6E8FEB86659FD93)


@intrinsic
def swap_bytes(typingctx, word):
    """Turn the order of the eight bytes around: the first becomes the highest."""

    def codegen(context, builder, signature, args):
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen


@inlined
def name_word(text, offset, end):
    """Return the eight bytes from offset on as one number, the first lowest, zeros from end on."""
    rest = end - offset
    if rest >= 8:
        return load_word(text, offset)
    if rest <= 0:
        return ZERO
    if offset + 8 <= text.size:
        return load_word(text, offset) & (ALL_ONES >> np.uint64(64 - 8 * rest))
    word = ZERO
    for i in range(rest):
        word |= np.uint64(text[offset + i]) << np.uint64(8 * i)
    return word


@inlined
def shared_bytes(a, a_begin, a_end, b, b_begin, b_end):
    """Count the bytes that two names have in common at their beginnings."""
    most = min(a_end - a_begin, b_end - b_begin)
    shared = 0
    while shared < most:
        differing = name_word(a, a_begin + shared, a_end) ^ name_word(b, b_begin + shared, b_end)
        if differing != ZERO:
            same = leading_zeros(swap_bytes(differing)) >> 3
            return min(shared + same, most)
        shared += 8
    return most


@inlined
def compare_names(a, a_begin, a_end, b, b_begin, b_end):
    """Return a number below, at or above 0, as the first name is less, equal or greater."""
    offset = 0
    most = max(a_end - a_begin, b_end - b_begin)
    while offset < most:
        one = name_word(a, a_begin + offset, a_end)
        other = name_word(b, b_begin + offset, b_end)
        if one != other:
            return -1 if swap_bytes(one) < swap_bytes(other) else 1
        offset += 8
    return (a_end - a_begin) - (b_end - b_begin)


@inlined
def copy_bytes(out, place, text, begin, end):
    """Copy bytes to out[place:]."""
    for i in range(end - begin):
        out[place + i] = text[begin + i]


@inlined
def hash_name(text, begin, end, seed):
    """Mix the bytes of a name into 64 bits."""
    mixed = seed ^ (np.uint64(end - begin) * GOLDEN)
    for offset in range(begin, end, 8):
        mixed = (mixed ^ name_word(text, offset, end)) * _SECOND_FACTOR
        mixed ^= mixed >> HALF_BITS
    mixed *= GOLDEN
    return mixed ^ (mixed >> HALF_BITS)


@compiled(types.void(U64, READ_U8, READ_U32, READ_U16, types.uint64))
def hash_names(out, text, starts, lengths, seed):
    """Hash every name of a batch."""
    for i in range(starts.size):
        begin = np.int64(starts[i])
        out[i] = hash_name(text, begin, begin + lengths[i], seed)


@kernel
def _utf8_code(text, begin, end):
    """Check bytes as UTF-8 in its shortest form, without surrogates."""
    i = begin
    while i < end:
        lead = text[i]
        if lead < 0x80:
            i += 1
            continue
        if lead < 0xC2 or lead > 0xF4:
            return NOT_UTF8
        more = 1 + (lead >= 0xE0) + (lead >= 0xF0)
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if i + more >= end or text[i + 1] < low or text[i + 1] > high:
            return NOT_UTF8
        for k in range(i + 2, i + more + 1):
            if text[k] < 0x80 or text[k] > 0xBF:
                return NOT_UTF8
        i += more + 1
    return GOOD


@inlined
def name_code(text, begin, end):
    """Return what is wrong with a name: GOOD if nothing is."""
    size = end - begin
    if size <= 0:
        return EMPTY
    if size > MAX_NAME_BYTES:
        return TOO_LONG
    high = ZERO
    for offset in range(begin, end, 8):
        word = name_word(text, offset, end)
        high |= word & _HIGH_BITS
        if end - offset < 8:
            word |= ALL_ONES << np.uint64(8 * (end - offset))
        # A byte is zero where taking one from it turns its high bit on.
        if (word - _LOW_BITS) & ~word & _HIGH_BITS:
            return HAS_NUL
    return _utf8_code(text, begin, end) if high else GOOD


@compiled(types.UniTuple(types.int64, 2)(READ_U8, READ_U32, READ_U16))
def check_names(text, starts, lengths):
    """Find the first name that is none; returns its code and its number, or GOOD and the count."""
    for i in range(starts.size):
        begin = np.int64(starts[i])
        code = name_code(text, begin, begin + lengths[i])
        if code != GOOD:
            return code, i
    return GOOD, starts.size

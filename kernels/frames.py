"""Frames of a section: contents of FRAME_BYTES each, packed by themselves, in any order unpacked.

A frame is compressed by zstd, or stored as it is where that is no shorter: then it is as long as
its contents. Bytes are compressed as they are. Numbers of four bytes become varints before, each of
its value or of its difference to the one before it in the frame; see FORMAT.md.

zstd is called by the address of its function ``ZSTD_decompressDCtx``, so that threads unpack
without the GIL. Each has *scratch*, which ``formats.io.zstd_library`` makes: the address of its
context of zstd on the first page, then room for what a frame unpacks to, then for frames as read.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from oocbfs.kernels.array_types import READ_I64, READ_U8, READ_U32, U8, U32
from oocbfs.kernels.atomics import (
    element_pointer,
    inlined,
    kernel,
    load_word,
    pack_sevens,
    trailing_zeros,
)
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import BYTES, DIFFERENCES, FRAME_BYTES
from oocbfs.kernels.internals import ir

FRAME_SHIFT = FRAME_BYTES.bit_length() - 1
# Varints of the numbers of a frame.
MOST_PACKED_BYTES = FRAME_BYTES // 4 * 5
# Where scratch holds what a frame unpacks to, and frames as they are read: both whole pages. The
# last word of what is unpacked may reach into the page between them.
ROOM_AT = 4096
READ_AT = ROOM_AT + MOST_PACKED_BYTES + 4096
_I64 = types.int64
_INT64 = ir.IntType(64)
_ONE, _LOW7, _MORE = np.uint64(1), np.uint64(127), np.uint64(128)
_MASK = np.uint64(0xFFFFFFFF)
# Bytes that are read at a time, the bits of which those that are clear end a varint, and the last
# of these bits in a varint of five bytes.
_AT_ONCE = 8
_STOPS = np.uint64(0x8080808080808080)
_LAST_BIT = np.uint64(39)
_ALL = ~np.uint64(0)


@intrinsic
def _decompress(typingctx, function, zstd_context, out, index, capacity, packed, at, count):
    """Decompress packed[at:at+count] to out[index:]; return the size, negative if that failed."""

    def codegen(context, builder, signature, args):
        pointers = [
            builder.ptrtoint(
                element_pointer(context, builder, signature.args[i], args[i], args[i + 1]), _INT64
            )
            for i in (2, 5)
        ]
        kind = ir.FunctionType(_INT64, [_INT64] * 5)
        call = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(call, [args[1], pointers[0], args[4], pointers[1], args[7]])

    kinds = (_I64, _I64, out, types.intp, _I64, packed, types.intp, _I64)
    return _I64(*kinds), codegen


@inlined
def _number(value, previous, coding):
    """Return the number that a varint stands for, after the previous one, with more bits above."""
    if coding == DIFFERENCES:
        # Twice the difference, or one less than twice if it is negative.
        return previous + ((value >> _ONE) ^ (np.uint64(0) - (value & _ONE)))
    # NO_HEAD is the shortest.
    return value - _ONE


@kernel
def _read_numbers(out, first, count, packed, offset, end, coding):
    """Read the varints packed[offset:end] as so many numbers; tell whether that is all there is."""
    number = np.uint64(0)
    i, stop = first, first + count
    while i < stop:
        num_bytes = end - offset
        if num_bytes <= 0:
            return False
        # What lies behind the end is room of the scratch.
        word = load_word(packed, offset)
        stops = ~word & _STOPS
        if stops == _STOPS and num_bytes >= _AT_ONCE and i + _AT_ONCE <= stop:
            # Most are a byte long.
            for j in range(_AT_ONCE):
                number = _number(word & _LOW7, number, coding)
                out[i + j] = np.uint32(number & _MASK)
                word >>= np.uint64(8)
            i += _AT_ONCE
            offset += _AT_ONCE
            continue
        # All varints that end in this word, without going back to memory.
        if num_bytes < _AT_ONCE:
            stops &= _ALL >> np.uint64(64 - 8 * num_bytes)
        if stops == np.uint64(0):
            return False
        while stops != np.uint64(0) and i < stop:
            bits = np.uint64(trailing_zeros(stops))
            value = pack_sevens(word & (stops ^ (stops - _ONE)))
            if bits > _LAST_BIT or value > _MASK:
                return False
            number = _number(value, number, coding)
            out[i] = np.uint32(number & _MASK)
            i += 1
            offset += np.int64(bits + _ONE >> np.uint64(3))
            word = word >> bits >> _ONE
            stops = stops >> bits >> _ONE
    return offset == end


@inlined
def _copy(out, begin, size, packed, at):
    """Copy a frame that is stored as it is."""
    for i in range(size):
        out[begin + i] = packed[at + i]


@kernel
def unpack_bytes(out, begin, size, packed, at, count, scratch, function):
    """Unpack a frame, packed[at:at+count], to out[begin:begin+size]; tell whether it is sound."""
    if count == size:
        _copy(out, begin, size, packed, at)
        return True
    context = np.int64(load_word(scratch, 0))
    return _decompress(function, context, out, begin, size, packed, at, count) == size


@kernel
def unpack_numbers(out, numbers, begin, size, packed, at, count, coding, scratch, function):
    """Unpack a frame of numbers, which ``out`` holds as ``numbers``; tell whether it is sound."""
    if count == size:
        _copy(out, begin, size, packed, at)
        return True
    context = np.int64(load_word(scratch, 0))
    end = _decompress(function, context, scratch, ROOM_AT, MOST_PACKED_BYTES, packed, at, count)
    if end < 0 or end > MOST_PACKED_BYTES:
        return False
    return _read_numbers(numbers, begin >> 2, size >> 2, scratch, ROOM_AT, ROOM_AT + end, coding)


@compiled(_I64(U8, U32, READ_U8, READ_I64, _I64, _I64, _I64, U8, _I64))
def unpack_frames(out, numbers, packed, offsets, first, stop, coding, scratch, function):
    """Unpack the frames first … stop-1; return which one is damaged, or -1.

    Frame i is packed[offsets[i]:offsets[i + 1]], its contents belong to out[FRAME_BYTES * i:].
    """
    for i in range(first, stop):
        begin = i << FRAME_SHIFT
        size = min(out.size - begin, FRAME_BYTES)
        at, count = offsets[i], offsets[i + 1] - offsets[i]
        if coding == BYTES:
            is_sound = unpack_bytes(out, begin, size, packed, at, count, scratch, function)
        else:
            is_sound = unpack_numbers(
                out, numbers, begin, size, packed, at, count, coding, scratch, function
            )
        if not is_sound:
            return i
    return -1


@compiled(_I64(U8, READ_U32, _I64))
def pack_numbers(out, numbers, coding):
    """Write numbers as varints; return their size. The counterpart of ``_read_numbers``."""
    offset = 0
    previous = np.uint64(0)
    for number in numbers:
        value = (np.uint64(number) + _ONE) & _MASK
        if coding == DIFFERENCES:
            step = (np.uint64(number) - previous) & _MASK
            negative = step >> np.uint64(31)
            value = ((step << _ONE) ^ (np.uint64(0) - negative)) & _MASK
            previous = np.uint64(number)
        while value >= _MORE:
            out[offset] = np.uint8(value | _MORE)
            offset += 1
            value >>= np.uint64(7)
        out[offset] = np.uint8(value)
        offset += 1
    return offset

"""Names as a container stores them, front-coded in blocks: decode, find and check them.

``names`` and ``starts`` are sections of a file, which may be damaged: nothing outside of them is
read, and what is no list of names is told. ``merge`` explains the blocks.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, READ_I64, READ_U8, READ_U16, READ_U32, READ_U64, U8
from oocbfs.kernels.atomics import inlined, kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.names.merge import BLOCK_NAMES
from oocbfs.kernels.names.words import (
    EMPTY,
    GOOD,
    MAX_NAME_BYTES,
    compare_names,
    copy_bytes,
    name_code,
    shared_bytes,
)
from oocbfs.kernels.varint import get_varint, varint_bytes

DAMAGED, UNKNOWN = -2, -1
# What is wrong with a list of names.
PROBLEMS = (
    "",
    "a block does not end where the next one begins",
    "a name is not what a name may be",
    "names do not ascend",
    "a name repeats more or less than it shares with the one before",
)
_BLOCK, _NAME, _ORDER, _SHARED = 1, 2, 3, 4


@inlined
def _block(names, starts, block):
    """Return the begin and the end of a block, never outside of the names."""
    size = np.uint64(names.size)
    return np.int64(min(starts[block], size)), np.int64(min(starts[block + 1], size))


@kernel
def _read_name(name, size, names, offset, end, is_first):
    """Turn the name before, of ``size`` bytes, into the next; returns its size and where it ends.

    The size is -1 if there is no name.
    """
    shared = 0
    if not is_first:
        shared, offset = get_varint(names, offset, end)
        if offset < 0 or shared > size:
            return -1, offset
    more, offset = get_varint(names, offset, end)
    if offset < 0 or more < 0 or more > end - offset or shared + more > MAX_NAME_BYTES:
        return -1, offset
    copy_bytes(name, shared, names, offset, offset + more)
    return shared + more, offset + more


@compiled(types.int64(READ_U8, READ_U64, types.int64, types.int64))
def count_bytes(names, starts, first, stop):
    """Count the bytes of the names first … stop-1, or give DAMAGED."""
    total = 0
    for block in range(first // BLOCK_NAMES, (stop + BLOCK_NAMES - 1) // BLOCK_NAMES):
        offset, end = _block(names, starts, block)
        size = 0
        number = block * BLOCK_NAMES
        for k in range(number, min(number + BLOCK_NAMES, stop)):
            shared = 0
            if k > number:
                shared, offset = get_varint(names, offset, end)
                if offset < 0 or shared < 0 or shared > size:
                    return DAMAGED
            more, offset = get_varint(names, offset, end)
            if offset < 0 or more < 0 or more > end - offset or shared + more > MAX_NAME_BYTES:
                return DAMAGED
            offset += more
            size = shared + more
            if k >= first:
                total += size
    return total


@compiled(types.void(U8, I64, READ_U8, READ_U64, types.int64, types.int64))
def decode_names(out, bounds, names, starts, first, stop):
    """Decode the names first … stop-1, whose bytes were counted; name i is out[bounds[i] …]."""
    name = np.empty(MAX_NAME_BYTES, np.uint8)
    place = 0
    bounds[0] = 0
    for block in range(first // BLOCK_NAMES, (stop + BLOCK_NAMES - 1) // BLOCK_NAMES):
        offset, end = _block(names, starts, block)
        size = 0
        number = block * BLOCK_NAMES
        for k in range(number, min(number + BLOCK_NAMES, stop)):
            size, offset = _read_name(name, size, names, offset, end, k == number)
            size = max(0, min(size, out.size - place))  # even if the file changed meanwhile
            if k >= first:
                copy_bytes(out, place, name, 0, size)
                place += size
                bounds[k - first + 1] = place


@compiled(types.int64(U8, I64, READ_U8, READ_U64, READ_I64, types.int64))
def take_names(out, bounds, names, starts, positions, first):
    """Decode the names at positions[first:] as long as out has room; returns the next, or DAMAGED.

    A position below 0 has no bytes. Name i is out[bounds[i] … bounds[i + 1] - 1].
    """
    name = np.empty(MAX_NAME_BYTES, np.uint8)
    place = bounds[first]
    for i in range(first, positions.size):
        size = 0
        if positions[i] >= 0:
            block = positions[i] // BLOCK_NAMES
            offset, end = _block(names, starts, block)
            for k in range(positions[i] % BLOCK_NAMES + 1):
                size, offset = _read_name(name, size, names, offset, end, k == 0)
                if size < 0:
                    return DAMAGED
        if place + size > out.size:
            return i
        copy_bytes(out, place, name, 0, size)
        place += size
        bounds[i + 1] = place
    return positions.size


@compiled(types.boolean(READ_U8, READ_I64, types.boolean))
def are_names(text, bounds, may_miss):
    """Return whether what was decoded are names, or nothing where that is allowed."""
    for i in range(bounds.size - 1):
        code = name_code(text, bounds[i], bounds[i + 1])
        if code != GOOD and not (may_miss and code == EMPTY):
            return False
    return True


@compiled(types.void(I64, READ_U8, READ_U32, READ_U16, READ_U8, READ_U64, types.int64))
def find_names(out, text, begins, lengths, names, starts, count):
    """Find the numbers of names among ``count`` stored ones: UNKNOWN if not there, or DAMAGED."""
    name = np.empty(MAX_NAME_BYTES, np.uint8)
    num_blocks = (count + BLOCK_NAMES - 1) // BLOCK_NAMES
    for i in range(begins.size):
        begin = np.int64(begins[i])
        end = begin + lengths[i]
        out[i] = UNKNOWN
        # The last block whose first name is not after the one sought.
        low, high = 0, num_blocks
        while low < high and out[i] != DAMAGED:
            middle = (low + high) >> 1
            offset, stop = _block(names, starts, middle)
            size, offset = get_varint(names, offset, stop)
            if offset < 0 or size < 0 or size > stop - offset:
                out[i] = DAMAGED
            elif compare_names(names, offset, offset + size, text, begin, end) <= 0:
                low = middle + 1
            else:
                high = middle
        if low == 0 or out[i] == DAMAGED:
            continue
        number = (low - 1) * BLOCK_NAMES
        offset, stop = _block(names, starts, low - 1)
        size = 0
        for k in range(number, min(number + BLOCK_NAMES, count)):
            size, offset = _read_name(name, size, names, offset, stop, k == number)
            if size < 0:
                out[i] = DAMAGED
                break
            if compare_names(name, 0, size, text, begin, end) == 0:
                out[i] = k
                break


@compiled(types.UniTuple(types.int64, 2)(READ_U8, READ_U64, types.int64, types.int64, types.int64))
def check_blocks(names, starts, count, first, stop):
    """Check the blocks first … stop-1 of ``count`` names, and the last name before them.

    Returns the number of a problem, or 0, and that of the name.
    """
    name = np.empty(MAX_NAME_BYTES, np.uint8)
    before = np.empty(MAX_NAME_BYTES, np.uint8)
    before_size = 0
    size = 0
    for block in range(max(0, first - 1), stop):
        offset, end = _block(names, starts, block)
        number = block * BLOCK_NAMES
        for k in range(number, min(number + BLOCK_NAMES, count)):
            at = offset
            copy_bytes(before, 0, name, 0, size)
            before_size = size
            size, offset = _read_name(name, size, names, offset, end, k == number)
            if size < 0 or name_code(name, 0, size) != GOOD:
                return _NAME, k
            shared = 0
            if k > number:
                shared, _ = get_varint(names, at, end)
                at += varint_bytes(shared)
                if shared != shared_bytes(before, 0, before_size, name, 0, size):
                    return _SHARED, k
            # Varints are as short as possible.
            if at + varint_bytes(size - shared) + size - shared != offset:
                return _SHARED, k
            is_first = block == max(0, first - 1) and k == number
            if not is_first and compare_names(before, 0, before_size, name, 0, size) >= 0:
                return _ORDER, k
        if offset != end or starts[block] > starts[block + 1]:
            return _BLOCK, number
    return 0, 0

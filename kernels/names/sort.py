"""Sort the names of an arena by their bytes: quicksort by eight bytes at a time.

The eight bytes that are compared lie beside the offset of each name, so that the arena is read only
where names agree in all eight.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import U8, U32, U64
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.names.table import RECORD_BYTES, record_size
from oocbfs.kernels.names.words import compare_names, copy_bytes, name_word, swap_bytes

# So few names are sorted by insertion.
_FEW = 12
# Room for ranges that wait, before there must be more.
_WAITING = 256
_LOW_BYTE = np.uint64(255)


@compiled(types.void(U64, U8, types.int64))
def list_names(offsets, arena, filled):
    """List where the records of the arena begin."""
    offset = 0
    count = 0
    while offset < filled:
        offsets[count] = np.uint64(offset)
        count += 1
        offset += RECORD_BYTES + record_size(arena, offset)


@compiled(types.void(U64, U64, U8, types.int64, types.int64, types.int64))
def _load_keys(keys, offsets, arena, low, high, depth):
    """Load the eight bytes from ``depth`` on of the names in a range."""
    for i in range(low, high):
        offset = np.int64(offsets[i])
        begin = offset + RECORD_BYTES
        end = begin + record_size(arena, offset)
        keys[i] = swap_bytes(name_word(arena, begin + depth, end))


@compiled(types.void(U64, U64, U8, types.int64, types.int64, types.int64))
def _insert(keys, offsets, arena, low, high, depth):
    """Sort a few names that agree before ``depth``."""
    for i in range(low + 1, high):
        key, offset = keys[i], offsets[i]
        begin = np.int64(offset) + RECORD_BYTES
        end = begin + record_size(arena, np.int64(offset))
        j = i
        while j > low:
            if keys[j - 1] < key:
                break
            if keys[j - 1] == key:
                other = np.int64(offsets[j - 1]) + RECORD_BYTES
                other_end = other + record_size(arena, np.int64(offsets[j - 1]))
                if compare_names(arena, other + depth, other_end, arena, begin + depth, end) < 0:
                    break
            keys[j], offsets[j] = keys[j - 1], offsets[j - 1]
            j -= 1
        keys[j], offsets[j] = key, offset


@compiled(types.void(U64, U64, U8))
def sort_names(offsets, keys, arena):
    """Sort offsets of distinct names by the names; ``keys`` is as long, for eight bytes of each."""
    waiting = np.empty((_WAITING, 3), np.int64)
    top = 0
    low, high, depth = 0, offsets.size, 0
    _load_keys(keys, offsets, arena, low, high, depth)
    dice = np.uint64(0x2545F4914F6CDD1D)
    while True:
        if high - low <= _FEW:
            _insert(keys, offsets, arena, low, high, depth)
            if top == 0:
                return
            top -= 1
            low, high, depth = waiting[top]
            if depth < 0:  # a range of names that agreed in all eight bytes
                depth = -depth
                _load_keys(keys, offsets, arena, low, high, depth)
            continue
        # The middle one of three, drawn so that no input makes all draws bad.
        dice ^= dice << np.uint64(13)
        dice ^= dice >> np.uint64(7)
        dice ^= dice << np.uint64(17)
        span = np.uint64(high - low)
        a = keys[low + np.int64(dice % span)]
        b = keys[low + np.int64((dice >> np.uint64(21)) % span)]
        c = keys[low + np.int64((dice >> np.uint64(42)) % span)]
        pivot = max(min(a, b), min(max(a, b), c))
        less, i, more = low, low, high
        while i < more:
            key = keys[i]
            if key < pivot:
                keys[i], keys[less] = keys[less], key
                offsets[i], offsets[less] = offsets[less], offsets[i]
                less += 1
                i += 1
            elif key > pivot:
                more -= 1
                keys[i], keys[more] = keys[more], key
                offsets[i], offsets[more] = offsets[more], offsets[i]
            else:
                i += 1
        if top + 2 > waiting.shape[0]:
            longer = np.empty((2 * waiting.shape[0], 3), np.int64)
            longer[:top] = waiting[:top]
            waiting = longer
        # Names that end within these eight bytes are followed by zeros: none equals another.
        if more - less > 1 and pivot & _LOW_BYTE:
            waiting[top, 0], waiting[top, 1], waiting[top, 2] = less, more, -(depth + 8)
            top += 1
        # The larger side waits, so that few ranges do.
        if less - low < high - more:
            waiting[top, 0], waiting[top, 1], waiting[top, 2] = more, high, depth
            high = less
        else:
            waiting[top, 0], waiting[top, 1], waiting[top, 2] = low, less, depth
            low = more
        top += 1


@compiled(types.UniTuple(types.int64, 2)(U8, U32, U64, U8, types.int64))
def put_records(out, positions, offsets, arena, first):
    """Write sorted names, each after its length, from number ``first`` on, while out has room.

    The position of each name is noted at its number. Returns the bytes written and the next number.
    """
    place = 0
    for i in range(first, offsets.size):
        offset = np.int64(offsets[i])
        end = offset + RECORD_BYTES + record_size(arena, offset)
        if place + end - offset > out.size:
            return place, i
        number = 0
        for k in range(4):
            number |= np.int64(arena[offset + k]) << (8 * k)
        positions[number] = np.uint32(i)
        copy_bytes(out, place, arena, offset + 4, end)
        place += end - offset - 4
    return place, offsets.size

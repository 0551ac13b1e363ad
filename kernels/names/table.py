"""Number names in the order in which they first come, in a table of hashes.

The names lie one after the other in an arena, each after its number (4 bytes) and its length (2). A
slot of the table holds where its name begins, plus 1, and above that the highest bits of its hash;
0 is empty. Names are shared out between several tables by bits of their hashes that slots do not
use, so that each table has one thread.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, READ_U8, READ_U16, READ_U32, READ_U64, U8, U32, U64
from oocbfs.kernels.atomics import inlined, load_word, prefetch
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import HALF_BITS, LOW_HALF, ONE
from oocbfs.kernels.names.words import compare_names, copy_bytes, hash_name

# What a state holds: names, bytes of the arena in use, bytes of the longest name.
COUNT, FILLED, LONGEST, STATE_SIZE = range(4)
RECORD_BYTES = 6  # before each name
# Slots hold offsets of so many bits.
OFFSET_BITS = 40
# After the last record, so that headers can be read as one word.
ARENA_SLACK = 8

_OFFSET = np.uint64((1 << OFFSET_BITS) - 1)
_LOW16 = np.uint64(0xFFFF)
# Names ahead whose slots, and whose bytes in the arena, are asked for.
_SLOTS_AHEAD, _BYTES_AHEAD = 16, 8


@inlined
def partition_of(mixed, partitions):
    """Return the table that a name belongs to, by the middle bits of its hash."""
    return ((mixed >> np.uint64(24)) & _LOW16) * partitions >> np.uint64(16)


@inlined
def record_size(arena, offset):
    """Return the length of the name in a record."""
    return np.int64(arena[offset + 4]) | np.int64(arena[offset + 5]) << 8


@compiled(
    types.void(U32, READ_U64, READ_U8, READ_U32, READ_U16, U64, U8, I64, types.uint64, types.uint64)
)
def number_names(
    numbers, hashes, text, starts, lengths, slots, arena, state, partition, partitions
):
    """Assign each name of this partition its number · partitions + partition; add new names.

    There must be room for all names of the batch, in slots and arena.
    """
    mask = np.uint64(slots.size - 1)
    count, filled, longest = state[COUNT], state[FILLED], state[LONGEST]
    for i in range(starts.size):
        if i + _SLOTS_AHEAD < starts.size:
            prefetch(slots, np.int64(hashes[i + _SLOTS_AHEAD] & mask))
            ahead = slots[np.int64(hashes[i + _BYTES_AHEAD] & mask)]
            prefetch(arena, np.int64(ahead & _OFFSET))
        mixed = hashes[i]
        if partition_of(mixed, partitions) != partition:
            continue
        tag = mixed >> np.uint64(OFFSET_BITS) << np.uint64(OFFSET_BITS)
        begin = np.int64(starts[i])
        size = np.int64(lengths[i])
        place = mixed & mask
        number = np.uint64(0)
        while True:
            slot = slots[np.int64(place)]
            if slot == 0:
                slots[np.int64(place)] = tag | np.uint64(filled + 1)
                number = np.uint64(count)
                for k in range(4):
                    arena[filled + k] = np.uint8((number >> np.uint64(8 * k)) & np.uint64(255))
                arena[filled + 4] = np.uint8(size & 255)
                arena[filled + 5] = np.uint8(size >> 8)
                copy_bytes(arena, filled + RECORD_BYTES, text, begin, begin + size)
                filled += RECORD_BYTES + size
                count += 1
                longest = max(longest, size)
                break
            if (slot ^ tag) <= _OFFSET:
                offset = np.int64(slot & _OFFSET) - 1
                header = load_word(arena, offset)
                if (header >> HALF_BITS) & _LOW16 == np.uint64(size):
                    stored = offset + RECORD_BYTES
                    if compare_names(text, begin, begin + size, arena, stored, stored + size) == 0:
                        number = header & LOW_HALF
                        break
            place = (place + ONE) & mask
        numbers[i] = np.uint32(number * partitions + partition)
    state[COUNT], state[FILLED], state[LONGEST] = count, filled, longest


@compiled(types.void(U64, U8, types.int64, types.uint64))
def fill_slots(slots, arena, filled, seed):
    """Enter all names of the arena into an empty table."""
    mask = np.uint64(slots.size - 1)
    offset = 0
    while offset < filled:
        begin = offset + RECORD_BYTES
        end = begin + record_size(arena, offset)
        mixed = hash_name(arena, begin, end, seed)
        place = mixed & mask
        while slots[np.int64(place)] != 0:
            place = (place + ONE) & mask
        tag = mixed >> np.uint64(OFFSET_BITS) << np.uint64(OFFSET_BITS)
        slots[np.int64(place)] = tag | np.uint64(offset + 1)
        offset = end

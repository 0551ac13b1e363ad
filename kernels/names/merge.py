"""Merge sorted runs of names into one list of distinct ones, front-coded in blocks.

A run is a sequence of records, a length of two bytes and a name, of which a buffer holds a part.
For each record of a run, in its order, the number of its name is noted.

Blocks are those of the container: the first name of each is written as a varint of its length and
its bytes; each of the others as a varint of the bytes that it shares with the one before, a varint
of how many follow, and those.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, READ_I64, READ_U8, U8, U32, U64
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.names.words import (
    MAX_NAME_BYTES,
    compare_names,
    copy_bytes,
    shared_bytes,
)
from oocbfs.kernels.varint import put_varint

BLOCK_NAMES = 16
# Two varints and the longest name.
MOST_ENTRY_BYTES = 3 + 3 + MAX_NAME_BYTES

# Why the merge stopped: for records of a run, for room for its numbers, for room for names, at the
# end.
NEEDS_RECORDS, NEEDS_NUMBERS, NEEDS_ROOM, DONE = range(4)
# What a state holds: runs in the heap, the run that stopped the merge, distinct names so far, bytes
# of the last one, bytes of names written to the buffer, blocks begun in the buffer, bytes of all
# names in buffers before this one.
RUNS, WHICH, NAMES, LAST_BYTES, WRITTEN, BLOCKS, BEFORE, STATE_SIZE = range(8)


@compiled(types.boolean(U8, I64, types.int64, types.int64))
def _precedes(records, begins, a, b):
    """Return whether the next name of run a comes before that of run b."""
    a_begin = begins[a] + 2
    a_end = a_begin + (np.int64(records[a_begin - 2]) | np.int64(records[a_begin - 1]) << 8)
    b_begin = begins[b] + 2
    b_end = b_begin + (np.int64(records[b_begin - 2]) | np.int64(records[b_begin - 1]) << 8)
    return compare_names(records, a_begin, a_end, records, b_begin, b_end) < 0


@compiled(types.void(I64, types.int64, types.int64, U8, I64))
def sift_down(heap, place, size, records, begins):
    """Move a run down the heap until none below it comes before."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and _precedes(records, begins, heap[child + 1], heap[child]):
            child += 1
        if not _precedes(records, begins, heap[child], heap[place]):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@compiled(
    types.int64(I64, I64, U8, I64, I64, I64, U32, I64, types.int64, U8, U64, U8),
)
def merge_runs(
    heap, state, records, begins, ends, left, numbers, noted, most_noted, names, blocks, last
):
    """Merge until something is missing; returns what.

    ``records[begins[r]:ends[r]]`` are the next records of run r, of which ``left[r]`` remain;
    ``noted[r]`` numbers of it wait in ``numbers[r * most_noted:]``. ``last`` holds the last name.
    """
    while state[RUNS] > 0:
        run = heap[0]
        # Whichever run was served last stands on top, with its next record.
        sift_down(heap, 0, state[RUNS], records, begins)
        run = heap[0]
        state[WHICH] = run
        if noted[run] == most_noted:
            return NEEDS_NUMBERS
        if state[WRITTEN] + MOST_ENTRY_BYTES > names.size or state[BLOCKS] == blocks.size:
            return NEEDS_ROOM
        begin = begins[run] + 2
        size = np.int64(records[begin - 2]) | np.int64(records[begin - 1]) << 8
        end = begin + size
        number = state[NAMES]
        shared = shared_bytes(last, 0, state[LAST_BYTES], records, begin, end)
        if number == 0 or shared < size or shared < state[LAST_BYTES]:
            place = state[WRITTEN]
            if number % BLOCK_NAMES == 0:
                blocks[state[BLOCKS]] = np.uint64(state[BEFORE] + place)
                state[BLOCKS] += 1
                place = put_varint(names, place, size)
                copy_bytes(names, place, records, begin, end)
                place += size
            else:
                place = put_varint(names, place, shared)
                place = put_varint(names, place, size - shared)
                copy_bytes(names, place, records, begin + shared, end)
                place += size - shared
            copy_bytes(last, shared, records, begin + shared, end)
            state[WRITTEN], state[LAST_BYTES] = place, size
            number += 1
            state[NAMES] = number
        numbers[run * most_noted + noted[run]] = np.uint32(number - 1)
        noted[run] += 1
        begins[run] = end
        left[run] -= 1
        if left[run] == 0:
            state[RUNS] -= 1
            heap[0] = heap[state[RUNS]]
        elif not _is_whole(records, end, ends[run]):
            return NEEDS_RECORDS
    return DONE


@compiled(types.boolean(U8, types.int64, types.int64))
def _is_whole(records, begin, end):
    """Return whether the record at ``begin`` is in the buffer up to its end."""
    if begin + 2 > end:
        return False
    size = np.int64(records[begin]) | np.int64(records[begin + 1]) << 8
    return begin + 2 + size <= end


@compiled(types.int64(U8, READ_U8, READ_I64))
def pack_records(out, text, bounds):
    """Write names as records; name i is text[bounds[i]:bounds[i + 1]]. Returns the longest size."""
    place = 0
    longest = 0
    for i in range(bounds.size - 1):
        size = bounds[i + 1] - bounds[i]
        out[place] = np.uint8(size & 255)
        out[place + 1] = np.uint8(size >> 8)
        copy_bytes(out, place + 2, text, bounds[i], bounds[i + 1])
        place += 2 + size
        longest = max(longest, size)
    return longest

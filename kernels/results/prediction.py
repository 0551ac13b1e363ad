"""What a search would read, by memory and level by level, from its levels alone.

Rows are counted in sectors of 32 bytes outside and inside of the device range. Short rows that lie
side by side share a sector where both are searched in the same level; expanded in the order of a
queue, they do not. What is on disk, outside of the host range, is counted in blocks, which a level
reads once.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.array_types import I32, I64, READ_I32, READ_U8, READ_U32, READ_U64
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import take_varint

_TABLE = types.Array(types.int64, 2, "C")
_I64 = types.int64
# Searched in every level: it is never reached.
ALWAYS = 1 << 30


@njit(inline="always")
def _row(bases, starts, shift, u):
    begin = np.int64(bases[u >> shift]) + np.int64(starts[u])
    return begin, np.int64(bases[(u + 1) >> shift]) + np.int64(starts[u + 1])


@njit(inline="always")
def _level_above(levels, heads, u, level):
    """Return whether the head of u is on the level above."""
    head = heads[u]
    return head < levels.size and levels[head] == level - 1


@njit(inline="always")
def _by_memory(begin, end, fast_begin, fast_end):
    """Count the sectors of some bytes outside of the device range, and inside."""
    if begin >= end:
        return 0, 0
    first, last = begin >> 5, (end + 31) >> 5
    inside = max(0, min(last, fast_end >> 5) - max(first, fast_begin >> 5))
    return last - first - inside, inside


@compiled(types.void(_TABLE, READ_I32, READ_U64, READ_U32, _I64, _I64, _I64))
def count_expanded(expanded, levels, bases, starts, shift, fast_begin, fast_end):
    """Add up what expanding each level reads: slow, fast, and what of each a cut can save; bytes.

    A cut can save the sectors before hubs' last segments.
    """
    for u in range(levels.size):
        if levels[u] >= 0:
            begin, end = _row(bases, starts, shift, u)
            last = begin + max(0, end - begin - 1) // SEGMENT_BYTES * SEGMENT_BYTES
            for first, stop in ((0, end), (2, last)):
                slow, fast = _by_memory(begin, stop, fast_begin, fast_end)
                expanded[levels[u], first] += slow
                expanded[levels[u], first + 1] += fast
            expanded[levels[u], 4] += end - begin


@njit(inline="always")
def _hit_end(levels, tails, begin, end, wanted):
    """Find the end of the first neighbour on the wanted level, or the row's end."""
    for segment in range(max(begin, 0), min(end, tails.size), SEGMENT_BYTES):
        offset, stop = segment, min(segment + SEGMENT_BYTES, end)
        v = np.int64(-1)
        while offset < stop:
            delta, offset = take_varint(tails, offset)
            v += delta + 1
            if v < levels.size and levels[v] == wanted:
                return offset
    return end


@njit(inline="always")
def _add_searched(sums, last, group, number, ranges, begin, end, fast_begin, fast_end):
    """Add the sectors of a row; its first one is shared with the row before, if that ends in it."""
    slow, fast = _by_memory(begin, end, fast_begin, fast_end)
    if last[group] == begin >> 5:
        inside = fast_begin <= begin >> 5 << 5 < fast_end
        slow, fast = slow - (not inside), fast - inside
    last[group] = (end - 1) >> 5
    sums[group, number] += slow
    sums[group, ranges + number] += fast


@compiled(
    types.void(
        _TABLE, _TABLE, READ_U32, READ_I32, READ_U32, READ_U64, READ_U32, READ_U8, _I64, _I64, _I64
    )
)
def count_searched(
    waiting, found, cuts, levels, heads, bases, starts, tails, shift, fast_begin, fast_end
):
    """Add up what searching reads, for the vertices of each level: before that level, and in it.

    Columns are the ranges of the vertices between cuts, slow sectors first. A vertex whose head is
    on the level above is found by it and reads nothing. Vertices that are not reached wait in every
    level; the last row sums them up.
    """
    unreached = waiting.shape[0] - 1
    last_waiting = np.full(unreached + 1, -1)
    last_found = np.full(unreached + 1, -1)
    number, ranges = 0, cuts.size + 1
    for u in range(levels.size):
        while number < cuts.size and u >= cuts[number]:
            number += 1
        begin, end = _row(bases, starts, shift, u)
        level = np.int64(levels[u])
        if begin == end or level == 0:
            continue
        group = level if level > 0 else unreached
        _add_searched(
            waiting, last_waiting, group, number, ranges, begin, end, fast_begin, fast_end
        )
        if level > 0 and not _level_above(levels, heads, u, level):
            end = _hit_end(levels, tails, begin, end, level - 1)
            _add_searched(
                found, last_found, group, number, ranges, begin, end, fast_begin, fast_end
            )


@njit(inline="always")
def _outside(begin, end, host_begin, host_end):
    """Return the end of a row's part before the host range, and the begin of its part after it."""
    return min(end, max(begin, host_begin)), max(begin, min(end, host_end))


@compiled(types.void(I64, READ_I32, READ_U64, READ_U32, _I64, _I64, _I64, _I64))
def count_expanded_blocks(blocks, levels, bases, starts, shift, host_begin, host_end, block_bytes):
    """Count the blocks on disk that expanding each level reads."""
    next_block = np.zeros(blocks.size, np.int64)
    for u in range(levels.size):
        level = levels[u]
        if level < 0:
            continue
        begin, end = _row(bases, starts, shift, u)
        before, after = _outside(begin, end, host_begin, host_end)
        for first, last in ((begin, before), (after, end)):
            if first < last:
                block = max(first // block_bytes, next_block[level])
                stop = (last - 1) // block_bytes + 1
                blocks[level] += max(0, stop - block)
                next_block[level] = max(stop, next_block[level])


@compiled(types.void(I32, READ_I32, READ_U32, READ_U64, READ_U32, _I64, _I64, _I64, _I64))
def find_searched_blocks(
    wanted, levels, heads, bases, starts, shift, host_begin, host_end, block_bytes
):
    """Find, for each block on disk, the last level in which searching reads it: 0 is never."""
    for u in range(levels.size):
        level = levels[u]
        if level < 0:
            level = ALWAYS
        elif level > 0 and _level_above(levels, heads, u, level):
            level -= 1
        begin, end = _row(bases, starts, shift, u)
        before, after = _outside(begin, end, host_begin, host_end)
        for first, last in ((begin, before), (after, end)):
            if first < last:
                stop = min((last - 1) // block_bytes + 1, wanted.size)
                for block in range(max(first // block_bytes, 0), stop):
                    wanted[block] = max(wanted[block], level)

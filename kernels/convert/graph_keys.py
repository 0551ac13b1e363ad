"""Rows of a graph file as keys of two vertices, in the order of the ids."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_I64, READ_U8, READ_U32, READ_U64, U8, U32, U64
from oocbfs.kernels.atomics import inlined, kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import SPARE, gather_segment
from oocbfs.kernels.varint import decode_tail, make_fold, row_span

_I64 = types.int64
# A row that the file does not have.
NOWHERE = np.uint32(0xFFFFFFFF)


@kernel
def _decode_row(ids, tails, begin, end, n, degree):
    """Decode a tail; returns the number of its ids, -1 if they are not one less than the degree.

    ``ids`` has _ROW_SPARE more elements than a row has.
    """
    count = np.int64(0)
    while begin < end and 0 <= count < degree:
        stop = min(begin + SEGMENT_BYTES, end)
        count = gather_segment(ids, count, tails, begin, stop, n)
        begin = stop
    return count if begin == end and count + 1 == degree else np.int64(-1)


# A damaged segment may hold an id in each of its bytes.
_ROW_SPARE = SEGMENT_BYTES + SPARE


@compiled(
    _I64(
        U64, READ_U32, READ_U64, READ_U32, _I64, READ_U8, READ_U32, _I64, READ_U32, READ_U32,
        U32, _I64, _I64, _I64, _I64, types.boolean,
    )
)  # fmt: skip
def decode_keys(
    out, heads, bases, starts, shift, tails, degrees, num_ids, order, stored_at, vertices, offset,
    column_bits, first, stop, once,
):  # fmt: skip
    """Write the arcs of the rows at natural positions first … stop-1 as keys; returns how many.

    It is -1 if a row is damaged. The row at position p is stored at stored_at[p], or NOWHERE,
    or at p if there is no such array. The vertex at position p is vertices[p], or p + offset if
    there is none. The keys of a row ascend if vertices are not reordered, and are in any order if
    they are. With ``once``, only arcs to larger positions.
    """
    bits = np.uint64(column_bits)
    num_keys = 0
    longest = np.int64(0)
    for p in range(first, stop):
        stored = np.int64(stored_at[p]) if stored_at.size else p
        if stored < heads.size:
            longest = max(longest, np.int64(degrees[stored]))
    neighbours = np.empty(longest + _ROW_SPARE, np.uint32)
    for p in range(first, stop):
        stored = np.int64(stored_at[p]) if stored_at.size else p
        if stored >= heads.size:
            continue
        head = heads[stored]
        if (head >= num_ids) != (degrees[stored] == 0):
            return -1
        if head >= num_ids:
            continue
        begin, end = row_span(bases, starts, shift, tails.size, stored)
        count = _decode_row(neighbours, tails, begin, end, num_ids, np.int64(degrees[stored]))
        if count < 0 or num_keys + count + 1 > out.size:
            return -1
        place = count
        if order.size == 0:
            while place > 0 and neighbours[place - 1] > head:
                neighbours[place] = neighbours[place - 1]
                place -= 1
        neighbours[place] = head
        row = np.uint64(vertices[p]) if vertices.size else np.uint64(p + offset)
        for i in range(count + 1):
            q = np.int64(order[neighbours[i]]) if order.size else np.int64(neighbours[i])
            if q > p or not once:
                column = np.uint64(vertices[q]) if vertices.size else np.uint64(q + offset)
                out[num_keys] = row << bits | column
                num_keys += 1
    return num_keys


@inlined
def _lower(context, lowest, v):
    """Take the lower of two places, of vertices with enough neighbours, which come first."""
    places, degrees, enough = context
    if enough > 0 and np.int64(degrees[v]) < enough:
        return lowest, False
    return min(lowest, places[v]), True


_lower_to_all = make_fold(_lower)


@compiled(
    _I64(
        U32, READ_U32, READ_U64, READ_U32, _I64, READ_U8, READ_U32, _I64, READ_U32, READ_U32, _I64,
        _I64, _I64,
    )
)  # fmt: skip
def lower_heads(
    lowest_of, heads, bases, starts, shift, tails, degrees, num_ids, vertices, places, more, first,
    stop,
):  # fmt: skip
    """Lower what is known of the vertices of rows first … stop-1 to their neighbours' lowest place.

    Rows, ``vertices`` and ``places`` are in the order of the file. If that is by degree, ``more``
    is by how many neighbours a vertex may have more than there, and places are by degree, too: a
    vertex has no lower place than another one that has more neighbours. Otherwise it is below 0.
    Returns -1 if a row is damaged.
    """
    for row in range(first, stop):
        head = heads[row]
        if (head >= num_ids) != (degrees[row] == 0):
            return -1
        if head >= num_ids:
            continue
        lowest = min(lowest_of[vertices[row]], places[head])
        # Where places are not by degree, every neighbour may be the lowest.
        enough = np.int64(degrees[head]) - more if more >= 0 else np.int64(0)
        begin, end = row_span(bases, starts, shift, tails.size, row)
        context = places, degrees, enough
        lowest, is_sound = _lower_to_all(context, lowest, tails, begin, end, num_ids)
        if not is_sound:
            return -1
        lowest_of[vertices[row]] = lowest
    return 0


@compiled(
    types.void(
        U8, READ_I64, READ_I64, READ_U32, READ_U64, READ_U32, _I64, READ_U8, READ_U32, _I64,
        READ_U32, _I64, types.boolean,
    )
)  # fmt: skip
def mark_present(
    found, sources, targets, heads, bases, starts, shift, tails, degrees, num_ids, stored_at,
    max_degree, either,
):  # fmt: skip
    """Set ``found`` where a file has an edge; ends are natural positions, below 0 if it has none.

    An edge is sought in the row of its source or, if it is in ``either`` row, in the shorter one.
    """
    neighbours = np.empty(max_degree + 1, np.uint32)
    decoded = np.int64(-1)
    count = np.int64(0)
    for i in range(sources.size):
        if sources[i] < 0 or targets[i] < 0:
            continue
        row = np.int64(stored_at[sources[i]]) if stored_at.size else sources[i]
        other = np.int64(stored_at[targets[i]]) if stored_at.size else targets[i]
        if either and row != decoded and degrees[other] < degrees[row]:
            row, other = other, row
        if heads[row] >= num_ids:
            continue
        if row != decoded:
            begin, end = row_span(bases, starts, shift, tails.size, row)
            count = max(0, decode_tail(neighbours[:max_degree], tails, begin, end, num_ids))
            decoded = row
        place = np.searchsorted(neighbours[:count], np.uint32(other))
        if heads[row] == other or (place < count and neighbours[place] == other):
            found[i] = 1


@compiled(types.void(U64, U32, _I64, _I64))
def renumber_keys(keys, vertices, old_bits, new_bits):
    """Replace both ends of each key, in place; vertex v is now vertices[v]."""
    mask = (np.uint64(1) << np.uint64(old_bits)) - np.uint64(1)
    for i in range(keys.size):
        u = np.uint64(vertices[keys[i] >> np.uint64(old_bits)])
        keys[i] = u << np.uint64(new_bits) | np.uint64(vertices[keys[i] & mask])

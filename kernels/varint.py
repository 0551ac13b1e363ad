"""The row codec: heads and delta-varint tails in segments, as specified in formats/FORMAT.md."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.array_types import READ_U8, READ_U32, READ_U64, U8, U32, U64
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES

_I64 = types.int64


@njit(inline="always")
def varint_bytes(value):
    """Length of a value's shortest varint."""
    length = 1
    while value >= 128:
        value >>= 7
        length += 1
    return length


@njit(inline="always")
def put_varint(out, offset, value):
    """Write one varint and return its end."""
    while value >= 128:
        out[offset] = np.uint8((value & 127) | 128)
        offset += 1
        value >>= 7
    out[offset] = np.uint8(value)
    return offset + 1


@njit(inline="always")
def get_varint(data, offset, end):
    """Read one varint that ends before ``end``; returns (value, its end or -1)."""
    value = np.int64(0)
    shift = 0
    while offset < end:
        byte = np.int64(data[offset])
        offset += 1
        if shift < 63:
            value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, offset
    return value, -1


@njit(inline="always")
def row_span(bases, starts, shift, tail_bytes, u):
    """Return the begin and the end of row u's tail, never outside the tails."""
    size = np.uint64(tail_bytes)
    begin = min(bases[u >> shift] + np.uint64(starts[u]), size)
    end = min(bases[(u + 1) >> shift] + np.uint64(starts[u + 1]), size)
    return np.int64(begin), np.int64(end)


@compiled(_I64(U8, _I64, U64, _I64, _I64, _I64, types.uint64))
def _put_segments(out, offset, keys, first, stop, head, mask):
    """Write keys[first:stop] but keys[head] as segments; return the end."""
    segment_end = offset + SEGMENT_BYTES
    previous = np.int64(-1)
    for i in range(first, stop):
        if i == head:
            continue
        v = np.int64(keys[i] & mask)
        if offset + varint_bytes(v - previous - 1) > segment_end:
            if offset < segment_end:  # stretch the last varint so that the segment is full
                out[offset - 1] |= np.uint8(128)
                while offset < segment_end - 1:
                    out[offset] = 128
                    offset += 1
                out[offset] = 0
                offset += 1
            segment_end += SEGMENT_BYTES
            previous = -1
        offset = put_varint(out, offset, v - previous - 1)
        previous = v
    return offset


@compiled(_I64(U8, _I64, U64, _I64, _I64, _I64, types.uint64))
def _put_tail(out, offset, keys, first, stop, head, mask):
    """Write one tail, cut into segments if it is long; return the end."""
    start = offset
    previous = np.int64(-1)
    for i in range(first, stop):
        if i == head:
            continue
        v = np.int64(keys[i] & mask)
        offset = put_varint(out, offset, v - previous - 1)
        previous = v
        if offset - start > SEGMENT_BYTES:
            return _put_segments(out, start, keys, first, stop, head, mask)
    return offset


@compiled(_I64(U8, U32, U32, U32, U64, U32, _I64, _I64))
def encode_rows(tails, heads, lengths, degrees, keys, weights, first_row, column_bits):
    """Encode sorted distinct keys (row << column_bits | neighbour) of whole rows.

    The rows are first_row, first_row + 1, …, one for each entry of ``heads``. ``weights`` holds
    the degrees that choose the heads; when empty, vertices are in the order of their degrees, and
    the first neighbour of a row is its head. Returns the number of tail bytes.
    """
    mask = np.uint64((np.int64(1) << column_bits) - 1)
    offset = 0
    i = 0
    for r in range(heads.size):
        row = np.uint64(first_row + r)
        first = i
        head = i
        heaviest = np.int64(-1)
        while i < keys.size and keys[i] >> np.uint64(column_bits) == row:
            if weights.size != 0:
                weight = np.int64(weights[keys[i] & mask])
                if weight > heaviest:
                    heaviest = weight
                    head = i
            i += 1
        degrees[r] = i - first
        if i == first:
            heads[r] = NO_HEAD
            lengths[r] = 0
            continue
        heads[r] = keys[head] & mask
        end = _put_tail(tails, offset, keys, first, i, head, mask)
        lengths[r] = end - offset
        offset = end
    return offset


def make_fold(step):
    """Make the fold over the ids of a tail: ``step(context, value, v)`` gives the next value.

    It also says whether to go on.
    """

    @inlined
    def fold(context, value, tails, offset, end, num_ids):
        """Fold tails[offset:end]; return the last value, and whether the tail is sound so far."""
        while offset < end:
            segment_end = min(offset + SEGMENT_BYTES, end)
            v = np.int64(-1)
            while offset < segment_end:
                delta, offset = get_varint(tails, offset, segment_end)
                if offset < 0 or delta >= num_ids:
                    return value, False
                v += delta + 1
                if v >= num_ids:
                    return value, False
                value, goes_on = step(context, value, v)
                if not goes_on:
                    return value, True
        return value, True

    return fold


@inlined
def _append(out, count, v):
    if count >= out.size:
        return np.int64(-1), False
    out[count] = v
    return count + 1, True


_append_all = make_fold(_append)


@compiled(_I64(U32, READ_U8, _I64, _I64, _I64))
def decode_tail(out, tails, start, end, num_vertices):
    """Decode tails[start:end] into ``out``; returns the count, or -1 if it is malformed."""
    count, is_sound = _append_all(out, np.int64(0), tails, start, end, num_vertices)
    return count if is_sound else np.int64(-1)


@compiled(
    types.UniTuple(_I64, 2)(
        U64, U64, READ_U32, READ_U64, READ_U32, _I64, READ_U8, READ_U32, _I64, READ_U32, READ_U32,
        _I64,
        types.boolean,
    ),
)  # fmt: skip
def decode_rows(
    sources,
    targets,
    heads,
    bases,
    starts,
    shift,
    tails,
    degrees,
    num_ids,
    order,
    stored_at,
    row,
    once,
):
    """Decode whole rows from ``row`` on while they fit; returns (next row, count or -1 if damaged).

    Rows are taken as they are stored or, with ``stored_at``, by natural position. Vertices are
    given by natural position (order[v], or v if the order is empty); with ``once``, only edges to a
    larger position.
    """
    n = num_ids
    num_edges = 0
    neighbours = np.empty(sources.size, np.uint32)
    while row < heads.size:
        stored = np.int64(stored_at[row]) if stored_at.size else row
        if num_edges + np.int64(degrees[stored]) > sources.size:
            break
        head = heads[stored]
        if (head >= n) != (degrees[stored] == 0):
            return row, -1
        if head < n:
            start, end = row_span(bases, starts, shift, tails.size, stored)
            count = decode_tail(neighbours[: sources.size - num_edges - 1], tails, start, end, n)
            if count < 0 or count + 1 != degrees[stored]:
                return row, -1
            neighbours[count] = head
            u = order[stored] if order.size else np.uint32(stored)
            for i in range(count + 1):
                v = order[neighbours[i]] if order.size else neighbours[i]
                if u < v or not once:
                    sources[num_edges] = u
                    targets[num_edges] = v
                    num_edges += 1
        row += 1
    return row, num_edges


@compiled(
    _I64(U32, READ_U32, READ_U32, READ_U64, READ_U32, _I64, READ_U8, _I64, _I64),
)
def decode_range(neighbours, firsts, heads, bases, starts, shift, tails, row, end):
    """Decode the rows up to ``end`` to neighbours[firsts[row]:] …, heads first.

    Returns how many rows are damaged: 0, or 1 at the first one.
    """
    n = heads.size
    for u in range(row, end):
        out = neighbours[firsts[u] : firsts[u + 1]]
        begin, tail_end = row_span(bases, starts, shift, tails.size, u)
        if (heads[u] < n) != (out.size > 0):
            return 1
        if out.size > 0:
            out[0] = heads[u]
            if decode_tail(out[1:], tails, begin, tail_end, n) != out.size - 1:
                return 1
    return 0

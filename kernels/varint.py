"""The row codec: heads and delta-varint tails in segments, as specified in formats/FORMAT.md."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES

_U8 = types.Array(types.uint8, 1, "C")
_U32 = types.Array(types.uint32, 1, "C")
_U64 = types.Array(types.uint64, 1, "C")
_READ_U8 = types.Array(types.uint8, 1, "C", readonly=True)
_READ_U32 = types.Array(types.uint32, 1, "C", readonly=True)
_READ_U64 = types.Array(types.uint64, 1, "C", readonly=True)
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
def put_varint(out, at, value):
    """Write one varint and return the position behind it."""
    while value >= 128:
        out[at] = np.uint8((value & 127) | 128)
        at += 1
        value >>= 7
    out[at] = np.uint8(value)
    return at + 1


@njit(inline="always")
def get_varint(data, at, end):
    """Read one varint that ends before ``end``; returns (value, position behind it or -1)."""
    value = np.int64(0)
    shift = 0
    while at < end:
        byte = np.int64(data[at])
        at += 1
        if shift < 63:
            value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    return value, -1


@njit(inline="always")
def row_span(bases, starts, shift, tail_bytes, u):
    """Give the first byte of row u's tail and the one behind its last, never outside the tails."""
    most = np.uint64(tail_bytes)
    begin = min(bases[u >> shift] + np.uint64(starts[u]), most)
    return np.int64(begin), np.int64(min(bases[(u + 1) >> shift] + np.uint64(starts[u + 1]), most))


@compiled(_I64(_U8, _I64, _U64, _I64, _I64, _I64, types.uint64))
def _put_segments(out, at, keys, first, stop, head, mask):
    """Write keys[first:stop] without position ``head`` as segments; return the end."""
    segment_end = at + SEGMENT_BYTES
    previous = np.int64(-1)
    for i in range(first, stop):
        if i == head:
            continue
        v = np.int64(keys[i] & mask)
        if at + varint_bytes(v - previous - 1) > segment_end:
            if at < segment_end:  # stretch the last varint so that the segment is full
                out[at - 1] |= np.uint8(128)
                while at < segment_end - 1:
                    out[at] = 128
                    at += 1
                out[at] = 0
                at += 1
            segment_end += SEGMENT_BYTES
            previous = -1
        at = put_varint(out, at, v - previous - 1)
        previous = v
    return at


@compiled(_I64(_U8, _I64, _U64, _I64, _I64, _I64, types.uint64))
def _put_tail(out, at, keys, first, stop, head, mask):
    """Write one tail, cut into segments if it is long; return the end."""
    start = at
    previous = np.int64(-1)
    for i in range(first, stop):
        if i == head:
            continue
        v = np.int64(keys[i] & mask)
        at = put_varint(out, at, v - previous - 1)
        previous = v
        if at - start > SEGMENT_BYTES:
            return _put_segments(out, start, keys, first, stop, head, mask)
    return at


@compiled(_I64(_U8, _U32, _U32, _U32, _U64, _U32, _I64, _I64))
def encode_rows(tails, heads, lengths, degrees, keys, weights, first_row, column_bits):
    """Encode sorted distinct keys (row << column_bits | neighbour) of whole rows.

    The rows are first_row, first_row + 1, …, one for each entry of ``heads``. ``weights`` holds the
    degrees that choose the heads; when empty, the order is by degree and the first neighbour is it.
    Returns the number of tail bytes.
    """
    mask = np.uint64((np.int64(1) << column_bits) - 1)
    at = 0
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
        end = _put_tail(tails, at, keys, first, i, head, mask)
        lengths[r] = end - at
        at = end
    return at


@compiled(_I64(_U32, _READ_U8, _I64, _I64, _I64))
def decode_tail(out, tails, start, end, num_vertices):
    """Decode the tail tails[start:end] into ``out``; returns the count, or -1 if it is malformed."""
    count = 0
    at = start
    while at < end:
        segment_end = min(at + SEGMENT_BYTES, end)
        v = np.int64(-1)
        while at < segment_end:
            delta, at = get_varint(tails, at, segment_end)
            if at < 0 or delta >= num_vertices:
                return -1
            v += delta + 1
            if v >= num_vertices or count >= out.size:
                return -1
            out[count] = v
            count += 1
    return count


@compiled(
    types.UniTuple(_I64, 2)(
        _U64, _U64, _READ_U32, _READ_U64, _READ_U32, _I64, _READ_U8, _READ_U32, _READ_U32, _I64,
        types.boolean,
    ),
)  # fmt: skip
def decode_rows(sources, targets, heads, bases, starts, shift, tails, degrees, order, row, once):
    """Decode whole rows from ``row`` on while they fit; returns (next row, count or -1 if damaged).

    Vertices are given by natural position (order[v], or v if the order is empty); with ``once``, only
    edges to a larger position.
    """
    n = heads.size
    at = 0
    neighbours = np.empty(sources.size, np.uint32)
    while row < n and at + np.int64(degrees[row]) <= sources.size:
        head = heads[row]
        if (head >= n) != (degrees[row] == 0):
            return row, -1
        if head < n:
            start, end = row_span(bases, starts, shift, tails.size, row)
            count = decode_tail(neighbours[: sources.size - at - 1], tails, start, end, n)
            if count < 0 or count + 1 != degrees[row]:
                return row, -1
            neighbours[count] = head
            u = order[row] if order.size else np.uint32(row)
            for i in range(count + 1):
                v = order[neighbours[i]] if order.size else neighbours[i]
                if u < v or not once:
                    sources[at] = u
                    targets[at] = v
                    at += 1
        row += 1
    return row, at


@compiled(_I64(_U8, _U64))
def pack_keys(out, keys):
    """Write ascending keys as varints of their differences, the first from 0; returns the bytes."""
    at = 0
    previous = np.uint64(0)
    for k in keys:
        at = put_varint(out, at, k - previous)
        previous = k
    return at


@compiled(types.void(_U64, _READ_U8))
def unpack_keys(out, data):
    """Undo ``pack_keys`` for out.size keys."""
    at = 0
    key = np.uint64(0)
    for i in range(out.size):
        delta = np.uint64(0)
        shift = np.uint64(0)
        while True:
            byte = np.uint64(data[at])
            at += 1
            delta |= (byte & np.uint64(127)) << shift
            shift += np.uint64(7)
            if byte < 128:
                break
        key += delta
        out[i] = key

"""Checks of a container's rows: the cheap ones of every open, and those of ``verify``."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.array_types import READ_U8, READ_U32, READ_U64, U64
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES
from oocbfs.kernels.varint import get_varint, row_span, varint_bytes

_I64 = types.int64
# What can be wrong with a row, as the kernels report it.
PROBLEMS = (
    "",
    "its tail start lies before the previous row's or outside the tails",
    "its head is not a vertex",
    "a varint runs past its segment",
    "a varint is longer than it needs to be",
    "a neighbour is not a vertex",
    "its neighbours are not strictly ascending",
    "its head stands in its tail too",
    "it is its own neighbour",
    "its degree is not the number of its neighbours",
    "its head is not its neighbour of highest degree",
    "it has a tail but no head",
)
(
    FINE,
    BAD_START,
    BAD_HEAD,
    UNENDED,
    OVERLONG,
    BAD_NEIGHBOUR,
    UNSORTED,
    HEAD_TWICE,
    LOOP,
    BAD_DEGREE,
    WRONG_HEAD,
    NO_HEAD_BUT_TAIL,
) = range(len(PROBLEMS))


@compiled(types.UniTuple(_I64, 2)(READ_U32, READ_U64, READ_U32, _I64, _I64, _I64, _I64, _I64))
def check_index(heads, bases, starts, shift, tail_bytes, num_ids, first, stop):
    """Check all that decoders rely on to stay inside the sections, for rows first … stop-1.

    Returns (problem, row).
    """
    previous = np.int64(0)
    headless = False
    n = heads.size
    for u in range(first, stop + 1):
        base = bases[u >> shift]
        if base > np.uint64(tail_bytes):
            return BAD_START, u
        start = np.int64(base) + np.int64(starts[u])
        if start < previous or start > tail_bytes or (u == 0 and start != 0):
            return BAD_START, u
        if headless and start != previous:
            return NO_HEAD_BUT_TAIL, u - 1
        previous = start
        if u < stop:
            headless = heads[u] >= num_ids
            if headless and heads[u] != NO_HEAD:
                return BAD_HEAD, u
    return (FINE, 0) if stop < n or previous == tail_bytes else (BAD_START, n)


@njit(inline="always")
def _fingerprint(seed, u, v):
    """Hash an arc; every check draws its own ``seed``, so that no file can be made to pass it."""
    x = (np.uint64(u) << np.uint64(32) | np.uint64(v)) ^ seed
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled(
    types.UniTuple(_I64, 2)(
        U64,
        READ_U32,
        READ_U64,
        READ_U32,
        _I64,
        READ_U8,
        READ_U32,
        _I64,
        READ_U32,
        types.UniTuple(_I64, 2),
        _I64,
        _I64,
        types.uint64,
    )
)
def check_rows(
    sums, heads, bases, starts, shift, tails, degrees, num_ids, weights, cut, first, stop, seed
):
    """Decode rows first … stop-1 and check every promise; returns (problem, row).

    ``sums`` gains the fingerprints of all arcs, and of all arcs turned: a symmetric graph has equal
    sums, and a transpose has the sums of its graph exchanged. ``check_index`` must have passed.
    ``cut`` is the shard that the rows are of, and the number of shards: 0 of 1 is the whole graph.
    """
    n = num_ids
    shard, num_shards = cut
    forward = np.uint64(0)
    backward = np.uint64(0)
    for row in range(first, stop):
        offset, end = row_span(bases, starts, shift, tails.size, row)
        head = np.int64(heads[row])
        degree = degrees[row]
        if head >= n:
            if offset != end or degree != 0:
                return BAD_DEGREE, row
            continue
        u = ((row >> 6) * num_shards + shard << 6) | (row & 63)
        if head == u:
            return LOOP, row
        forward += _fingerprint(seed, u, head)
        backward += _fingerprint(seed, head, u)
        count = np.int64(1)
        v = np.int64(-1)
        cut = end - offset > SEGMENT_BYTES
        while offset < end:
            last = v
            v = np.int64(-1)
            segment_end = min(offset + SEGMENT_BYTES, end)
            while offset < segment_end:
                begin = offset
                delta, offset = get_varint(tails, offset, segment_end)
                if offset < 0:
                    return UNENDED, row
                extra = offset - begin - varint_bytes(delta)
                is_padding = extra <= 4 and cut and offset == segment_end and offset < end
                if extra != 0 and not is_padding:
                    return OVERLONG, row
                if delta >= n or v + delta + 1 >= n:
                    return BAD_NEIGHBOUR, row
                v += delta + 1
                if v <= last:
                    return UNSORTED, row
                if v == head:
                    return HEAD_TWICE, row
                if v == u:
                    return LOOP, row
                if weights[v] > weights[head] or (weights[v] == weights[head] and v < head):
                    return WRONG_HEAD, row
                forward += _fingerprint(seed, u, v)
                backward += _fingerprint(seed, v, u)
                count += 1
        if count != degree:
            return BAD_DEGREE, row
    sums[0] += forward
    sums[1] += backward
    return FINE, 0


@compiled(types.uint64(READ_U32, types.uint64, _I64, _I64))
def sum_order(order, seed, first, stop):
    """Sum up the fingerprints of order[first:stop] less those of first … stop-1.

    Over all of a permutation that is 0, modulo 2^64.
    """
    total = np.uint64(0)
    for v in range(first, stop):
        total += _fingerprint(seed, 0, order[v]) - _fingerprint(seed, 0, v)
    return total

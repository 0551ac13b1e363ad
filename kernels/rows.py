"""Rows as the traversal reads them: where a row's tail lies, and how its varints decode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import inlined, kernel, load_word, pack_sevens, prefetch, trailing_zeros
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES

_STOPS = np.uint64(0x8080808080808080)
# Ids that one thread gathers before it looks at what they are; a segment adds at most SEGMENT_BYTES + 1.
BATCH = 4096
FULL = BATCH - SEGMENT_BYTES - 1
# How many rows ahead a row is asked for; its start twice as far.
_AHEAD = 6
# In place of a tail's place: the row has not been begun.
NOT_BEGUN = -1
_ONE = np.uint64(1)


class Rows(NamedTuple):
    """One direction of a graph: heads, tails and how to find them.

    The caller has checked that starts are monotonic and inside the tails, that heads are vertices or
    NO_HEAD, and that who has none has no tail. A mapped file may be overwritten afterwards: kernels
    look at no head that is no vertex, and at no place outside the tails. Tails may hold anything, with
    SLACK_BYTES readable bytes behind them; where they are on disk, only their size is used. Degrees,
    num_edges and max_degree only steer: wrong ones cost time, not correctness.
    """

    heads: NDArray[np.uint32]
    bases: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    tails: NDArray[np.uint8]
    degrees: NDArray[np.uint32]
    shift: int
    num_edges: int
    max_degree: int


def read_only(rows: Rows) -> Rows:
    """Give the arrays one type, whether they are mapped or not: numba then compiles only once."""

    def freeze(array, dtype):
        view = np.ascontiguousarray(array, dtype).view(np.ndarray)[:]
        view.flags.writeable = False
        return view

    return Rows(
        freeze(rows.heads, np.uint32),
        freeze(rows.bases, np.uint64),
        freeze(rows.starts, np.uint32),
        freeze(rows.tails, np.uint8),
        freeze(rows.degrees, np.uint32),
        int(rows.shift),
        int(rows.num_edges),
        int(rows.max_degree),
    )


def one_row() -> Rows:
    """Give a graph of one vertex, on which kernels are compiled before they are needed."""
    return Rows(
        np.array([NO_HEAD], np.uint32),
        np.zeros(1, np.uint64),
        np.zeros(2, np.uint32),
        np.empty(0, np.uint8),
        np.zeros(1, np.uint32),
        0,
        0,
        0,
    )


@inlined
def row_begin(rows, u):
    """Give the place of row u's first tail byte, which is the place behind row u - 1."""
    place = rows.bases[u >> rows.shift] + np.uint64(rows.starts[u])
    return np.int64(min(place, np.uint64(rows.tails.size)))


@inlined
def take_varint(tails, at):
    """Decode the varint at this place without a branch; give its value and the place behind it.

    A varint of nine bytes has no stop among its first eight: then the count of trailing zeros is
    64, and the place behind it comes out right as well.
    """
    word = load_word(tails, at)
    stops = ~word & _STOPS
    word &= stops ^ (stops - _ONE)
    return np.int64(pack_sevens(word)), at + (trailing_zeros(stops) + 8 >> 3)


@inlined
def gather_segment(ids, count, tails, at, end, n):
    """Append the ids of one segment; give the new count, or -1 if one is no vertex or has no end."""
    v = np.int64(-1)
    while at < end:
        delta, at = take_varint(tails, at)
        v += delta + 1
        if v >= n:
            return np.int64(-1)
        ids[count] = v
        count += 1
    return count if at <= end else np.int64(-1)


def make_tail_walk(look):
    """Make a walk over the ids of a tail, which ends when ``look`` has seen enough.

    ``look(carry, context, v)`` gives the new carry and whether that is enough. numba compiles it into
    the walk, as if it had been written out there.
    """

    @kernel
    def walk(tails, begin, end, n, carry, context):
        """Look at the ids of tails[begin:end], whole segments.

        Gives the last carry, how many ids were looked at (-1 if the tail is malformed), and bytes.
        """
        at = begin
        num_ids = np.int64(0)
        while at < end:
            segment_end = min(at + SEGMENT_BYTES, end)
            v = np.int64(-1)
            while at < segment_end:
                delta, at = take_varint(tails, at)
                v += delta + 1
                num_ids += 1
                if v >= n:
                    return carry, np.int64(-1), at - begin
                carry, enough = look(carry, context, v)
                if enough:
                    return carry, num_ids, at - begin
            if at > segment_end:
                return carry, np.int64(-1), at - begin
        return carry, num_ids, at - begin

    return walk


@inlined
def gather_rows(rows, queue, q, at, end, ids, owners, count, with_parents):
    """Append the ids of the rows queue[q:end] until FULL, those of row q from place ``at`` on.

    Gives where to go on (q and at), the count of ids (-1 if a row is damaged) and the bytes of the
    rows that were begun. Owners, if parents are wanted, get the vertex of each id's row.

    Many ids are decoded before anybody looks at what they are: a row's end is hard to foresee, and a
    processor that guessed wrong throws away the reads it has under way.
    """
    heads, tails = rows.heads, rows.tails
    num_bytes = np.int64(0)
    while q < end and count < FULL:
        u = np.int64(queue[q])
        row_end = row_begin(rows, u + 1)
        first = count
        if at == NOT_BEGUN:
            if q + 2 * _AHEAD < end:
                ahead = np.int64(queue[q + 2 * _AHEAD])
                prefetch(heads, ahead)
                prefetch(rows.starts, ahead)
                prefetch(tails, row_begin(rows, np.int64(queue[q + _AHEAD])))
            at = row_begin(rows, u)
            num_bytes += row_end - at
            head = heads[u]
            ids[count] = head
            count += np.int64(head < heads.size)
        segment_end = min(at + SEGMENT_BYTES, row_end)
        count = gather_segment(ids, count, tails, at, segment_end, heads.size)
        if count < 0:
            break
        if with_parents:
            for i in range(first, count):
                owners[i] = u
        at = segment_end
        if at >= row_end:
            q += 1
            at = np.int64(NOT_BEGUN)
    return q, at, count, num_bytes

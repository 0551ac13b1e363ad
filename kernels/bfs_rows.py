"""Rows as the traversal reads them: where a row's tail lies, and how its varints decode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import inlined, load_word, trailing_zeros

_STOPS = np.uint64(0x8080808080808080)
_GROUP_0 = np.uint64(0x7F)
_GROUP_1 = np.uint64(0x7F << 7)
_GROUP_2 = np.uint64(0x7F << 14)
_GROUP_3 = np.uint64(0x7F << 21)
_GROUP_4 = np.uint64(0xF << 28)
_ONE, _TWO, _THREE, _FOUR = (np.uint64(bits) for bits in (1, 2, 3, 4))


class Rows(NamedTuple):
    """One direction of a graph: heads, tails and how to find them.

    The caller has checked that starts are monotonic and inside the tails and that heads are
    vertices or NO_HEAD. Tails may hold anything, with SLACK_BYTES readable bytes behind them.
    Degrees, num_edges and max_degree only steer: wrong ones cost time, not correctness.
    """

    heads: NDArray[np.uint32]
    bases: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    tails: NDArray[np.uint8]
    degrees: NDArray[np.uint32]
    shift: int
    num_edges: int
    max_degree: int


@inlined
def row_begin(rows, u):
    """Give the place of row u's first tail byte, which is the place behind row u - 1."""
    return np.int64(rows.bases[u >> rows.shift]) + np.int64(rows.starts[u])


@inlined
def take_varint(tails, at):
    """Decode the varint at this place without a branch; give its value and the place behind it.

    A varint of nine bytes has no stop among its first eight: then the count of trailing zeros is
    64, and the place behind it comes out right as well.
    """
    word = load_word(tails, at)
    stops = ~word & _STOPS
    word &= stops ^ (stops - _ONE)
    value = (
        (word & _GROUP_0)
        | (word >> _ONE & _GROUP_1)
        | (word >> _TWO & _GROUP_2)
        | (word >> _THREE & _GROUP_3)
        | (word >> _FOUR & _GROUP_4)
    )
    return np.int64(value), at + (trailing_zeros(stops) + 8 >> 3)


@inlined
def gather_segment(ids, count, tails, at, end, n):
    """Append the ids of one segment; give the new count, or -1 if one is no vertex."""
    v = np.int64(-1)
    while at < end:
        delta, at = take_varint(tails, at)
        v += delta + 1
        if v >= n:
            return np.int64(-1)
        ids[count] = v
        count += 1
    return count

"""Neighbours in the order in which they are visited: as listed, or by ascending position."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from oocbfs.kernels.array_types import I64, READ_U8, READ_U32, READ_U64, U32
from oocbfs.kernels.rows import freeze
from oocbfs.kernels.varint import decode_tail, row_span

_NO_FIRSTS = np.empty(0, np.int64)
_NO_NEIGHBOURS = np.empty(0, np.uint32)
_NO_U8, _NO_U32, _NO_U64 = (
    freeze(np.empty(0, dtype), dtype) for dtype in (np.uint8, np.uint32, np.uint64)
)


class Adjacency(NamedTuple):
    """One direction of a graph, vertices by natural position.

    Either rows are listed: row v is neighbours[firsts[v] : firsts[v + 1]]. Or ``firsts`` is empty,
    and rows are those of a container: ``stored_at`` and ``order`` lead from natural positions to
    stored vertices and back, and are empty if both are the same.
    """

    firsts: NDArray[np.int64] = _NO_FIRSTS
    neighbours: NDArray[np.uint32] = _NO_NEIGHBOURS
    heads: NDArray[np.uint32] = _NO_U32
    bases: NDArray[np.uint64] = _NO_U64
    starts: NDArray[np.uint32] = _NO_U32
    tails: NDArray[np.uint8] = _NO_U8
    shift: int = 0
    order: NDArray[np.uint32] = _NO_U32
    stored_at: NDArray[np.uint32] = _NO_U32


ADJACENCY = types.NamedTuple(
    (I64, U32, READ_U32, READ_U64, READ_U32, READ_U8, types.int64, READ_U32, READ_U32), Adjacency
)


# numba's sorting needs reference counts, and would take it from the caller that is compiled first
# whether there are any.
@njit(_nrt=True)
def row_of(adjacency, v, scratch):
    """Return an array, and where in it the neighbours of v begin and end; the end is -1 if damaged.

    ``scratch`` has room for the longest row.
    """
    if adjacency.firsts.size:
        return adjacency.neighbours, adjacency.firsts[v], adjacency.firsts[v + 1]
    n = adjacency.heads.size
    u = np.int64(adjacency.stored_at[v]) if adjacency.stored_at.size else np.int64(v)
    head = adjacency.heads[u]
    if head >= n:
        return scratch, np.int64(0), np.int64(0)
    begin, end = row_span(
        adjacency.bases, adjacency.starts, adjacency.shift, adjacency.tails.size, u
    )
    count = decode_tail(scratch[1:], adjacency.tails, begin, end, n)
    if count < 0:
        return scratch, np.int64(0), np.int64(-1)
    if adjacency.order.size:
        scratch[0] = head
        for i in range(count + 1):
            scratch[i] = adjacency.order[scratch[i]]
            # The file may have been overwritten.
            if scratch[i] >= n:
                return scratch, np.int64(0), np.int64(-1)
        scratch[: count + 1].sort()
    else:
        i = 0
        while i < count and scratch[i + 1] < head:
            scratch[i] = scratch[i + 1]
            i += 1
        scratch[i] = head
    return scratch, np.int64(0), np.int64(count + 1)

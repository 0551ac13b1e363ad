"""Walks from every vertex: at least as many as there are vertices at a distance."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U8, READ_U32, READ_U64
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.gather import make_tail_walk
from oocbfs.kernels.varint import row_span

_I64 = types.int64
_F64 = types.Array(types.float64, 1, "C")
_READ_F64 = types.Array(types.float64, 1, "C", readonly=True)


@inlined
def _add(total, values, v):
    return total + values[v], False


_add_all = make_tail_walk(_add)


@compiled(
    types.UniTuple(_I64, 2)(
        _F64, _READ_F64, READ_U32, READ_U64, READ_U32, _I64, READ_U8, _I64, _I64
    )
)
def sum_neighbours(sums, values, heads, bases, starts, shift, tails, first, stop):
    """Sum up the values of each vertex's neighbours.

    Returns 0, or -1 if a tail is malformed, and the bytes of tails looked at.
    """
    total_bytes = np.int64(0)
    for v in range(first, stop):
        head = np.int64(heads[v])
        total = values[head] if head < values.size else 0.0
        begin, end = row_span(bases, starts, shift, tails.size, v)
        total, edges, num_bytes = _add_all(tails, begin, end, values.size, total, values)
        if edges < 0:
            return np.int64(-1), total_bytes
        total_bytes += num_bytes
        sums[v] = total
    return np.int64(0), total_bytes

"""From stored vertices to results: renaming and counting levels."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import (
    I8,
    I32,
    I64,
    READ_I8,
    READ_I32,
    READ_U32,
    READ_U64,
)
from oocbfs.kernels.cache import compiled

_I64 = types.int64


@compiled(
    types.void(I32, _I64, READ_I32, READ_U32, _I64, _I64),
    types.void(I8, _I64, READ_I8, READ_U32, _I64, _I64),
)
def rename_levels(out, base, levels, order, first, stop):
    """Give the levels of stored vertices first … stop-1 to their natural positions.

    ``out`` is a range that begins at position ``base``; what lies outside is left out.
    """
    for v in range(first, stop):
        position = np.int64(order[v]) - base
        if 0 <= position < out.size:
            out[position] = levels[v]


@compiled(types.void(I64, _I64, READ_U32, READ_U32, READ_U64, _I64, _I64, _I64))
def rename_parents(out, base, parents, order, ids, first_id, first, stop):
    """Give the parents of stored vertices first … stop-1 to their natural positions, as input ids.

    An empty ``order`` is the natural one; empty ``ids`` are consecutive from ``first_id``. ``out``
    is a range as in ``rename_levels``.
    """
    for v in range(first, stop):
        position = (np.int64(order[v]) if order.size else v) - base
        if not 0 <= position < out.size:
            continue
        parent = np.int64(parents[v])
        if order.size and parent < order.size:
            parent = np.int64(order[parent])
        if parent >= parents.size:
            out[position] = -1
        else:
            out[position] = np.int64(ids[parent]) if ids.size else parent + first_id


@compiled(types.void(I64, READ_I32, _I64, _I64))
def count_levels(sizes, levels, first, stop):
    """Count the vertices of each level that ``sizes`` has among first … stop-1."""
    for v in range(first, stop):
        if 0 <= levels[v] < sizes.size:
            sizes[levels[v]] += 1


@compiled(types.UniTuple(_I64, 2)(READ_I32, READ_U32, _I64, _I64))
def count_reached(levels, degrees, first, stop):
    """Count the vertices reached among first … stop-1, and their edges."""
    vertices = 0
    edges = 0
    for v in range(first, stop):
        if levels[v] >= 0:
            vertices += 1
            edges += degrees[v]
    return vertices, edges

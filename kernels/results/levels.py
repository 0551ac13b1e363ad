"""From stored vertices to results: renaming, counting, and checking a traversal."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.array_types import (
    I8,
    I32,
    I64,
    READ_I8,
    READ_I32,
    READ_U8,
    READ_U32,
    READ_U64,
    U8,
)
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.varint import get_varint, row_span

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
    """Count the vertices of each level among first … stop-1."""
    for v in range(first, stop):
        if levels[v] >= 0:
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


# What can be wrong with a traversal, as check_levels reports it.
PROBLEMS = (
    "",
    "an edge leaves the reached set",
    "an edge spans more than one level",
    "its row is damaged",
)
FINE, LEAVES, SPANS, DAMAGED = range(len(PROBLEMS))


@njit(inline="always")
def _check_arc(confirmed, levels, parents, u, v, last_level, undirected):
    """Check one edge, and confirm v if u is its parent or could be."""
    if levels[u] < 0:
        return FINE
    if levels[v] < 0:
        return LEAVES if levels[u] < last_level else FINE
    if levels[v] > levels[u] + 1 or (undirected and levels[u] > levels[v] + 1):
        return SPANS
    if levels[v] == levels[u] + 1 and (parents.size == 0 or parents[v] == u):
        confirmed[v] = 1
    return FINE


@compiled(
    types.UniTuple(_I64, 2)(
        U8, READ_I32, READ_U32, READ_U32, READ_U64, READ_U32, _I64, READ_U8,
        _I64, types.boolean, _I64, _I64,
    ),
)  # fmt: skip
def check_levels(
    confirmed, levels, parents, heads, bases, starts, shift, tails, last_level, undirected, first,
    stop
):  # fmt: skip
    """Check the edges of rows first … stop-1; returns (problem, row).

    ``confirmed[v]`` becomes 1 when an edge leads to v from its parent, one level up; without
    parents, from any vertex one level up. Vertices at ``last_level`` were not expanded.
    """
    n = heads.size
    for u in range(first, stop):
        head = np.int64(heads[u])
        if head >= n:
            continue
        problem = _check_arc(confirmed, levels, parents, u, head, last_level, undirected)
        if problem != FINE:
            return problem, u
        offset, end = row_span(bases, starts, shift, tails.size, u)
        while offset < end:
            segment_end = min(offset + SEGMENT_BYTES, end)
            v = np.int64(-1)
            while offset < segment_end:
                delta, offset = get_varint(tails, offset, segment_end)
                if offset < 0 or delta >= n or v + delta + 1 >= n:
                    return DAMAGED, u
                v += delta + 1
                problem = _check_arc(confirmed, levels, parents, u, v, last_level, undirected)
                if problem != FINE:
                    return problem, u
    return FINE, 0

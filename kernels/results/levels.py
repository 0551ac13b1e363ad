"""From stored vertices to results: to ids, and counting levels."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import (
    I8,
    I32,
    I64,
    READ_I8,
    READ_I32,
    READ_U8,
    READ_U32,
    READ_U64,
    U32,
)
from oocbfs.kernels.atomics import store_past_caches, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import NO_HEAD

_I64 = types.int64


@compiled(
    types.void(I32, _I64, READ_I32, READ_U32, _I64, _I64),
    types.void(I8, _I64, READ_I8, READ_U32, _I64, _I64),
)
def levels_to_ids(out, base, levels, order, first, stop):
    """Write the levels of stored vertices first … stop-1 to their natural positions.

    ``out`` is a range that begins at position ``base``; what lies outside is left out.
    """
    for v in range(first, stop):
        position = np.int64(order[v]) - base
        if 0 <= position < out.size:
            out[position] = levels[v]


@compiled(types.void(I64, _I64, READ_U32, READ_U32, READ_U64, _I64, _I64, _I64))
def parents_to_ids(out, base, parents, order, ids, first_id, first, stop):
    """Write the parents of stored vertices first … stop-1 to their natural positions, as input ids.

    An empty ``order`` is the natural one; empty ``ids`` are consecutive from ``first_id``. ``out``
    is a range as in ``levels_to_ids``.
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


@compiled(types.void(I32, _I64, READ_U8, _I64, _I64))
def widen_levels(out, base, levels, first, stop):
    """Write levels first … stop-1 of a piece that begins at ``base``; 255 is not reached.

    One more than that is 0 in a byte: which were reached cannot be guessed, so there is no branch.
    """
    for i in range(np.uint64(first), np.uint64(stop)):
        level = np.int32(np.uint8(levels[i] + np.uint8(1))) - np.int32(1)
        store_past_caches(out, np.uint64(base) + i, level)


@compiled(
    types.void(I32, _I64, READ_U32, READ_U64, _I64, _I64, _I64),
    types.void(U32, _I64, READ_U32, READ_U64, _I64, _I64, _I64),
    types.void(I64, _I64, READ_U32, READ_U64, _I64, _I64, _I64),
)
def place_words(out, base, words, ids, first_id, first, stop):
    """Write words first … stop-1 of a piece that begins at ``base``; NO_HEAD is none.

    They are positions of parents where ``out`` has room for ids, which are those of ``ids`` or
    consecutive from ``first_id``.
    """
    for i in range(np.uint64(first), np.uint64(stop)):
        word = words[i]
        if out.itemsize == 4:
            out[np.uint64(base) + i] = word
        elif word == NO_HEAD:
            out[np.uint64(base) + i] = -1
        else:
            named = np.int64(ids[word]) if ids.size else np.int64(word) + first_id
            out[np.uint64(base) + i] = named


@compiled(_I64(READ_U32, READ_U32, types.boolean, _I64, _I64))
def sum_degrees(visited, degrees, flip, first, stop):
    """Sum up the degrees of vertices in words first … stop-1 of a bitmap, or of all others."""
    edges = np.int64(0)
    for w in range(first, stop):
        bits = ~visited[w] if flip else visited[w]
        if w * 32 + 32 > degrees.size:
            bits &= np.uint32(NO_HEAD) >> np.uint32(w * 32 + 32 - degrees.size)
        while bits != 0:
            edges += np.int64(degrees[w * 32 + trailing_zeros(np.uint64(bits))])
            bits &= bits - np.uint32(1)
    return edges


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

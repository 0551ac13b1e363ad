"""What the owner of levels does with what shards found."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels import bitmaps
from oocbfs.kernels.array_types import (
    I32,
    READ_U32,
    READ_U64,
    U8,
    U64,
)
from oocbfs.kernels.atomics import atomic_or, count_ones
from oocbfs.kernels.bottom_up.step import SUMMED_WORDS
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import ONE, ZERO

_I64 = types.int64
# The edges of more vertices than this are estimated.
_MANY = 1 << 14


@compiled(types.void(U8, I32, READ_U64, _I64))
def mark_levels(levels, deep_levels, found, level):
    """Write the level of the vertices in a bitmap: a byte, or DEEP and the level beside it."""
    for w in range(found.size):
        if found[w] != ZERO:
            bitmaps.mark_levels(levels, deep_levels, level, w * 64, found[w])


@compiled(types.void(U64, READ_U64))
def leave_out(found, visited):
    """Clear the bits of what was visited before."""
    for w in range(found.size):
        found[w] &= ~visited[w]


@compiled(types.UniTuple(_I64, 2)(READ_U64, READ_U32))
def sum_found_degrees(found, degrees):
    """Count the vertices of a bitmap, and their edges; of many, from one word of eight."""
    size = np.int64(0)
    for w in range(found.size):
        size += count_ones(found[w])
    step = np.int64(SUMMED_WORDS if size > _MANY else 1)
    edges = np.int64(0)
    for w in range(0, found.size, step):
        edges += bitmaps.sum_degrees(degrees, w, found[w])
    return size, edges * step


@compiled(types.void(U64, READ_U64))
def merge_bits(shared, words):
    """Set the bits of a bitmap in one that other processes write, too."""
    for w in range(words.size):
        if words[w] & ~shared[w] != ZERO:
            atomic_or(shared, w, words[w])


@compiled(types.void(U64, READ_U32))
def set_bits(bitmap, vertices):
    """Set the bits of vertices."""
    for v in vertices:
        bitmap[v >> 6] |= ONE << np.uint64(v & 63)

"""What the owner of levels does with what shards found."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I32, READ_U32, READ_U64, U64
from oocbfs.kernels.atomics import trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.region import ONE, ZERO


@compiled(types.void(I32, READ_U64, types.int32))
def mark_levels(levels, found, level):
    """Write the level of the vertices in a bitmap."""
    for w in range(found.size):
        bits = found[w]
        while bits != ZERO:
            levels[w * 64 + trailing_zeros(bits)] = level
            bits &= bits - ONE


@compiled(types.void(U64, READ_U32))
def set_bits(bitmap, vertices):
    """Set the bits of vertices."""
    for v in vertices:
        bitmap[v >> 6] |= ONE << np.uint64(v & 63)

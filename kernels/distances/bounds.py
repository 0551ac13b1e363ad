"""What the levels of one search say about the eccentricity and the centrality of all vertices.

Levels are by position, -1 where not reached, of 8, 16 or 32 bits. ``forward`` are distances from
the vertex that was searched from, ``backward`` those to it; without directions they are the same.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import (
    I32,
    I64,
    READ_I8,
    READ_I32,
    READ_U32,
)
from oocbfs.kernels.cache import compiled

_I64 = types.int64
_F64 = types.Array(types.float64, 1, "C")
_READ_F64 = types.Array(types.float64, 1, "C", readonly=True)
_BOOLS = types.Array(types.boolean, 1, "C", readonly=True)
_LEVELS = (READ_I8, types.Array(types.int16, 1, "C", readonly=True), READ_I32)


@compiled(*(types.void(I32, I32, row, row, _I64, _I64, _I64) for row in _LEVELS))
def narrow(lower, upper, forward, backward, depth, first, stop):
    """Narrow the bounds of eccentricities by a search that is ``depth`` deep.

    A vertex that reaches the source at distance b and is reached at distance f has an eccentricity
    of at least b and depth - f, and at most b + depth (Takes and Kosters, 2011; with directions
    Borassi et al., 2015). Others are left as they are.
    """
    for v in range(first, stop):
        to_source, from_source = np.int32(backward[v]), np.int32(forward[v])
        if to_source >= 0 and from_source >= 0:
            least = np.int32(max(to_source, depth - from_source))
            most = np.int32(to_source + depth)
            lower[v] = max(lower[v], least)
            upper[v] = min(upper[v], most)


@compiled(*(types.void(I64, row, row, _I64, _I64) for row in _LEVELS))
def count_mutual(sizes, forward, backward, first, stop):
    """Count the vertices at each distance that also reach the source."""
    for v in range(first, stop):
        if forward[v] >= 0 and backward[v] >= 0:
            sizes[forward[v]] += 1


@compiled(*(types.void(I64, row, _BOOLS, _I64, _I64) for row in _LEVELS))
def count_inside(sizes, forward, inside, first, stop):
    """Count the vertices at each distance that are inside."""
    for v in range(first, stop):
        if forward[v] >= 0 and inside[v]:
            sizes[forward[v]] += 1


@compiled(
    *(types.void(_F64, row, READ_U32, _READ_F64, types.float64, _I64, _I64) for row in _LEVELS)
)
def cap(caps, forward, degrees, table, each, first, stop):
    """Lower what a centrality can be at most: by its level and the number of its neighbours."""
    for v in range(first, stop):
        level = np.int64(forward[v])
        if level >= 0:
            caps[v] = min(caps[v], table[level] + each * degrees[v])

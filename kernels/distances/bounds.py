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
_MOST = np.int64(np.iinfo(np.int64).max)
_LEVELS = (READ_I8, types.Array(types.int16, 1, "C", readonly=True), READ_I32)


@compiled(*(types.void(I32, I32, I32, row, row, _I64, _I64, _I64, _I64, _I64) for row in _LEVELS))
def narrow(lower, upper, sums, forward, backward, depth, alone, counts, first, stop):
    """Narrow the bounds of eccentricities by a search that is ``depth`` deep.

    A vertex that reaches the source at distance b and is reached at distance f has an eccentricity
    of at least b and depth - f, and at most b + depth (Takes and Kosters, 2011; with directions
    Borassi et al., 2015). Without directions, where each of the first levels up to ``alone`` holds
    one vertex, whoever is behind has the last of those as its source. If ``counts``, distances are
    summed up. Others are left as they are.
    """
    behind = max(depth - alone, alone)
    for v in range(first, stop):
        to_source, from_source = np.int64(backward[v]), np.int64(forward[v])
        if to_source >= 0 and from_source >= 0:
            least = max(to_source, depth - from_source)
            most = least if to_source <= alone and alone > 0 else to_source - alone + behind
            lower[v] = max(lower[v], np.int32(least))
            upper[v] = min(upper[v], np.int32(most))
            if counts:
                sums[v] += np.int32(to_source)


@compiled(types.UniTuple(_I64, 6)(READ_I32, READ_I32, READ_I32, READ_U32, *[_I64] * 4))
def survey(lower, upper, sums, degrees, above, below, first, stop):
    """Look for where to search next: from whose bounds are extreme.

    A vertex is open while its bounds differ, and waits if its upper bound is above ``above`` or its
    lower one below ``below``. Returns how many wait; the open one of the largest upper bound and
    that of the smallest lower bound, -1 for none; then the largest upper, the smallest lower and
    the smallest upper bound. Of equal bounds, the larger or the smaller sum counts; of
    equal sums, the larger degree. Vertices of bounds below 0 are left out.
    """
    waiting = np.int64(0)
    far = near = np.int64(-1)
    most, least_lower, least_upper = np.int64(-1), _MOST, _MOST
    # Bounds and sums in one number.
    far_key, near_key = np.int64(-1), _MOST
    for v in range(first, stop):
        low, high, total = np.int64(lower[v]), np.int64(upper[v]), np.int64(sums[v])
        if low < 0:
            continue
        most = max(most, high)
        least_lower, least_upper = min(least_lower, low), min(least_upper, high)
        is_open = np.int64(low < high)
        waiting += is_open & (np.int64(high > above) | np.int64(low < below))
        key = (low << 32) + total
        if key <= near_key and is_open and (key < near_key or degrees[v] > degrees[near]):
            near, near_key = np.int64(v), key
        key = (high << 32) + total
        if key >= far_key and is_open and (key > far_key or degrees[v] > degrees[far]):
            far, far_key = np.int64(v), key
    return waiting, far, near, most, least_lower, least_upper


@compiled(*(types.UniTuple(_I64, 2)(row, row, _I64, _I64) for row in _LEVELS))
def depths(forward, backward, first, stop):
    """Return the largest distances from and to the source of those that reach each other."""
    depth = back_depth = np.int64(0)
    for v in range(first, stop):
        if forward[v] >= 0 and backward[v] >= 0:
            depth = max(depth, np.int64(forward[v]))
            back_depth = max(back_depth, np.int64(backward[v]))
    return depth, back_depth


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


@compiled(*(types.void(_F64, _F64, row, _I64, _I64) for row in _LEVELS))
def add(totals, inverses, forward, first, stop):
    """Add the distance of each vertex that was reached, and 1 / distance."""
    for v in range(first, stop):
        if forward[v] > 0:
            totals[v] += forward[v]
            inverses[v] += 1.0 / forward[v]

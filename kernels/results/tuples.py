"""The rules of Graph500 for a tree of parents, checked with the edges as they were generated."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_I32, READ_I64, READ_U64, U8
from oocbfs.kernels.cache import compiled

_I64 = types.int64
# What can be wrong, as the kernels report it.
PROBLEMS = (
    "",
    "vertex {} has a level and no parent, or a parent and no level",
    "vertex {} is the root, or is taken for it, and should not be",
    "vertex {} has a parent that is not one level up",
    "edge {} leaves the tree",
    "edge {} spans more than one level",
)
FINE, HALF, ROOT, NOT_UP, LEAVES, SPANS = range(len(PROBLEMS))


@compiled(types.UniTuple(_I64, 2)(READ_I32, READ_I64, _I64, _I64, _I64))
def check_tree(levels, parents, root, first, stop):
    """Check vertices first … stop-1; returns (problem, vertex).

    Parents that are one level up each lead to level 0, where the root is alone: there is no cycle.
    """
    for v in range(first, stop):
        level, parent = levels[v], parents[v]
        if (level < 0) != (parent < 0):
            return HALF, v
        if level < 0:
            continue
        if (v == root) != (level == 0) or (v == root) != (parent == v):
            return ROOT, v
        if v != root and (parent >= levels.size or levels[parent] != level - 1):
            return NOT_UP, v
    return FINE, 0


@compiled(types.UniTuple(_I64, 3)(U8, READ_I32, READ_I64, READ_U64, _I64, _I64))
def check_tuples(confirmed, levels, parents, ends, first, stop):
    """Check generated edges first … stop-1; returns (problem, edge, how many the tree reaches).

    ``ends`` has both ends of each edge, one edge after the other. ``confirmed[v]`` becomes 1 when
    an edge joins v and its parent.
    """
    reached = 0
    for edge in range(first, stop):
        u, v = np.int64(ends[2 * edge]), np.int64(ends[2 * edge + 1])
        if (levels[u] < 0) != (levels[v] < 0):
            return LEAVES, edge, reached
        if levels[u] < 0:
            continue
        if abs(levels[u] - levels[v]) > 1:
            return SPANS, edge, reached
        reached += 1
        if parents[v] == u:
            confirmed[v] = 1
        if parents[u] == v:
            confirmed[u] = 1
    return FINE, 0, reached

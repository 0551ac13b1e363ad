"""One thread's searches: over linked lists of edges, and over plain CSR rows (sei, 2.1 and 2.2).

Level after level, the queue holds the vertices in the order in which they were found.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I32, I64, READ_U32, READ_U64, U32
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled

_I64 = types.int64
_FOUND = types.UniTuple(_I64, 2)


@compiled(types.void(I64, I64, READ_U64, READ_U32, types.boolean))
def link_edges(firsts, nexts, offsets, columns, both):
    """Link every edge into the list of its end, or of both its ends.

    Edge k has the places 2k and 2k + 1. ``firsts`` gives a vertex's last place, ``nexts`` the one
    before. Where edges go both ways, only those to larger vertices are linked, at both ends.
    """
    firsts[:] = -1
    edge = np.int64(0)
    for u in range(offsets.size - 1):
        for i in range(offsets[u], offsets[u + 1]):
            v = columns[i]
            if both and v < u:
                continue
            nexts[2 * edge] = firsts[u]
            firsts[u] = 2 * edge
            if both:
                nexts[2 * edge + 1] = firsts[v]
                firsts[v] = 2 * edge + 1
            edge += 1


@compiled(types.void(U32, READ_U64, READ_U32, types.boolean))
def list_ends(ends, offsets, columns, both):
    """Write both ends of every edge that ``link_edges`` links, in its order."""
    edge = np.int64(0)
    for u in range(offsets.size - 1):
        for i in range(offsets[u], offsets[u + 1]):
            if both and columns[i] < u:
                continue
            ends[2 * edge] = u
            ends[2 * edge + 1] = columns[i]
            edge += 1


@inlined
def _visit(levels, parents, queue, found, u, v, level):
    """Queue v, which u leads to, unless it was found before; return the new end of the queue."""
    if levels[v] < 0:
        levels[v] = level
        parents[v] = u
        queue[found] = v
        found += 1
    return found


@compiled(_FOUND(I32, U32, U32, _I64, _I64, I64, I64, U32, _I64))
def list_level(levels, parents, queue, begin, end, firsts, nexts, ends, level):
    """Expand queue[begin:end] along linked lists; returns the new end and the edges looked at."""
    found, examined = end, np.int64(0)
    for q in range(begin, end):
        u = queue[q]
        place = firsts[u]
        while place >= 0:
            v = ends[place ^ 1]
            examined += 1
            found = _visit(levels, parents, queue, found, u, v, level)
            place = nexts[place]
    return found, examined


@compiled(_FOUND(I32, U32, U32, _I64, _I64, READ_U64, READ_U32, _I64))
def csr_level(levels, parents, queue, begin, end, offsets, columns, level):
    """Expand queue[begin:end] along plain rows; returns the new end and the edges looked at."""
    found, examined = end, np.int64(0)
    for q in range(begin, end):
        u = queue[q]
        for i in range(offsets[u], offsets[u + 1]):
            v = columns[i]
            examined += 1
            found = _visit(levels, parents, queue, found, u, v, level)
    return found, examined

"""Breadth-first search as textbooks have it: a queue, and neighbours in their order.

One thread: who finds a vertex first, and so the order of the queue, is part of the answer.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import U8, U32
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.ordered.adjacency import ADJACENCY, row_of

_I64 = types.int64
DAMAGED = -1
NO_PATH = -2
# In the arrays of a search from both ends: not seen, and where a search began. Others are a
# vertex + BEFORE. 0 is what fresh memory holds, so that pages that are never seen cost nothing.
END = 1
BEFORE = 2


@compiled(_I64(U32, U32, U8, _I64, _I64, _I64, ADJACENCY, U32))
def expand(queue, finders, visited, count, begin, end, adjacency, scratch):
    """Look at the neighbours of queue[begin:end], and put those not visited behind queue[:count].

    ``finders`` are the places in the queue from which vertices were found. Returns the new count,
    or DAMAGED.
    """
    for place in range(begin, end):
        row, first, stop = row_of(adjacency, queue[place], scratch)
        if stop < 0:
            return DAMAGED
        for i in range(first, stop):
            v = row[i]
            if visited[v] == 0:
                visited[v] = 1
                queue[count] = v
                finders[count] = place
                count += 1
        if count == queue.size:
            break
    return count


@inlined
def _expand_side(queue, first, last, mine, others, adjacency, scratch):
    """Expand queue[first:last] of a search from one end.

    Returns the new end of the queue, and the vertex that the other search has seen, DAMAGED, or
    NO_PATH if there is none yet.
    """
    for place in range(first, last):
        v = queue[place]
        row, begin, stop = row_of(adjacency, v, scratch)
        if stop < 0:
            return last, np.int64(DAMAGED)
        for i in range(begin, stop):
            w = row[i]
            if mine[w] == 0:
                mine[w] = v + np.uint32(BEFORE)
                queue[last] = w
                last += 1
            if others[w] != 0:
                return last, np.int64(w)
    return last, np.int64(NO_PATH)


@compiled(_I64(U32, U32, U32, U32, _I64, _I64, ADJACENCY, ADJACENCY, U32))
def meet(forward, backward, before, after, source, target, outward, inward, scratch):
    """Search from both ends, the smaller frontier first; returns where they meet.

    ``forward`` and ``backward`` are queues. ``before`` and ``after``, full of zeros, get the next
    vertex on the way to each end. Returns DAMAGED or NO_PATH if there is no such vertex.
    """
    forward[0], backward[0] = source, target
    before[source] = after[target] = END
    first, last, back_first, back_last = 0, 1, 0, 1
    while first < last and back_first < back_last:
        if last - first <= back_last - back_first:
            end = last
            last, met = _expand_side(forward, first, end, before, after, outward, scratch)
            first = end
        else:
            end = back_last
            back_last, met = _expand_side(backward, back_first, end, after, before, inward, scratch)
            back_first = end
        if met != NO_PATH:
            return met
    return NO_PATH

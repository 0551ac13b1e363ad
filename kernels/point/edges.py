"""Whether there are edges: one thread, many pairs, each sought in the shorter of two rows."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.atomics import kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.point import state as words
from oocbfs.kernels.point.pairs import NO_PATH, pairs_at
from oocbfs.kernels.point.rows import degree_of, make_walk
from oocbfs.kernels.point.state import reach_at, single_rows_at
from oocbfs.kernels.point.table import clear

# The word of the control array that has the neighbour which is sought.
WANTED = words.FREE_WORD


@kernel
def _visit(rows, reach, entry, count):
    """Stop where the row has the neighbour that is sought."""
    wanted = np.uint32(reach.control[WANTED])
    found = 0
    for i in range(count):
        found += np.int64(reach.ids[i] == wanted)
    return np.int64(words.STOPPED) if found else np.int64(words.WHOLE)


_walk = make_walk(_visit)


@compiled(types.int64(*[types.int64] * 5), _nrt=False)
def find_edges(forward, backward, reach, pairs, first):
    """Give pairs from ``first`` on that have an edge the distance 1, others NO_PATH.

    Arguments but the last are the addresses of structs. Returns the first pair that is not done,
    and control[OUTCOME] says why: the graph cannot be read.
    """
    forward, backward = single_rows_at(forward), single_rows_at(backward)
    reach, pairs = reach_at(reach), pairs_at(pairs)
    control = reach.control
    control[words.OUTCOME] = words.WHOLE
    clear(reach)
    for k in range(first, pairs.sources.size):
        s, t = pairs.sources[k], pairs.targets[k]
        u, v = np.int64(s), np.int64(t)
        if degree_of(forward, u) <= degree_of(backward, v):
            reach.queue[0], control[WANTED] = s, v
            status = _walk(forward, reach, np.int64(0), np.int64(1))
        else:
            reach.queue[0], control[WANTED] = t, u
            status = _walk(backward, reach, np.int64(0), np.int64(1))
        if status not in (words.WHOLE, words.STOPPED):
            control[words.OUTCOME] = status
            return np.int64(k)
        pairs.distances[k] = 1 if status == words.STOPPED else NO_PATH
    return np.int64(pairs.sources.size)

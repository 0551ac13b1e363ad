"""Whether there are edges: one thread, many pairs, each sought in the shorter of two rows."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import U8, U32
from oocbfs.kernels.atomics import kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.compiling import code_of
from oocbfs.kernels.point import state as words
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


@compiled(types.int64(*[types.int64] * 3, U32, U32, U8, types.int64), _nrt=False)
def find_edges(forward, backward, reach, sources, targets, found, first):
    """Say of the pairs from ``first`` on whether there is an edge; return the first not done.

    Both directions of the rows and the reach are addresses of structs. control[OUTCOME] says why a
    pair is not done: the graph cannot be read.
    """
    forward, backward = single_rows_at(forward), single_rows_at(backward)
    reach = reach_at(reach)
    control = reach.control
    control[words.OUTCOME] = words.WHOLE
    clear(reach)
    for k in range(first, sources.size):
        u, v = np.int64(sources[k]), np.int64(targets[k])
        if degree_of(forward, u) <= degree_of(backward, v):
            reach.queue[0], control[WANTED] = sources[k], v
            status = _walk(forward, reach, np.int64(0), np.int64(1))
        else:
            reach.queue[0], control[WANTED] = targets[k], u
            status = _walk(backward, reach, np.int64(0), np.int64(1))
        if status not in (words.WHOLE, words.STOPPED):
            control[words.OUTCOME] = status
            return np.int64(k)
        found[k] = status == words.STOPPED
    return np.int64(sources.size)


CODE = code_of(find_edges)

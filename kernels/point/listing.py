"""The neighbours of some vertices, row after row."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, U32
from oocbfs.kernels.atomics import kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.point import state as words
from oocbfs.kernels.point.rows import make_walk
from oocbfs.kernels.point.state import reach_at, single_rows_at
from oocbfs.kernels.point.table import clear


@kernel
def _visit(rows, reach, entry, count):
    """Append ids to what is found; the levels of entries count them."""
    filled = reach.control[words.FOUND]
    if filled + count > reach.found.size:
        return np.int64(words.NO_ROOM)
    for i in range(count):
        reach.found[filled + i] = reach.ids[i]
    reach.control[words.FOUND] = filled + count
    reach.levels[entry] += count
    return np.int64(words.WHOLE)


_walk = make_walk(_visit)


@compiled(types.int64(types.int64, types.int64, U32, I64, types.int64), _nrt=False)
def list_rows(rows, reach, vertices, ends, first):
    """Append the rows of vertices[first:] to reach.found, and note in ``ends`` where each ends.

    Rows and reach are addresses of structs. Returns the first vertex whose row is not there, and
    control[OUTCOME] says why: it does not fit, or cannot be read.
    """
    rows, reach = single_rows_at(rows), reach_at(reach)
    control = reach.control
    control[words.OUTCOME] = words.WHOLE
    clear(reach)
    for begin in range(first, vertices.size, words.ROWS_AHEAD):
        count = min(vertices.size - begin, words.ROWS_AHEAD)
        for i in range(count):
            reach.queue[i] = vertices[begin + i]
            reach.levels[i] = 0
        end = control[words.FOUND]
        status = _walk(rows, reach, np.int64(0), count)
        if status != words.WHOLE:
            control[words.OUTCOME] = status
            control[words.FOUND] = end
            return np.int64(begin)
        for i in range(count):
            end += np.int64(reach.levels[i])
            ends[begin + i] = end
    return np.int64(vertices.size)

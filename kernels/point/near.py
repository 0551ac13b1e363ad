"""Who is within some steps of a seed: one thread, many searches in one call.

A search begins at one seed, or at several together, and takes one level after the other, up to a
depth. A limit ends it when so many vertices are found and there is one more: the limit has cut
something off, and the search says so. Vertices are given in the order in which they were found, so
that the nearest come first, whatever is cut off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I32Array, I64Array, U8Array, U32Array
from oocbfs.kernels.atomics import kernel, prefetch
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.point import state as words
from oocbfs.kernels.point.rows import make_walk
from oocbfs.kernels.point.state import reach_at, single_rows_at
from oocbfs.kernels.point.table import clear, enter, has_room, home_of, slot_of
from oocbfs.kernels.structs import at_address

# Words of the control array: bounds of each search, and whether the limit cut something off.
MAX_DEPTH, LIMIT, MOST_ENTRIES, CUT = range(words.FREE_WORD, words.FREE_WORD + 4)
# How many ids ahead a slot is asked for: tables of large reaches are in no cache.
_AHEAD = 16
# How a call ended besides: a search touched more than it may, and somebody else has to do it.
GIVEN_UP = 16


class Near(NamedTuple):
    """Searches, and what they found, one after the other.

    Search k begins at seeds[seed_ends[k - 1] : seed_ends[k]], and found the vertices up to ends[k].
    ``parents`` is empty where these are not wanted; seeds are their own.
    """

    seeds: U32Array
    seed_ends: I64Array
    ends: I64Array
    cut: U8Array
    vertices: U32Array
    levels: I32Array
    parents: U32Array


near_at = at_address(Near)


@kernel
def _visit(rows, reach, entry, count):
    """Enter the ids that are new; stop where the limit has none of them."""
    control, ids, slots = reach.control, reach.ids, reach.slots
    if control[words.ENTRIES] > control[MOST_ENTRIES]:
        return np.int64(words.STOPPED)
    if not has_room(reach, count):
        return np.int64(words.NO_ENTRY_ROOM)
    level = reach.levels[entry] + 1
    for i in range(count):
        prefetch(slots, home_of(slots, ids[min(i + _AHEAD, count - 1)]))
        slot = slot_of(slots, ids[i])
        if slots[slot] == 0:
            if control[words.ENTRIES] == control[LIMIT]:
                control[CUT] = 1
                return np.int64(words.STOPPED)
            enter(reach, slot, ids[i], entry, level, np.int64(0))
    return np.int64(words.WHOLE)


_walk = make_walk(_visit)


@kernel
def _begin(reach, near, first, stop):
    """Put the seeds into an empty reach, as many as the limit has."""
    control = reach.control
    clear(reach)
    control[CUT] = 0
    for i in range(first, stop):
        if not has_room(reach, 1):
            return np.int64(words.NO_ENTRY_ROOM)
        slot = slot_of(reach.slots, near.seeds[i])
        if reach.slots[slot] == 0:
            if control[words.ENTRIES] == control[LIMIT]:
                control[CUT] = 1
                return np.int64(words.STOPPED)
            own = control[words.ENTRIES]
            enter(reach, slot, near.seeds[i], own, np.int32(0), np.int64(0))
    return np.int64(words.WHOLE)


@kernel
def _search(rows, reach, near, first, stop):
    """Find what is near some seeds; say how it ended."""
    control = reach.control
    status = _begin(reach, near, first, stop)
    begin = np.int64(0)
    while status == words.WHOLE and begin < control[words.ENTRIES]:
        if np.int64(reach.levels[begin]) == control[MAX_DEPTH]:
            break
        end = control[words.ENTRIES]
        status = _walk(rows, reach, begin, end)
        begin = end
    if status == words.STOPPED:
        return np.int64(words.WHOLE) if control[CUT] else np.int64(GIVEN_UP)
    return status


@kernel
def _put(reach, near, place):
    """Write what was found behind what others found."""
    queue, owners = reach.queue, reach.owners
    for i in range(reach.control[words.ENTRIES]):
        near.vertices[place + i] = queue[i]
        near.levels[place + i] = reach.levels[i]
        if near.parents.size != 0:
            near.parents[place + i] = queue[owners[i]]


@compiled(types.int64(*[types.int64] * 5), _nrt=False)
def search_near(rows, reach, near, first, place):
    """Do the searches from ``first`` on; return the first that is not done, or how many there are.

    Rows, reach and near are addresses of structs; what is found goes to near.vertices[place:] and
    so on. control[OUTCOME] says why a search is not done: there must be more room for entries, it
    is given up, or the graph cannot be read. If it is NO_ROOM, the reach holds what was found.
    """
    rows, reach, near = single_rows_at(rows), reach_at(reach), near_at(near)
    control = reach.control
    control[words.OUTCOME] = words.WHOLE
    for k in range(first, near.ends.size):
        begin = near.seed_ends[k - 1] if k != 0 else np.int64(0)
        status = _search(rows, reach, near, begin, near.seed_ends[k])
        if status == words.WHOLE:
            near.cut[k] = control[CUT]
            if place + control[words.ENTRIES] > near.vertices.size:
                status = np.int64(words.NO_ROOM)
        if status != words.WHOLE:
            control[words.OUTCOME] = status
            return np.int64(k)
        _put(reach, near, place)
        place += control[words.ENTRIES]
        near.ends[k] = place
    return np.int64(near.ends.size)

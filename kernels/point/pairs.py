"""Paths between two vertices, searched from both ends: one thread, many pairs in one call.

Each end has a *side*: all vertices up to some depth, complete. Whichever side's next level costs
less is taken a level further: the sum of the degrees of its last level tells, or from disk how many
rows they are. The search ends at the first edge that leads from one side to the other, and that is
on a shortest path: let the sides be complete to the depths a and b, and nothing be on both. Then
the distance is more than a + b, since a path of that length has a vertex at depth a from one end
and at depth b from the other, which would be on both. An edge from the last level of one side to a
vertex at depth c <= b of the other makes a path of length a + 1 + c, which is at most a + 1 + b, so
that this is the distance, and c is b. The same holds for directed graphs, where the side of the
target goes against the edges.

If a side has no next level, there is no path: all that it can reach is on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I32Array, I64Array, U32Array
from oocbfs.kernels.atomics import kernel, prefetch
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.point import state as words
from oocbfs.kernels.point.rows import degree_of, expect_row, make_walk
from oocbfs.kernels.point.state import reach_at, single_rows_at
from oocbfs.kernels.point.table import clear, enter, entry_of, has_room, side_of, slot_of
from oocbfs.kernels.structs import at_address

# Words of the control array: the bounds of a search, of which that of the entries says how much
# room there can be; the side that is taken further, where the two sides met, and how many levels
# both have together.
MOST_EDGES, MAX_DEPTH, MOST_ENTRIES = range(words.FREE_WORD, words.FREE_WORD + 3)
SIDE, NEAR, FAR, DEPTH = range(words.FREE_WORD + 3, words.FREE_WORD + 7)
# How many entries ahead a degree is asked for.
_AHEAD = 16
# Where no path is, and where the search touched more than it may: somebody else has to look.
NO_PATH, GIVEN_UP = -1, -2


class Pairs(NamedTuple):
    """Pairs, and what is found out about them.

    distances
        NO_PATH where there is no path; GIVEN_UP where nobody knows yet.
    path_ends
        Where each path ends in reach.found, which holds them one after the other, each vertex by
        vertex; empty where paths are not wanted. A pair without a path has an empty one.
    """

    sources: U32Array
    targets: U32Array
    distances: I32Array
    path_ends: I64Array


pairs_at = at_address(Pairs)


@kernel
def _visit(rows, reach, entry, count):
    """Enter the ids that are on no side; stop at one that is on the other."""
    control, ids, slots = reach.control, reach.ids, reach.slots
    if control[words.EDGES] > control[MOST_EDGES]:
        return np.int64(words.STOPPED)
    if not has_room(reach, count):
        return np.int64(words.NO_ENTRY_ROOM)
    side, level = control[SIDE], reach.levels[entry] + 1
    for i in range(count):
        v = ids[i]
        slot = slot_of(slots, v)
        word = slots[slot]
        if word == 0:
            enter(reach, slot, v, entry, level, side)
        elif side_of(word) != side:
            control[NEAR] = entry
            control[FAR] = entry_of(word)
            return np.int64(words.STOPPED)
    return np.int64(words.WHOLE)


@kernel
def _cost_of(rows, reach, first, stop):
    """Return what it costs to walk over the rows of some entries.

    This is done when a level is complete, since the last one of a search never is: most vertices
    are in that, and their degrees are anywhere in the memory.
    """
    if rows.degrees.size == 0:
        return stop - first
    cost = np.int64(0)
    for entry in range(first, stop):
        prefetch(rows.degrees, np.int64(reach.queue[min(entry + _AHEAD, stop - 1)]))
        cost += degree_of(rows, np.int64(reach.queue[entry]))
    return cost


_walk = make_walk(_visit)


@kernel
def _begin(reach, s, t):
    """Put both ends into an empty reach."""
    clear(reach)
    enter(reach, slot_of(reach.slots, s), s, np.int64(0), np.int32(0), np.int64(0))
    enter(reach, slot_of(reach.slots, t), t, np.int64(1), np.int32(0), np.int64(1))


@kernel
def _search(forward, backward, reach, s, t):
    """Find the distance of two vertices; NO_PATH or GIVEN_UP, and maybe an outcome."""
    control = reach.control
    control[NEAR] = -1
    if s == t:
        return np.int64(0)
    # All that is known of both ends is on its way at once.
    prefetch(forward.degrees, np.int64(s))
    prefetch(backward.degrees, np.int64(t))
    expect_row(forward, np.int64(s))
    expect_row(backward, np.int64(t))
    _begin(reach, s, t)
    control[DEPTH] = 0
    begin_0, end_0, begin_1, end_1 = np.int64(0), np.int64(1), np.int64(1), np.int64(2)
    cost_0 = degree_of(forward, np.int64(s))
    cost_1 = degree_of(backward, np.int64(t))
    while control[DEPTH] != control[MAX_DEPTH]:
        found, side = control[words.ENTRIES], np.int64(cost_0 > cost_1)
        control[SIDE] = side
        if side == 0:
            status = _walk(forward, reach, begin_0, end_0)
        else:
            status = _walk(backward, reach, begin_1, end_1)
        control[DEPTH] += 1
        if control[NEAR] >= 0:
            return control[DEPTH]
        if status == words.STOPPED:
            return np.int64(GIVEN_UP)
        room_after = words.GROWTH * reach.queue.size
        if status == words.NO_ENTRY_ROOM and room_after > control[MOST_ENTRIES]:
            return np.int64(GIVEN_UP)
        if status != words.WHOLE:
            control[words.OUTCOME] = status
            return np.int64(GIVEN_UP)
        end = control[words.ENTRIES]
        if end == found:
            return np.int64(NO_PATH)
        if side == 0:
            begin_0, end_0, cost_0 = found, end, _cost_of(forward, reach, found, end)
        else:
            begin_1, end_1, cost_1 = found, end, _cost_of(backward, reach, found, end)
    return np.int64(NO_PATH)


@kernel
def _put_path(reach, s, distance, path, end):
    """Write the path that was found to path[end:], source first."""
    queue, owners, control = reach.queue, reach.owners, reach.control
    if distance == 0:
        path[end] = s
        return
    near, far = control[NEAR], control[FAR]
    if control[SIDE] == 1:
        near, far = far, near
    at = end + np.int64(reach.levels[near])
    entry = near
    for place in range(at, end - 1, -1):
        path[place] = queue[entry]
        entry = np.int64(owners[entry])
    entry = far
    for place in range(at + 1, end + distance + 1):
        path[place] = queue[entry]
        entry = np.int64(owners[entry])


@compiled(types.int64(*[types.int64] * 6), _nrt=False)
def search_pairs(forward, backward, reach, pairs, first, stop):
    """Search the pairs first … stop-1; return the first that is not done, ``stop`` if all are.

    But for these two, arguments are the addresses of structs. control[OUTCOME] says why one is not
    done: there must be more room for entries or for paths, or the graph cannot be read.
    """
    forward, backward = single_rows_at(forward), single_rows_at(backward)
    reach, pairs = reach_at(reach), pairs_at(pairs)
    control = reach.control
    control[words.OUTCOME] = words.WHOLE
    most_edges = control[MOST_EDGES]
    for k in range(first, stop):
        s, t = pairs.sources[k], pairs.targets[k]
        # Edges are counted over all pairs, and bounded for each.
        control[MOST_EDGES] = control[words.EDGES] + most_edges
        distance = _search(forward, backward, reach, s, t)
        if control[words.OUTCOME] == words.WHOLE and pairs.path_ends.size != 0:
            end = control[words.FOUND]
            if distance >= 0 and end + distance + 1 > reach.found.size:
                control[words.OUTCOME] = words.NO_ROOM
            elif distance >= 0:
                _put_path(reach, s, distance, reach.found, end)
                control[words.FOUND] = end + distance + 1
            pairs.path_ends[k] = control[words.FOUND]
        if control[words.OUTCOME] != words.WHOLE:
            control[MOST_EDGES] = most_edges
            return np.int64(k)
        pairs.distances[k] = distance
    control[MOST_EDGES] = most_edges
    return np.int64(stop)

"""Top-down steps: the rows of the frontier reach for vertices that nobody visited.

A thread gathers the ids of many rows in its scratch before it looks at the bitmap, so that the
decoder never waits for the memory. What happens to the gathered ids is the *mode*:

- ALONE: one thread; ids without a level get theirs and enter the queue.
- SPARSE: several threads claim ids on the visited bitmap: a plain test first, an atomic only where it
  failed.
- PARTS: for the many middling levels of meshes and roads. Each thread keeps to its part of the
  frontier, and its finds become its part of the next one, so that a region of the graph stays in the
  cache of one core. As ALONE, it looks at levels alone and uses no atomics.
- DENSE: each thread sets bits in a bitmap of its own, no atomics; a sweep over the words
  (bfs_frontier) then finds what is new and writes levels and sums degrees in the order of the
  memory, which pays when much of the graph is found at once. Two threads that found the same vertex
  both write its parent: each is a valid one, and one of them stays.

ALONE and PARTS leave the visited bitmap behind; ``catch_up`` sets the bits of what has been queued
since before another mode needs them.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, atomic_or, kernel, prefetch
from oocbfs.kernels.bfs_frontier import own_bitmap
from oocbfs.kernels.bfs_rows import gather_segment, row_begin
from oocbfs.kernels.bfs_state import (
    BATCH,
    BYTES,
    CURSOR,
    DENSE_MASK,
    EDGES,
    FAILED,
    FRONTIER_END,
    HUB_CURSOR,
    LEVEL,
    MAX_DENSE,
    MODE,
    NUM_HUBS,
    NUM_PARTS,
    ONE,
    PARTS_EDGES,
    PARTS_TAKEN,
    QUEUE_BEGIN,
    QUEUE_END,
    REPEATS,
    SYNCED,
    VISITED,
    ZERO,
)
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES

ALONE, SPARSE, PARTS, DENSE = range(4)
# How much a thread takes at a time.
_HUB_CHUNK = 4
_QUEUE_CHUNK = 64
# How many rows ahead a row is asked for; its start twice as far.
_AHEAD = 6
# A batch that is this full goes to the bitmap before the next segment is gathered.
_FULL = BATCH - SEGMENT_BYTES - 1


@kernel
def _level(out, place, state, ids, owners, count):
    """Level the ids that have no level yet and append them to out; give the place behind the last."""
    levels, parents = state.levels, state.parents
    level = np.int32(state.control[LEVEL])
    if parents.size == 0:
        for i in range(count):
            v = ids[i]
            old = levels[v]
            levels[v] = level if old < 0 else old
            out[place] = v
            place += np.int64(old < 0)
    else:
        for i in range(count):
            v = ids[i]
            if levels[v] < 0:
                levels[v] = level
                parents[v] = owners[i]
                out[place] = v
                place += 1
    return place


@kernel
def _visit_alone(state, ids, owners, count):
    """Level ids and append them to the queue on the only thread."""
    control = state.control
    control[QUEUE_END] = _level(state.queue, control[QUEUE_END], state, ids, owners, count)


@kernel
def _claim(state, visited, ids, owners, count):
    """Claim ids while other threads do the same and level them; move them to the front of ids."""
    levels, parents = state.levels, state.parents
    level = state.control[LEVEL]
    with_parents = parents.size != 0
    unseen = 0
    for i in range(count):
        v = ids[i]
        ids[unseen] = v
        if with_parents:
            owners[unseen] = owners[i]
        unseen += np.int64(~visited[v >> 6] >> np.uint64(v & 63) & ONE)
    claimed = 0
    for i in range(unseen):
        v = ids[i]
        bit = ONE << np.uint64(v & 63)
        ids[claimed] = v
        if with_parents:
            owners[claimed] = owners[i]
        if atomic_or(visited, np.int64(v >> 6), bit) & bit == ZERO:
            claimed += 1
    # An atomic waits for all earlier writes, so those that miss the cache come behind the last one.
    for i in range(claimed):
        levels[ids[i]] = level
    if with_parents:
        for i in range(claimed):
            parents[ids[i]] = owners[i]
    return claimed


@kernel
def _visit_sparse(state, visited, ids, owners, count):
    """Claim ids and append them to the queue."""
    queue = state.queue
    claimed = _claim(state, visited, ids, owners, count)
    if claimed != 0:
        place = atomic_add(state.control, QUEUE_END, claimed)
        for i in range(claimed):
            queue[place + i] = ids[i]


@kernel
def _visit_part(state, ids, owners, count, part):
    """Level ids and append them to the finds of this part.

    No atomics: a level only ever changes from none to this one, whoever writes it. A vertex that two
    threads find at the same time is in the finds of both and is expanded twice, to no effect.
    """
    finds, place = state.finds[part], state.num_finds[part, 0]
    if place + count > finds.size:  # more edges than the degrees promised
        state.control[FAILED] = 1
        return
    state.num_finds[part, 0] = _level(finds, place, state, ids, owners, count)


@kernel
def _visit_dense(state, own, ids, owners, count):
    """Set the bits of ids in the thread's own bitmap."""
    parents = state.parents
    if parents.size == 0:
        for i in range(count):
            v = ids[i]
            own[v >> 6] |= ONE << np.uint64(v & 63)
    else:
        for i in range(count):
            v = ids[i]
            bit = ONE << np.uint64(v & 63)
            if own[v >> 6] & bit == ZERO:
                own[v >> 6] |= bit
                parents[v] = owners[i]


@kernel
def _visit(state, bitmap, ids, owners, count, part):
    """Claim the gathered ids in the way of the mode."""
    mode = state.control[MODE]
    if mode == ALONE:
        _visit_alone(state, ids, owners, count)
    elif mode == SPARSE:
        _visit_sparse(state, bitmap, ids, owners, count)
    elif mode == PARTS:
        _visit_part(state, ids, owners, count, part)
    else:
        _visit_dense(state, bitmap, ids, owners, count)


@kernel
def _expand_rows(rows, state, visited, ids, owners, count, begin, end, part):
    """Gather and visit the rows of queue[begin:end].

    Gives the ids still gathered (-1 if a tail is malformed), the edges visited so far, and the bytes.
    """
    heads, tails, queue = rows.heads, rows.tails, state.queue
    with_parents = state.parents.size != 0
    n = heads.size
    edges = 0
    octets = 0
    for q in range(begin, end):
        ahead = np.int64(queue[min(q + 2 * _AHEAD, end - 1)])
        prefetch(heads, ahead)
        prefetch(rows.starts, ahead)
        prefetch(tails, row_begin(rows, np.int64(queue[min(q + _AHEAD, end - 1)])))
        u = np.int64(queue[q])
        head = heads[u]
        if head == NO_HEAD:
            continue
        first = count
        ids[count] = head
        count += 1
        at = row_begin(rows, u)
        row_end = row_begin(rows, u + 1)
        octets += row_end - at
        while True:
            segment_end = min(at + SEGMENT_BYTES, row_end)
            count = gather_segment(ids, count, tails, at, segment_end, n)
            if count < 0:
                return count, edges, octets
            at = segment_end
            if with_parents:
                for i in range(first, count):
                    owners[i] = u
            if count >= _FULL:
                _visit(state, visited, ids, owners, count, part)
                edges += count
                count = 0
            first = count
            if at >= row_end:
                break
    return count, edges, octets


@kernel
def _expand_slice(rows, state, visited, thread, part, begin, end):
    """Expand queue[begin:end] to the end; give the edges and bytes."""
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    count = np.int64(0)
    count, edges, octets = _expand_rows(rows, state, visited, ids, owners, count, begin, end, part)
    if count < 0:
        state.control[FAILED] = 1
        count = 0
    _visit(state, visited, ids, owners, count, part)
    return edges + count, octets


@kernel
def top_down_alone(rows, state, thread):
    """Expand a small frontier on the leading thread."""
    control = state.control
    visited = state.bitmaps[control[VISITED]]
    begin, end = control[QUEUE_BEGIN], control[FRONTIER_END]
    edges, octets = _expand_slice(rows, state, visited, thread, thread, begin, end)
    control[EDGES] += edges
    control[BYTES] += octets


@kernel
def _take_part(control, part):
    """Tell whether this thread is the first to ask for a part."""
    bit = np.int64(1) << part
    return control[PARTS_TAKEN] & bit == 0 and atomic_or(control, PARTS_TAKEN, bit) & bit == 0


@kernel
def top_down_parts(rows, state, thread):
    """Expand this thread's part of the frontier, then those parts whose threads did not come."""
    control = state.control
    visited = state.bitmaps[control[VISITED]]
    num_parts = control[NUM_PARTS]
    begin = control[QUEUE_BEGIN]
    count = control[FRONTIER_END] - begin
    for i in range(num_parts):
        part = (thread + i) % num_parts
        if _take_part(control, part):
            first = begin + count * part // num_parts
            last = begin + count * (part + 1) // num_parts
            edges, octets = _expand_slice(rows, state, visited, thread, part, first, last)
            atomic_add(control, EDGES, edges)
            atomic_add(control, BYTES, octets)


@kernel
def catch_up(state):
    """Set the visited bits of all that entered the queue since they were last right."""
    control = state.control
    visited = state.bitmaps[control[VISITED]]
    for q in range(control[SYNCED], control[QUEUE_END]):
        v = state.queue[q]
        visited[v >> 6] |= ONE << np.uint64(v & 63)
    control[SYNCED] = control[QUEUE_END]


@kernel
def reserve_parts(state):
    """Give the finds of each part their place in the queue, behind each other; tell the first.

    What is in the finds of two parts is at most all that the largest part does not hold. When the
    queue may hold too many repetitions, it starts anew: earlier frontiers are of no more use.
    """
    control = state.control
    most = np.int64(0)
    total = np.int64(0)
    for part in range(control[NUM_PARTS]):
        most = max(most, state.num_finds[part, 0])
        total += state.num_finds[part, 0]
    control[REPEATS] += total - most
    if control[REPEATS] > PARTS_EDGES:
        catch_up(state)
        control[QUEUE_END] = 0
        control[SYNCED] = 0
        control[REPEATS] = total - most
    begin = control[QUEUE_END]
    for part in range(control[NUM_PARTS]):
        state.num_finds[part, 1] = control[QUEUE_END]
        control[QUEUE_END] += state.num_finds[part, 0]
    return begin


@kernel
def join_parts(state, thread):
    """Append the finds to the queue, each part by the thread that is likely to expand it next."""
    control = state.control
    num_parts = control[NUM_PARTS]
    for i in range(num_parts):
        part = (thread + i) % num_parts
        if _take_part(control, part):
            queue, finds = state.queue, state.finds[part]
            place = state.num_finds[part, 1]
            for k in range(state.num_finds[part, 0]):
                queue[place + k] = finds[k]
            state.num_finds[part, 0] = 0


@kernel
def _expand_hubs(rows, state, visited, ids, owners, thread):
    """Take segments of the hubs at the front of the frontier until none are left."""
    control, hubs = state.control, state.hubs
    begin = control[QUEUE_BEGIN]
    total = hubs[control[NUM_HUBS]]
    hub = 0
    edges = 0
    octets = 0
    while True:
        taken = atomic_add(control, HUB_CURSOR, _HUB_CHUNK)
        if taken >= total:
            return edges, octets
        for segment in range(taken, min(taken + _HUB_CHUNK, total)):
            while segment >= hubs[hub + 1]:
                hub += 1
            u = np.int64(state.queue[begin + hub])
            count = 0
            if segment == hubs[hub]:
                ids[0] = rows.heads[u]
                count = 1
            at = row_begin(rows, u) + (segment - hubs[hub]) * SEGMENT_BYTES
            end = min(at + SEGMENT_BYTES, row_begin(rows, u + 1))
            count = gather_segment(ids, count, rows.tails, at, end, rows.heads.size)
            if count < 0:
                control[FAILED] = 1
                return edges, octets
            if state.parents.size != 0:
                for i in range(count):
                    owners[i] = u
            _visit(state, visited, ids, owners, count, thread)
            edges += count
            octets += end - at


@kernel
def top_down_together(rows, state, thread):
    """Expand the frontier with others: first the hubs by segment, then the other rows in chunks."""
    control = state.control
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    visited = state.bitmaps[control[VISITED]]
    if control[MODE] == DENSE:
        if thread >= MAX_DENSE:
            return
        own = state.bitmaps[own_bitmap(control, thread)]
        for w in range(own.size):
            own[w] = visited[w]
        visited = own
        atomic_add(control, DENSE_MASK, np.int64(1) << thread)
    edges, octets = _expand_hubs(rows, state, visited, ids, owners, thread)
    begin = control[QUEUE_BEGIN] + control[NUM_HUBS]
    end = control[FRONTIER_END]
    count = 0
    while control[FAILED] == 0:
        taken = begin + atomic_add(control, CURSOR, _QUEUE_CHUNK)
        if taken >= end:
            break
        taken_end = min(taken + _QUEUE_CHUNK, end)
        count, more_edges, more_octets = _expand_rows(
            rows, state, visited, ids, owners, count, taken, taken_end, thread
        )
        edges += more_edges
        octets += more_octets
        if count < 0:
            control[FAILED] = 1
            count = 0
    _visit(state, visited, ids, owners, count, thread)
    atomic_add(control, EDGES, edges + count)
    atomic_add(control, BYTES, octets)

"""Top-down steps for small and middling frontiers, which follow levels alone.

What a row reaches is looked up in the levels and gets its own there: no bitmap, no atomics. The visited bitmap is left behind; ``mark_visited`` sets the bits of what has been queued since before
another step needs them.

``follow_alone`` is for frontiers that are not worth sharing, and stays for as many levels as they are
small: a path's million levels cost nothing but their rows.

``follow_parts`` is for the many middling levels of meshes and roads. Each thread keeps to its part of
the frontier, and its finds become its part of the next one, so that a region of the graph stays in the
cache of one core. A level only ever changes from none to this one, whoever writes it; a vertex that two
threads find at the same time is among the finds of both and is expanded twice, to no effect.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_or, inlined, kernel, nanoseconds
from oocbfs.kernels.bfs.state import (
    BYTES,
    DEPTH,
    EDGES,
    FAILED,
    FRONTIER,
    FRONTIER_END,
    KEPT,
    LEVEL,
    NUM_PARTS,
    PART_BYTES,
    PART_COUNT,
    PART_EDGES,
    PART_PLACE,
    PARTS_EDGES,
    PARTS_TAKEN,
    QUEUE_BEGIN,
    QUEUE_END,
    REPEATS,
    SYNCED,
    UNEXPLORED,
    VISITED,
)
from oocbfs.kernels.region import ONE
from oocbfs.kernels.rows import BATCH, NOT_BEGUN, gather_rows


@inlined
def _reach(state, out, place, ids, owners, count, level):
    """Level the ids that have no level yet and append them to out; give the place behind the last."""
    levels, parents = state.levels, state.parents
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


@inlined
def _follow(rows, state, thread, begin, end, out, place, level):
    """Expand queue[begin:end]; append what is found to out[place:].

    Gives the place behind the last (-1 if a row is damaged), the edges, and the bytes.
    """
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    with_parents = state.parents.size != 0
    edges = np.int64(0)
    num_bytes = np.int64(0)
    q = begin
    at = np.int64(NOT_BEGUN)
    while q < end:
        q, at, count, more = gather_rows(
            rows, state.queue, q, at, end, ids, owners, np.int64(0), with_parents
        )
        if count < 0 or place + count > out.size:  # a wrong id, or more than the degrees promised
            return np.int64(-1), edges, num_bytes
        place = _reach(state, out, place, ids, owners, count, level)
        edges += count
        num_bytes += more
    return place, edges, num_bytes


@kernel
def follow_alone(rows, state, options, started, pause):
    """Expand the queued frontier on the leading thread, and those that follow while they are tiny.

    Gives the time at which the last of these levels ended.
    """
    control, records, queue = state.control, state.records, state.queue
    begin, end = control[QUEUE_BEGIN], control[FRONTIER_END]
    depth = control[DEPTH]
    while True:
        place, edges, num_bytes = _follow(
            rows, state, 0, begin, end, queue, end, np.int32(depth + 1)
        )
        if place < 0:
            control[FAILED] = 1
            break
        record = min(depth, records.shape[0] - 1)
        ended = nanoseconds(options.clock)
        records[record, 0] = 0
        records[record, 1] += end - begin
        records[record, 2] += edges
        records[record, 4] += num_bytes
        records[record, 5] += ended - started
        control[UNEXPLORED] -= edges
        started = ended
        begin, end = end, place
        depth += 1
        if (
            begin == end
            or (end - begin) * rows.max_degree > options.tiny_edges
            or depth == options.max_depth
            or started > pause
            or (options.target >= 0 and state.levels[options.target] >= 0)
        ):
            break
    control[QUEUE_BEGIN] = begin
    control[QUEUE_END] = end
    control[FRONTIER_END] = end
    control[FRONTIER] = end - begin
    control[DEPTH] = depth
    return started


@inlined
def _take_part(control, part):
    """Tell whether this thread is the first to ask for a part."""
    bit = np.int64(1) << part
    return control[PARTS_TAKEN] & bit == 0 and atomic_or(control, PARTS_TAKEN, bit) & bit == 0


@inlined
def _queue_part(state, part):
    """Append a part's finds to the queue, at the place reserved for them."""
    queue, finds = state.queue, state.finds[part]
    place = state.parts[part, PART_PLACE]
    for k in range(state.parts[part, PART_COUNT]):
        queue[place + k] = finds[k]


@kernel
def follow_parts(rows, state, thread):
    """Expand this thread's part of the frontier, then those parts whose threads did not come.

    A part is what the same part found at the level before, or, if those finds were not kept, an
    equal share of the queued frontier.
    """
    control, parts = state.control, state.parts
    num_parts = control[NUM_PARTS]
    begin = control[QUEUE_BEGIN]
    count = control[FRONTIER_END] - begin
    level = np.int32(control[LEVEL])
    for i in range(num_parts):
        part = (thread + i) % num_parts
        if not _take_part(control, part):
            continue
        if control[KEPT] != 0:
            _queue_part(state, part)
            first = parts[part, PART_PLACE]
            last = first + parts[part, PART_COUNT]
        else:
            first = begin + count * part // num_parts
            last = begin + count * (part + 1) // num_parts
        found, edges, num_bytes = _follow(
            rows, state, thread, first, last, state.finds[part], np.int64(0), level
        )
        if found < 0:
            control[FAILED] = 1
            found = 0
        parts[part, PART_COUNT] = found
        parts[part, PART_EDGES] = edges
        parts[part, PART_BYTES] = num_bytes


@kernel
def queue_parts(state, thread):
    """Append the finds to the queue, each part by the thread that is likely to expand it next."""
    num_parts = state.control[NUM_PARTS]
    for i in range(num_parts):
        part = (thread + i) % num_parts
        if _take_part(state.control, part):
            _queue_part(state, part)


@kernel
def reserve_parts(state):
    """Sum up what the parts did, and give the finds of each its place in the queue.

    What is in the finds of two parts is at most all that the largest part does not hold. When the
    queue may hold too many repetitions, it starts anew: earlier frontiers are of no more use.
    """
    control, parts = state.control, state.parts
    most = np.int64(0)
    total = np.int64(0)
    for part in range(control[NUM_PARTS]):
        most = max(most, parts[part, PART_COUNT])
        total += parts[part, PART_COUNT]
        control[EDGES] += parts[part, PART_EDGES]
        control[BYTES] += parts[part, PART_BYTES]
    if total > PARTS_EDGES:  # more than the degrees promised, and than the queue has room for
        control[FAILED] = 1
        return
    control[REPEATS] += total - most
    if control[REPEATS] > PARTS_EDGES:
        mark_visited(state)
        control[QUEUE_END] = 0
        control[SYNCED] = 0
        control[REPEATS] = total - most
    control[QUEUE_BEGIN] = control[QUEUE_END]
    for part in range(control[NUM_PARTS]):
        parts[part, PART_PLACE] = control[QUEUE_END]
        control[QUEUE_END] += parts[part, PART_COUNT]
    control[FRONTIER_END] = control[QUEUE_END]
    control[FRONTIER] = total
    control[KEPT] = 1


@kernel
def balanced(state):
    """Tell whether the largest of the kept parts is at most an eighth above the mean."""
    num_parts = state.control[NUM_PARTS]
    most = np.int64(0)
    for part in range(num_parts):
        most = max(most, state.parts[part, PART_COUNT])
    return 8 * most * num_parts <= 9 * state.control[FRONTIER]


@kernel
def mark_visited(state):
    """Set the visited bits of all that entered the queue since they were last right."""
    control = state.control
    visited = state.bitmaps[control[VISITED]]
    for q in range(control[SYNCED], control[QUEUE_END]):
        v = state.queue[q]
        visited[v >> 6] |= ONE << np.uint64(v & 63)
    control[SYNCED] = control[QUEUE_END]

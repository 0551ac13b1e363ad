"""Small and middling levels: what is visited is looked up in the levels themselves.

A path has a million levels of one vertex each, so a level must cost nothing but its rows: what a
row reaches is looked up in the levels and gets its own there, without bitmaps, atomics or other
threads. The leader alone expands such levels, one after the other.

Meshes and roads have middling levels by the thousand. Each thread expands its local queue, and
what that finds becomes its local queue of the next level, so that a region of the graph stays in
the cache of one core. A level only ever changes from none to the one that is being found, so it
does not matter which thread writes it: a vertex that two threads find at the same time is in the
finds of both and is expanded twice, to no effect. Merrill, Garland and Grimshaw (PPoPP 2012) let
such duplicates pass for the same reason.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import apart, atomic_or, inlined, kernel, nanoseconds
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.frontier import mark_visited
from oocbfs.kernels.bfs.state import (
    BOTTOM_UP,
    IN_BITMAP,
    IN_LOCAL_QUEUES,
    LOCAL_BEGIN,
    LOCAL_BYTES,
    LOCAL_EDGES,
    LOCAL_LIMIT,
    LOCAL_SIZE,
)
from oocbfs.kernels.bitmaps import DEEP, UNREACHED, keep_unreached
from oocbfs.kernels.gather import BATCH, NOT_BEGUN, gather_rows
from oocbfs.kernels.recording import record_level

# So few bytes are cleared faster by the leader, whose cache they are in, than shared.
SHARED_CLEAR = 1 << 18


@inlined
def _visit(state, out, out_end, ids, owners, count, level):
    """Level the ids that have no level yet and append them to out; return its new end."""
    levels, parents = state.levels, state.parents
    with_parents = parents.size != 0
    first = out_end
    short = np.uint8(min(level, DEEP))
    unseen = keep_unreached(levels, ids, owners, count, with_parents)
    end = np.uint64(out_end)
    for i in range(unseen):
        v = ids[i]
        out[end] = v
        end += np.uint64(levels[v] == UNREACHED)
        levels[v] = short
        if with_parents:
            parents[v] = owners[i]
    out_end = np.int64(end)
    if level >= DEEP:
        for i in range(first, out_end):
            state.deep_levels[out[i]] = level
    return out_end


@inlined
def expand_by_levels(rows, state, thread, begin, end, out, out_end, level):
    """Expand queue[begin:end]; append what is found to out[:out_end].

    Returns the new end of out (-1 if a row is damaged), the edges, and the bytes.
    """
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    with_parents = state.parents.size != 0
    edges = np.int64(0)
    num_bytes = np.int64(0)
    q = begin
    offset = np.int64(NOT_BEGUN)
    while q < end:
        q, offset, count, more_bytes = gather_rows(
            rows, state.queue, q, offset, end, ids, owners, np.int64(0), with_parents
        )
        if count < 0 or out_end + count > out.size:  # a wrong id, or more than the degrees promised
            return np.int64(-1), edges, num_bytes
        out_end = _visit(state, out, out_end, ids, owners, count, level)
        edges += count
        num_bytes += more_bytes
    return out_end, edges, num_bytes


@inlined
def _have_few_edges(rows, queue, begin, end, most):
    """Return whether the vertices queue[begin:end] have at most so many edges."""
    if (end - begin) * rows.max_degree <= most:
        return True
    edges = end - begin
    if edges <= most:
        edges = np.int64(0)
        for q in range(begin, end):
            edges += np.int64(rows.degrees[queue[q]])
    return edges <= most


@inlined
def alone_limit(options, depth):
    """Return the number of edges up to which the leader expands a level alone."""
    return options.alone_edges if depth >= options.first_local_queues else options.early_edges


@kernel
def should_wake(rows, state, options):
    """Return whether workers should come now: to wake them takes longer than a small search."""
    control = state.control
    depth = control[words.DEPTH]
    if options.threads == 1 or control[words.WOKEN] != 0 or options.unexplored_edges <= 0:
        return False
    begin, end = control[words.FRONTIER_BEGIN], control[words.FRONTIER_END]
    edges_left = control[words.UNEXPLORED_EDGES] - options.unexplored_edges
    most_edges = max(alone_limit(options, depth), edges_left)
    must_clear = depth == 0 and control[words.LEVELS_CLEAR] == 0
    if (
        options.direction != BOTTOM_UP
        and control[words.FORM] != IN_BITMAP
        and _have_few_edges(rows, state.queue, begin, end, most_edges)
        and (not must_clear or rows.heads.size <= SHARED_CLEAR)
    ):
        return False
    control[words.WOKEN] = 1
    return True


@kernel
def small_levels(rows, state, options, started, pause):
    """Expand the queued frontier on the leading thread, and those that follow while they are tiny.

    Returns the time at which the last of these levels ended.
    """
    control, queue = state.control, state.queue
    begin, end = control[words.FRONTIER_BEGIN], control[words.FRONTIER_END]
    depth = control[words.DEPTH]
    while True:
        next_end, edges, num_bytes = expand_by_levels(
            rows, state, np.int64(0), begin, end, queue, end, np.int32(depth + 1)
        )
        if next_end < 0:
            control[words.FAILED] = 1
            break
        ended = nanoseconds(options.clock)
        frontier_size, duration = end - begin, ended - started
        record_level(state.records, depth, False, frontier_size, edges, 0, num_bytes, 0, duration)
        control[words.NUM_FOUND] += end - begin
        control[words.UNEXPLORED_EDGES] -= edges
        started = ended
        begin, end = end, next_end
        depth += 1
        if (
            begin == end
            or not _have_few_edges(
                rows, queue, begin, end, min(alone_limit(options, depth), options.dense_edges)
            )
            or depth == options.max_depth
            or started > pause
            or (options.target >= 0 and state.levels[options.target] != UNREACHED)
        ):
            break
    control[words.FRONTIER_BEGIN] = begin
    control[words.FRONTIER_END] = end
    control[words.QUEUE_END] = end
    control[words.FRONTIER_SIZE] = end - begin
    control[words.DEPTH] = depth
    return started


@inlined
def _take_local_queue(control, local):
    """Return whether this thread is the first to ask for a local queue."""
    bit = np.int64(1) << local
    is_taken = control[words.LOCAL_QUEUES_TAKEN] & bit != 0
    return not is_taken and atomic_or(control, words.LOCAL_QUEUES_TAKEN, bit) & bit == 0


@inlined
def _append_local_queue(state, local):
    """Copy a local queue's finds to where the queue has room for them."""
    queue, finds = state.queue, state.finds[local]
    begin = state.local_queues[local, LOCAL_BEGIN]
    for i in range(state.local_queues[local, LOCAL_SIZE]):
        queue[begin + i] = finds[i]


@apart
def expand_local_queues(rows, state, thread):
    """Expand this thread's local queue, then those whose threads did not come.

    A local queue is what its thread found at the level before, or, in another form of frontier, an
    equal share of the queued frontier.
    """
    control, local_queues = state.control, state.local_queues
    num_local = control[words.NUM_LOCAL_QUEUES]
    frontier_begin = control[words.FRONTIER_BEGIN]
    size = control[words.FRONTIER_END] - frontier_begin
    level = np.int32(control[words.LEVEL])
    for i in range(num_local):
        local = (thread + i) % num_local
        if not _take_local_queue(control, local):
            continue
        if control[words.FORM] == IN_LOCAL_QUEUES:
            _append_local_queue(state, local)
            begin = local_queues[local, LOCAL_BEGIN]
            end = begin + local_queues[local, LOCAL_SIZE]
        else:
            begin = frontier_begin + size * local // num_local
            end = frontier_begin + size * (local + 1) // num_local
        found, edges, num_bytes = expand_by_levels(
            rows, state, thread, begin, end, state.finds[local], np.int64(0), level
        )
        if found < 0:
            control[words.FAILED] = 1
            found = 0
        local_queues[local, LOCAL_SIZE] = found
        local_queues[local, LOCAL_EDGES] = edges
        local_queues[local, LOCAL_BYTES] = num_bytes


@kernel
def merge_local_queues(state, thread):
    """Append local queues to the queue, each by the thread that is likely to expand it next."""
    num_local = state.control[words.NUM_LOCAL_QUEUES]
    for i in range(num_local):
        local = (thread + i) % num_local
        if _take_local_queue(state.control, local):
            _append_local_queue(state, local)


@kernel
def reserve_local_queues(state):
    """Sum up what the threads did, and place their finds in the queue.

    What is in two local queues is at most all that the largest one does not hold. When the
    queue may hold too many repetitions, it starts anew: earlier frontiers are not needed any more.
    """
    control, local_queues = state.control, state.local_queues
    largest = np.int64(0)
    total = np.int64(0)
    for local in range(control[words.NUM_LOCAL_QUEUES]):
        largest = max(largest, local_queues[local, LOCAL_SIZE])
        total += local_queues[local, LOCAL_SIZE]
        control[words.EDGES] += local_queues[local, LOCAL_EDGES]
        control[words.TAIL_BYTES] += local_queues[local, LOCAL_BYTES]
    if total > LOCAL_LIMIT:  # more than the degrees promised, and than the queue has room for
        control[words.FAILED] = 1
        return
    if control[words.FIRST_COUNTED] == 0 and total > largest:
        control[words.FIRST_COUNTED] = control[words.LEVEL]
    control[words.NUM_REPEATS] += total - largest
    if control[words.NUM_REPEATS] > LOCAL_LIMIT:
        mark_visited(state)
        control[words.QUEUE_END] = 0
        control[words.NUM_MARKED] = 0
        control[words.NUM_REPEATS] = total - largest
    control[words.FRONTIER_BEGIN] = control[words.QUEUE_END]
    for local in range(control[words.NUM_LOCAL_QUEUES]):
        local_queues[local, LOCAL_BEGIN] = control[words.QUEUE_END]
        control[words.QUEUE_END] += local_queues[local, LOCAL_SIZE]
    control[words.FRONTIER_END] = control[words.QUEUE_END]
    control[words.FRONTIER_SIZE] = total
    control[words.FORM] = IN_LOCAL_QUEUES


@kernel
def are_balanced(state):
    """Return whether the largest part of the frontier is at most an eighth above the mean."""
    num_local = state.control[words.NUM_LOCAL_QUEUES]
    largest = np.int64(0)
    for local in range(num_local):
        largest = max(largest, state.local_queues[local, LOCAL_SIZE])
    return 8 * largest * num_local <= 9 * state.control[words.FRONTIER_SIZE]

"""The frontier as a slice of the queue and as a bitmap, how many edges it has, and what is next."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import (
    apart,
    atomic_add,
    atomic_or,
    count_ones,
    inlined,
    kernel,
    trailing_zeros,
)
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.state import IN_BITMAP, MAX_DENSE, MAX_HUBS
from oocbfs.kernels.bitmaps import UNREACHED, mark_levels
from oocbfs.kernels.constants import NO_HEAD, ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.region import CURSOR, chunk_for, take_chunk
from oocbfs.kernels.rows import num_segments

_WORD_CHUNK = 512
_QUEUE_CHUNK = 4096
_FILL_CHUNK = 1 << 16


@kernel
def clear_results(state):
    """Set levels and parents to "not reached", and visited bits to none, where they are not."""
    levels, parents, control = state.levels, state.parents, state.control
    with_levels = control[words.LEVELS_CLEAR] == 0
    with_parents = parents.size != 0 and control[words.PARENTS_CLEAR] == 0
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    while True:
        first, end = take_chunk(control, CURSOR, _FILL_CHUNK, levels.size)
        if first == end:
            return
        if with_levels:
            levels[first:end] = UNREACHED
            visited[first >> 6 : (end + 63) >> 6] = ZERO
        if with_parents:
            for v in range(first, min(end, parents.size)):
                parents[v] = NO_HEAD


@kernel
def mark_visited(state):
    """Set the visited bits of all that entered the queue since they were last right."""
    control = state.control
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    for v in state.queue[control[words.NUM_MARKED] : control[words.QUEUE_END]]:
        visited[v >> 6] |= ONE << np.uint64(v & 63)
    control[words.NUM_MARKED] = control[words.QUEUE_END]


@kernel
def own_bitmap(control, thread):
    """Return the row of the bitmap that is a thread's own during a dense step.

    The frontier is in the queue then, and the next one is not yet made: two bitmaps are free.
    """
    if thread == 0:
        return control[words.NEXT_BITMAP]
    if thread == 1:
        return control[words.FRONTIER_BITMAP]
    return np.int64(thread + 1)


@inlined
def _note_hub(rows, state, q, u, hub_segments):
    """Note where in the queue a vertex is if threads should share its row and there is room."""
    if num_segments(rows, u) > hub_segments:
        number = atomic_add(state.control, words.NUM_HUBS, 1)
        if number < MAX_HUBS:
            state.hubs[number] = q


@inlined
def _least_hub_degree(control):
    """Return the degree below which no row has so many segments: five bytes hold any id."""
    return control[words.HUB_SEGMENTS] * SEGMENT_BYTES // 5


@apart
def sweep(rows, state):
    """Find what a dense step visited: the next frontier in both forms, levels, degrees and hubs."""
    degrees, bitmaps, queue, control = rows.degrees, state.bitmaps, state.queue, state.control
    next_frontier = bitmaps[control[words.NEXT_BITMAP]]
    visited = bitmaps[control[words.VISITED_BITMAP]]
    hub_segments, least_degree = control[words.HUB_SEGMENTS], _least_hub_degree(control)
    level = control[words.LEVEL]
    edges = 0
    chunk = chunk_for(visited.size, 64, _WORD_CHUNK)
    while True:
        first, end = take_chunk(control, CURSOR, chunk, visited.size)
        if first == end:
            break
        for thread in range(1, MAX_DENSE):
            if control[words.DENSE_THREADS] >> thread & 1:
                own = bitmaps[own_bitmap(control, thread)]
                for w in range(first, end):
                    next_frontier[w] |= own[w]
        found = 0
        for w in range(first, end):
            bits = next_frontier[w] & ~visited[w]
            next_frontier[w] = bits
            visited[w] |= bits
            found += count_ones(bits)
        if found == 0:
            continue
        q = atomic_add(control, words.QUEUE_END, found)
        for w in range(first, end):
            bits = next_frontier[w]
            if bits == ZERO:
                continue
            mark_levels(state.levels, state.deep_levels, level, w * 64, bits)
            while bits != ZERO:
                u = w * 64 + trailing_zeros(bits)
                degree = np.int64(degrees[u])
                edges += degree
                queue[q] = u
                if degree > least_degree:
                    _note_hub(rows, state, q, u, hub_segments)
                q += 1
                bits &= bits - ONE
    atomic_add(control, words.FRONTIER_EDGES, edges)


@kernel
def queue_to_bitmap(state):
    """Set the bits of the queued frontier in its cleared bitmap."""
    control = state.control
    queued = state.queue[control[words.FRONTIER_BEGIN] : control[words.FRONTIER_END]]
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    while True:
        first, end = take_chunk(control, CURSOR, _QUEUE_CHUNK, queued.size)
        if first == end:
            return
        for v in queued[first:end]:
            atomic_or(frontier, np.int64(v >> 6), ONE << np.uint64(v & 63))


@kernel
def bitmap_to_queue(state):
    """Append the vertices of the frontier's bitmap to the queue."""
    queue, control = state.queue, state.control
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    while True:
        first, end = take_chunk(control, CURSOR, _WORD_CHUNK, frontier.size)
        if first == end:
            return
        found = 0
        for w in range(first, end):
            found += count_ones(frontier[w])
        if found == 0:
            continue
        position = atomic_add(control, words.QUEUE_END, found)
        for w in range(first, end):
            bits = frontier[w]
            while bits != ZERO:
                queue[position] = w * 64 + trailing_zeros(bits)
                position += 1
                bits &= bits - ONE


@apart
def sum_degrees(rows, state):
    """Sum the frontier's degrees and note where its hubs are."""
    degrees, queue, control = rows.degrees, state.queue, state.control
    begin = control[words.FRONTIER_BEGIN]
    size = control[words.FRONTIER_END] - begin
    hub_segments, least_degree = control[words.HUB_SEGMENTS], _least_hub_degree(control)
    chunk = chunk_for(size, 256, _QUEUE_CHUNK)
    edges = 0
    while True:
        first, end = take_chunk(control, CURSOR, chunk, size)
        if first == end:
            break
        for q in range(begin + first, begin + end):
            u = np.int64(queue[q])
            degree = np.int64(degrees[u])
            edges += degree
            if degree > least_degree:
                _note_hub(rows, state, q, u, hub_segments)
    atomic_add(control, words.FRONTIER_EDGES, edges)


@kernel
def move_hubs_first(rows, state):
    """Move the noted hubs to the begin of the frontier and number their segments.

    Afterwards hubs[i] is the number of the first segment of the i-th hub, hubs[NUM_HUBS] their sum.
    """
    queue, control, hubs = state.queue, state.control, state.hubs
    num_hubs = min(control[words.NUM_HUBS], MAX_HUBS)
    control[words.NUM_HUBS] = num_hubs
    positions = hubs[:num_hubs]
    for i in range(1, num_hubs):
        position = positions[i]
        while i > 0 and positions[i - 1] > position:
            positions[i] = positions[i - 1]
            i -= 1
        positions[i] = position
    total = 0
    for i in range(num_hubs):
        first = control[words.FRONTIER_BEGIN] + i
        u = queue[positions[i]]
        queue[positions[i]] = queue[first]
        queue[first] = u
        hubs[i] = total
        total += num_segments(rows, np.int64(u))
    hubs[num_hubs] = total


@kernel
def begin_level(state):
    """Begin to count what a level does."""
    control = state.control
    control[words.LEVEL] = control[words.DEPTH] + 1
    control[words.LOCAL_QUEUES_TAKEN] = 0
    control[words.DENSE_THREADS] = 0
    control[words.FRONTIER_EDGES] = 0
    for word in (words.FOUND, words.EDGES, words.HEADS, words.TAIL_BYTES, words.TESTED):
        control[word] = 0


@kernel
def predict_bottom_up(control):
    """Predict from a bottom-up level how many edges another one would look at."""
    still_open = control[words.TESTED] - control[words.FOUND]
    edges_each = control[words.EDGES] / max(1, control[words.TESTED])
    control[words.BOTTOM_UP_EDGES] = np.int64(edges_each * still_open)


@kernel
def take_next_slice(control):
    """Make the next frontier, which was appended to the queue and is marked, the frontier."""
    control[words.FRONTIER_BEGIN] = control[words.FRONTIER_END]
    control[words.FRONTIER_END] = control[words.QUEUE_END]
    control[words.NUM_MARKED] = control[words.QUEUE_END]
    control[words.FRONTIER_SIZE] = control[words.FRONTIER_END] - control[words.FRONTIER_BEGIN]


@kernel
def take_next_bitmap(control):
    """Make the next frontier, which is a bitmap, the frontier."""
    bitmap = control[words.FRONTIER_BITMAP]
    control[words.FRONTIER_BITMAP] = control[words.NEXT_BITMAP]
    control[words.NEXT_BITMAP] = bitmap
    control[words.FRONTIER_SIZE] = control[words.FOUND]
    control[words.FORM] = IN_BITMAP

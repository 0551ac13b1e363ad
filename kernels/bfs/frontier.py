"""The frontier's two forms, a slice of the queue and a bitmap, and what it costs to expand it."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, atomic_or, count_ones, kernel, trailing_zeros
from oocbfs.kernels.bfs.state import (
    DENSE_MASK,
    EDGES,
    FOUND,
    FRONT,
    FRONTIER_END,
    HUB_LIMIT,
    LEVEL,
    MAX_DENSE,
    MAX_HUBS,
    NEXT,
    NUM_HUBS,
    QUEUE_BEGIN,
    QUEUE_END,
    VISITED,
)
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES
from oocbfs.kernels.region import CURSOR, ONE, ZERO, take_chunk
from oocbfs.kernels.rows import row_begin

_WORD_CHUNK = 512
_QUEUE_CHUNK = 4096
_FILL_CHUNK = 1 << 16


@kernel
def mark(values, first, bits, value):
    """Store value in values[first + b] for every bit b that is set."""
    if count_ones(bits) > 12:
        for b in range(64):
            if bits >> np.uint64(b) & ONE != ZERO:
                values[first + b] = value
    else:
        while bits != ZERO:
            values[first + trailing_zeros(bits)] = value
            bits &= bits - ONE


@kernel
def clear_results(state):
    """Set levels and parents to "not reached"."""
    levels, parents, control = state.levels, state.parents, state.control
    n = levels.size
    while True:
        first, end = take_chunk(control, CURSOR, _FILL_CHUNK, n)
        if first == end:
            return
        for v in range(first, end):
            levels[v] = -1
        if parents.size != 0:
            for v in range(first, end):
                parents[v] = NO_HEAD


@kernel
def own_bitmap(control, thread):
    """Give the row of the bitmap that is a thread's own during a dense step.

    The frontier is in the queue then, and the next one is not yet made: two bitmaps are free.
    """
    if thread == 0:
        return control[NEXT]
    if thread == 1:
        return control[FRONT]
    return np.int64(thread + 1)


@kernel
def sweep(rows, state):
    """Find what a dense step visited: bitmap of the next frontier, levels, count and degrees."""
    degrees, levels, bitmaps, control = rows.degrees, state.levels, state.bitmaps, state.control
    after, visited = bitmaps[control[NEXT]], bitmaps[control[VISITED]]
    level = np.int32(control[LEVEL])
    num_words = visited.size
    found = 0
    edges = 0
    while True:
        first, end = take_chunk(control, CURSOR, _WORD_CHUNK, num_words)
        if first == end:
            break
        for thread in range(1, MAX_DENSE):
            if control[DENSE_MASK] >> thread & 1:
                own = bitmaps[own_bitmap(control, thread)]
                for w in range(first, end):
                    after[w] |= own[w]
        for w in range(first, end):
            bits = after[w] & ~visited[w]
            after[w] = bits
            visited[w] |= bits
            if bits == ZERO:
                continue
            found += count_ones(bits)
            mark(levels, w * 64, bits, level)
            while bits != ZERO:
                edges += np.int64(degrees[w * 64 + trailing_zeros(bits)])
                bits &= bits - ONE
    atomic_add(control, FOUND, found)
    atomic_add(control, EDGES, edges)


@kernel
def queue_to_bitmap(state):
    """Set the bits of queue[QUEUE_BEGIN:FRONTIER_END] in the cleared frontier bitmap."""
    queue, control = state.queue, state.control
    front = state.bitmaps[control[FRONT]]
    frontier = queue[control[QUEUE_BEGIN] : control[FRONTIER_END]]
    while True:
        first, end = take_chunk(control, CURSOR, _QUEUE_CHUNK, frontier.size)
        if first == end:
            return
        for v in frontier[first:end]:
            atomic_or(front, np.int64(v >> 6), ONE << np.uint64(v & 63))


@kernel
def bitmap_to_queue(state):
    """Append the frontier bitmap's vertices to the queue."""
    queue, control = state.queue, state.control
    front = state.bitmaps[control[FRONT]]
    num_words = front.size
    while True:
        first, end = take_chunk(control, CURSOR, _WORD_CHUNK, num_words)
        if first == end:
            return
        found = 0
        for w in range(first, end):
            found += count_ones(front[w])
        if found == 0:
            continue
        place = atomic_add(control, QUEUE_END, found)
        for w in range(first, end):
            bits = front[w]
            while bits != ZERO:
                queue[place] = w * 64 + trailing_zeros(bits)
                place += 1
                bits &= bits - ONE


@kernel
def weigh(rows, state):
    """Sum the frontier's degrees and note where its hubs are, as many as there is room for."""
    degrees, queue, control, hubs = rows.degrees, state.queue, state.control, state.hubs
    begin = control[QUEUE_BEGIN]
    count = control[FRONTIER_END] - begin
    limit = control[HUB_LIMIT]
    edges = 0
    while True:
        first, end = take_chunk(control, CURSOR, _QUEUE_CHUNK, count)
        if first == end:
            break
        for q in range(begin + first, begin + end):
            u = np.int64(queue[q])
            degree = np.int64(degrees[u])
            edges += degree
            if degree * 5 > limit and row_begin(rows, u + 1) - row_begin(rows, u) > limit:
                place = atomic_add(control, NUM_HUBS, 1)
                if place < MAX_HUBS:
                    hubs[place] = q
    atomic_add(control, EDGES, edges)


@kernel
def lead_with_hubs(rows, state):
    """Move the noted hubs to the front of the frontier and number their segments.

    Afterwards hubs[i] is the number of the first segment of the i-th hub, hubs[NUM_HUBS] their sum.
    """
    queue, control, hubs = state.queue, state.control, state.hubs
    num_hubs = min(control[NUM_HUBS], MAX_HUBS)
    control[NUM_HUBS] = num_hubs
    places = hubs[:num_hubs]
    for i in range(1, num_hubs):
        place = places[i]
        while i > 0 and places[i - 1] > place:
            places[i] = places[i - 1]
            i -= 1
        places[i] = place
    total = 0
    for i in range(num_hubs):
        front = control[QUEUE_BEGIN] + i
        u = queue[places[i]]
        queue[places[i]] = queue[front]
        queue[front] = u
        num_bytes = row_begin(rows, np.int64(u) + 1) - row_begin(rows, np.int64(u))
        places[i] = total
        total += (num_bytes + SEGMENT_BYTES - 1) // SEGMENT_BYTES
    hubs[num_hubs] = total

"""Top-down steps for large frontiers: their rows reach for vertices that nobody visited.

A thread gathers the ids of many rows in its scratch before it looks at the bitmap, so that the
decoder never waits for the memory. What happens to the gathered ids is the *mode*:

- SPARSE: several threads claim ids on the visited bitmap: a plain test first, an atomic only where it
  failed.
- DENSE: each thread sets bits in a bitmap of its own, no atomics; a sweep over the words
  (bfs_frontier) then finds what is new and writes levels and sums degrees in the order of the
  memory, which pays when much of the graph is found at once. Two threads that found the same vertex
  both write its parent: each is a valid one, and one of them stays.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, atomic_or, kernel
from oocbfs.kernels.bfs.frontier import own_bitmap
from oocbfs.kernels.bfs.state import (
    BYTES,
    DENSE_MASK,
    EDGES,
    FAILED,
    FRONTIER_END,
    LEVEL,
    MAX_DENSE,
    MODE,
    NUM_HUBS,
    QUEUE_BEGIN,
    QUEUE_END,
    VISITED,
)
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.region import CURSOR, HUB_CURSOR, ONE, ZERO, take_chunk
from oocbfs.kernels.rows import BATCH, FULL, NOT_BEGUN, gather_rows, gather_segment, row_begin

SPARSE, DENSE = range(2)
# How much a thread takes at a time.
_HUB_CHUNK = 4
_QUEUE_CHUNK = 64


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
def _visit(state, bitmap, ids, owners, count):
    """Claim the gathered ids in the way of the mode."""
    if state.control[MODE] == SPARSE:
        _visit_sparse(state, bitmap, ids, owners, count)
    else:
        _visit_dense(state, bitmap, ids, owners, count)


@kernel
def _expand_hubs(rows, state, visited, ids, owners):
    """Take segments of the hubs at the front of the frontier until none are left."""
    control, hubs = state.control, state.hubs
    frontier = state.queue[control[QUEUE_BEGIN] :]
    total = hubs[control[NUM_HUBS]]
    hub = 0
    edges = 0
    num_bytes = 0
    while True:
        first, end = take_chunk(control, HUB_CURSOR, _HUB_CHUNK, total)
        if first == end:
            return edges, num_bytes
        for segment in range(first, end):
            while segment >= hubs[hub + 1]:
                hub += 1
            u = np.int64(frontier[hub])
            count = np.int64(0)
            if segment == hubs[hub]:
                head = rows.heads[u]
                ids[0] = head
                count = np.int64(head < rows.heads.size)
            begin = row_begin(rows, u) + (segment - hubs[hub]) * SEGMENT_BYTES
            segment_end = min(begin + SEGMENT_BYTES, row_begin(rows, u + 1))
            count = gather_segment(ids, count, rows.tails, begin, segment_end, rows.heads.size)
            if count < 0:
                control[FAILED] = 1
                return edges, num_bytes
            if state.parents.size != 0:
                for i in range(count):
                    owners[i] = u
            _visit(state, visited, ids, owners, count)
            edges += count
            num_bytes += segment_end - begin


@kernel
def top_down(rows, state, thread):
    """Expand the frontier with others: first the hubs by segment, then the other rows in chunks."""
    control = state.control
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    with_parents = state.parents.size != 0
    visited = state.bitmaps[control[VISITED]]
    if control[MODE] == DENSE:
        if thread >= MAX_DENSE:
            return
        own = state.bitmaps[own_bitmap(control, thread)]
        for w in range(own.size):
            own[w] = visited[w]
        visited = own
        atomic_add(control, DENSE_MASK, np.int64(1) << thread)
    edges, num_bytes = _expand_hubs(rows, state, visited, ids, owners)
    frontier = state.queue[control[QUEUE_BEGIN] + control[NUM_HUBS] : control[FRONTIER_END]]
    count = np.int64(0)
    while control[FAILED] == 0:
        q, end = take_chunk(control, CURSOR, _QUEUE_CHUNK, frontier.size)
        if q == end:
            break
        at = np.int64(NOT_BEGUN)
        while q < end:
            q, at, count, more = gather_rows(
                rows, frontier, q, at, end, ids, owners, count, with_parents
            )
            num_bytes += more
            if count < 0:
                control[FAILED] = 1
                count = np.int64(0)
                break
            if count >= FULL:
                _visit(state, visited, ids, owners, count)
                edges += count
                count = np.int64(0)
    _visit(state, visited, ids, owners, count)
    atomic_add(control, EDGES, edges + count)
    atomic_add(control, BYTES, num_bytes)

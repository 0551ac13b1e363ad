"""Top-down steps for large frontiers: their rows reach for vertices that are not visited.

A thread gathers the ids of many rows in its scratch before it looks at a bitmap, so that the
decoder never waits for the memory. Hubs come first, and threads share them by segment: Merrill,
Garland and Grimshaw (PPoPP 2012) divide long rows among threads likewise. What happens to
gathered ids differs:

- sparse: threads claim ids on the visited bitmap: a plain test first, an atomic only where it
  failed (Agarwal, Petrini, Pasetto and Bader, SC 2010).
- dense: each thread sets bits in a bitmap of its own, without atomics; a sweep over the words
  (frontier.py) then finds what is new and writes levels and sums degrees in the order of the
  memory, which pays when much of the graph is found at once. Two threads that found the same vertex
  both write its parent: each is a valid one, and one of them stays.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import apart, atomic_add, atomic_or, kernel
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.frontier import own_bitmap
from oocbfs.kernels.bfs.state import MAX_DENSE
from oocbfs.kernels.bitmaps import DEEP, keep_unset
from oocbfs.kernels.constants import ONE, ZERO
from oocbfs.kernels.gather import (
    BATCH,
    FULL,
    NOT_BEGUN,
    fetch_first_rows,
    gather_row_segment,
    gather_rows,
)
from oocbfs.kernels.region import CURSOR, HUB_CURSOR, chunk_for, take_chunk

# How much a thread takes at a time.
_HUB_CHUNK = 4
_LEAST_ROWS, _MOST_ROWS = 64, 1024


@kernel
def _claim(state, visited, ids, owners, count):
    """Claim ids while other threads do the same and level them; move them to the begin of ids."""
    levels, parents = state.levels, state.parents
    level = state.control[words.LEVEL]
    with_parents = parents.size != 0
    unseen = keep_unset(visited, ids, owners, count, with_parents)
    claimed = np.int64(0)
    for i in range(unseen):
        v = ids[i]
        bit = ONE << np.uint64(v & 63)
        ids[claimed] = v
        if with_parents:
            owners[claimed] = owners[i]
        if atomic_or(visited, np.int64(v >> 6), bit) & bit == ZERO:
            claimed += 1
    # An atomic waits for all earlier writes, so those that miss the cache come after the last one.
    short = np.uint8(min(level, DEEP))
    for i in range(claimed):
        levels[ids[i]] = short
    if level >= DEEP:
        for i in range(claimed):
            state.deep_levels[ids[i]] = level
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
        position = atomic_add(state.control, words.QUEUE_END, claimed)
        for i in range(claimed):
            queue[position + i] = ids[i]


@kernel
def _visit_dense(state, own, ids, owners, count):
    """Set the bits of ids in the thread's own bitmap."""
    parents = state.parents
    if parents.size == 0:
        for i in range(keep_unset(own, ids, owners, count, False)):
            v = ids[i]
            own[v >> 6] |= ONE << np.uint64(v & 63)
    else:
        for i in range(count):
            v = ids[i]
            bit = ONE << np.uint64(v & 63)
            if own[v >> 6] & bit == ZERO:
                own[v >> 6] |= bit
                parents[v] = owners[i]


def _make_expansion(visit):
    """Make the expansion of a frontier whose gathered ids go to ``visit``."""

    @kernel
    def expand_hubs(rows, state, bitmap, ids, owners):
        """Take segments of the hubs, which come first in the frontier, until none are left."""
        control, hubs = state.control, state.hubs
        frontier = state.queue[control[words.FRONTIER_BEGIN] :]
        total = hubs[control[words.NUM_HUBS]]
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
                count, more_bytes = gather_row_segment(rows, u, segment - hubs[hub], ids)
                if count < 0:
                    control[words.FAILED] = 1
                    return edges, num_bytes
                if state.parents.size != 0:
                    for i in range(count):
                        owners[i] = u
                visit(state, bitmap, ids, owners, count)
                edges += count
                num_bytes += more_bytes

    @kernel
    def expand(rows, state, bitmap, thread):
        """Expand the frontier with others: first the hubs by segment, then other rows in chunks."""
        control = state.control
        ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
        with_parents = state.parents.size != 0
        edges, num_bytes = expand_hubs(rows, state, bitmap, ids, owners)
        begin = control[words.FRONTIER_BEGIN] + control[words.NUM_HUBS]
        frontier = state.queue[begin : control[words.FRONTIER_END]]
        chunk = chunk_for(frontier.size, _LEAST_ROWS, _MOST_ROWS)
        count = np.int64(0)
        while control[words.FAILED] == 0:
            q, end = take_chunk(control, CURSOR, chunk, frontier.size)
            if q == end:
                break
            fetch_first_rows(rows, frontier, q, end)
            offset = np.int64(NOT_BEGUN)
            while q < end:
                q, offset, count, more_bytes = gather_rows(
                    rows, frontier, q, offset, end, ids, owners, count, with_parents
                )
                num_bytes += more_bytes
                if count < 0:
                    control[words.FAILED] = 1
                    count = np.int64(0)
                    break
                if count >= FULL:
                    visit(state, bitmap, ids, owners, count)
                    edges += count
                    count = np.int64(0)
        visit(state, bitmap, ids, owners, count)
        atomic_add(control, words.EDGES, edges + count)
        atomic_add(control, words.TAIL_BYTES, num_bytes)

    return expand


_expand_sparse = _make_expansion(_visit_sparse)
_expand_dense = _make_expansion(_visit_dense)


@apart
def top_down_sparse(rows, state, thread):
    """Expand the frontier; what is found goes into the queue."""
    visited = state.bitmaps[state.control[words.VISITED_BITMAP]]
    _expand_sparse(rows, state, visited, thread)


@apart
def top_down_dense(rows, state, thread):
    """Expand the frontier; what is found goes into the thread's own bitmap."""
    control, bitmaps = state.control, state.bitmaps
    if thread < MAX_DENSE:
        visited, own = bitmaps[control[words.VISITED_BITMAP]], bitmaps[own_bitmap(control, thread)]
        for w in range(own.size):
            own[w] = visited[w]
        atomic_add(control, words.DENSE_THREADS, np.int64(1) << thread)
        _expand_dense(rows, state, own, thread)

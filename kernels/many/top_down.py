"""Top-down steps: the rows of the frontier hand their words to their neighbours.

Only sources that go top-down are handed on. A dense step marks neighbours, each thread in a set
of its own, and ``bottom_up`` commits them. A sparse one is the leader's; it lists what it marks
and commits it itself.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, inlined, kernel, prefetch, trailing_zeros
from oocbfs.kernels.constants import ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.gather import gather_segment
from oocbfs.kernels.many import state as words
from oocbfs.kernels.many.state import CHUNK, FIRST_OWN, SEEN, TOP_DOWN_SOURCES, frontiers, other_row
from oocbfs.kernels.region import CURSOR, take_chunk
from oocbfs.kernels.rows import row_begin

_LIST_CHUNK = 16
# How many rows ahead a tail is asked for; where it begins twice as far.
_AHEAD = 6


@kernel
def list_frontier(state):
    """List the vertices that have something to hand on."""
    control = state.control
    frontier, vertices = frontiers(state)[0], state.lists[control[words.LIST]]
    top_down = state.masks[TOP_DOWN_SOURCES]
    while True:
        begin, end = take_chunk(control, CURSOR, CHUNK, frontier.size)
        if begin == end:
            return
        count = 0
        for v in range(begin, end):
            count += np.int64(frontier[v] & top_down != ZERO)
        if count == 0:
            continue
        position = atomic_add(control, words.LIST_END, count)
        for v in range(begin, end):
            if frontier[v] & top_down != ZERO:
                vertices[position] = v
                position += 1


@inlined
def _mark(marks, listed, num_listed, v, word, sparse):
    """Mark a vertex and list it if that is new; return how many are listed."""
    old = marks[v]
    marks[v] = old | word
    if sparse:
        listed[num_listed] = v
        num_listed += np.int64(old == ZERO)
    return num_listed


@kernel
def _top_down_rows(rows, state, marks, listed, sparse, thread, begin, end):
    """Go top-down along the rows of the list's vertices begin … end-1.

    Returns how many vertices are listed (-1 if a tail is malformed), the edges, and the bytes.
    """
    heads, tails = rows.heads, rows.tails
    frontier, vertices = frontiers(state)[0], state.lists[state.control[words.LIST]]
    top_down = state.masks[TOP_DOWN_SOURCES]
    ids = state.ids[thread]
    n = heads.size
    num_listed = np.int64(0)
    edges = 0
    num_bytes = 0
    for i in range(begin, end):
        ahead = np.int64(vertices[min(i + 2 * _AHEAD, end - 1)])
        prefetch(frontier, ahead)
        prefetch(rows.starts, ahead)
        prefetch(heads, ahead)
        prefetch(tails, row_begin(rows, np.int64(vertices[min(i + _AHEAD, end - 1)])))
        u = np.int64(vertices[i])
        word = frontier[u] & top_down
        head = heads[u]
        if word == ZERO or head >= n:
            continue
        num_listed = _mark(marks, listed, num_listed, head, word, sparse)
        edges += 1
        offset = row_begin(rows, u)
        row_end = row_begin(rows, u + 1)
        num_bytes += row_end - offset
        while offset < row_end:
            segment_end = min(offset + SEGMENT_BYTES, row_end)
            count = gather_segment(ids, 0, tails, offset, segment_end, n)
            if count < 0:
                return count, edges, num_bytes
            for k in range(count):
                num_listed = _mark(marks, listed, num_listed, ids[k], word, sparse)
            edges += count
            offset = segment_end
    return num_listed, edges, num_bytes


@kernel
def top_down(rows, state, thread):
    """Mark neighbours in this thread's own set; threads that have none do nothing."""
    control, sets = state.control, state.sets
    own = np.int64(FIRST_OWN + thread - 1)
    if thread == 0:
        own = other_row(control[words.FRONTIER_ROW])
    if own >= sets.shape[0]:
        return
    edges = 0
    num_bytes = 0
    while control[words.FAILED] == 0:
        begin, end = take_chunk(control, CURSOR, _LIST_CHUNK, control[words.LIST_END])
        if begin == end:
            break
        outcome, more_edges, more_bytes = _top_down_rows(
            rows, state, sets[own], state.lists[0], False, thread, begin, end
        )
        edges += more_edges
        num_bytes += more_bytes
        if outcome < 0:
            control[words.FAILED] = 1
    atomic_add(control, words.EDGES, edges)
    atomic_add(control, words.TAIL_BYTES, num_bytes)


@kernel
def top_down_sparse(rows, state):
    """Go top-down along the whole list on the leading thread; list, commit and count the marked."""
    control, seen = state.control, state.sets[SEEN]
    frontier, next_frontier = frontiers(state)
    vertices, listed = state.lists[control[words.LIST]], state.lists[1 - control[words.LIST]]
    planes, depth = state.planes, control[words.DEPTH]
    counts, degree_sums = state.counts[0], state.degree_sums[0]
    end = control[words.LIST_END]
    num_listed, edges, num_bytes = _top_down_rows(
        rows, state, next_frontier, listed, True, 0, 0, end
    )
    if num_listed < 0:
        control[words.FAILED] = 1
        return
    for i in range(end):
        frontier[vertices[i]] = ZERO
    left = 0
    for i in range(num_listed):
        v = np.int64(listed[i])
        fresh = next_frontier[v] & ~seen[v]
        next_frontier[v] = fresh
        seen[v] |= fresh
        listed[left] = v
        left += np.int64(fresh != ZERO)
        for plane in range(planes.shape[0]):
            if depth + 2 >> plane & 1:
                planes[plane, v] |= fresh
        degree = np.float64(rows.degrees[v])
        while fresh != ZERO:
            b = trailing_zeros(fresh)
            counts[b] += 1
            degree_sums[b] += degree
            fresh &= fresh - ONE
    control[words.LIST] = 1 - control[words.LIST]
    control[words.LIST_END] = left
    control[words.FOUND] = left
    control[words.EDGES] = edges
    control[words.TAIL_BYTES] = num_bytes

"""Top-down steps: the rows of the frontier hand their words to their neighbours.

Only sources that go top-down are handed on. A dense push marks finds, each thread those of its own,
and ``pull`` settles them. A sparse one is the leader's alone; it lists what it marks and settles it
itself.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, inlined, kernel, prefetch, trailing_zeros
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.many.state import (
    BYTES,
    CHUNK,
    DEPTH,
    EDGES,
    FAILED,
    FOUND,
    FRONT,
    LIST,
    LIST_END,
    PUSHING,
)
from oocbfs.kernels.region import CURSOR, ONE, ZERO, take_chunk
from oocbfs.kernels.rows import gather_segment, row_begin

_LIST_CHUNK = 16
_AHEAD = 6


@kernel
def list_frontier(state):
    """List the vertices that have something to push."""
    control = state.control
    front, vertices = state.words[control[FRONT]], state.lists[control[LIST]]
    pushing = state.masks[PUSHING]
    n = front.size
    while True:
        begin, end = take_chunk(control, CURSOR, CHUNK, n)
        if begin == end:
            return
        count = 0
        for v in range(begin, end):
            count += np.int64(front[v] & pushing != ZERO)
        if count == 0:
            continue
        place = atomic_add(control, LIST_END, count)
        for v in range(begin, end):
            if front[v] & pushing != ZERO:
                vertices[place] = v
                place += 1


@inlined
def _mark(finds, listed, num_listed, v, word, sparse):
    """Mark a vertex and list it if that is new; give how many are listed."""
    old = finds[v]
    finds[v] = old | word
    if sparse:
        listed[num_listed] = v
        num_listed += np.int64(old == ZERO)
    return num_listed


@kernel
def _push_rows(rows, state, finds, listed, sparse, thread, begin, end):
    """Push along the rows of the list's vertices begin … end-1.

    Gives how many vertices are listed (-1 if a tail is malformed), the edges, and the bytes.
    """
    control, heads, tails = state.control, rows.heads, rows.tails
    front, vertices = state.words[control[FRONT]], state.lists[control[LIST]]
    pushing = state.masks[PUSHING]
    ids = state.ids[thread]
    n = heads.size
    num_listed = np.int64(0)
    edges = 0
    num_bytes = 0
    for i in range(begin, end):
        ahead = np.int64(vertices[min(i + 2 * _AHEAD, end - 1)])
        prefetch(front, ahead)
        prefetch(rows.starts, ahead)
        prefetch(heads, ahead)
        prefetch(tails, row_begin(rows, np.int64(vertices[min(i + _AHEAD, end - 1)])))
        u = np.int64(vertices[i])
        word = front[u] & pushing
        head = heads[u]
        if word == ZERO or head >= n:
            continue
        num_listed = _mark(finds, listed, num_listed, head, word, sparse)
        edges += 1
        at = row_begin(rows, u)
        row_end = row_begin(rows, u + 1)
        num_bytes += row_end - at
        while at < row_end:
            segment_end = min(at + SEGMENT_BYTES, row_end)
            count = gather_segment(ids, 0, tails, at, segment_end, n)
            if count < 0:
                return count, edges, num_bytes
            for k in range(count):
                num_listed = _mark(finds, listed, num_listed, ids[k], word, sparse)
            edges += count
            at = segment_end
    return num_listed, edges, num_bytes


@kernel
def push(rows, state, thread):
    """Mark the finds of this thread; threads for which there are none do nothing."""
    control, words = state.control, state.words
    own = 3 - control[FRONT] if thread == 0 else np.int64(thread + 2)
    if own >= words.shape[0]:
        return
    edges = 0
    num_bytes = 0
    while control[FAILED] == 0:
        begin, end = take_chunk(control, CURSOR, _LIST_CHUNK, control[LIST_END])
        if begin == end:
            break
        outcome, more, more_bytes = _push_rows(
            rows, state, words[own], state.lists[0], False, thread, begin, end
        )
        edges += more
        num_bytes += more_bytes
        if outcome < 0:
            control[FAILED] = 1
    atomic_add(control, EDGES, edges)
    atomic_add(control, BYTES, num_bytes)


@kernel
def push_sparse(rows, state):
    """Push along the whole list on the leading thread, list what is marked, settle and count it."""
    control, seen = state.control, state.words[0]
    front, finds = state.words[control[FRONT]], state.words[3 - control[FRONT]]
    vertices, listed = state.lists[control[LIST]], state.lists[1 - control[LIST]]
    planes, depth = state.planes, control[DEPTH]
    counts, weights = state.counts[0], state.weights[0]
    end = control[LIST_END]
    num_listed, edges, num_bytes = _push_rows(rows, state, finds, listed, True, 0, 0, end)
    if num_listed < 0:
        control[FAILED] = 1
        return
    for i in range(end):
        front[vertices[i]] = ZERO
    left = 0
    for i in range(num_listed):
        v = np.int64(listed[i])
        fresh = finds[v] & ~seen[v]
        finds[v] = fresh
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
            weights[b] += degree
            fresh &= fresh - ONE
    control[LIST] = 1 - control[LIST]
    control[LIST_END] = left
    control[FOUND] = left
    control[EDGES] = edges
    control[BYTES] = num_bytes

"""The compiled level loop for many sources: which of them go top-down, which bottom-up, who helps.

Every source keeps its own direction. While few of its vertices are in the frontier, asking for it
bottom-up would read whole rows in vain, so it pushes; once its frontier's edges exceed its unexplored
ones / alpha, it is asked for by every vertex that has not seen it, together with all others that got
that far. When the whole frontier is small, everything is pushed and nothing touches all vertices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocbfs.kernels.atomics import kernel, nanoseconds
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.many.pull import pull
from oocbfs.kernels.many.push import list_frontier, push, push_sparse
from oocbfs.kernels.many.state import (
    ALL,
    BLOCK,
    BYTES,
    CHUNK,
    CLEAN,
    DEPTH,
    DRAINED,
    EDGES,
    FAILED,
    FOUND,
    FRONT,
    HEADS,
    LIST_END,
    LISTED,
    MAX_RECORDS,
    PULLING,
    PUSHED,
    PUSHING,
)
from oocbfs.kernels.region import (
    CURSOR,
    ONE,
    SLICE_NANOSECONDS,
    TASK,
    ZERO,
    make_region,
    take_chunk,
)

_BEGIN, _CLEAR, _LIST, _PUSH, _PULL = range(5)
FINISHED, PAUSED, FULL, TOO_DEEP = range(4)


class Options(NamedTuple):
    """How to traverse: a frontier with at most sparse_edges edges is pushed by the leader alone.

    The traversal is given up after max_levels.
    """

    threads: int
    alpha: float
    sparse_edges: int
    max_levels: int
    clock: int


@kernel
def _begin(rows_in, state):
    """Take the vertices for seen that no edge leads to."""
    control, seen, heads = state.control, state.words[0], rows_in.heads
    n = heads.size
    while True:
        begin, end = take_chunk(control, CURSOR, CHUNK, n)
        if begin == end:
            return
        for first in range(begin, end, BLOCK):
            stop = min(first + BLOCK, n)
            idle = True
            for v in range(first, stop):
                idle &= heads[v] == NO_HEAD
            state.idle[first // BLOCK] = idle
            state.common[first // BLOCK] = ALL if idle else ZERO
            if not idle:
                for v in range(first, stop):
                    seen[v] = ALL if heads[v] == NO_HEAD else ZERO


@kernel
def _clear(state):
    """Clear the finds."""
    control = state.control
    finds = state.words[3 - control[FRONT]]
    n = finds.size
    while True:
        begin, end = take_chunk(control, CURSOR, CHUNK, n)
        if begin == end:
            return
        for first in range(begin, end, BLOCK):
            if not state.idle[first // BLOCK]:
                finds[first : min(first + BLOCK, n)] = ZERO


@kernel
def _work(rows_out, rows_in, state, thread):
    """Do one thread's part of the open region."""
    task = state.control[TASK]
    if task == _PULL:
        pull(rows_out, rows_in, state, thread)
    elif task == _PUSH:
        push(rows_out, state, thread)
    elif task == _LIST:
        list_frontier(state)
    elif task == _CLEAR:
        _clear(state)
    else:
        _begin(rows_in, state)


_region, worker_loop = make_region(_work)


@kernel
def _choose(state, row, options):
    """Record the frontier's sizes and choose each source's direction; give the edges of all sources."""
    masks, counts, weights, sizes = state.masks, state.counts, state.weights, state.sizes
    active = ZERO
    rising = ZERO
    total = 0.0
    for b in range(64):
        sizes[row, b] = counts[:, b].sum()
        if sizes[row, b] == 0:
            continue
        weight = weights[:, b].sum()
        total += weight
        active |= ONE << np.uint64(b)
        # Weights are estimates: what is unexplored is at least the frontier itself.
        if weight * options.alpha >= max(weight, state.unexplored[b]):
            rising |= ONE << np.uint64(b)
        state.unexplored[b] -= weight
    if total <= options.sparse_edges:
        rising = ZERO
    masks[PUSHING] = active & ~rising
    masks[PULLING] = rising
    counts[:] = 0
    weights[:] = 0
    return total


@kernel
def _expand_densely(rows_out, rows_in, state, options):
    """Push what is to be pushed, then pull and settle."""
    control = state.control
    control[PUSHED] = state.masks[PUSHING] != ZERO
    if control[PUSHED]:
        if not control[CLEAN]:
            _region(rows_out, rows_in, state, _CLEAR, options.threads > 1)
        if not control[LISTED]:
            control[LIST_END] = 0
            _region(rows_out, rows_in, state, _LIST, options.threads > 1)
        _region(rows_out, rows_in, state, _PUSH, options.threads > 1)
    _region(rows_out, rows_in, state, _PULL, options.threads > 1)
    control[CLEAN] = 0
    control[LISTED] = 0


@kernel
def _expand_sparsely(rows_out, rows_in, state, options):
    """Push the whole frontier from its list."""
    control = state.control
    if not control[CLEAN]:
        _region(rows_out, rows_in, state, _CLEAR, options.threads > 1)
    if not control[LISTED]:
        control[LIST_END] = 0
        _region(rows_out, rows_in, state, _LIST, options.threads > 1)
    push_sparse(rows_out, state)
    control[CLEAN] = 1
    control[LISTED] = 1


@kernel
def lead(rows_out, rows_in, state, options):
    """Run levels until the traversal is over, the time slice is, or a result has no more room."""
    control, records, masks = state.control, state.records, state.masks
    started = nanoseconds(options.clock)
    pause = started + SLICE_NANOSECONDS
    if control[DEPTH] < 0:
        _region(rows_out, rows_in, state, _BEGIN, options.threads > 1)
        _visit_sources(rows_out, state)
    while True:
        row = control[DEPTH] - control[DRAINED]
        no_plane = state.planes.size != 0 and control[DEPTH] + 2 >> state.planes.shape[0] != 0
        if row == MAX_RECORDS or no_plane:
            return FULL
        if started > pause:
            return PAUSED
        control[FOUND] = 0
        control[EDGES] = 0
        control[HEADS] = 0
        control[BYTES] = 0
        total = _choose(state, row, options)
        if masks[PUSHING] | masks[PULLING] == ZERO or control[FAILED]:
            return FINISHED
        if control[DEPTH] == options.max_levels:
            return TOO_DEEP
        if total <= options.sparse_edges:
            _expand_sparsely(rows_out, rows_in, state, options)
        else:
            _expand_densely(rows_out, rows_in, state, options)
        control[FRONT] = 3 - control[FRONT]
        control[DEPTH] += 1
        ended = nanoseconds(options.clock)
        records[row, 0] = np.int64(masks[PUSHING])
        records[row, 1] = np.int64(masks[PULLING])
        records[row, 2] = np.int64(total)
        records[row, 3] = control[EDGES]
        records[row, 4] = control[HEADS]
        records[row, 5] = control[BYTES]
        records[row, 6] = ended - started
        started = ended


@kernel
def _visit_sources(rows_out, state):
    """Put the sources, which are the list, into the frontier."""
    control, sources = state.control, state.lists[0]
    front = state.words[control[FRONT]]
    place = 0
    for b in range(control[LIST_END]):
        u = np.int64(sources[b])
        bit = ONE << np.uint64(b)
        state.words[0, u] |= bit
        if state.planes.size:
            state.planes[0, u] |= bit
        state.counts[0, b] = 1
        state.weights[0, b] = rows_out.degrees[u]
        state.unexplored[b] = rows_out.num_edges
        # A source that comes twice has two bits, but one place in the list.
        sources[place] = u
        place += np.int64(front[u] == ZERO)
        front[u] |= bit
    control[LIST_END] = place
    control[LISTED] = 1
    control[CLEAN] = 1
    control[DEPTH] = 0

"""The compiled level loop for many sources: which of them go top-down, and which bottom-up.

Every source keeps its own direction. While few of its vertices are in the frontier, asking for it
bottom-up would read whole rows in vain, so it goes top-down; once its frontier's edges exceed its
unexplored ones / alpha (Beamer's rule), it is asked for by every vertex that has not seen it,
together with all others that got that far. When the whole frontier is small, all goes top-down
and nothing touches all vertices.

    level    the frontier's edges   who works    next frontier
    -------  ---------------------  -----------  -----------------------------------------------
    sparse   at most sparse_edges   the leader   listed and committed at once
    dense    more                   all          top-down into sets of the threads, which are
                                                 collected, then bottom-up, by blocks; not listed
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import kernel, nanoseconds
from oocbfs.kernels.constants import ALL_ONES, NO_HEAD, ONE, ZERO
from oocbfs.kernels.many import state as words
from oocbfs.kernels.many.bottom_up import bottom_up
from oocbfs.kernels.many.state import (
    BEGIN,
    BLOCK,
    BOTTOM_UP,
    BOTTOM_UP_SOURCES,
    CHUNK,
    CLEAR,
    LIST_FRONTIER,
    MAX_RECORDS,
    SEEN,
    TOP_DOWN,
    TOP_DOWN_SOURCES,
    WIDTH,
    frontiers,
    other_row,
)
from oocbfs.kernels.many.top_down import list_frontier, top_down, top_down_sparse
from oocbfs.kernels.region import CURSOR, SLICE_NANOSECONDS, TASK, make_region, take_chunk

FINISHED, PAUSED, NO_ROOM, TOO_DEEP = range(4)


@kernel
def _work(rows_out, rows_in, state, thread):
    """Do one thread's part of the open region."""
    task = state.control[TASK]
    if task == BOTTOM_UP:
        bottom_up(rows_out, rows_in, state, thread)
    elif task == TOP_DOWN:
        top_down(rows_out, state, thread)
    elif task == LIST_FRONTIER:
        list_frontier(state)
    elif task == CLEAR:
        _clear(state)
    else:
        _begin(rows_in, state)


_run_region, worker_loop = make_region(_work)


@kernel
def lead(rows_out, rows_in, state, options):
    """Run levels until the search is over, the time slice is, or a result has no more room."""
    control, masks = state.control, state.masks
    started = nanoseconds(options.clock)
    pause = started + SLICE_NANOSECONDS
    if control[words.DEPTH] < 0:
        _run_region(rows_out, rows_in, state, BEGIN, options.threads > 1)
        _visit_sources(rows_out, state)
    while True:
        row = control[words.DEPTH] - control[words.NUM_DRAINED]
        if row == MAX_RECORDS or _lacks_plane(state):
            return NO_ROOM
        if started > pause:
            return PAUSED
        for word in (words.FOUND, words.EDGES, words.HEADS, words.TAIL_BYTES):
            control[word] = 0
        edges = _choose(state, row, options)
        if masks[TOP_DOWN_SOURCES] | masks[BOTTOM_UP_SOURCES] == ZERO or control[words.FAILED]:
            return FINISHED
        if control[words.DEPTH] == options.max_levels:
            return TOO_DEEP
        if edges <= options.sparse_edges:
            _expand_sparsely(rows_out, rows_in, state, options)
        else:
            _expand_densely(rows_out, rows_in, state, options)
        control[words.FRONTIER_ROW] = other_row(control[words.FRONTIER_ROW])
        control[words.DEPTH] += 1
        ended = nanoseconds(options.clock)
        record = state.records[row]
        record.top_down = masks[TOP_DOWN_SOURCES]
        record.bottom_up = masks[BOTTOM_UP_SOURCES]
        record.degree_sum = np.int64(edges)
        record.edges = control[words.EDGES]
        record.heads = control[words.HEADS]
        record.tail_bytes = control[words.TAIL_BYTES]
        record.seconds = (ended - started) * 1e-9
        started = ended


@kernel
def _lacks_plane(state):
    """Return whether the next level plus 1 has more bits than there are planes."""
    num_planes = state.planes.shape[0]
    return num_planes != 0 and state.control[words.DEPTH] + 2 >> num_planes != 0


@kernel
def _begin(rows_in, state):
    """Take the vertices that no edge leads to for seen."""
    seen, heads = state.sets[SEEN], rows_in.heads
    while True:
        begin, end = take_chunk(state.control, CURSOR, CHUNK, heads.size)
        if begin == end:
            return
        for first in range(begin, end, BLOCK):
            block_end = min(first + BLOCK, end)
            idle = True
            for v in range(first, block_end):
                idle &= heads[v] == NO_HEAD
            state.idle[first // BLOCK] = idle
            state.common[first // BLOCK] = ALL_ONES if idle else ZERO
            if not idle:
                for v in range(first, block_end):
                    seen[v] = ALL_ONES if heads[v] == NO_HEAD else ZERO


@kernel
def _visit_sources(rows_out, state):
    """Put the sources, which are the list, into the frontier."""
    control, sources = state.control, state.lists[0]
    frontier = state.sets[control[words.FRONTIER_ROW]]
    num_listed = 0
    for b in range(control[words.LIST_END]):
        u = np.int64(sources[b])
        bit = ONE << np.uint64(b)
        state.sets[SEEN, u] |= bit
        if state.planes.size:
            state.planes[0, u] |= bit
        state.counts[0, b] = 1
        state.degree_sums[0, b] = rows_out.degrees[u]
        state.unexplored[b] = rows_out.num_arcs
        # A source that comes twice has two bits, but is listed once.
        sources[num_listed] = u
        num_listed += np.int64(frontier[u] == ZERO)
        frontier[u] |= bit
    control[words.LIST_END] = num_listed
    control[words.IS_LISTED] = 1
    control[words.IS_CLEAR] = 1
    control[words.DEPTH] = 0


@kernel
def _drop_found(state):
    """Drop the targets that their sources have seen, or that no edge leads to."""
    targets, askers, seen = state.targets, state.askers, state.sets[SEEN]
    left = 0
    for i in range(state.control[words.NUM_MISSING]):
        v, b = targets[i], askers[i]
        if seen[v] >> np.uint64(b) & ONE:
            state.missing[b] -= 1
        else:
            targets[left], askers[left] = v, b
            left += 1
    state.control[words.NUM_MISSING] = left


@kernel
def _choose(state, row, options):
    """Record the frontier's sizes and choose each source's direction; return all its edges."""
    masks, counts, degree_sums, sizes = state.masks, state.counts, state.degree_sums, state.sizes
    active = ZERO
    rising = ZERO
    total = 0.0
    _drop_found(state)
    for b in range(WIDTH):
        sizes[row, b] = counts[:, b].sum()
        if sizes[row, b] == 0 or state.missing[b] == 0:
            continue
        degree_sum = degree_sums[:, b].sum()
        total += degree_sum
        active |= ONE << np.uint64(b)
        # Sums of degrees are estimates: what is unexplored is at least the frontier itself.
        if degree_sum * options.alpha >= max(degree_sum, state.unexplored[b]):
            rising |= ONE << np.uint64(b)
        state.unexplored[b] -= degree_sum
    if total <= options.sparse_edges:
        rising = ZERO
    masks[TOP_DOWN_SOURCES] = active & ~rising
    masks[BOTTOM_UP_SOURCES] = rising
    counts[:] = 0
    degree_sums[:] = 0
    return total


@kernel
def _prepare_top_down(rows_out, rows_in, state, options):
    """Clear the next frontier and list the frontier, unless that is done."""
    control = state.control
    if not control[words.IS_CLEAR]:
        _run_region(rows_out, rows_in, state, CLEAR, options.threads > 1)
    if not control[words.IS_LISTED]:
        control[words.LIST_END] = 0
        _run_region(rows_out, rows_in, state, LIST_FRONTIER, options.threads > 1)


@kernel
def _clear(state):
    """Clear the next frontier."""
    _, next_frontier = frontiers(state)
    while True:
        begin, end = take_chunk(state.control, CURSOR, CHUNK, next_frontier.size)
        if begin == end:
            return
        for first in range(begin, end, BLOCK):
            if not state.idle[first // BLOCK]:
                next_frontier[first : min(first + BLOCK, end)] = ZERO


@kernel
def _expand_sparsely(rows_out, rows_in, state, options):
    """Go top-down with the whole frontier, from its list."""
    _prepare_top_down(rows_out, rows_in, state, options)
    top_down_sparse(rows_out, state)
    state.control[words.IS_CLEAR] = 1
    state.control[words.IS_LISTED] = 1


@kernel
def _expand_densely(rows_out, rows_in, state, options):
    """Go top-down with some sources, then bottom-up with the others, and commit."""
    control = state.control
    control[words.WENT_TOP_DOWN] = state.masks[TOP_DOWN_SOURCES] != ZERO
    if control[words.WENT_TOP_DOWN]:
        _prepare_top_down(rows_out, rows_in, state, options)
        _run_region(rows_out, rows_in, state, TOP_DOWN, options.threads > 1)
    _run_region(rows_out, rows_in, state, BOTTOM_UP, options.threads > 1)
    control[words.IS_CLEAR] = 0
    control[words.IS_LISTED] = 0

"""The compiled level loop: what one level does, in which direction, and who helps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocbfs.kernels.atomics import kernel, nanoseconds
from oocbfs.kernels.bfs.bottom_up import bottom_up
from oocbfs.kernels.bfs.frontier import (
    bitmap_to_queue,
    clear_results,
    lead_with_hubs,
    queue_to_bitmap,
    sweep,
    weigh,
)
from oocbfs.kernels.bfs.small_level import (
    balanced,
    follow_alone,
    follow_parts,
    mark_visited,
    queue_parts,
    reserve_parts,
)
from oocbfs.kernels.bfs.state import (
    BYTES,
    DENSE_MASK,
    DEPTH,
    EDGES,
    FAILED,
    FOUND,
    FRONT,
    FRONTIER,
    FRONTIER_END,
    HEADS,
    IN_BITMAP,
    KEPT,
    LEVEL,
    MODE,
    NEXT,
    NUM_HUBS,
    PARTS_TAKEN,
    PROBED,
    QUEUE_BEGIN,
    QUEUE_END,
    TESTED,
    UNEXPLORED,
    VISITED,
    WEIGHT,
)
from oocbfs.kernels.bfs.top_down import DENSE, SPARSE, top_down
from oocbfs.kernels.region import ONE, SLICE_NANOSECONDS, TASK, ZERO, make_region

AUTO, TOP_DOWN, BOTTOM_UP = range(3)
_CLEAR, _WEIGH, _TOP_DOWN, _PARTS, _QUEUE_PARTS, _SWEEP, _BOTTOM_UP, _TO_BITMAP, _TO_QUEUE = range(
    9
)
FINISHED, PAUSED = range(2)


class Options(NamedTuple):
    """How to traverse; depth and target are -1 when they do not limit."""

    threads: int
    alpha: float
    beta: float
    direction: int
    max_depth: int
    target: int
    clock: int
    tiny_edges: int
    alone_edges: int
    parts_edges: int
    dense_edges: int


@kernel
def _work(rows_out, rows_in, state, thread):
    """Do one thread's part of the open region."""
    task = state.control[TASK]
    if task == _BOTTOM_UP:
        bottom_up(rows_in, state, thread)
    elif task == _TOP_DOWN:
        top_down(rows_out, state, thread)
    elif task == _PARTS:
        follow_parts(rows_out, state, thread)
    elif task == _QUEUE_PARTS:
        queue_parts(state, thread)
    elif task == _SWEEP:
        sweep(rows_out, state)
    elif task == _WEIGH:
        weigh(rows_out, state)
    elif task == _TO_BITMAP:
        queue_to_bitmap(state)
    elif task == _TO_QUEUE:
        bitmap_to_queue(state)
    else:
        clear_results(state)


_region, worker_loop = make_region(_work)


@kernel
def _weigh_frontier(rows_out, rows_in, state, shared):
    """Give the edges of the queued frontier, and put its hubs in front."""
    control = state.control
    control[EDGES] = 0
    control[NUM_HUBS] = 0
    _region(rows_out, rows_in, state, _WEIGH, shared and control[FRONTIER] > 16384)
    lead_with_hubs(rows_out, state)
    return control[EDGES]


@kernel
def _turning_point(state, options):
    """Give the number of the frontier's edges above which a level is bottom-up."""
    control = state.control
    if control[PROBED] >= 0:
        limit = np.int64(control[PROBED] / options.beta)
    else:
        limit = np.int64(control[UNEXPLORED] / options.alpha)
    return max(limit, state.bitmaps.shape[1])


@kernel
def _stays_in_parts(state, options, edges):
    """Tell whether the kept parts are a frontier to expand as they are."""
    most = min(options.parts_edges, options.dense_edges)
    if options.direction == AUTO:
        most = min(most, _turning_point(state, options))
    return options.alone_edges < edges <= most and balanced(state)


@kernel
def _choose(rows_out, rows_in, state, options):
    """Choose the direction and bring the frontier into the form it needs.

    Gives whether the level is bottom-up, and the frontier's edges or an upper bound of them.
    """
    control = state.control
    shared = options.threads > 1
    count = control[FRONTIER]
    limit = _turning_point(state, options)
    in_bitmap = control[IN_BITMAP] != 0
    upward = options.direction == BOTTOM_UP
    if options.direction == AUTO and in_bitmap:
        upward = max(count, control[WEIGHT]) > limit
    edges = np.int64(0)
    queue_end = control[QUEUE_END]
    if not upward:
        if in_bitmap:
            control[QUEUE_BEGIN] = queue_end
            _region(rows_out, rows_in, state, _TO_QUEUE, shared)
            control[FRONTIER_END] = control[QUEUE_END]
        edges = count * rows_out.max_degree
        control[NUM_HUBS] = 0
        state.hubs[0] = 0
        if edges > min(limit, options.parts_edges, options.dense_edges):
            edges = _weigh_frontier(rows_out, rows_in, state, shared)
        upward = options.direction == AUTO and edges > limit
    if upward:
        if in_bitmap:
            control[QUEUE_END] = queue_end
        else:
            state.bitmaps[control[FRONT]][:] = ZERO
            _region(rows_out, rows_in, state, _TO_BITMAP, shared and count > 16384)
    return upward, edges


@kernel
def _take_next(control):
    """Make the bitmap of the next frontier that of the frontier."""
    control[FRONT], control[NEXT] = control[NEXT], control[FRONT]
    control[FRONTIER] = control[FOUND]
    control[IN_BITMAP] = 1


@kernel
def _settle(rows_out, rows_in, state, options):
    """Bring a frontier that its finders kept into the queue."""
    control = state.control
    if control[KEPT] != 0:
        control[PARTS_TAKEN] = 0
        _region(rows_out, rows_in, state, _QUEUE_PARTS, control[FRONTIER] > options.alone_edges)
        control[KEPT] = 0


@kernel
def _expand_bottom_up(rows_out, rows_in, state, options):
    """Let those not visited look for the frontier, which is a bitmap."""
    control = state.control
    mark_visited(state)
    _region(rows_out, rows_in, state, _BOTTOM_UP, options.threads > 1)
    still_open = control[TESTED] - control[FOUND]
    control[PROBED] = np.int64(control[EDGES] / max(1, control[TESTED]) * still_open)
    control[WEIGHT] = 0
    _take_next(control)


@kernel
def _expand_parts(rows_out, rows_in, state):
    """Expand a middling frontier, each thread its part, and leave the finds with their finders."""
    control = state.control
    control[PARTS_TAKEN] = 0
    _region(rows_out, rows_in, state, _PARTS, True)
    reserve_parts(state)
    control[IN_BITMAP] = 0
    control[UNEXPLORED] -= control[EDGES]


@kernel
def _expand_top_down(rows_out, rows_in, state, options, edges):
    """Expand a large frontier, which is in the queue."""
    control = state.control
    mark_visited(state)
    end = control[FRONTIER_END]
    if edges > options.dense_edges:
        control[MODE] = DENSE
        control[DENSE_MASK] = 0
        _region(rows_out, rows_in, state, _TOP_DOWN, options.threads > 1)
        examined = control[EDGES]
        control[EDGES] = 0
        _region(rows_out, rows_in, state, _SWEEP, options.threads > 1)
        control[WEIGHT] = control[EDGES]
        control[EDGES] = examined
        _take_next(control)
    else:
        control[MODE] = SPARSE
        _region(rows_out, rows_in, state, _TOP_DOWN, options.threads > 1)
        control[QUEUE_BEGIN] = end
        control[FRONTIER_END] = control[QUEUE_END]
        control[FRONTIER] = control[QUEUE_END] - end
        control[IN_BITMAP] = 0
    control[UNEXPLORED] -= control[EDGES]


@kernel
def _begin(rows_out, rows_in, state, options):
    """Clear the results and visit the sources, which lie in the queue."""
    control, levels, parents = state.control, state.levels, state.parents
    visited = state.bitmaps[control[VISITED]]
    n = levels.size
    _region(rows_out, rows_in, state, _CLEAR, options.threads > 1)
    if n & 63:
        visited[n >> 6] = ~ZERO << np.uint64(n & 63)
    for q in range(control[FRONTIER]):
        v = state.queue[q]
        visited[v >> 6] |= ONE << np.uint64(v & 63)
        levels[v] = 0
        if parents.size != 0:
            parents[v] = v


@kernel
def lead(rows_out, rows_in, state, options):
    """Run levels until the traversal is over or the time slice is."""
    control, records = state.control, state.records
    started = nanoseconds(options.clock)
    pause = started + SLICE_NANOSECONDS
    if control[DEPTH] == 0:
        _begin(rows_out, rows_in, state, options)
    while control[FRONTIER] != 0 and control[DEPTH] != options.max_depth:
        if options.target >= 0 and state.levels[options.target] >= 0:
            break
        if started > pause:
            return PAUSED
        record = min(control[DEPTH], records.shape[0] - 1)
        control[LEVEL] = control[DEPTH] + 1
        frontier = control[FRONTIER]
        upward = False
        edges = frontier * rows_out.max_degree
        if control[KEPT] == 0 or not _stays_in_parts(state, options, edges):
            _settle(rows_out, rows_in, state, options)
            if control[IN_BITMAP] != 0 or edges > options.tiny_edges:
                upward, edges = _choose(rows_out, rows_in, state, options)
        shared = options.threads > 1 and edges > options.alone_edges
        if not (upward or shared or edges > options.dense_edges):
            control[IN_BITMAP] = 0
            started = follow_alone(rows_out, state, options, started, pause)
            if control[FAILED] != 0:
                break
            continue
        for word in (FOUND, EDGES, HEADS, BYTES, TESTED):
            control[word] = 0
        if upward:
            _expand_bottom_up(rows_out, rows_in, state, options)
        elif edges <= min(options.parts_edges, options.dense_edges):
            _expand_parts(rows_out, rows_in, state)
        else:
            _expand_top_down(rows_out, rows_in, state, options, edges)
        if control[FAILED] != 0:
            break
        control[DEPTH] += 1
        ended = nanoseconds(options.clock)
        records[record, 0] = upward
        records[record, 1] += frontier
        records[record, 2] += control[EDGES]
        records[record, 3] += control[HEADS]
        records[record, 4] += control[BYTES]
        records[record, 5] += ended - started
        started = ended
    return FINISHED

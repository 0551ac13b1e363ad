"""The level loop of a traversal: choose a step, bring the frontier into its form, run the step.

This is the direction-optimizing search of Beamer, Asanović and Patterson (SC 2012), with four ways
to go top-down instead of one. A step expands one level; SMALL_STEP goes on while levels stay tiny.

    step            the frontier's edges     reads      writes     visited bits  who works
    --------------  -----------------------  ---------  ---------  ------------  --------------
    SMALL_STEP      at most alone_edges (1)  IN_QUEUE   IN_QUEUE   not set (2)   the leader
    PARTS_STEP      at most parts_edges      IN_PARTS,  IN_PARTS   not set (2)   all, by parts
                                             IN_QUEUE
    SPARSE_STEP     at most dense_edges      IN_QUEUE   IN_QUEUE   set, atomics  all, by chunks
    DENSE_STEP      above dense_edges        IN_QUEUE   IN_BITMAP  set by sweep  all, by chunks
    BOTTOM_UP_STEP  above the turning point  IN_BITMAP  IN_BITMAP  set           all, by words

    form       where the frontier is               converted by     before
    ---------  ----------------------------------  ---------------  ---------------------------
    IN_QUEUE   queue[FRONTIER_BEGIN:FRONTIER_END]  queue_to_bitmap  BOTTOM_UP_STEP
    IN_BITMAP  bitmaps[FRONTIER_BITMAP]            bitmap_to_queue  any other step
    IN_PARTS   finds, one row a part; its slice    parts_to_queue   any other step, or when the
               of the queue is not written yet                      parts are out of balance

The sources begin IN_QUEUE. (1) Or at most dense_edges, if there is only one thread. (2) Levels say
what is visited; ``mark_visited`` sets the bits of queue[NUM_MARKED:QUEUE_END] before one of the
other three steps. ``plain.py`` is the same search without any of this.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import kernel, nanoseconds
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.bottom_up import bottom_up
from oocbfs.kernels.bfs.frontier import (
    bitmap_to_queue,
    clear_results,
    mark_visited,
    move_hubs_first,
    queue_to_bitmap,
    sweep,
    weigh,
)
from oocbfs.kernels.bfs.parts import are_balanced, expand_parts, parts_to_queue, reserve_parts
from oocbfs.kernels.bfs.small_level import record_level, small_levels
from oocbfs.kernels.bfs.state import (
    AUTO,
    BITMAP_TO_QUEUE,
    BOTTOM_UP,
    BOTTOM_UP_STEP,
    CLEAR,
    DENSE_STEP,
    IN_BITMAP,
    IN_PARTS,
    IN_QUEUE,
    PARTS_STEP,
    PARTS_TO_QUEUE,
    QUEUE_TO_BITMAP,
    SMALL_STEP,
    SPARSE_STEP,
    SWEEP,
    WEIGH,
)
from oocbfs.kernels.bfs.top_down import top_down_dense, top_down_sparse
from oocbfs.kernels.region import ONE, SLICE_NANOSECONDS, TASK, ZERO, make_region

FINISHED, PAUSED = range(2)
# Frontiers with fewer vertices are weighed and converted by the leader alone.
_SHARED_VERTICES = 16384


@kernel
def _work(rows_out, rows_in, state, thread):
    """Do one thread's part of the open region."""
    task = state.control[TASK]
    if task == BOTTOM_UP_STEP:
        bottom_up(rows_in, state, thread)
    elif task == DENSE_STEP:
        top_down_dense(rows_out, state, thread)
    elif task == SPARSE_STEP:
        top_down_sparse(rows_out, state, thread)
    elif task == PARTS_STEP:
        expand_parts(rows_out, state, thread)
    elif task == PARTS_TO_QUEUE:
        parts_to_queue(state, thread)
    elif task == SWEEP:
        sweep(rows_out, state)
    elif task == WEIGH:
        weigh(rows_out, state)
    elif task == QUEUE_TO_BITMAP:
        queue_to_bitmap(state)
    elif task == BITMAP_TO_QUEUE:
        bitmap_to_queue(state)
    else:
        clear_results(state)


_run_region, worker_loop = make_region(_work)


@kernel
def lead(rows_out, rows_in, state, options):
    """Run levels until the traversal is over or the time slice is."""
    control = state.control
    started = nanoseconds(options.clock)
    pause = started + SLICE_NANOSECONDS
    if control[words.DEPTH] == 0:
        _begin(rows_out, rows_in, state, options)
    while control[words.FRONTIER_SIZE] != 0 and control[words.DEPTH] != options.max_depth:
        if options.target >= 0 and state.levels[options.target] >= 0:
            break
        if started > pause:
            return PAUSED
        step = _choose_step(rows_out, rows_in, state, options)
        if step == SMALL_STEP:
            started = small_levels(rows_out, state, options, started, pause)
        else:
            started = _run_step(rows_out, rows_in, state, options, step, started)
        if control[words.FAILED] != 0:
            break
    return FINISHED


@kernel
def _begin(rows_out, rows_in, state, options):
    """Clear the results and visit the sources, which lie in the queue."""
    control, levels, parents = state.control, state.levels, state.parents
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    n = levels.size
    _run_region(rows_out, rows_in, state, CLEAR, options.threads > 1)
    if n & 63:
        visited[n >> 6] = ~ZERO << np.uint64(n & 63)
    for v in state.queue[: control[words.FRONTIER_SIZE]]:
        visited[v >> 6] |= ONE << np.uint64(v & 63)
        levels[v] = 0
        if parents.size != 0:
            parents[v] = v


@kernel
def _choose_step(rows_out, rows_in, state, options):
    """Choose the step of the next level, and bring the frontier into the form that it reads."""
    control = state.control
    limit = _turning_point(state, options)
    few_edges = min(options.parts_edges, options.dense_edges)
    # An upper bound, which is enough to know that a frontier is small.
    edges = control[words.FRONTIER_SIZE] * rows_out.max_degree

    if control[words.FORM] == IN_PARTS:
        is_small = edges <= few_edges and (options.direction != AUTO or edges <= limit)
        if is_small and edges > options.alone_edges and are_balanced(state):
            return PARTS_STEP
        _queue_parts(rows_out, rows_in, state, options)

    was_in_bitmap = control[words.FORM] == IN_BITMAP
    if options.direction == BOTTOM_UP:
        _make_bitmap(rows_out, rows_in, state, options)
        return BOTTOM_UP_STEP
    if was_in_bitmap:
        known = max(control[words.FRONTIER_SIZE], control[words.FRONTIER_EDGES])
        if options.direction == AUTO and known > limit:
            return BOTTOM_UP_STEP
        _queue_bitmap(rows_out, rows_in, state, options)

    # Here the frontier is IN_QUEUE.
    control[words.NUM_HUBS] = 0
    state.hubs[0] = 0
    if edges > min(limit, few_edges):
        edges = _weigh_frontier(rows_out, rows_in, state, options)
    if options.direction == AUTO and edges > limit:
        if was_in_bitmap:  # then it is still there
            control[words.QUEUE_END] = control[words.FRONTIER_BEGIN]
            control[words.FORM] = IN_BITMAP
        _make_bitmap(rows_out, rows_in, state, options)
        return BOTTOM_UP_STEP
    if edges > options.dense_edges:
        return DENSE_STEP
    if options.threads == 1 or edges <= options.alone_edges:
        return SMALL_STEP
    return PARTS_STEP if edges <= options.parts_edges else SPARSE_STEP


@kernel
def _turning_point(state, options):
    """Give the number of the frontier's edges above which a level is bottom-up."""
    control = state.control
    if control[words.BOTTOM_UP_EDGES] >= 0:
        limit = np.int64(control[words.BOTTOM_UP_EDGES] / options.beta)
    else:
        limit = np.int64(control[words.UNEXPLORED_EDGES] / options.alpha)
    return max(limit, state.bitmaps.shape[1])


@kernel
def _queue_parts(rows_out, rows_in, state, options):
    """Convert the frontier from IN_PARTS to IN_QUEUE."""
    control = state.control
    shared = control[words.FRONTIER_SIZE] > options.alone_edges
    control[words.PARTS_TAKEN] = 0
    _run_region(rows_out, rows_in, state, PARTS_TO_QUEUE, shared)
    control[words.FORM] = IN_QUEUE


@kernel
def _queue_bitmap(rows_out, rows_in, state, options):
    """Convert the frontier from IN_BITMAP to IN_QUEUE; the bitmap stays as it is."""
    control = state.control
    control[words.FRONTIER_BEGIN] = control[words.QUEUE_END]
    _run_region(rows_out, rows_in, state, BITMAP_TO_QUEUE, options.threads > 1)
    control[words.FRONTIER_END] = control[words.QUEUE_END]
    control[words.FORM] = IN_QUEUE


@kernel
def _make_bitmap(rows_out, rows_in, state, options):
    """Convert the frontier from IN_QUEUE to IN_BITMAP, unless it is that already."""
    control = state.control
    if control[words.FORM] == IN_QUEUE:
        shared = options.threads > 1 and control[words.FRONTIER_SIZE] > _SHARED_VERTICES
        state.bitmaps[control[words.FRONTIER_BITMAP]][:] = ZERO
        _run_region(rows_out, rows_in, state, QUEUE_TO_BITMAP, shared)
        control[words.FORM] = IN_BITMAP


@kernel
def _weigh_frontier(rows_out, rows_in, state, options):
    """Give the edges of the queued frontier, and put its hubs first."""
    control = state.control
    shared = options.threads > 1 and control[words.FRONTIER_SIZE] > _SHARED_VERTICES
    control[words.EDGES] = 0
    control[words.NUM_HUBS] = 0
    _run_region(rows_out, rows_in, state, WEIGH, shared)
    move_hubs_first(rows_out, state)
    return control[words.EDGES]


@kernel
def _run_step(rows_out, rows_in, state, options, step, started):
    """Expand one level with all threads and record it; give the time at which it ended."""
    control = state.control
    size = control[words.FRONTIER_SIZE]
    control[words.LEVEL] = control[words.DEPTH] + 1
    control[words.PARTS_TAKEN] = 0
    control[words.DENSE_THREADS] = 0
    for word in (words.FOUND, words.EDGES, words.HEADS, words.TAIL_BYTES, words.TESTED):
        control[word] = 0
    if step != PARTS_STEP:
        mark_visited(state)
    _run_region(rows_out, rows_in, state, step, options.threads > 1)
    if step == BOTTOM_UP_STEP:
        _predict_bottom_up(control)
        _take_next_bitmap(control)
    else:
        if step == PARTS_STEP:
            reserve_parts(state)
        elif step == SPARSE_STEP:
            _take_next_slice(control)
        else:
            _sweep_bitmaps(rows_out, rows_in, state, options)
            _take_next_bitmap(control)
        control[words.UNEXPLORED_EDGES] -= control[words.EDGES]
    if control[words.FAILED] != 0:
        return started
    ended = nanoseconds(options.clock)
    record_level(
        state.records,
        control[words.DEPTH],
        step == BOTTOM_UP_STEP,
        size,
        control[words.EDGES],
        control[words.HEADS],
        control[words.TAIL_BYTES],
        ended - started,
    )
    control[words.DEPTH] += 1
    return ended


@kernel
def _predict_bottom_up(control):
    """Predict from a bottom-up level how many edges another one would look at."""
    still_open = control[words.TESTED] - control[words.FOUND]
    edges_each = control[words.EDGES] / max(1, control[words.TESTED])
    control[words.BOTTOM_UP_EDGES] = np.int64(edges_each * still_open)
    control[words.FRONTIER_EDGES] = 0


@kernel
def _sweep_bitmaps(rows_out, rows_in, state, options):
    """Make one bitmap of what the threads of a dense step found, and weigh it."""
    control = state.control
    examined = control[words.EDGES]
    control[words.EDGES] = 0
    _run_region(rows_out, rows_in, state, SWEEP, options.threads > 1)
    control[words.FRONTIER_EDGES] = control[words.EDGES]
    control[words.EDGES] = examined


@kernel
def _take_next_slice(control):
    """Make the next frontier, which a sparse step appended to the queue, the frontier."""
    control[words.FRONTIER_BEGIN] = control[words.FRONTIER_END]
    control[words.FRONTIER_END] = control[words.QUEUE_END]
    control[words.FRONTIER_SIZE] = control[words.FRONTIER_END] - control[words.FRONTIER_BEGIN]


@kernel
def _take_next_bitmap(control):
    """Make the next frontier, which is a bitmap, the frontier."""
    bitmap = control[words.FRONTIER_BITMAP]
    control[words.FRONTIER_BITMAP] = control[words.NEXT_BITMAP]
    control[words.NEXT_BITMAP] = bitmap
    control[words.FRONTIER_SIZE] = control[words.FOUND]
    control[words.FORM] = IN_BITMAP

"""The level loop of a search: choose a step, bring the frontier into its form, run the step.

This is the direction-optimizing search of Beamer, Asanović and Patterson (SC 2012), with four ways
to go top-down instead of one. A step expands one level; SMALL_STEP goes on while levels stay tiny.

    step            the frontier's edges     reads      writes     visited bits  who works
    --------------  -----------------------  ---------  ---------  ------------  --------------
    SMALL_STEP      at most alone_limit (1)  IN_QUEUE   IN_QUEUE   not set (2)   the leader
    LOCAL_STEP      at most local_edges (3)  both of    IN_LOCAL_  not set (2)   all, own queues
                                             these      QUEUES
    SPARSE_STEP     at most dense_edges      IN_QUEUE   IN_QUEUE   set, atomics  all, by chunks
    DENSE_STEP      above dense_edges        IN_QUEUE   IN_BOTH    set by sweep  all, by chunks
    BOTTOM_UP_STEP  where that costs less    IN_BITMAP  IN_BITMAP  set           all, by words

    form       where the frontier is               converted by     before
    ---------  ----------------------------------  ---------------  ---------------------------
    IN_QUEUE   queue[FRONTIER_BEGIN:FRONTIER_END]  queue_to_bitmap  BOTTOM_UP_STEP
    IN_BITMAP  bitmaps[FRONTIER_BITMAP]            bitmap_to_queue  any other step
    IN_BOTH    both of these                       -                -
    IN_LOCAL_  finds, one row a thread; that       merge_local_     any other step, or when the
    QUEUES     slice of the queue is not written   queues           threads are out of balance

The sources begin IN_QUEUE, and the leader is alone until it ``should_wake`` others.
(1) Or at most dense_edges while it is.
(2) Levels say what is visited; ``mark_visited`` sets the bits of queue[NUM_MARKED:QUEUE_END]
before one of the other three steps, which set those of what they find.
(3) From level first_local_queues on. ``plain.py`` is the same search without any of this.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import kernel, nanoseconds
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.bottom_up import undo_sample
from oocbfs.kernels.bfs.frontier import (
    begin_level,
    mark_visited,
    move_hubs_first,
    predict_bottom_up,
    take_next_bitmap,
    take_next_slice,
)
from oocbfs.kernels.bfs.small_levels import (
    SHARED_CLEAR,
    alone_limit,
    are_balanced,
    reserve_local_queues,
    should_wake,
    small_levels,
)
from oocbfs.kernels.bfs.state import (
    ALL_WORDS,
    AUTO,
    BITMAP_TO_QUEUE,
    BOTTOM_UP,
    BOTTOM_UP_STEP,
    CLEAR,
    DENSE_STEP,
    IN_BITMAP,
    IN_BOTH,
    IN_LOCAL_QUEUES,
    IN_QUEUE,
    LOCAL_STEP,
    MERGE_LOCAL_QUEUES,
    OTHER_WORDS,
    QUEUE_TO_BITMAP,
    SAMPLED_WORDS,
    SMALL_STEP,
    SPARSE_STEP,
    SUM_DEGREES,
    SWEEP,
)
from oocbfs.kernels.bitmaps import UNREACHED
from oocbfs.kernels.constants import ONE, ZERO
from oocbfs.kernels.recording import record_level
from oocbfs.kernels.region import SLICE_NANOSECONDS, make_region
from oocbfs.kernels.structs import call_at

FINISHED, PAUSED, SHARED = range(3)
# Frontiers with fewer vertices are summed and converted by the leader alone.
_SHARED_VERTICES = 16384
# What an edge costs in nanoseconds: in a row of the frontier, by a head, and in a tail. Where rows
# are decoded, all are cheaper; what matters is that an edge costs the same in both directions.
ROW_COST, HEAD_COST, TAIL_COST = 2.0, 0.7, 3.0
_DECODED_TAIL_COST = 2.0
# Words that a sample of a bottom-up step has at least: fewer say nothing.
_LEAST_SAMPLE = 3


@kernel
def _work(rows_out, rows_in, state, thread):
    """Do one thread's part of the open region, by a function that is compiled on its own."""
    call_at(state.control[words.WORK_ADDRESS], rows_out, rows_in, state, thread)


_run_region, worker_loop = make_region(_work)


@kernel
def lead(rows_out, rows_in, state, options):
    """Run levels until the search is over or the time slice is, or until workers should come."""
    control = state.control
    started = nanoseconds(options.clock)
    pause = started + SLICE_NANOSECONDS
    if should_wake(rows_out, state, options):
        return SHARED
    if control[words.DEPTH] == 0:
        _begin(rows_out, rows_in, state, options)
    while control[words.FRONTIER_SIZE] != 0 and control[words.DEPTH] != options.max_depth:
        if options.target >= 0 and state.levels[options.target] != UNREACHED:
            break
        if started > pause:
            return PAUSED
        if should_wake(rows_out, state, options):
            return SHARED
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
    n = rows_out.heads.size
    is_clear = control[words.LEVELS_CLEAR] != 0
    if not is_clear or (parents.size != 0 and control[words.PARENTS_CLEAR] == 0):
        _run_region(rows_out, rows_in, state, CLEAR, options.threads > 1 and n > SHARED_CLEAR)
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
    limit = _least_edges(rows_in, state)
    few_edges = min(options.local_edges, options.dense_edges)
    # An upper bound, which is enough to know that a frontier is small.
    edges = control[words.FRONTIER_SIZE] * rows_out.max_degree
    control[words.WHICH_WORDS] = ALL_WORDS
    control[words.WASTED_EDGES] = 0

    if control[words.FORM] == IN_LOCAL_QUEUES:
        is_small = edges <= few_edges and (options.direction != AUTO or edges <= limit)
        if is_small and edges > options.alone_edges and are_balanced(state):
            return LOCAL_STEP
        _merge_local_queues(rows_out, rows_in, state, options)

    if options.direction == BOTTOM_UP:
        _make_bitmap(rows_out, rows_in, state, options)
        return BOTTOM_UP_STEP
    may_turn = options.direction == AUTO
    if control[words.FORM] == IN_BITMAP:
        known = max(control[words.FRONTIER_SIZE], control[words.FRONTIER_EDGES])
        turns = may_turn and known > limit
        if turns and _prefers_bottom_up(rows_out, rows_in, state, options, known):
            return BOTTOM_UP_STEP
        may_turn = False
        _queue_bitmap(rows_out, rows_in, state, options)

    # Here the frontier is IN_QUEUE or IN_BOTH.
    if control[words.FORM] == IN_BOTH:
        edges = control[words.FRONTIER_EDGES]
    else:
        control[words.NUM_HUBS] = 0
        if edges > min(limit, few_edges):
            edges = _sum_frontier_degrees(rows_out, rows_in, state, options)
    if may_turn and edges > limit:
        _make_bitmap(rows_out, rows_in, state, options)
        if _prefers_bottom_up(rows_out, rows_in, state, options, edges):
            return BOTTOM_UP_STEP
    control[words.FORM] = IN_QUEUE
    move_hubs_first(rows_out, state)
    if edges > options.dense_edges:
        return DENSE_STEP
    is_alone = options.threads == 1 or control[words.WOKEN] == 0
    if is_alone or edges <= alone_limit(options, control[words.DEPTH]):
        return SMALL_STEP
    is_middling = (
        edges <= options.local_edges and control[words.DEPTH] >= options.first_local_queues
    )
    return LOCAL_STEP if is_middling else SPARSE_STEP


@kernel
def _least_edges(rows, state):
    """Return the number of the frontier's edges below which bottom-up cannot be cheaper."""
    control = state.control
    if control[words.BOTTOM_UP_EDGES] >= 0:
        cost = control[words.BOTTOM_UP_EDGES] * _tail_cost(rows)
    else:
        cost = _num_open(rows, control) * HEAD_COST
    return np.int64(cost / ROW_COST) + state.bitmaps.shape[1]


@kernel
def _tail_cost(rows):
    """Return the cost of an edge in a tail."""
    return _DECODED_TAIL_COST if rows.neighbours.size != 0 else TAIL_COST


@kernel
def _num_open(rows, control):
    """Count the vertices that are not visited."""
    return rows.heads.size - control[words.NUM_FOUND] - control[words.FRONTIER_SIZE]


@kernel
def _prefers_bottom_up(rows_out, rows_in, state, options, edges):
    """Return whether to look for a frontier with so many edges bottom-up, by trying a few words.

    How many neighbours a vertex looks at before one is in the frontier cannot be known: in
    communities, most vertices look at all of theirs in vain, again and again. So a bottom-up step
    goes over a sample of the words. What that finds stays found, unless top-down turns out to be
    cheaper. At worst, the sample takes a sixteenth of the edges.
    """
    control = state.control
    if control[words.BOTTOM_UP_EDGES] >= 0 or control[words.UNEXPLORED_EDGES] <= edges:
        return True
    num_words = rows_in.heads.size + 63 >> 6
    edges_each = control[words.UNEXPLORED_EDGES] / num_words
    wanted = edges / 16 / edges_each
    shift = 0
    while num_words >> (shift + 1) >= wanted:
        shift += 1
    if wanted < _LEAST_SAMPLE or shift == 0:
        return edges * 8 > control[words.UNEXPLORED_EDGES]
    control[words.WHICH_WORDS] = SAMPLED_WORDS
    control[words.SAMPLE_SHIFT] = shift
    begin_level(state)
    mark_visited(state)
    _run_region(rows_out, rows_in, state, BOTTOM_UP_STEP, options.threads > 1)
    scale = num_words / ((num_words - 1 >> shift) + 1)
    tails = control[words.EDGES] - control[words.TESTED]
    cost = scale * (tails * _tail_cost(rows_in) + control[words.TESTED] * HEAD_COST)
    if cost <= edges * ROW_COST:
        control[words.WHICH_WORDS] = OTHER_WORDS
        return True
    undo_sample(rows_in, state)
    control[words.WHICH_WORDS] = ALL_WORDS
    control[words.WASTED_EDGES] = control[words.EDGES]
    return False


@kernel
def _merge_local_queues(rows_out, rows_in, state, options):
    """Convert the frontier from IN_LOCAL_QUEUES to IN_QUEUE."""
    control = state.control
    shared = control[words.FRONTIER_SIZE] > options.alone_edges
    control[words.LOCAL_QUEUES_TAKEN] = 0
    _run_region(rows_out, rows_in, state, MERGE_LOCAL_QUEUES, shared)
    control[words.FORM] = IN_QUEUE


@kernel
def _queue_bitmap(rows_out, rows_in, state, options):
    """Convert the frontier from IN_BITMAP to IN_QUEUE; the bitmap stays as it is."""
    control = state.control
    control[words.FRONTIER_BEGIN] = control[words.QUEUE_END]
    _run_region(rows_out, rows_in, state, BITMAP_TO_QUEUE, options.threads > 1)
    control[words.FRONTIER_END] = control[words.QUEUE_END]
    control[words.NUM_MARKED] = control[words.QUEUE_END]
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
def _sum_frontier_degrees(rows_out, rows_in, state, options):
    """Return the edges of the queued frontier, and note its hubs."""
    control = state.control
    shared = options.threads > 1 and control[words.FRONTIER_SIZE] > _SHARED_VERTICES
    control[words.FRONTIER_EDGES] = 0
    _run_region(rows_out, rows_in, state, SUM_DEGREES, shared)
    return control[words.FRONTIER_EDGES]


@kernel
def _run_step(rows_out, rows_in, state, options, step, started):
    """Expand one level with all threads and record it; return the time at which it ended."""
    control = state.control
    size = control[words.FRONTIER_SIZE]
    control[words.NUM_FOUND] += size
    if control[words.WHICH_WORDS] == ALL_WORDS:
        begin_level(state)
    if step != LOCAL_STEP:
        mark_visited(state)
    _run_region(rows_out, rows_in, state, step, options.threads > 1)
    if step == BOTTOM_UP_STEP:
        predict_bottom_up(control)
        take_next_bitmap(control)
    else:
        if step == LOCAL_STEP:
            reserve_local_queues(state)
        elif step == SPARSE_STEP:
            take_next_slice(control)
        else:
            control[words.NUM_HUBS] = 0
            _run_region(rows_out, rows_in, state, SWEEP, options.threads > 1)
            take_next_bitmap(control)
            take_next_slice(control)
            control[words.FORM] = IN_BOTH
        control[words.UNEXPLORED_EDGES] -= control[words.EDGES]
    if control[words.FAILED] != 0:
        return started
    ended = nanoseconds(options.clock)
    record_level(
        state.records,
        control[words.DEPTH],
        step == BOTTOM_UP_STEP,
        size,
        control[words.EDGES] + control[words.WASTED_EDGES],
        control[words.HEADS],
        control[words.TAIL_BYTES],
        0,
        ended - started,
    )
    control[words.DEPTH] += 1
    return ended

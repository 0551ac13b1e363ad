"""Direction-optimizing breadth-first search on heads and tails, on all cores.

The level loop is compiled, so that a level costs nothing but its work: small frontiers are expanded
by the leading thread alone, large ones by all threads (see bfs_state). The direction of a level is
chosen by edges. Before the first bottom-up level, it is bottom-up when the frontier's edges exceed
the unexplored ones / alpha; afterwards, when they exceed 1 / beta of the edges that a bottom-up level
would examine, which the last one and the number of vertices it left open foretell.
"""

from __future__ import annotations

import threading
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from oocbfs.kernels.atomics import kernel, nanoseconds
from oocbfs.kernels.bfs_bottom_up import bottom_up
from oocbfs.kernels.bfs_frontier import (
    bitmap_to_queue,
    clear_results,
    lead_with_hubs,
    queue_to_bitmap,
    sweep,
    weigh,
)
from oocbfs.kernels.bfs_rows import Rows
from oocbfs.kernels.bfs_state import (
    BATCH,
    BYTES,
    CONTROL_WORDS,
    CURSOR,
    DENSE_MASK,
    DEPTH,
    EDGES,
    FAILED,
    FINISH,
    FOUND,
    FRONT,
    FRONTIER,
    FRONTIER_END,
    GATE,
    HEADS,
    HUB_CURSOR,
    HUB_LIMIT,
    IN_BITMAP,
    LEVEL,
    MAX_DENSE,
    MAX_HUBS,
    MAX_PARTS,
    MODE,
    NEXT,
    NUM_HUBS,
    NUM_PARTS,
    ONE,
    PARTS_EDGES,
    PARTS_TAKEN,
    PENDING,
    PROBED,
    QUEUE_BEGIN,
    QUEUE_END,
    TASK,
    TESTED,
    UNEXPLORED,
    VISITED,
    WEIGHT,
    ZERO,
    State,
    close_region,
    join_region,
    leave_region,
    open_region,
)
from oocbfs.kernels.bfs_top_down import (
    ALONE,
    DENSE,
    PARTS,
    SPARSE,
    join_parts,
    top_down_alone,
    top_down_parts,
    top_down_together,
)
from oocbfs.kernels.constants import SEGMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

AUTO, TOP_DOWN, BOTTOM_UP = range(3)
_CLEAR, _WEIGH, _TOP_DOWN, _PARTS, _SWEEP, _BOTTOM_UP, _TO_BITMAP, _TO_QUEUE = range(8)

# A frontier with fewer edges is not worth waking the helpers for.
ALONE_EDGES = 512
# A frontier with fewer edges is expanded in parts, one a thread.
PARTS_LIMIT = PARTS_EDGES
# A frontier with more edges than n / 64 is expanded densely.
DENSE_SHIFT = 6
# A tail this long is shared between threads.
HUB_BYTES = 16 * SEGMENT_BYTES
# Levels beyond these are summed up in the last record.
MAX_RECORDS = 1 << 16
# How often the level loop returns to Python, which then answers Ctrl-C.
_SLICE_NANOSECONDS = 200_000_000
_FINISHED, _PAUSED = range(2)


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
        top_down_together(rows_out, state, thread)
    elif task == _PARTS:
        top_down_parts(rows_out, state, thread)
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


@kernel
def _region(rows_out, rows_in, state, shared, thread):
    """Run the step in control[TASK], together with the helpers if it is worth sharing."""
    control = state.control
    if shared:
        open_region(control)
        _work(rows_out, rows_in, state, thread)
        close_region(control)
    else:
        control[CURSOR] = 0
        control[HUB_CURSOR] = 0
        _work(rows_out, rows_in, state, thread)


@kernel
def _weigh_frontier(rows_out, rows_in, state, shared, thread):
    """Give the edges of the queued frontier, and put its hubs in front."""
    control = state.control
    control[EDGES] = 0
    control[NUM_HUBS] = 0
    control[TASK] = _WEIGH
    _region(rows_out, rows_in, state, shared and control[FRONTIER] > 16384, thread)
    lead_with_hubs(rows_out, state)
    return control[EDGES]


@kernel
def _choose(rows_out, rows_in, state, options, thread):
    """Choose the direction and bring the frontier into the form it needs.

    Gives whether the level is bottom-up, and the frontier's edges or an upper bound of them.
    """
    control = state.control
    shared = options.threads > 1
    count = control[FRONTIER]
    num_words = state.bitmaps.shape[1]
    if control[PROBED] >= 0:
        limit = np.int64(control[PROBED] / options.beta)
    else:
        limit = np.int64(control[UNEXPLORED] / options.alpha)
    limit = max(limit, num_words)
    in_bitmap = control[IN_BITMAP] != 0
    upward = options.direction == BOTTOM_UP
    if options.direction == AUTO and in_bitmap:
        upward = max(count, control[WEIGHT]) > limit
    edges = np.int64(0)
    queue_end = control[QUEUE_END]
    if not upward:
        if in_bitmap:
            control[QUEUE_BEGIN] = queue_end
            control[TASK] = _TO_QUEUE
            _region(rows_out, rows_in, state, shared, thread)
            control[FRONTIER_END] = control[QUEUE_END]
        edges = count * rows_out.max_degree
        control[NUM_HUBS] = 0
        state.hubs[0] = 0
        if edges > min(limit, options.parts_edges, options.dense_edges):
            edges = _weigh_frontier(rows_out, rows_in, state, shared, thread)
        upward = options.direction == AUTO and edges > limit
    if upward:
        if in_bitmap:
            control[QUEUE_END] = queue_end
        else:
            state.bitmaps[control[FRONT]][:] = ZERO
            control[TASK] = _TO_BITMAP
            _region(rows_out, rows_in, state, shared and count > 16384, thread)
    return upward, edges


@kernel
def _take_next(control):
    """Make the bitmap of the next frontier that of the frontier."""
    control[FRONT], control[NEXT] = control[NEXT], control[FRONT]
    control[FRONTIER] = control[FOUND]
    control[IN_BITMAP] = 1


@kernel
def _expand_top_down(rows_out, rows_in, state, options, edges, thread):
    """Expand the queued frontier."""
    control = state.control
    shared = options.threads > 1 and edges > options.alone_edges
    end = control[FRONTIER_END]
    control[EDGES] = 0
    if edges > options.dense_edges:
        control[MODE] = DENSE
        control[DENSE_MASK] = 0
        control[TASK] = _TOP_DOWN
        _region(rows_out, rows_in, state, shared, thread)
        examined = control[EDGES]
        control[EDGES] = 0
        control[TASK] = _SWEEP
        _region(rows_out, rows_in, state, options.threads > 1, thread)
        control[WEIGHT] = control[EDGES]
        control[EDGES] = examined
        _take_next(control)
    else:
        if shared and edges <= options.parts_edges:
            control[MODE] = PARTS
            control[NUM_PARTS] = min(options.threads, MAX_PARTS)
            control[PARTS_TAKEN] = 0
            control[TASK] = _PARTS
            _region(rows_out, rows_in, state, shared, thread)
            join_parts(state)
        elif shared:
            control[MODE] = SPARSE
            control[TASK] = _TOP_DOWN
            _region(rows_out, rows_in, state, shared, thread)
        else:
            control[MODE] = ALONE
            top_down_alone(rows_out, state, thread)
        control[QUEUE_BEGIN] = end
        control[FRONTIER_END] = control[QUEUE_END]
        control[FRONTIER] = control[QUEUE_END] - end
        control[IN_BITMAP] = 0
    control[UNEXPLORED] -= control[EDGES]


@kernel
def _begin(rows_out, rows_in, state, options, thread):
    """Clear the results and visit the sources, which lie in the queue."""
    control, levels, parents = state.control, state.levels, state.parents
    visited = state.bitmaps[control[VISITED]]
    n = levels.size
    control[TASK] = _CLEAR
    _region(rows_out, rows_in, state, options.threads > 1, thread)
    if n & 63:
        visited[n >> 6] = ~ZERO << np.uint64(n & 63)
    for q in range(control[FRONTIER]):
        v = state.queue[q]
        visited[v >> 6] |= ONE << np.uint64(v & 63)
        levels[v] = 0
        if parents.size != 0:
            parents[v] = v


@kernel
def _lead(rows_out, rows_in, state, options, thread):
    """Run levels until the traversal is over or the time slice is."""
    control, records = state.control, state.records
    started = nanoseconds(options.clock)
    pause = started + _SLICE_NANOSECONDS
    if control[DEPTH] == 0:
        _begin(rows_out, rows_in, state, options, thread)
    while control[FRONTIER] != 0 and control[DEPTH] != options.max_depth:
        if options.target >= 0 and state.levels[options.target] >= 0:
            break
        if started > pause:
            return _PAUSED
        record = min(control[DEPTH], records.shape[0] - 1)
        control[LEVEL] = control[DEPTH] + 1
        frontier = control[FRONTIER]
        upward = False
        edges = frontier * rows_out.max_degree
        if control[IN_BITMAP] != 0 or edges > options.tiny_edges:
            upward, edges = _choose(rows_out, rows_in, state, options, thread)
        control[FOUND] = 0
        control[HEADS] = 0
        control[BYTES] = 0
        if upward:
            control[EDGES] = 0
            control[TESTED] = 0
            control[TASK] = _BOTTOM_UP
            _region(rows_out, rows_in, state, options.threads > 1, thread)
            still_open = control[TESTED] - control[FOUND]
            control[PROBED] = np.int64(control[EDGES] / max(1, control[TESTED]) * still_open)
            control[WEIGHT] = 0
            _take_next(control)
        else:
            _expand_top_down(rows_out, rows_in, state, options, edges, thread)
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
    return _FINISHED


@kernel
def _help(rows_out, rows_in, state, thread):
    """Join one region after the other until the leader calls it a day."""
    epoch = np.int64(0)
    while True:
        epoch = join_region(state.control, epoch)
        if epoch == FINISH:
            return
        _work(rows_out, rows_in, state, thread)
        leave_region(state.control)


def _compile_run(sources_checksum: int) -> Callable[..., int]:
    """Make the one compiled entry; the checksum is part of numba's cache key.

    numba only notices changes of the file that holds the cached function, not of those it calls.
    """

    @njit(nogil=True, cache=True, _nrt=False)
    def run(rows_out, rows_in, state, options, thread):
        if thread == 0:
            return _lead(rows_out, rows_in, state, options, thread)
        _help(rows_out, rows_in, state, thread)
        return sources_checksum

    compiled: Callable[..., int] = run
    return compiled


def _checksum_sources() -> int:
    folder = Path(__file__).parent
    names = sorted([*folder.glob("bfs*.py"), folder / "atomics.py", folder / "constants.py"])
    return zlib.crc32(b"".join(name.read_bytes() for name in names))


_run = _compile_run(_checksum_sources())

RECORD = np.dtype(
    [
        ("direction", "i8"),
        ("frontier", "i8"),
        ("edges", "i8"),
        ("heads", "i8"),
        ("tail_bytes", "i8"),
        ("seconds", "f8"),
    ]
)


class Traversal(NamedTuple):
    """What a traversal did: one record a level, the number of levels, and whether tails were bad."""

    records: NDArray[np.void]
    depth: int
    malformed: bool


def _read_only(rows: Rows) -> Rows:
    """Give the arrays one type, whether they are mapped or not: numba then compiles only once."""

    def freeze(array, dtype):
        view = np.ascontiguousarray(array, dtype).view(np.ndarray)[:]
        view.flags.writeable = False
        return view

    return Rows(
        freeze(rows.heads, np.uint32),
        freeze(rows.bases, np.uint64),
        freeze(rows.starts, np.uint32),
        freeze(rows.tails, np.uint8),
        freeze(rows.degrees, np.uint32),
        int(rows.shift),
        int(rows.num_edges),
        int(rows.max_degree),
    )


def traverse(
    rows_out: Rows,
    rows_in: Rows | None,
    sources: NDArray[np.uint32],
    levels: NDArray[np.int32],
    parents: NDArray[np.uint32] | None = None,
    *,
    threads: int = 1,
    alpha: float = 15.0,
    beta: float = 2.0,
    direction: int = AUTO,
    max_depth: int = -1,
    target: int = -1,
) -> Traversal:
    """Fill levels (and parents) with the distances from the nearest source, and say how.

    Parameters
    ----------
    rows_out, rows_in
        Out- and in-neighbours, the same object for undirected graphs; without rows_in, every
        level is top-down.
    sources
        Vertices at level 0, at least one, each below n.
    levels
        Gets the levels; -1 where nothing was reached.
    parents
        Gets a neighbour one level nearer, NO_HEAD where nothing was reached; None costs nothing.
    threads
        Threads to use, this one included.
    alpha, beta
        When to turn around, see above; larger values turn bottom-up earlier and stay so longer.
    direction
        AUTO, TOP_DOWN or BOTTOM_UP.
    max_depth, target
        Stop behind this level, or behind the level that holds this vertex; -1 for neither.
    """
    n = levels.size
    sources = np.unique(np.asarray(sources, np.uint32))
    rows_out = _read_only(rows_out)
    if rows_in is None:
        direction = TOP_DOWN
        rows_in = rows_out
    else:
        rows_in = _read_only(rows_in)
    control = np.zeros(CONTROL_WORDS, np.int64)
    queue = np.empty(n + 1, np.uint32)
    queue[: sources.size] = sources
    control[[QUEUE_END, FRONTIER_END, FRONTIER]] = sources.size
    control[[FRONT, NEXT, VISITED]] = 0, 1, 2
    control[UNEXPLORED] = rows_out.num_edges
    control[PROBED] = -1
    control[HUB_LIMIT] = HUB_BYTES
    state = State(
        levels,
        np.empty(0, np.uint32) if parents is None else parents,
        queue,
        np.zeros((3 + max(0, min(threads, MAX_DENSE) - 2), ((n + 63) >> 6) + 1), np.uint64),
        np.empty((threads, 2 * BATCH), np.uint32),
        np.empty((threads, 3 * PENDING), np.int64),
        np.empty((min(threads, MAX_PARTS), PARTS_EDGES), np.uint32),
        np.zeros((min(threads, MAX_PARTS), 8), np.int64),
        np.zeros(MAX_HUBS + 1, np.int64),
        np.zeros((MAX_RECORDS, 6), np.int64),
        control,
    )
    options = Options(
        threads,
        float(alpha),
        float(beta),
        direction,
        max_depth,
        target,
        time.CLOCK_MONOTONIC,
        -1 if direction == BOTTOM_UP else min(ALONE_EDGES, n >> DENSE_SHIFT),
        ALONE_EDGES,
        PARTS_LIMIT,
        n >> DENSE_SHIFT,
    )
    helpers = [
        threading.Thread(target=_run, args=(rows_out, rows_in, state, options, thread), daemon=True)
        for thread in range(1, threads)
    ]
    try:
        for helper in helpers:
            helper.start()
        while _run(rows_out, rows_in, state, options, 0) == _PAUSED:
            pass
    finally:
        control[GATE] = FINISH
        for helper in helpers:
            helper.join()
    depth = int(control[DEPTH])
    num_records = min(depth, MAX_RECORDS)
    records = np.empty(num_records, RECORD)
    for i, name in enumerate(RECORD.fields or ()):
        records[name] = state.records[:num_records, i]
    records["seconds"] *= 1e-9
    return Traversal(records, depth, bool(control[FAILED]))

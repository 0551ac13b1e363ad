"""Direction-optimizing breadth-first search on heads and tails, on all cores.

The level loop is compiled, so that a level costs nothing but its work: small frontiers are expanded
by the leading thread alone, large ones by all threads (see bfs_state). The direction of a level is
chosen by edges. Before the first bottom-up level, it is bottom-up when the frontier's edges exceed
the unexplored ones / alpha; afterwards, when they exceed 1 / beta of the edges that a bottom-up level
would examine, which the last one and the number of vertices it left open kernels.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oocbfs.kernels.bfs.levels import AUTO, BOTTOM_UP, PAUSED, TOP_DOWN, Options, lead, worker_loop
from oocbfs.kernels.bfs.state import (
    CONTROL_WORDS,
    DEPTH,
    FAILED,
    FRONT,
    FRONTIER,
    FRONTIER_END,
    HUB_LIMIT,
    MAX_DENSE,
    MAX_HUBS,
    MAX_PARTS,
    NEXT,
    NUM_PARTS,
    PARTS_EDGES,
    PENDING,
    PROBED,
    QUEUE_END,
    UNEXPLORED,
    VISITED,
    State,
)
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.rows import BATCH, Rows, one_row, read_only
from oocbfs.kernels.workers import run_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AUTO", "BOTTOM_UP", "TOP_DOWN", "Traversal", "load", "traverse"]

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


@compiled(_nrt=False)
def _run(rows_out, rows_in, state, options, thread):
    """Run levels on thread 0, and tasks of their regions on the others."""
    if thread == 0:
        return lead(rows_out, rows_in, state, options)
    return worker_loop(rows_out, rows_in, state, thread)


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
    rows_out = read_only(rows_out)
    if rows_in is None:
        direction = TOP_DOWN
        rows_in = rows_out
    else:
        rows_in = read_only(rows_in)
    control = np.zeros(CONTROL_WORDS, np.int64)
    queue = np.empty(n + 1 + 2 * PARTS_EDGES, np.uint32)
    queue[: sources.size] = sources
    control[[QUEUE_END, FRONTIER_END, FRONTIER]] = sources.size
    control[[FRONT, NEXT, VISITED]] = 0, 1, 2
    control[UNEXPLORED] = rows_out.num_edges
    control[PROBED] = -1
    control[HUB_LIMIT] = HUB_BYTES
    control[NUM_PARTS] = num_parts = min(threads, MAX_PARTS)
    state = State(
        levels,
        np.empty(0, np.uint32) if parents is None else parents,
        queue,
        np.zeros((3 + max(0, min(threads, MAX_DENSE) - 2), ((n + 63) >> 6) + 1), np.uint64),
        np.empty((threads, 2 * BATCH), np.uint32),
        np.empty((threads, 3 * PENDING), np.int64),
        np.empty((num_parts, PARTS_EDGES), np.uint32),
        np.zeros((num_parts, 8), np.int64),
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
    together = (rows_out, rows_in, state, options)
    run_together(_run, together, threads, control, paused=PAUSED, wait=False)
    depth = int(control[DEPTH])
    num_records = min(depth, MAX_RECORDS)
    records = np.empty(num_records, RECORD)
    for i, name in enumerate(RECORD.fields or ()):
        records[name] = state.records[:num_records, i]
    records["seconds"] *= 1e-9
    return Traversal(records, depth, bool(control[FAILED]))


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no traversal's time includes it."""
    nothing = np.empty(0, np.uint32)
    rows = one_row()
    traverse(rows, rows, np.zeros(1, np.uint32), np.empty(1, np.int32), nothing)

"""Direction-optimizing breadth-first search on heads and tails, on all cores.

The level loop is compiled, so that a level costs nothing but its work: the leading thread expands
small frontiers alone, all threads expand large ones (see levels.py). The direction of a level is
chosen by edges, as Beamer, Asanović and Patterson (SC 2012) do it. Before the first bottom-up
level, it is bottom-up when the frontier's edges exceed the unexplored ones / alpha; afterwards,
when they exceed 1 / beta of the edges that a bottom-up level would look at. Those are predicted
from the last one, and from the number of vertices that it left open.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.levels import PAUSED, lead, worker_loop
from oocbfs.kernels.bfs.state import (
    AUTO,
    BOTTOM_UP,
    CONTROL_WORDS,
    MAX_DENSE,
    MAX_HUBS,
    MAX_PARTS,
    PART_COLUMNS,
    PARTS_EDGES,
    PENDING,
    RECORD,
    TOP_DOWN,
    BfsOptions,
    BfsState,
)
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.rows import BATCH, Rows, one_row, read_only
from oocbfs.kernels.workers import run_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "AUTO",
    "BOTTOM_UP",
    "MAX_RECORDS",
    "RECORD",
    "TOP_DOWN",
    "BfsFound",
    "load",
    "traverse",
]

# A frontier with fewer edges is not worth waking the workers for.
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


class BfsFound(NamedTuple):
    """What a traversal did: a record a level, the number of levels, whether tails were bad."""

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
) -> BfsFound:
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
        Stop after this level, or after the level that holds this vertex; -1 for neither.
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
    control[[words.QUEUE_END, words.FRONTIER_END, words.FRONTIER_SIZE]] = sources.size
    control[[words.FRONTIER_BITMAP, words.NEXT_BITMAP, words.VISITED_BITMAP]] = 0, 1, 2
    control[words.UNEXPLORED_EDGES] = rows_out.num_edges
    control[words.BOTTOM_UP_EDGES] = -1
    control[words.HUB_BYTES] = HUB_BYTES
    control[words.NUM_PARTS] = num_parts = min(threads, MAX_PARTS)
    num_bitmaps = 3 + max(0, min(threads, MAX_DENSE) - 2)
    queue = np.empty(n + 1 + 2 * PARTS_EDGES, np.uint32)
    queue[: sources.size] = sources
    state = BfsState(
        levels=levels,
        parents=np.empty(0, np.uint32) if parents is None else parents,
        queue=queue,
        bitmaps=np.zeros((num_bitmaps, ((n + 63) >> 6) + 1), np.uint64),
        ids=np.empty((threads, 2 * BATCH), np.uint32),
        offsets=np.empty((threads, 3 * PENDING), np.int64),
        finds=np.empty((num_parts, PARTS_EDGES), np.uint32),
        parts=np.zeros((num_parts, PART_COLUMNS), np.int64),
        hubs=np.zeros(MAX_HUBS + 1, np.int64),
        records=np.zeros(MAX_RECORDS, RECORD),
        control=control,
    )
    options = BfsOptions(
        threads=threads,
        alpha=float(alpha),
        beta=float(beta),
        direction=direction,
        max_depth=max_depth,
        target=target,
        clock=time.CLOCK_MONOTONIC,
        tiny_edges=min(ALONE_EDGES, n >> DENSE_SHIFT),
        alone_edges=ALONE_EDGES,
        parts_edges=PARTS_LIMIT,
        dense_edges=n >> DENSE_SHIFT,
    )
    together = (rows_out, rows_in, state, options)
    run_together(_run, together, threads, control, paused=PAUSED, wait=False)
    depth = int(control[words.DEPTH])
    records = state.records[: min(depth, MAX_RECORDS)].copy()
    return BfsFound(records, depth, bool(control[words.FAILED]))


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no traversal's time includes it."""
    nothing = np.empty(0, np.uint32)
    rows = one_row()
    traverse(rows, rows, np.zeros(1, np.uint32), np.empty(1, np.int32), nothing)

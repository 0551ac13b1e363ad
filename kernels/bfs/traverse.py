"""Direction-optimizing breadth-first search on heads and tails, on all cores.

The level loop is compiled, so that a level costs nothing but its work: the leading thread expands
small frontiers alone, all threads expand large ones (see levels.py).
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types

from oocbfs.kernels.atomics import nanoseconds, store_release
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.bottom_up import bottom_up
from oocbfs.kernels.bfs.finish import (
    NAMES,
    RESULTS,
    Names,
    Results,
    finish,
    names_at,
    results_at,
)
from oocbfs.kernels.bfs.frontier import (
    bitmap_to_queue,
    clear_results,
    queue_to_bitmap,
    sweep,
    weigh,
)
from oocbfs.kernels.bfs.levels import FINISHED, PAUSED, lead, worker_loop
from oocbfs.kernels.bfs.small_levels import expand_parts, parts_to_queue
from oocbfs.kernels.bfs.state import (
    AUTO,
    BITMAP_TO_QUEUE,
    BOTTOM_UP,
    BOTTOM_UP_STEP,
    CONTROL_WORDS,
    DENSE_STEP,
    MAX_RECORDS,
    OPTIONS,
    PARTS_EDGES,
    PARTS_STEP,
    PARTS_TO_QUEUE,
    QUEUE_TO_BITMAP,
    RECORD,
    SPARSE_STEP,
    STATE,
    SWEEP,
    TOP_DOWN,
    WEIGH,
    BfsOptions,
    BfsScratch,
    BfsState,
    options_at,
    state_at,
)
from oocbfs.kernels.bfs.top_down import top_down_dense, top_down_sparse
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.compiling import address_of, prepare_together
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.region import ALONE, FINISH, GATE, STARTED, TASK
from oocbfs.kernels.results.levels import count_levels
from oocbfs.kernels.rows import Rows, one_row, rows_at
from oocbfs.kernels.structs import Struct
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
    "BfsScratch",
    "Names",
    "load",
    "traverse",
]

# A frontier with fewer edges is not worth waking the workers for.
ALONE_EDGES = 512
# A frontier with fewer edges is expanded in parts, one a thread.
PARTS_LIMIT = PARTS_EDGES
# But not before this level: only meshes, roads and the like have many middling levels.
FIRST_PARTS = 32
# A frontier with more edges than n / 64 is expanded densely.
DENSE_SHIFT = 6
# After a traversal that had to wait for a worker, so many are left to the leader alone.
CALLS_ALONE = 8
# A row with more segments is shared between threads.
HUB_SEGMENTS = 16


@compiled(types.int64(*[types.int64] * 4), _nrt=False)
def _do_work(rows_out, rows_in, state, thread):
    """Do one thread's part of the open region; arguments are addresses, but for the thread."""
    rows_out, rows_in, state = rows_at(rows_out), rows_at(rows_in), state_at(state)
    task = state.control[TASK]
    if task == BOTTOM_UP_STEP:
        bottom_up(rows_in, rows_out.degrees, state, thread)
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
    return 0


@compiled(types.int64(*[types.int64] * 7), _nrt=False)
def _run(rows_out, rows_in, state, options, names, results, thread):
    """Run levels on thread 0, and tasks of their regions on the others; all name the results.

    But for the thread, arguments are the addresses of structs.
    """
    rows_out, rows_in, state = rows_at(rows_out), rows_at(rows_in), state_at(state)
    if thread == 0:
        outcome = lead(rows_out, rows_in, state, options_at(options))
        if outcome == PAUSED:
            return outcome
        state.control[words.NAMING_BEGAN] = nanoseconds(options_at(options).clock)
        store_release(state.control, GATE, FINISH)
    else:
        worker_loop(rows_out, rows_in, state, thread)
    finish(state, names_at(names), results_at(results), rows_out.degrees, thread)
    return FINISHED


def _run_structs(*structs_and_thread: Any) -> int:  # noqa: ANN401
    """Run the compiled function, whose structs this call keeps alive."""
    *structs, thread = structs_and_thread
    outcome: int = _run(*(struct.address for struct in structs), thread)
    return outcome


class BfsFound(NamedTuple):
    """What a traversal did.

    A record a level, the number of levels, whether tails were bad, how many vertices each level
    has, how many edges those have that were reached, and how long the naming took.
    """

    records: NDArray[np.void]
    depth: int
    malformed: bool
    sizes: NDArray[np.int64]
    edges: int
    naming_seconds: float


_NONE = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.int64)
_STORED = Names(_NONE, _NONE, np.empty(0, np.uint64), 0)


def traverse(
    rows_out: Rows,
    rows_in: Rows | None,
    sources: NDArray[np.uint32],
    levels: NDArray[np.int32],
    parents: NDArray[Any] | None = None,
    *,
    names: Names | None = None,
    threads: int = 1,
    direction: int = AUTO,
    max_depth: int = -1,
    target: int = -1,
    kept: list[BfsScratch] | None = None,
) -> BfsFound:
    """Fill levels (and parents) with the distances from the nearest source, and say how.

    Parameters
    ----------
    rows_out, rows_in
        Out- and in-neighbours, the same object for undirected graphs; without rows_in, every
        level is top-down. Vertices without edges may be left out at the end.
    sources
        Vertices at level 0, at least one, each with a row.
    levels
        Gets the levels; -1 where nothing was reached.
    parents
        Gets a neighbour one level nearer, NO_HEAD where nothing was reached; None costs nothing.
    names
        Put levels in the order of ids, and give parents as ids, int64, -1 where nothing was
        reached.
    threads
        Threads to use, this one included.
    direction
        AUTO, TOP_DOWN or BOTTOM_UP.
    max_depth, target
        Stop after this level, or after the level that holds this vertex; -1 for neither.
    kept
        Memory of earlier traversals of the same rows, which saves asking the system for it.
    """
    sources = np.asarray(sources, np.uint32)
    if sources.size > 1:
        sources = np.unique(sources)
    if rows_in is None:
        direction = TOP_DOWN
        rows_in = rows_out
    scratch = BfsScratch.take(kept, rows_out, rows_in, threads)
    state = _make_state(scratch, sources, levels, parents, rows_out, names)
    control = state.control
    if scratch.calls_alone > 0:
        threads = 1
    options = BfsOptions(
        threads=threads,
        direction=direction,
        max_depth=max_depth,
        target=target if target < rows_out.heads.size else -1,
        clock=time.CLOCK_MONOTONIC,
        tiny_edges=min(ALONE_EDGES, rows_out.heads.size >> DENSE_SHIFT),
        alone_edges=ALONE_EDGES,
        parts_edges=PARTS_LIMIT,
        first_parts=FIRST_PARTS,
        dense_edges=rows_out.heads.size >> DENSE_SHIFT,
    )
    ids = _NO_IDS if names is None or parents is None else parents
    results = Results(levels, ids, scratch.counts)
    structs = _make_structs(scratch, (state, options, names or _STORED, results))
    together = (scratch.rows_out, scratch.rows_in, *structs)
    run_together(_run_structs, together, threads, control, paused=PAUSED, wait=False)
    naming_seconds = (time.monotonic_ns() - int(control[words.NAMING_BEGAN])) * 1e-9
    scratch.calls_alone = CALLS_ALONE if control[ALONE] else max(0, scratch.calls_alone - 1)
    found = _sum_up(scratch, control, levels, rows_out)._replace(naming_seconds=naming_seconds)
    if kept is not None:
        kept.append(scratch)
    return found


def _make_structs(scratch: BfsScratch, tuples: tuple[Any, ...]) -> tuple[Struct, ...]:
    """Make structs of the tuples, from those of the last traversal if there was one."""
    if scratch.structs is None:
        structs = tuple(map(Struct, (STATE, OPTIONS, NAMES, RESULTS), tuples))
    else:
        pairs = zip(scratch.structs, tuples, strict=True)
        structs = tuple(struct.with_values(values) for struct, values in pairs)
    scratch.structs = structs
    return structs


def _make_state(
    scratch: BfsScratch,
    sources: NDArray[np.uint32],
    levels: NDArray[np.int32],
    parents: NDArray[Any] | None,
    rows: Rows,
    names: Names | None,
) -> BfsState:
    """Put together what threads share. Control words are new: a late worker may still read them."""
    control = np.zeros(CONTROL_WORDS, np.int64)
    control[[words.QUEUE_END, words.FRONTIER_END, words.FRONTIER_SIZE]] = sources.size
    control[[words.FRONTIER_BITMAP, words.NEXT_BITMAP, words.VISITED_BITMAP]] = 0, 1, 2
    control[words.UNEXPLORED_EDGES] = rows.num_edges
    control[words.BOTTOM_UP_EDGES] = -1
    control[words.HUB_SEGMENTS] = HUB_SEGMENTS
    control[words.WORK_ADDRESS] = _work_address()
    control[STARTED] = time.monotonic_ns()
    control[words.NUM_PARTS] = scratch.parts.shape[0]
    scratch.queue[: sources.size] = sources
    if parents is None:
        parents = _NONE
    elif names is not None:
        parents = scratch.parents
    else:
        parents[rows.heads.size :] = NO_HEAD
    return BfsState(
        levels=scratch.levels,
        deep_levels=levels if names is None else scratch.deep_levels,
        parents=parents,
        queue=scratch.queue,
        bitmaps=scratch.bitmaps,
        ids=scratch.ids,
        offsets=scratch.offsets,
        finds=scratch.finds,
        parts=scratch.parts,
        hubs=scratch.hubs,
        records=scratch.records,
        control=control,
    )


def _sum_up(
    scratch: BfsScratch, control: NDArray[np.int64], levels: NDArray[np.int32], rows: Rows
) -> BfsFound:
    """Say what was found, and clear what the next traversal expects to be clear."""
    depth = int(control[words.DEPTH])
    records = scratch.records[: min(depth, scratch.records.size)].copy()
    scratch.records[: records.size] = 0
    if depth >= scratch.records.size:
        # A traversal that failed may have found some of the next level.
        sizes = np.zeros(depth + 2, np.int64)
        count_levels(sizes, levels, 0, levels.size)
        sizes = sizes[: depth + 1]
    elif control[words.NUM_REPEATS] > 0:
        sizes = scratch.counts[:, : depth + 1].sum(axis=0, dtype=np.int64)
        scratch.counts[:, : depth + 2] = 0
    else:
        sizes = np.empty(depth + 1, np.int64)
        sizes[:depth] = records["frontier"]
        sizes[depth] = control[words.FRONTIER_SIZE]
    edges = int(control[words.SUMMED_EDGES])
    if 2 * control[words.NUM_FOUND] >= rows.heads.size:
        edges = rows.num_edges - edges
    if sizes[-1] == 0:  # nothing was found any more
        sizes = sizes[:-1]
    return BfsFound(records, depth, bool(control[words.FAILED]), sizes, edges, 0.0)


@cache
def _work_address() -> int:
    """Give the address of what does the work of regions."""
    return address_of(_do_work)


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no traversal's time includes it."""
    prepare_together(_do_work, _run)
    rows = one_row()
    traverse(rows, rows, np.zeros(1, np.uint32), np.empty(1, np.int32))

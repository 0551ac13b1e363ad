"""Direction-optimizing breadth-first search on heads and tails, on all cores.

The level loop is compiled, so that a level costs nothing but its work: the leading thread expands
small frontiers alone, all threads expand large ones (see levels.py).
"""

from __future__ import annotations

import time
from functools import cache, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from oocbfs.kernels.atomics import kernel, nanoseconds, store_release
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.bottom_up import bottom_up
from oocbfs.kernels.bfs.finish import (
    SMALL_RESULTS,
    Results,
    ToIds,
    finish,
    plan_finish,
    results_at,
    to_ids_at,
)
from oocbfs.kernels.bfs.frontier import (
    bitmap_to_queue,
    clear_results,
    queue_to_bitmap,
    sum_degrees,
    sweep,
)
from oocbfs.kernels.bfs.levels import FINISHED, PAUSED, SHARED, lead, worker_loop
from oocbfs.kernels.bfs.small_levels import expand_local_queues, merge_local_queues
from oocbfs.kernels.bfs.state import (
    AUTO,
    BITMAP_TO_QUEUE,
    BOTTOM_UP,
    BOTTOM_UP_STEP,
    DENSE_STEP,
    LOCAL_LIMIT,
    LOCAL_STEP,
    MAX_RECORDS,
    MERGE_LOCAL_QUEUES,
    QUEUE_TO_BITMAP,
    SPARSE_STEP,
    SUM_DEGREES,
    SWEEP,
    TOP_DOWN,
    BfsFound,
    BfsOptions,
    BfsScratch,
    BfsState,
    options_at,
    state_at,
)
from oocbfs.kernels.bfs.top_down import top_down_dense, top_down_sparse
from oocbfs.kernels.bitmaps import DEEP
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.compiling import address_of, code_of, prepare_together
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.parking import Parking, cancel_wake, read_arguments, spin_then_park, wake
from oocbfs.kernels.region import ALONE, FINISH, GATE, STARTED, TASK, run_together
from oocbfs.kernels.rows import Rows, one_row, rows_at
from oocbfs.kernels.structs import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "AUTO", "BOTTOM_UP", "CODE", "MAX_RECORDS", "TOP_DOWN", "BfsFound", "BfsScratch",
    "ToIds", "load", "search",
]  # fmt: skip

# A frontier with fewer edges is not worth waking the workers for. Before level
# FIRST_LOCAL_QUEUES, all threads together need bitmaps, which takes longer than local queues.
ALONE_EDGES, EARLY_EDGES = 512, 4096
# Workers are called when a search has looked at so many edges and its frontier is worth sharing.
WAKE_EDGES = 1 << 15
# A frontier with fewer edges is expanded in local queues, one a thread.
MOST_LOCAL_EDGES = LOCAL_LIMIT
# But not before this level: only meshes, roads and the like have many middling levels.
FIRST_LOCAL_QUEUES = 32
# A frontier with more edges than n / 32 is expanded densely.
DENSE_SHIFT = 5
# After one that waited for a worker, so many are left to the leader; deep ones wait at each level.
CALLS_ALONE, DEEP_CALLS_ALONE = 8, 64


@compiled(types.int64(*[types.int64] * 4), _nrt=False)
def _do_work(rows_out, rows_in, state, thread):
    """Do one thread's part of the open region; arguments are addresses, but for the thread."""
    rows_out, rows_in, state = rows_at(rows_out), rows_at(rows_in), state_at(state)
    task = state.control[TASK]
    if task == BOTTOM_UP_STEP:
        bottom_up(rows_in, rows_out.degrees, state, np.int64(0), thread)
    elif task == DENSE_STEP:
        top_down_dense(rows_out, state, thread)
    elif task == SPARSE_STEP:
        top_down_sparse(rows_out, state, thread)
    elif task == LOCAL_STEP:
        expand_local_queues(rows_out, state, thread)
    elif task == MERGE_LOCAL_QUEUES:
        merge_local_queues(state, thread)
    elif task == SWEEP:
        sweep(rows_out, state)
    elif task == SUM_DEGREES:
        sum_degrees(rows_out, state)
    elif task == QUEUE_TO_BITMAP:
        queue_to_bitmap(state)
    elif task == BITMAP_TO_QUEUE:
        bitmap_to_queue(state)
    else:
        clear_results(state)
    return 0


@kernel
def _lead(rows_out, rows_in, state, options, to_ids, results):
    """Run levels until Python must do something, or to the end; then name the results."""
    rows_out, rows_in, state = rows_at(rows_out), rows_at(rows_in), state_at(state)
    control, options, results = state.control, options_at(options), results_at(results)
    outcome = lead(rows_out, rows_in, state, options)
    if outcome != FINISHED:
        return outcome
    if results.levels.size > SMALL_RESULTS and options.threads > 1 and control[words.WOKEN] == 0:
        control[words.WOKEN] = 1
        return SHARED
    control[words.TO_IDS_BEGAN] = nanoseconds(options.clock)
    plan_finish(state, rows_out.heads.size)
    store_release(control, GATE, FINISH)
    finish(state, to_ids_at(to_ids), results, rows_out.degrees, np.int64(0))
    return FINISHED


@kernel
def _follow(rows_out, rows_in, state, to_ids, results, thread):
    """Take part in regions until the leader is done, and in bringing results to ids."""
    rows_out, rows_in, state = rows_at(rows_out), rows_at(rows_in), state_at(state)
    worker_loop(rows_out, rows_in, state, thread)
    finish(state, to_ids_at(to_ids), results_at(results), rows_out.degrees, thread)


@compiled(types.int64(*[types.int64] * 7), _nrt=False)
def _run(rows_out, rows_in, state, options, to_ids, results, thread):
    """Run levels on thread 0, and tasks of their regions on the others; all name the results.

    But for the thread, arguments are the addresses of structs. A worker then waits for the next
    search for a while.
    """
    if thread == 0:
        mailbox = state_at(state).mailbox
        if state_at(state).control[words.WOKEN]:
            wake(mailbox, rows_out, rows_in, state, options, to_ids, results)
        outcome = _lead(rows_out, rows_in, state, options, to_ids, results)
        if outcome == FINISHED:
            cancel_wake(mailbox)
        return outcome
    is_owner = False
    while True:
        _follow(rows_out, rows_in, state, to_ids, results, thread)
        mailbox = state_at(state).mailbox
        if not spin_then_park(mailbox, thread, is_owner):
            return FINISHED
        is_owner = True
        rows_out, rows_in, state, options, to_ids, results = read_arguments(mailbox, thread)


def _run_structs(parking: Parking, *structs_and_thread: Any) -> int:
    """Run the compiled function; this call keeps alive its structs and those it is woken with."""
    *structs, thread = structs_and_thread
    outcome: int = _run(*map(_ADDRESS, structs), thread)
    return outcome


_ADDRESS = attrgetter("address")
_NONE = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.int64)
_STORED = ToIds(_NONE, _NONE, np.empty(0, np.uint64), 0)


def search(
    rows_out: Rows,
    rows_in: Rows | None,
    sources: NDArray[np.uint32],
    levels: NDArray[np.int32],
    parents: NDArray[Any] | None = None,
    *,
    to_ids: ToIds | None = None,
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
        Memory of earlier searches of the same rows, which saves asking the system for it.
    """
    sources = np.asarray(sources, np.uint32)
    if sources.size > 1:
        sources = np.unique(sources)
    if rows_in is None:
        direction = TOP_DOWN
        rows_in = rows_out
    scratch = BfsScratch.take(kept, rows_out, rows_in, threads)
    scratch.control[words.WORK_ADDRESS] = address_of(_do_work)
    if scratch.calls_alone > 0:
        threads = 1
    state = _make_state(scratch, sources, levels, parents, rows_out, to_ids, threads)
    control = state.control
    options = BfsOptions(
        threads=threads,
        direction=direction,
        max_depth=max_depth,
        target=target if target < rows_out.heads.size else -1,
        clock=time.CLOCK_MONOTONIC,
        unexplored_edges=rows_out.num_arcs - WAKE_EDGES,
        early_edges=EARLY_EDGES,
        alone_edges=ALONE_EDGES,
        local_edges=MOST_LOCAL_EDGES,
        first_local_queues=FIRST_LOCAL_QUEUES,
        dense_edges=rows_out.heads.size >> DENSE_SHIFT,
    )
    ids = _NO_IDS if to_ids is None or parents is None else parents
    results = Results(levels, ids, scratch.counts)
    structs = _make_structs(scratch, (state, to_ids or _STORED, results))
    rows_and_state = (scratch.rows_out, scratch.rows_in, structs[0])
    together = (*rows_and_state, _options_struct(options), *structs[1:])
    parking = scratch.parking
    while (outcome := _run_structs(parking, *together, 0)) == PAUSED:
        pass
    if outcome == SHARED:
        workers = parking.absent(together, threads)
        arguments = (parking, *together)
        run_together(_run_structs, arguments, workers, control, paused=PAUSED, wait=False)
    # Workers that are late find nothing to do, and may hold the struct for long.
    structs[-1].release()
    to_ids_seconds = (time.monotonic_ns() - int(control[words.TO_IDS_BEGAN])) * 1e-9
    if control[ALONE]:
        scratch.calls_alone = CALLS_ALONE if control[words.DEPTH] < DEEP else DEEP_CALLS_ALONE
    else:
        scratch.calls_alone = max(0, scratch.calls_alone - 1)
    scratch.control[words.LEVELS_CLEAR] = control[words.LEVELS_CLEAR]
    if to_ids is not None:
        scratch.control[words.PARENTS_CLEAR] = control[words.PARENTS_CLEAR]
    found = scratch.sum_up(control, levels, to_ids_seconds)
    if kept is not None:
        kept.append(scratch)
    return found


@lru_cache(maxsize=64)
def _options_struct(options: BfsOptions) -> Struct:
    return Struct(options)


def _make_structs(scratch: BfsScratch, tuples: tuple[Any, ...]) -> tuple[Struct, ...]:
    """Make structs of the tuples, from those of the last search if there was one."""
    if scratch.structs is None:
        scratch.structs = tuple(map(Struct, tuples))
    else:
        scratch.structs = tuple(map(Struct.with_values, scratch.structs, tuples))
    return scratch.structs


def _make_state(
    scratch: BfsScratch,
    sources: NDArray[np.uint32],
    levels: NDArray[np.int32],
    parents: NDArray[Any] | None,
    rows: Rows,
    to_ids: ToIds | None,
    threads: int,
) -> BfsState:
    """Put together what threads share. Control words are new: a late worker may still read them."""
    control = scratch.control.copy()
    control[words.QUEUE_END] = sources.size
    control[words.FRONTIER_END] = sources.size
    control[words.FRONTIER_SIZE] = sources.size
    control[STARTED] = time.monotonic_ns()
    scratch.queue[: sources.size] = sources
    if parents is None:
        parents = _NONE
    elif to_ids is not None:
        parents = scratch.parents
    else:
        control[words.PARENTS_CLEAR] = 0
        parents[rows.heads.size :] = NO_HEAD
    return BfsState(
        levels=scratch.levels,
        deep_levels=levels if to_ids is None else scratch.deep_levels,
        parents=parents,
        queue=scratch.queue,
        bitmaps=scratch.bitmaps,
        ids=scratch.ids,
        probing=scratch.probing,
        finds=scratch.finds,
        local_queues=scratch.local_queues,
        hubs=scratch.hubs,
        records=scratch.records,
        mailbox=scratch.parking.mailbox if threads > 1 else _NO_IDS,
        control=control,
    )


CODE = (code_of(_do_work), code_of(_run))


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no search's time includes it."""
    prepare_together(_do_work, _run)
    rows = one_row()
    search(rows, rows, np.zeros(1, np.uint32), np.empty(1, np.int32))

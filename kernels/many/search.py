"""Breadth-first search from up to 64 sources at once, on all cores."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oocbfs.kernels.cache import compiled
from oocbfs.kernels.compiling import Code
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import SPARE
from oocbfs.kernels.many import state as words
from oocbfs.kernels.many.levels import NO_ROOM, PAUSED, TOO_DEEP, lead, worker_loop
from oocbfs.kernels.many.state import (
    BLOCK,
    CHUNK,
    CONTROL_WORDS,
    FIRST_FRONTIER,
    MANY_RECORD,
    MAX_RECORDS,
    WIDTH,
    ManyOptions,
    ManyState,
)
from oocbfs.kernels.region import GATE, run_together
from oocbfs.kernels.rows import Rows, one_row, read_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "MANY_RECORD",
    "WIDTH",
    "ManyFound",
    "bytes_per_vertex",
    "load",
    "num_words",
    "search_many",
]

# A frontier whose edges are at most n / 32 touches only its own vertices.
_SPARSE_SHIFT = 5
# Threads that go top-down at a time: each but the first needs a word a vertex for what it marks.
_MAX_TOP_DOWN_THREADS = 4
# Enough for levels 0 … 14; more are added when they are needed.
_FIRST_PLANES = 4


class ManyFound(NamedTuple):
    """What a search found.

    sizes
        Vertices of each level, one row a level, one column a source.
    planes
        Bits of each vertex's level plus 1, one plane a bit, one bit of a word a source; None unless
        they were asked for.
    records
        What each level did: its sources that went top-down and those that went bottom-up, as bits.
    malformed, too_deep
        Whether tails were bad, and whether the search was given up; then the rest means nothing.
    """

    sizes: NDArray[np.int64]
    planes: NDArray[np.uint64] | None
    records: NDArray[np.void]
    malformed: bool
    too_deep: bool


@compiled(_nrt=False)
def _run(rows_out, rows_in, state, options, thread):
    """Run levels on thread 0, and tasks of their regions on the others."""
    if thread == 0:
        return lead(rows_out, rows_in, state, options)
    return worker_loop(rows_out, rows_in, state, thread)


def num_words(threads: int) -> int:
    """Words that a vertex takes: seen, frontier, and one for each thread that goes top-down."""
    return 2 + min(threads, _MAX_TOP_DOWN_THREADS)


def bytes_per_vertex(threads: int, *, levels: bool) -> int:
    """Bytes that a vertex takes: words, lists, and planes, one of them twice."""
    return 8 * num_words(threads) + 8 + (8 * (2 * _FIRST_PLANES + 1) if levels else 0)


def search_many(
    rows_out: Rows,
    rows_in: Rows,
    sources: NDArray[np.uint32],
    *,
    levels: bool = False,
    threads: int = 1,
    alpha: float = 30.0,
    max_levels: int = -1,
    sets: NDArray[np.uint64] | None = None,
    targets: Sequence[NDArray[np.int64]] | None = None,
) -> ManyFound:
    """Find the distance of every vertex from each of up to 64 sources.

    Parameters
    ----------
    rows_out, rows_in
        Out- and in-neighbours, the same object for undirected graphs.
    sources
        Vertices at level 0, each below n; one may come twice.
    levels
        Keep the level of every vertex from every source.
    threads
        Threads to use, this one included.
    alpha
        A source goes bottom-up when its frontier has more edges than its unexplored ones / alpha.
    max_levels
        Give up a graph that has more levels; -1 for never.
    sets
        Zeros to work in, ``num_words`` times n; None allocates them.
    targets
        What each source looks for: it goes no level further when it has found them, and its
        ``sizes`` are not all that there are. None searches all that there is.
    """
    n = rows_out.heads.size
    control = np.zeros(CONTROL_WORDS, np.int64)
    control[[words.DEPTH, words.FRONTIER_ROW]] = -1, FIRST_FRONTIER
    control[words.LIST_END] = sources.size
    missing = np.full(WIDTH, -1, np.int64)
    looked_for, askers = np.empty(0, np.uint32), np.empty(0, np.uint8)
    if targets is not None:
        missing[: sources.size] = [found.size for found in targets]
        looked_for = np.concatenate(targets).astype(np.uint32)
        askers = np.repeat(np.arange(sources.size, dtype=np.uint8), missing[: sources.size])
        control[words.NUM_MISSING] = looked_for.size
    lists = np.empty((2, n + WIDTH), np.uint32)
    lists[0, : sources.size] = sources
    if sets is None:
        sets = np.zeros((num_words(threads), n), np.uint64)
    state = ManyState(
        sets=sets,
        planes=np.zeros((_FIRST_PLANES if levels else 0, n), np.uint64),
        common=np.zeros(n // BLOCK + 1, np.uint64),
        idle=np.zeros(n // BLOCK + 1, np.uint8),
        lists=lists,
        ids=np.empty((threads, max(CHUNK, SEGMENT_BYTES) + 1 + SPARE), np.uint32),
        wanted=np.empty((threads, CHUNK + 1), np.uint64),
        offsets=np.empty((threads, 3 * CHUNK), np.int64),
        counts=np.zeros((threads, WIDTH), np.int64),
        degree_sums=np.zeros((threads, WIDTH), np.float64),
        byte_counts=np.zeros((threads, WIDTH), np.uint8),
        masks=np.zeros(2, np.uint64),
        unexplored=np.zeros(WIDTH, np.float64),
        targets=looked_for,
        askers=askers,
        missing=missing,
        sizes=np.zeros((MAX_RECORDS, WIDTH), np.int64),
        records=np.zeros(MAX_RECORDS, MANY_RECORD),
        control=control,
    )
    options = ManyOptions(
        threads=threads,
        alpha=float(alpha),
        sparse_edges=n >> _SPARSE_SHIFT,
        max_levels=max_levels,
        clock=time.CLOCK_MONOTONIC,
    )
    rows = read_only(rows_out), read_only(rows_in)
    sizes: list[NDArray[np.int64]] = []
    records: list[NDArray[np.void]] = []
    while (outcome := _run_until_full(*rows, state, options)) == NO_ROOM:
        _drain(state, sizes, records)
        if levels and control[words.DEPTH] + 2 >> state.planes.shape[0]:
            more = np.zeros((1, n), np.uint64)
            state = state._replace(planes=np.concatenate((state.planes, more)))
    _drain(state, sizes, records)
    return ManyFound(
        sizes=np.concatenate(sizes)[:, : sources.size],
        planes=state.planes[: int(control[words.DEPTH] + 1).bit_length()] if levels else None,
        records=np.concatenate(records),
        malformed=bool(control[words.FAILED]),
        too_deep=outcome == TOO_DEEP,
    )


def _run_until_full(rows_out: Rows, rows_in: Rows, state: ManyState, options: ManyOptions) -> int:
    """Run levels until the search is over or a result has no more room."""
    state.control[GATE] = 0
    together = (rows_out, rows_in, state, options)
    others = range(1, options.threads)
    return run_together(_run, together, others, state.control, paused=PAUSED, wait=True)


def _drain(
    state: ManyState, sizes: list[NDArray[np.int64]], records: list[NDArray[np.void]]
) -> None:
    """Take away what the level loop recorded."""
    count = int(state.control[words.DEPTH] - state.control[words.NUM_DRAINED])
    state.control[words.NUM_DRAINED] = state.control[words.DEPTH]
    sizes.append(state.sizes[:count].copy())
    records.append(state.records[:count].copy())


CODE = (Code(_run, __name__, "load"),)


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no search's time includes it."""
    rows = one_row()
    search_many(rows, rows, np.zeros(1, np.uint32))

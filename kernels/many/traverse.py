"""Breadth-first search from up to 64 sources at once, on all cores."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.many.levels import FULL, PAUSED, TOO_DEEP, Options, lead, worker_loop
from oocbfs.kernels.many.state import (
    BLOCK,
    CHUNK,
    CONTROL_WORDS,
    DEPTH,
    DRAINED,
    FAILED,
    FRONT,
    LIST_END,
    MAX_RECORDS,
    State,
)
from oocbfs.kernels.region import GATE
from oocbfs.kernels.rows import Rows, one_row, read_only
from oocbfs.kernels.workers import run_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Sources of one traversal: the bits of a word.
WIDTH = 64
# A frontier whose edges are at most n / 32 touches only its own vertices.
_SPARSE_SHIFT = 5
# Threads that push at a time: each but the first needs a word a vertex for its finds.
_MAX_PUSHING = 4
# Enough for levels 0 … 14; more are added when they are needed.
_FIRST_PLANES = 4

RECORD = np.dtype(
    [
        ("pushing", "u8"),
        ("pulling", "u8"),
        ("weight", "i8"),
        ("edges", "i8"),
        ("heads", "i8"),
        ("tail_bytes", "i8"),
        ("seconds", "f8"),
    ]
)


class Found(NamedTuple):
    """What a traversal found.

    sizes
        Vertices of each level, one row a level, one column a source.
    planes
        Bits of each vertex's level plus 1, one plane a bit, one bit of a word a source; None unless
        they were asked for.
    records
        What each level did: its sources that pushed and those that were pulled, as bits.
    malformed, too_deep
        Whether tails were bad, and whether the traversal was given up; then the rest means nothing.
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
    """Words that a traversal takes for each vertex: seen, frontier, and finds of those who push."""
    return 2 + min(threads, _MAX_PUSHING)


def bytes_per_vertex(threads: int, *, levels: bool) -> int:
    """Memory that a traversal takes for each vertex: words, lists, and planes, one of them twice."""
    return 8 * num_words(threads) + 8 + (8 * (2 * _FIRST_PLANES + 1) if levels else 0)


def traverse_many(
    rows_out: Rows,
    rows_in: Rows,
    sources: NDArray[np.uint32],
    *,
    levels: bool = False,
    threads: int = 1,
    alpha: float = 30.0,
    max_levels: int = -1,
    words: NDArray[np.uint64] | None = None,
) -> Found:
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
        A source is pulled when its frontier has more edges than its unexplored ones / alpha.
    max_levels
        Give up a graph that has more levels; -1 for never.
    words
        Zeros to work in, ``num_words`` times n; None allocates them.
    """
    n = rows_out.heads.size
    control = np.zeros(CONTROL_WORDS, np.int64)
    control[[DEPTH, FRONT, LIST_END]] = -1, 1, sources.size
    lists = np.empty((2, n + WIDTH), np.uint32)
    lists[0, : sources.size] = sources
    state = State(
        np.zeros((num_words(threads), n), np.uint64) if words is None else words,
        np.zeros((_FIRST_PLANES if levels else 0, n), np.uint64),
        np.zeros(n // BLOCK + 1, np.uint64),
        np.zeros(n // BLOCK + 1, np.uint8),
        lists,
        np.empty((threads, max(CHUNK, SEGMENT_BYTES) + 1), np.uint32),
        np.empty((threads, CHUNK + 1), np.uint64),
        np.empty((threads, 3 * CHUNK), np.int64),
        np.zeros((threads, WIDTH), np.int64),
        np.zeros((threads, WIDTH), np.float64),
        np.zeros((threads, WIDTH), np.uint8),
        np.zeros(2, np.uint64),
        np.zeros(WIDTH, np.float64),
        np.zeros((MAX_RECORDS, WIDTH), np.int64),
        np.zeros((MAX_RECORDS, len(RECORD.fields or ())), np.int64),
        control,
    )
    options = Options(threads, float(alpha), n >> _SPARSE_SHIFT, max_levels, time.CLOCK_MONOTONIC)
    rows = read_only(rows_out), read_only(rows_in)
    sizes: list[NDArray[np.int64]] = []
    records: list[NDArray[np.void]] = []
    while (outcome := _run_until_full(*rows, state, options)) == FULL:
        _drain(state, sizes, records)
        if levels and control[DEPTH] + 2 >> state.planes.shape[0]:
            more = np.zeros((1, n), np.uint64)
            state = state._replace(planes=np.concatenate((state.planes, more)))
    _drain(state, sizes, records)
    return Found(
        np.concatenate(sizes)[:, : sources.size],
        state.planes[: int(control[DEPTH] + 1).bit_length()] if levels else None,
        np.concatenate(records),
        bool(control[FAILED]),
        outcome == TOO_DEEP,
    )


def _run_until_full(rows_out: Rows, rows_in: Rows, state: State, options: Options) -> int:
    """Run levels until the traversal is over or a result has no more room."""
    state.control[GATE] = 0
    together = (rows_out, rows_in, state, options)
    return run_together(_run, together, options.threads, state.control, paused=PAUSED, wait=True)


def _drain(state: State, sizes: list[NDArray[np.int64]], records: list[NDArray[np.void]]) -> None:
    """Take away what the level loop recorded."""
    count = int(state.control[DEPTH] - state.control[DRAINED])
    state.control[DRAINED] = state.control[DEPTH]
    sizes.append(state.sizes[:count].copy())
    taken = np.empty(count, RECORD)
    for i, name in enumerate(RECORD.names or ()):
        taken[name] = state.records[:count, i].view(np.uint64 if i < 2 else np.int64)
    taken["seconds"] *= 1e-9
    records.append(taken)


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no traversal's time includes it."""
    rows = one_row()
    traverse_many(rows, rows, np.zeros(1, np.uint32))

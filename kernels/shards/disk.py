"""Steps on a shard of a graph whose tails stay on disk; see ``kernels.disk.stream``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, count_ones, inlined, kernel
from oocbfs.kernels.bottom_up.heads import answer_by_heads
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.level_streams import Bitmaps, make_level
from oocbfs.kernels.shards.top_down import mark

# Where TESTED is among the control words of ``kernels.disk.state``: one that is not used here.
TESTED = words.FRONTIER_SIZE


class DiskShardState(NamedTuple):
    """The arrays of a step; a *full* bitmap is of all vertices and a word more, others are own.

    frontier
        Full in a bottom-up step; what a top-down step is to expand is in ``wanted``.
    visited, wanted
        Rows that are visited, and rows whose tails are read.
    found
        Own in a bottom-up step, full in a top-down step.
    parents
        In a bottom-up step, if parents are wanted: a vertex for each row that was found.
    """

    frontier: NDArray[np.uint64]
    visited: NDArray[np.uint64]
    wanted: NDArray[np.uint64]
    found: NDArray[np.uint64]
    parents: NDArray[np.uint32]
    buffers: NDArray[np.uint8]
    ids: NDArray[np.uint32]
    control: NDArray[np.int64]


@kernel
def _test_words(rows, state, first_word, end_word, thread):
    """Test the heads of words; those that have none in the frontier want their tails."""
    tested = 0
    answered = 0
    for w in range(first_word, end_word):
        hits, _, open_bits = answer_by_heads(
            rows, state.frontier, state.parents, state.visited[w], w, w
        )
        state.found[w] = hits
        state.wanted[w] = open_bits
        tested += count_ones(hits | open_bits)
        answered += count_ones(hits)
    atomic_add(state.control, TESTED, tested)
    atomic_add(state.control, words.HEADS, answered)
    atomic_add(state.control, words.EDGES, tested)


@inlined
def _bitmaps(state):
    """Return what a level of either direction looks at."""
    return Bitmaps(wanted=state.wanted, found=state.found, frontier=state.frontier)


@inlined
def _mark(state, ids, owners, count):
    """Mark what the frontier leads to."""
    mark(state.found, ids, count)


_run_step = make_level(_test_words, _bitmaps, _bitmaps, _mark)


@compiled(_nrt=False)
def step(task, rows, disk, state, thread):
    """Run one thread's part of a step of ``kernels.disk.level_streams``."""
    _run_step(task, rows, disk, state, thread)

"""Steps on a part of a graph whose tails stay on disk; see ``kernels.disk.stream``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, count_ones, inlined, kernel
from oocbfs.kernels.bottom_up.heads import answer_by_heads
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.level_streams import (
    WORD_CHUNK,
    Bitmaps,
    make_bottom_up_tails,
    make_top_down,
)
from oocbfs.kernels.disk.passes import make_pass
from oocbfs.kernels.shards.top_down import mark

BOTTOM_UP_HEADS, BOTTOM_UP_TAILS, TOP_DOWN_HEADS, TOP_DOWN_TAILS = range(4)
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


_bottom_up_heads = make_pass(WORD_CHUNK, _test_words)
_bottom_up_tails = make_bottom_up_tails(_bitmaps)
_top_down_heads, _top_down_tails = make_top_down(_bitmaps, _mark)


@compiled(_nrt=False)
def step(task, rows, disk, state, thread):
    """Run one thread's part of a step."""
    num_words = (rows.heads.size + 63) >> 6
    if task == BOTTOM_UP_HEADS:
        _bottom_up_heads(rows, state, num_words, thread)
    elif task == BOTTOM_UP_TAILS:
        _bottom_up_tails(rows, disk, state, thread)
    elif task == TOP_DOWN_HEADS:
        _top_down_heads(rows, state, num_words, thread)
    else:
        _top_down_tails(rows, disk, state, thread)
    return np.int64(0)

"""Bottom-up step on a whole graph, of all words, or of a sample and then the rest."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.state import OTHER_WORDS, SAMPLED_WORDS
from oocbfs.kernels.bitmaps import UNREACHED
from oocbfs.kernels.bottom_up.step import View, make_bottom_up
from oocbfs.kernels.region import CURSOR
from oocbfs.kernels.vectors import store_where


@inlined
def _view(rows, state, shard):
    """Return what the step looks at; the graph is its only shard."""
    control, bitmaps = state.control, state.bitmaps
    which, shift = control[words.WHICH_WORDS], control[words.SAMPLE_SHIFT]
    return View(
        frontier=bitmaps[control[words.FRONTIER_BITMAP]],
        next_frontier=bitmaps[control[words.NEXT_BITMAP]],
        visited=bitmaps[control[words.VISITED_BITMAP]],
        first=0,
        stride=1,
        counts=control,
        cursor=CURSOR,
        num_words=(rows.heads.size + 63) >> 6,
        shift=shift if which == SAMPLED_WORDS else np.int64(0),
        mask=(np.int64(1) << shift) - 1,
        left_out=np.int64(0 if which == OTHER_WORDS else -1),
    )


bottom_up = make_bottom_up(words, _view, with_decoded=True)


@kernel
def undo_sample(rows, state):
    """Forget what a bottom-up step found in the sampled words."""
    control = state.control
    next_frontier = state.bitmaps[control[words.NEXT_BITMAP]]
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    num_words = (rows.heads.size + 63) >> 6
    for w in range(0, num_words, np.int64(1) << control[words.SAMPLE_SHIFT]):
        visited[w] &= ~next_frontier[w]
        store_where(state.levels, w * 64, next_frontier[w], np.uint8(UNREACHED))

"""Bottom-up step on the shards that a process holds."""

from __future__ import annotations

from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.bottom_up.step import View, make_bottom_up
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.take import words_below


@inlined
def _view(rows, state, shard):
    """Return what the step looks at on a shard: all of its words."""
    return View(
        frontier=state.frontier,
        next_frontier=state.found,
        visited=state.visited,
        first=state.shards[shard, words.PLACE],
        stride=state.stride,
        counts=state.counts[shard],
        cursor=words.WORD_CURSOR,
        num_words=words_below(state, shard, state.control[words.NON_ISOLATED]),
        shift=0,
        mask=0,
        left_out=-1,
    )


bottom_up = make_bottom_up(words, _view, with_decoded=False)

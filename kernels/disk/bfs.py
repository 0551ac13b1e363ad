"""The compiled steps of a traversal whose tails stay on disk, as one compiled function."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import kernel, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.large_level import (
    bottom_up_heads,
    bottom_up_tails,
    sweep,
    top_down_heads,
    top_down_tails,
)
from oocbfs.kernels.disk.small_level import fill, small_levels
from oocbfs.kernels.region import ONE, ZERO

SMALL_LEVELS, FILL_CACHE, SWEEP, TO_QUEUE = range(4)
BOTTOM_UP_HEADS, BOTTOM_UP_TAILS, TOP_DOWN_HEADS, TOP_DOWN_TAILS = range(4, 8)


@kernel
def _to_queue(state):
    """Bring a small frontier from its bitmap into the queue."""
    control = state.control
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    queue = state.queue[control[words.QUEUE]]
    size = 0
    for w in range(frontier.size):
        bits = frontier[w]
        while bits != ZERO:
            queue[size] = w * 64 + trailing_zeros(bits)
            size += 1
            bits &= bits - ONE
    control[words.FRONTIER_SIZE] = size


@compiled(_nrt=False)
def step(task, rows_out, rows_in, disk_out, disk_in, state, max_depth, target, clock, thread):
    """Run a step; small levels say why they ended."""
    num_words = (state.levels.size + 63) >> 6
    if task == SMALL_LEVELS:
        return small_levels(rows_out, disk_out, state, max_depth, target, clock)
    if task == FILL_CACHE:
        fill(disk_out, state)
    elif task == BOTTOM_UP_HEADS:
        bottom_up_heads(rows_in, state, num_words, thread)
    elif task == TOP_DOWN_HEADS:
        top_down_heads(rows_out, state, num_words, thread)
    elif task == TOP_DOWN_TAILS:
        top_down_tails(rows_out, disk_out, state, thread)
    elif task == BOTTOM_UP_TAILS:
        bottom_up_tails(rows_in, disk_in, state, thread)
    elif task == SWEEP:
        sweep(rows_out, state, num_words, thread)
    else:
        _to_queue(state)
    return np.int64(0)

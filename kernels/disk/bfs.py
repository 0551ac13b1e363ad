"""The compiled steps of a search whose tails stay on disk, as one compiled function."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import kernel, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import ONE, ZERO
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.large_level import run_level_step, sweep
from oocbfs.kernels.disk.level_streams import TOP_DOWN_TAILS
from oocbfs.kernels.disk.small_level import fill, small_levels

# Steps besides those of a level.
SMALL_LEVELS, FILL_CACHE, SWEEP, TO_QUEUE = range(TOP_DOWN_TAILS + 1, TOP_DOWN_TAILS + 5)


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
def step(task, rows, disk, state, max_depth, target, clock, thread):
    """Run a step on the rows that it needs; small levels say why they ended."""
    if task == SMALL_LEVELS:
        return small_levels(rows, disk, state, max_depth, target, clock)
    if task == FILL_CACHE:
        fill(disk, state, thread)
    elif task == SWEEP:
        sweep(rows, state, (rows.heads.size + 63) >> 6, thread)
    elif task == TO_QUEUE:
        _to_queue(state)
    else:
        run_level_step(task, rows, disk, state, thread)
    return np.int64(0)

"""What the threads of one traversal share, and how helpers join the thread that leads it.

The leader opens a *region* (one parallel step of one level) by storing its epoch in the gate.
Helpers that see an open gate join it, take chunks of work from the cursor until none are left, and
report that they are done. The leader works too, then closes the gate and waits for those who joined,
never for those who did not: a helper that has no core, or has not started yet, holds up nobody.
"""

# Types come from what the leader passes in; numba reads no annotations.
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import (
    atomic_add,
    atomic_and,
    compare_and_swap,
    kernel,
    load_acquire,
    sleep_microseconds,
    store_release,
    yield_core,
)

ONE = np.uint64(1)
ZERO = np.uint64(0)

# Places in State.control. What several threads write has a cache line (8 words) of its own.
GATE, DONE, CURSOR, HUB_CURSOR, QUEUE_END = 0, 8, 16, 24, 32
# Sums over the threads of a region; FAILED is set when a tail holds what no converter wrote.
FOUND, EDGES, HEADS, BYTES, FAILED, NUM_HUBS, TESTED = range(40, 47)
# What the leader tells the helpers about the open region.
TASK, MODE, LEVEL, QUEUE_BEGIN, FRONTIER_END, FRONT, NEXT, VISITED = range(48, 56)
HUB_LIMIT, DENSE_MASK, NUM_PARTS, PARTS_TAKEN, KEPT = range(56, 61)
# What the leader remembers between two levels.
UNEXPLORED, PROBED, DEPTH, FRONTIER, WEIGHT, IN_BITMAP, SYNCED, REPEATS = range(64, 72)
CONTROL_WORDS = 72

OPEN = 1 << 15
JOINED = OPEN - 1
FINISH = -1

MAX_HUBS = 1024
# Edges up to which a frontier is expanded in parts, and their largest number.
PARTS_EDGES = 32768
MAX_PARTS = 16
# What is known of a part: its finds, their place in the queue, the edges and bytes it took to find them.
PART_COUNT, PART_PLACE, PART_EDGES, PART_BYTES = range(4)
# Vertices that one thread probes bottom-up at a time.
PENDING = 256
# Threads that take part in a dense step: each but the first two has a bitmap of its own.
MAX_DENSE = 32


class State(NamedTuple):
    """The arrays that the threads of one traversal share.

    The frontiers of all top-down levels lie in the queue one behind the other. A vertex enters it
    once, but for those that two parts found at the same time: control[REPEATS] is an upper bound of
    them, and the queue has room for PARTS_EDGES of them and for one more level. While control[KEPT],
    the last frontier is still in the finds of the parts that found it, and only its places in the
    queue are known. The first three bitmaps take turns as frontier, next frontier and visited; ids
    and places are scratch, one row a thread; finds and parts have one row a part.
    """

    levels: NDArray[np.int32]
    parents: NDArray[np.uint32]
    queue: NDArray[np.uint32]
    bitmaps: NDArray[np.uint64]
    ids: NDArray[np.uint32]
    places: NDArray[np.int64]
    finds: NDArray[np.uint32]
    parts: NDArray[np.int64]
    hubs: NDArray[np.int64]
    records: NDArray[np.int64]
    control: NDArray[np.int64]


@kernel
def open_region(control):
    """Let helpers join the task that the control words describe."""
    control[CURSOR] = 0
    control[HUB_CURSOR] = 0
    control[DONE] = 0
    epoch = control[GATE] >> 16
    store_release(control, GATE, ((epoch + 1) << 16) | OPEN)


@kernel
def close_region(control):
    """Wait until everybody who joined is done; what they wrote is visible afterwards."""
    joined = atomic_and(control, GATE, ~OPEN) & JOINED
    spins = 0
    while load_acquire(control, DONE) != joined:
        spins += 1
        if spins > 1000:
            yield_core()


@kernel
def join_region(control, last_epoch):
    """Wait for a region after last_epoch and join it; give its epoch, or FINISH."""
    waits = 0
    while True:
        gate = load_acquire(control, GATE)
        if gate == FINISH:
            return FINISH
        if gate & OPEN and gate >> 16 != last_epoch:
            if compare_and_swap(control, GATE, gate, gate + 1):
                return gate >> 16
            continue
        waits += 1
        if waits > 30000:
            sleep_microseconds(50)
        elif waits > 20000:
            yield_core()


@kernel
def leave_region(control):
    """Report that this helper is done and wrote all it had to write."""
    atomic_add(control, DONE, 1)

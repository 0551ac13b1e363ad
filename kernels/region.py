"""How workers join the thread that leads a compiled loop, and how they share its work.

The leader opens a *region* (one parallel step of one level) by storing its epoch in the gate.
Workers that see an open gate join it, take chunks of work from the cursor until none are left,
and report that they are done. The leader works too, then closes the gate and waits for those that
joined, never for those that did not: a worker that has no core, or has not started yet, delays
nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.kernels.atomics import (
    atomic_add,
    atomic_and,
    compare_and_swap,
    inlined,
    kernel,
    load_acquire,
    nanoseconds,
    sleep_microseconds,
    store_release,
    yield_core,
)
from oocbfs.kernels.threads import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

# Words of every control array. What several threads write has a cache line (8 words) of its own;
# the task lies beside the gate, which a worker that joins has just read.
# ALONE says that the leader shares no more work, because it WAITED too long since it STARTED.
GATE, TASK, ALONE, WAITED, STARTED, DONE, CURSOR, HUB_CURSOR = 0, 1, 2, 3, 4, 8, 16, 24
# The first word that is free for other uses.
REGION_WORDS = 32

OPEN = 1 << 15
JOINED = OPEN - 1
FINISH = -1

# How long the leader spins for the last worker of a region before it yields its core, and how long
# it waits in all before it goes on alone: a core that was lost is lost for some milliseconds.
_SPINS = 10_000
_PATIENCE_NANOSECONDS = 500_000
_CLOCK = time.CLOCK_MONOTONIC

# How often a level loop returns to Python, which then answers Ctrl-C.
SLICE_NANOSECONDS = 200_000_000


@kernel
def open_region(control):
    """Let workers join the task that the control words describe."""
    control[CURSOR] = 0
    control[HUB_CURSOR] = 0
    control[DONE] = 0
    epoch = control[GATE] >> 16
    store_release(control, GATE, ((epoch + 1) << 16) | OPEN)


@kernel
def wait_for(control, word, number):
    """Wait until a control word has a value; what was written before is visible afterwards.

    Workers that take long have lost their core to another program, and will again: when the leader
    has waited for a fifth of the time, it goes on alone.
    """
    spins = 0
    began = np.int64(0)
    while load_acquire(control, word) != number:
        spins += 1
        if spins == _SPINS:
            began = nanoseconds(_CLOCK)
        elif spins > _SPINS:
            yield_core()
    if spins > _SPINS:
        now = nanoseconds(_CLOCK)
        control[WAITED] += now - began
        if control[WAITED] > max(_PATIENCE_NANOSECONDS, (now - control[STARTED]) // 5):
            control[ALONE] = 1


@kernel
def close_region(control):
    """Wait until all that joined are done; what they wrote is visible afterwards."""
    joined = atomic_and(control, GATE, ~OPEN) & JOINED
    wait_for(control, DONE, joined)


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
    """Report that this worker is done and wrote all it had to write."""
    atomic_add(control, DONE, 1)


def make_region(work):
    """Make the leader's and the workers' side of regions whose tasks ``work`` knows.

    ``work(rows_out, rows_in, state, thread)`` does one thread's part of state.control[TASK]. numba
    compiles it into both functions, as if they had been written out.
    """

    @kernel
    def run_task(rows_out, rows_in, state, shared):
        """Run the task on the leading thread, together with the workers if it is worth sharing."""
        control = state.control
        shared = shared and control[ALONE] == 0
        if shared:
            open_region(control)
        else:
            control[CURSOR] = 0
            control[HUB_CURSOR] = 0
        # Not 0: numba would compile ``work`` for that number, and once more for all others.
        work(rows_out, rows_in, state, np.int64(0))
        if shared:
            close_region(control)

    @inlined
    def run_region(rows_out, rows_in, state, task, shared):
        """Run a task; what is compiled for each number of a task is only this."""
        # Workers look at the gate beside it all the time, and would have to fetch it again.
        if state.control[TASK] != task:
            state.control[TASK] = task
        run_task(rows_out, rows_in, state, shared)

    @kernel
    def worker_loop(rows_out, rows_in, state, thread):
        """Join one region after the other until the leader finishes."""
        epoch = np.int64(0)
        while True:
            epoch = join_region(state.control, epoch)
            if epoch == FINISH:
                return np.int64(0)
            work(rows_out, rows_in, state, thread)
            leave_region(state.control)

    return run_region, worker_loop


@inlined
def chunk_for(size, least, most):
    """Return the size of chunks of which there are some dozens, so that threads end together."""
    return max(np.int64(least), min(np.int64(most), size >> 6))


@inlined
def take_chunk(control, cursor, chunk, size):
    """Take the next chunk of ``size`` items at control[cursor]; give its first item and its end.

    When nothing is left, first and end are the same. No other thread gets an item that was taken.
    """
    first = min(atomic_add(control, cursor, chunk), size)
    return first, min(first + chunk, size)


def run_together(
    run: Callable[..., int],
    arguments: tuple[Any, ...],
    others: Iterable[int],
    control: NDArray[np.int64],
    *,
    paused: int,
    wait: bool,
) -> int:
    """Call run(*arguments, 0) until it gives something else than paused, others by workers.

    Workers return when the gate says FINISH. One that sleeps or has no core does not hold up the
    end, unless the caller wants to wait for all of them because it will open the gate again.
    """
    tasks = [Task(run, *arguments, thread) for thread in others]
    try:
        for task in tasks:
            task.start()
        while (outcome := run(*arguments, 0)) == paused:
            pass
    finally:
        # First of all, and without a call that Ctrl-C could interrupt: this makes all workers
        # return.
        control[GATE] = FINISH
        for task in tasks:
            task.cancel()
        if wait:
            for task in tasks:
                task.settle()
    for task in tasks:
        if wait and task.error is not None:
            raise task.error
    return outcome

"""Workers spin for the next search before they park, so that it need not wake a sleeper.

A thread of Python's that sleeps needs some 100 microseconds to come, as long as a small graph is
searched, and takes the interpreter's lock meanwhile. So when a worker is done, it looks for a
while at its *slot*, a cache line of a mailbox. The next leader that uses the mailbox writes the
addresses of its arguments there.

    EMPTY     nobody waits here: the worker is parked, asleep in Python
    SPINNING  a worker looks at the slot
    WOKEN     the leader wrote its arguments; the worker will take them, or the leader cancels
    BUSY      the worker took them

The leader changes SPINNING to WOKEN and back, the worker all else. Either may be slow: whoever
finds another state than it expects leaves it alone.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.kernels.atomics import (
    compare_and_swap,
    kernel,
    load_acquire,
    nanoseconds,
    store_release,
    yield_core,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

EMPTY, SPINNING, WOKEN, BUSY = range(4)
# Words of a slot: its state, the addresses, and whether the leader counts on the worker. If not, it
# called another one with the same number, and both would use the same scratch.
_SLOT = 8
_EXPECTED = 7
# How long a worker spins before it parks: some calls of Python's. It lets others use the
# core after each look but the first ones, which take some 20 microseconds.
_PATIENCE_NANOSECONDS = 500_000
_LOOKS = 10_000
_CLOCK = time.CLOCK_MONOTONIC


@kernel
def wake(mailbox, rows_out, rows_in, state, options, names, results):
    """Write the arguments of a search for all workers that are expected and spin."""
    for slot in range(_SLOT, mailbox.size, _SLOT):
        if mailbox[slot] == SPINNING and mailbox[slot + _EXPECTED] != 0:
            mailbox[slot + 1] = rows_out
            mailbox[slot + 2] = rows_in
            mailbox[slot + 3] = state
            mailbox[slot + 4] = options
            mailbox[slot + 5] = names
            mailbox[slot + 6] = results
            compare_and_swap(mailbox, slot, SPINNING, WOKEN)


@kernel
def cancel_wake(mailbox):
    """Take back what no worker took."""
    for slot in range(_SLOT, mailbox.size, _SLOT):
        if mailbox[slot] == WOKEN:
            compare_and_swap(mailbox, slot, WOKEN, SPINNING)


@kernel
def read_arguments(mailbox, thread):
    """Return the addresses that a leader wrote."""
    slot = thread * _SLOT
    return (
        mailbox[slot + 1],
        mailbox[slot + 2],
        mailbox[slot + 3],
        mailbox[slot + 4],
        mailbox[slot + 5],
        mailbox[slot + 6],
    )


@kernel
def spin_then_park(mailbox, thread, is_owner):
    """Wait to be woken; return whether that came, before it is time to park.

    The owner of a slot was woken at it. Another worker of the same number may own it.
    """
    slot = thread * _SLOT
    if slot >= mailbox.size:
        return False
    if is_owner:
        store_release(mailbox, slot, SPINNING)
    elif not compare_and_swap(mailbox, slot, EMPTY, SPINNING):
        return False
    looks = 0
    until = nanoseconds(_CLOCK) + _PATIENCE_NANOSECONDS
    while load_acquire(mailbox, slot) != WOKEN or not compare_and_swap(mailbox, slot, WOKEN, BUSY):
        looks += 1
        if looks > _LOOKS:
            yield_core()
            is_late = nanoseconds(_CLOCK) > until
            if is_late and compare_and_swap(mailbox, slot, SPINNING, EMPTY):
                return False
    return True


class Parking:
    """A mailbox, and the arguments that it holds the addresses of.

    Whoever calls a worker holds on to it: the worker may be woken later, and be slow.
    """

    def __init__(self, threads: int) -> None:
        self._start(threads)

    def _start(self, threads: int) -> None:
        self.mailbox: NDArray[np.int64] = np.zeros(threads * _SLOT, np.int64)
        self._arguments: list[Any] = [None] * threads
        self._process = os.getpid()

    def absent(self, arguments: Any, threads: int) -> list[int]:
        """Return the threads that do not spin here, of so many; keep arguments for others.

        These are expected from now on, and no others, even if they come a moment later.
        """
        if self._process != os.getpid():  # a forked process has no other threads
            self._start(len(self._arguments))
        missing = []
        for thread in range(1, len(self._arguments)):
            slot = thread * _SLOT
            is_spinning = bool(self.mailbox[slot] == SPINNING) and thread < threads
            self.mailbox[slot + _EXPECTED] = is_spinning
            if is_spinning:
                self._arguments[thread] = arguments
            elif thread < threads:
                missing.append(thread)
        return missing

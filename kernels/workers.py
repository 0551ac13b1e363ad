"""The threads that help a compiled level loop, kept from one traversal to the next.

Ctrl-C may come at any moment, also while helpers are being called. Python's own pools lose a thread whose
start is interrupted, and wait for it when the program ends. So helpers are daemons here, each with a line of
its own: one that is lost is lost, and nobody waits for it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from contextlib import suppress
from functools import cache, partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from oocbfs.kernels.region import FINISH, GATE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

# How long the end of the program waits for helpers that are still at work, in seconds.
_PATIENCE = 1.0


class _Call:
    """Something to run, by the helper who is told or by nobody."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run
        self._begun, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        self._error: Exception | None = None

    def answer(self) -> None:
        """Run, unless it is too late."""
        if self._begun.acquire(blocking=False):
            try:
                self._run()
            except Exception as error:  # noqa: BLE001 - the leader raises it
                self._error = error
            finally:
                self._ended.release()

    def finish(self, *, wait: bool) -> None:
        """See to it that it does not begin any more; wait for its end if it has begun."""
        if not self._begun.acquire(blocking=False) and wait:
            self._ended.acquire()
            if self._error is not None:
                raise self._error


class _Helper(threading.Thread):
    """A thread that answers calls until it is sent home."""

    def __init__(self, idle: deque[_Helper]) -> None:
        super().__init__(name="oocbfs", daemon=True)
        self._idle = idle
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()

    def run(self) -> None:
        """Answer one call after the other."""
        while (call := self.calls.get()) is not None:
            call.answer()
            del call  # which holds arrays
            self._idle.append(self)


class _Workers:
    """Helpers, and which of them wait for a call."""

    def __init__(self) -> None:
        self._everyone: list[_Helper] = []
        self._idle: deque[_Helper] = deque()
        atexit.register(self._dismiss)

    def call(self, call: _Call) -> None:
        """Have a helper answer, a new one if all are at work."""
        try:
            self._idle.pop().calls.put(call)
        except IndexError:
            helper = _Helper(self._idle)
            helper.calls.put(call)
            self._everyone.append(helper)
            # Where there are no more threads to be had, there are enough.
            with suppress(RuntimeError):
                helper.start()

    def _dismiss(self) -> None:
        """Send the helpers home before the interpreter goes."""
        for helper in self._everyone:
            helper.calls.put(None)
        deadline = time.monotonic() + _PATIENCE
        for helper in self._everyone:
            if helper.is_alive():
                helper.join(max(0.0, deadline - time.monotonic()))


@cache
def _workers_of(process: int) -> _Workers:
    """Give the helpers of this process; one that was forked has none of its parent's."""
    return _Workers()


def run_together(
    run: Callable[..., int],
    arguments: tuple[Any, ...],
    threads: int,
    control: NDArray[np.int64],
    *,
    paused: int,
    wait: bool,
) -> int:
    """Call run(*arguments, 0) until it gives something else than paused, with helpers 1, 2, … .

    Helpers leave when the gate says so: one that sleeps or has no core holds up nobody to the end,
    unless the caller is to wait for them because it will open the gate again.
    """
    workers = _workers_of(os.getpid())
    calls = [_Call(partial(run, *arguments, thread)) for thread in range(1, threads)]
    try:
        for call in calls:
            workers.call(call)
        while (outcome := run(*arguments, 0)) == paused:
            pass
    finally:
        # First of all, and without a call that Ctrl-C could end: whoever was called comes to an end.
        control[GATE] = FINISH
        for call in calls:
            call.finish(wait=wait)
    return outcome

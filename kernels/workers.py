"""The threads that work for a compiled level loop, kept from one traversal to the next.

Ctrl-C may come at any moment, also while workers are being called. Python's own pools lose a
thread whose start is interrupted, and wait for it when the program ends. So workers are daemons
here, each with a queue of its own: nothing waits for one that is lost.
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
    from collections.abc import Callable, Iterable
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

# How long the end of the program waits for workers that are still busy.
_PATIENCE_SECONDS = 1.0


class _Call:
    """Something that one worker runs, unless it is withdrawn first."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run
        self._begun, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        self._error: Exception | None = None

    def run(self) -> None:
        """Run it, unless it was withdrawn."""
        if self._begun.acquire(blocking=False):
            try:
                self._run()
            except Exception as error:  # noqa: BLE001 - the leader raises it
                self._error = error
            finally:
                self._ended.release()

    def finish(self, *, wait: bool) -> None:
        """Withdraw the call; wait for its end if it has begun."""
        if not self._begun.acquire(blocking=False) and wait:
            self._ended.acquire()
            if self._error is not None:
                raise self._error


class _Worker(threading.Thread):
    """A thread that runs calls until it gets None."""

    def __init__(self, idle: deque[_Worker]) -> None:
        super().__init__(name="oocbfs", daemon=True)
        self._idle = idle
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()

    def run(self) -> None:
        """Run one call after the other."""
        while (call := self.calls.get()) is not None:
            call.run()
            del call  # which holds arrays
            self._idle.append(self)


class _Workers:
    """All workers of a process, and which of them wait for a call."""

    def __init__(self) -> None:
        self._all: list[_Worker] = []
        self._idle: deque[_Worker] = deque()
        atexit.register(self._dismiss)

    def call(self, call: _Call) -> None:
        """Have a worker run it, a new one if all are busy."""
        try:
            self._idle.pop().calls.put(call)
        except IndexError:
            worker = _Worker(self._idle)
            worker.calls.put(call)
            self._all.append(worker)
            # Where the system gives no more threads, those that there are do the work.
            with suppress(RuntimeError):
                worker.start()

    def _dismiss(self) -> None:
        """End the workers before the interpreter goes."""
        for worker in self._all:
            worker.calls.put(None)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for worker in self._all:
            if worker.is_alive():
                worker.join(max(0.0, deadline - time.monotonic()))


@cache
def _workers_of(process: int) -> _Workers:
    """Give the workers of this process; a forked one has none of its parent's."""
    return _Workers()


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
    workers = _workers_of(os.getpid())
    calls = [_Call(partial(run, *arguments, thread)) for thread in others]
    try:
        for call in calls:
            workers.call(call)
        while (outcome := run(*arguments, 0)) == paused:
            pass
    finally:
        # First of all, and without a call that Ctrl-C could interrupt: this makes all workers
        # return.
        control[GATE] = FINISH
        for call in calls:
            call.finish(wait=wait)
    return outcome

"""Threads of this process and calls for them, safe wherever a signal may interrupt.

Python answers a signal in its main thread: at the start of a function, after a call, or where a
loop jumps back. An exception that is raised there, as by Ctrl-C, can leave the lock of a
``threading.Condition`` taken for ever, and with it ``Event``, ``queue.Queue``, ``Thread.start`` and
all of ``concurrent.futures``. So everything here is made of single calls into C, which happen whole
or not at all: ``SimpleQueue``, ``deque``, and plain locks. Between any two of them, all may end:

- Counts are kept by workers, which no signal interrupts.
- Nobody waits long for a call that no worker has begun: who wants its result makes it himself.
  So it does where the system gives no more threads.
- Nobody waits for a thread to start or to end, and no thread waits for work for ever.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
from _thread import get_ident, start_new_thread
from collections import deque
from contextlib import suppress
from functools import cached_property, partial
from importlib import _bootstrap
from queue import Empty, SimpleQueue
from threading import Lock, current_thread, main_thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Result = TypeVar("Result")
Kept = TypeVar("Kept")

# How long a worker waits for the next call before it ends.
_IDLE_SECONDS = 10.0
# After so long, a thread that was called and has not begun may never do.
_LOOK_AGAIN_SECONDS = 1.0
# How long a fork waits for what other threads import; one of them may wait for who forks.
_IMPORT_SECONDS = 10.0
# How long the end of the program waits for workers that are still busy.
_PATIENCE_SECONDS = 1.0

_renewed: WeakSet[Any] = WeakSet()


def renewed_after_fork(kept: Kept) -> Kept:
    """Keep a lock, or what has ``_at_fork_reinit``, usable in processes that are forked.

    Of the threads that may hold it, only one goes on in the child.
    """
    _renewed.add(kept)
    return kept


class _Workers:
    """All threads that make calls, and how many of them wait for one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle = self._busy = 0
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def start(self, call: Callable[[], object]) -> bool:
        """Have a worker make a call, a new one if all are busy; returns whether there is one."""
        with self._lock:
            if self._idle:
                # No signal is answered between these two.
                self._idle -= 1
                self._calls.put(call)
                return True
        try:
            start_new_thread(self._work, (call,))
        except (RuntimeError, MemoryError):
            return False
        return True

    def _work(self, call: Callable[[], object] | None) -> None:
        with self._lock:
            self._busy += 1
        while call is not None:
            call()
            del call  # which holds arrays
            with self._lock:
                self._busy -= 1
                self._idle += 1
            call = self._next()

    def _next(self) -> Callable[[], object] | None:
        """Wait for a call; None after a while without one."""
        while True:
            with suppress(Empty):
                call = self._calls.get(timeout=_IDLE_SECONDS)
                with self._lock:
                    self._busy += 1
                return call
            with self._lock:
                if self._calls.empty():  # else somebody counted on this worker just now
                    self._idle -= 1
                    return None

    def wait_until_idle(self, seconds: float) -> None:
        """Wait until no call is being made, but not longer."""
        deadline = time.monotonic() + seconds
        while self._busy and time.monotonic() < deadline:
            time.sleep(0.001)


_workers = _Workers()


def forget_workers() -> None:
    """Begin anew without workers and with free locks, as a forked process must."""
    global _workers
    _workers = _Workers()
    for kept in _renewed:
        kept._at_fork_reinit()
    if sys.version_info < (3, 12):
        _free_properties()


def _free_properties() -> None:
    """Free the locks that Python 3.11 has for cached properties, which another thread may find."""
    for one in gc.get_objects():
        if type(one) is not cached_property:
            continue
        lock: Any = one.lock  # type: ignore[attr-defined]
        if lock.acquire(blocking=False):
            lock.release()
        else:
            lock._at_fork_reinit()


def _let_imports_end() -> None:
    """Wait until no other thread imports a module: a forked process would wait for it for ever."""
    deadline = time.monotonic() + _IMPORT_SECONDS
    while _is_imported_elsewhere() and time.monotonic() < deadline:
        time.sleep(0.001)


def _is_imported_elsewhere() -> bool:
    """Return whether another thread imports a module now: each has a lock while it is imported."""
    locks = [lock() for lock in list(getattr(_bootstrap, "_module_locks", {}).values())]
    return any(getattr(lock, "owner", None) not in (None, get_ident()) for lock in locks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_let_imports_end, after_in_child=forget_workers)
# Compiled code must not run while the interpreter takes it down.
atexit.register(lambda: _workers.wait_until_idle(_PATIENCE_SECONDS))


def _pass_all(locks: Iterable[Any]) -> None:
    """Wait until each lock was free once; what interrupts this is raised at the end of it."""
    left = deque(locks)
    interruption: BaseException | None = None
    while left:
        try:
            with left[0]:
                pass
            left.popleft()
        except BaseException as error:  # noqa: BLE001 (raised below)
            interruption = error
    if interruption is not None:
        raise interruption


class Task(Generic[Result]):
    """A call for one thread, which may be cancelled until it has begun."""

    def __init__(self, function: Callable[..., Result], *arguments: object) -> None:
        # Who takes it out makes the call.
        self._call = deque((partial(function, *arguments),))
        # Set by the worker, in this order; the lock is free when the call has ended.
        self._begun = self._ended = False
        self.error: BaseException | None = None
        self._running = Lock()
        self._running.acquire()
        self._workers = _workers
        self._patience = 0.0

    def start(self) -> None:
        """Have a worker make the call."""
        self.expect(_workers.start(self.run))

    def expect(self, is_called: bool) -> None:
        """Note whether a worker is on its way."""
        self._patience = _LOOK_AGAIN_SECONDS if is_called else 0.0

    def run(self) -> None:
        """Make the call unless it was cancelled, and keep what it gives or raises."""
        self._begun = True
        try:
            call = self._call.pop()
        except IndexError:
            pass
        else:
            try:
                self._result = call()
            except BaseException as error:  # noqa: BLE001 (raised by who waits)
                self.error = error
        self._ended = True
        self._running.release()

    def result(self) -> Result:
        """Return what the call gives, or raise what it raises; makes a call that nobody begins."""
        while not self._has_ended(self._patience):
            try:
                call = self._call.pop()
            except IndexError:
                if not self._begun or self._workers is not _workers:
                    raise RuntimeError(
                        "a call was cancelled, or left to a parent process"
                    ) from None
                self._patience = _LOOK_AGAIN_SECONDS
            else:
                return call()
        if self.error is not None:
            raise self.error
        return self._result

    def _has_ended(self, seconds: float) -> bool:
        """Wait for the end, but not longer."""
        if not self._ended and self._running.acquire(timeout=seconds):
            self._running.release()
        return self._ended

    def cancel(self) -> bool:
        """Let nobody begin the call; returns whether nobody had."""
        try:
            self._call.pop()
        except IndexError:
            return False
        return True

    def settle(self, seconds: float | None = None) -> None:
        """Cancel the call and wait for its end if it has begun, at most so long."""
        self.cancel()
        if not self._begun or self._workers is not _workers:
            return
        if seconds is not None:
            self._has_ended(seconds)
        elif not self._ended:
            _pass_all([self._running])


class Pool:
    """Makes calls on at most so many threads at a time, in the order in which they are given."""

    def __init__(self, threads: int) -> None:
        self._waiting: deque[Task[Any]] = deque()
        self._places = [Lock() for _ in range(threads)]
        self._free = deque(self._places)
        self._workers = _workers

    def submit(self, function: Callable[..., Result], *arguments: object) -> Task[Result]:
        """Have a call made as soon as a thread is free."""
        task = Task(function, *arguments)
        self._waiting.append(task)
        task.expect(not self._free or _workers.start(self._serve))
        return task

    def _serve(self) -> None:
        """Take a place, make calls until none waits, and leave it."""
        # Once more, because a call may have come while no place was free.
        while self._waiting:
            try:
                place = self._free.pop()
            except IndexError:
                return
            with place, suppress(IndexError):
                while True:
                    self._waiting.popleft().run()
            self._free.append(place)

    def close(self) -> None:
        """Make no more calls, and wait for those that were begun."""
        self._waiting.clear()
        if self._workers is _workers:
            _pass_all(self._places)


def uninterrupted(function: Callable[[], Result]) -> Result:
    """Make a call that goes on if Ctrl-C comes, because half of it would leave things broken."""
    if current_thread() is not main_thread():
        return function()
    task = Task(function)
    task.start()
    return task.result()

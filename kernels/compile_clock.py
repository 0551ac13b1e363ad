"""How long kernels were compiled in this process, so that no search is charged with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from oocbfs.kernels.internals import event
from oocbfs.kernels.threads import renewed_after_fork

_lock = renewed_after_fork(threading.Lock())
_here = threading.local()
_seconds = 0.0


@contextmanager
def counting() -> Iterator[None]:
    """Count the time of a block as compiling; blocks inside of it count once."""
    _begin()
    try:
        yield
    finally:
        _end()


def compile_seconds() -> float:
    """Return the seconds that were spent on compiling so far, by all threads."""
    _listen()
    return _seconds


def clock() -> float:
    """Return a time that stands still while kernels are compiled, for differences only."""
    return time.perf_counter() - compile_seconds()


def _begin() -> None:
    _here.depth = getattr(_here, "depth", 0) + 1
    if _here.depth == 1:
        _here.start = time.perf_counter()


def _end() -> None:
    global _seconds
    _here.depth -= 1
    if _here.depth == 0:
        with _lock:
            _seconds += time.perf_counter() - _here.start


@cache
def _listen() -> None:
    """Let numba say when it compiles; functions that a kernel calls are compiled while it is."""

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: event.Event) -> None:
            _begin()

        def on_end(self, event: event.Event) -> None:
            _end()

    event.register("numba:compile", Listener())

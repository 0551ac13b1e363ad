"""Compile kernels into the cache, in other processes, and count how long that takes.

Others compile at the same time, or save memory.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from oocbfs.kernels.cache import is_cached
from oocbfs.kernels.internals import address_of_code, event
from oocbfs.kernels.threads import renewed_after_fork

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_lock = renewed_after_fork(threading.Lock())
# What was spent on compiling in this process: while any thread did, since one waits for another.
_seconds = 0.0
_depth, _start = 0, 0.0
_PROGRAM = """
import sys
sys.path[:] = {path!r}
from oocbfs.kernels.compiling import call
for target in {targets!r}:
    call(*target)
"""


class Code(NamedTuple):
    """A kernel, and by which module and function it is compiled or loaded.

    ``called_with`` are arguments of a kernel that is compiled for those of several types.
    """

    kernel: Any
    module: str
    function: str
    arguments: tuple[int, ...] = ()
    called_with: tuple[Any, ...] = ()


def code_of(kernel: Any) -> Code:
    """Return how a kernel that has signatures is compiled."""
    return Code(kernel, kernel.py_func.__module__, f"{kernel.py_func.__name__}.prepare")


def missing(codes: Iterable[Code]) -> list[Code]:
    """Return what is neither compiled here nor in the cache."""
    return [code for code in codes if not is_cached(code.kernel, code.called_with)]


def compile_apart(codes: Iterable[Code]) -> None:
    """Compile into the cache, each kernel in another process, one after the other.

    What compiling takes, which is as much as all else together, is given back that way. If a
    process fails, or has nowhere to put its code, this one compiles when it calls the kernel.
    """
    for code in codes:
        with event.trigger_event("numba:compile", data={"dispatcher": code.kernel}):
            helper = start([(code.module, code.function, *code.arguments)])
            try:
                helper.communicate()
            except BaseException:
                helper.kill()
                helper.communicate()
                raise


def prepare_together(*kernels: Any) -> None:
    """Compile kernels that have signatures, or load them from the cache.

    numba compiles one function at a time in a process. So if two are not in the cache, all but the
    last are compiled by another process, which leaves them there, while this one compiles the last.
    """
    missing = [kernel for kernel in kernels if not is_cached(kernel)]
    if len(missing) > 1 and sys.executable:
        with counting():
            _prepare_beside(missing)
    for kernel in kernels:
        kernel.prepare()


def _prepare_beside(missing: list[Any]) -> None:
    """Compile all but the last in another process, and the last here."""
    others = [kernel.py_func for kernel in missing[:-1]]
    helper = start([(other.__module__, f"{other.__name__}.prepare") for other in others])
    try:
        missing[-1].prepare()
    except BaseException:
        helper.kill()
        raise
    finally:
        # If it failed, or had nowhere to put them, they are compiled here.
        helper.communicate()


def prepare_module(name: str) -> None:
    """Compile all kernels of a module that have signatures."""
    for kernel in list(vars(import_module(name)).values()):
        if getattr(kernel, "wanted_signatures", ()):
            kernel.prepare()


def call(module: str, function: str, *arguments: object) -> None:
    """Call something by its name, as a process does that ``start`` started."""
    attrgetter(function)(import_module(module))(*arguments)


def start(targets: Iterable[tuple[str | int, ...]]) -> subprocess.Popen[bytes]:
    """Start a process that compiles into the cache, by calling these one after the other."""
    program = _PROGRAM.format(path=sys.path, targets=list(targets))
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=quiet, stdout=quiet, stderr=subprocess.PIPE
    )


@cache
def address_of(kernel: Any) -> int:
    """Return the address at which other compiled code can call a kernel with one signature."""
    address: int = address_of_code(kernel.prepare())
    return address


@contextmanager
def counting() -> Iterator[None]:
    """Count the time of a block as compiling; blocks inside of it count once."""
    _begin()
    try:
        yield
    finally:
        _end()


def compile_seconds() -> float:
    """Return the seconds that were spent on compiling so far, by any thread."""
    _listen()
    return _seconds


def clock() -> float:
    """Return a time that stands still while kernels are compiled, for differences only."""
    return time.perf_counter() - compile_seconds()


def _begin() -> None:
    global _depth, _start
    with _lock:
        if _depth == 0:
            _start = time.perf_counter()
        _depth += 1


def _end() -> None:
    global _depth, _seconds
    with _lock:
        _depth -= 1
        if _depth == 0:
            _seconds += time.perf_counter() - _start


@cache
def _listen() -> None:
    """Let numba say when it compiles; functions that a kernel calls are compiled while it is."""

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: event.Event) -> None:
            _begin()

        def on_end(self, event: event.Event) -> None:
            _end()

    event.register("numba:compile", Listener())

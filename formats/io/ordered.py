"""Work on a stream with several threads, keeping its order and bounding what is in flight."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from oocbfs.errors import QueryError
from oocbfs.formats.io.machine import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")
# More would only wait for each other, and each has buffers of its own.
MAX_THREADS = 1024
# Numbers of a range that one thread works on at a time.
_PIECE = 1 << 18


def available_threads(threads: int | None = None) -> int:
    """Give the number asked for, or the number of processors this process may use.

    Raises
    ------
    QueryError
        If it is not a number of threads.
    """
    if threads is None:
        return min(MAX_THREADS, usable_cores())
    whole = hasattr(threads, "__index__") and not isinstance(threads, bool)
    if not whole or threads not in range(1, MAX_THREADS + 1):
        raise QueryError(
            f"threads cannot be {threads!r}: it is a whole number from 1 to {MAX_THREADS}"
        )
    return int(threads)


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result]:
    """Yield function(item) in the order of the items, at most ``in_flight`` of them at a time.

    A single item is worked on by this thread, because starting a pool often takes longer.
    """
    rest = iter(items)
    first = list(islice(rest, 2))
    if len(first) < 2:
        yield from map(function, first)
        return
    rest = chain(first, rest)
    del first  # which may be large
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in rest:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= in_flight(threads):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def in_flight(threads: int) -> int:
    """Tell how many results of ``ordered_map`` are there at a time, or being worked on."""
    return threads + 2


def over_ranges(
    kernel: Callable[..., Any], size: int, threads: int, *arguments: object
) -> list[Any]:
    """Run a kernel over ranges of 0 … size-1 in parallel; its last two arguments are the range."""

    def work(first: int) -> Any:  # noqa: ANN401
        return kernel(*arguments, first, min(first + _PIECE, size))

    return list(ordered_map(work, range(0, size, _PIECE), threads))


def read_ahead(items: Iterator[Item], depth: int = 2) -> Generator[Item]:
    """Let another thread produce the items, a few ahead; a single item is produced by this one."""
    first = list(islice(items, 2))
    if len(first) < 2:
        yield from first
        return
    items = chain(first, items)
    del first  # which may be large
    ready: queue.Queue[_Ready[Item]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(entry: _Ready[Item]) -> bool:
        while not stopped.is_set():
            try:
                ready.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(_Ready([item])):
                    return
            put(_Ready([]))
        except BaseException as error:  # noqa: BLE001 (raised again by the thread that waits)
            put(_Ready([], error))

    thread = threading.Thread(target=work, name="oocbfs-reader", daemon=True)
    thread.start()
    try:
        while True:
            entry = ready.get()
            if entry.error is not None:
                raise entry.error
            if not entry.items:
                return
            yield entry.items[0]
    finally:
        stopped.set()
        with suppress(queue.Empty):
            while True:
                ready.get_nowait()
        # A pipe that sends nothing can block the thread for ever; it is not waited for then.
        thread.join(timeout=1.0)


@dataclass(frozen=True)
class _Ready(Generic[Item]):
    items: list[Item]
    error: BaseException | None = None

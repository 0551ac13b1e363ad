"""Work on a stream with several threads, keeping its order and bounding what is in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from oocbfs.errors import QueryError
from oocbfs.formats.io.machine import usable_cores
from oocbfs.kernels.threads import Pool, Task

Item = TypeVar("Item")
Result = TypeVar("Result")
# More would only wait for each other, and each has buffers of its own.
MAX_THREADS = 1024
# After so long, a thread that was called and has not begun never will.
_LOOK_AGAIN_SECONDS = 1.0
# Numbers of a range that one thread works on at a time.
PIECE, _RANGES_OF_A_THREAD = 1 << 18, 4


def available_threads(threads: int | None = None) -> int:
    """Return the number asked for, or the number of processors this process may use.

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
    pool = Pool(threads)
    waiting: deque[Task[Result]] = deque()
    try:
        for item in rest:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= in_flight(threads):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.close()


def in_flight(threads: int) -> int:
    """Return how many results of ``ordered_map`` are there at a time, or being worked on."""
    return threads + 2


def over_ranges(
    kernel: Callable[..., Any], size: int, threads: int, *arguments: object, least: int = PIECE
) -> list[Any]:
    """Run a kernel over ranges of 0 … size-1 in parallel; its last two arguments are the range.

    A thread takes as many numbers at a time as pay, but ``least`` at least.
    """
    share = -(-size // (_RANGES_OF_A_THREAD * threads))
    piece = max(1, least, min(share, PIECE))

    def work(first: int) -> Any:
        return kernel(*arguments, first, min(first + piece, size))

    return list(ordered_map(work, range(0, size, piece), threads))


def read_ahead(items: Iterator[Item], depth: int = 2) -> Generator[Item]:
    """Let another thread produce the items, a few ahead; a single item is produced by this one."""
    first = list(islice(items, 2))
    if len(first) < 2:
        yield from first
        return
    items = chain(first, items)
    del first  # which may be large
    # What is ready, and for each thing more that may be: None, or _STOP if no more is wanted.
    ready: SimpleQueue[_Ready] = SimpleQueue()
    wanted: SimpleQueue[object] = SimpleQueue()

    def work() -> None:
        try:
            for item in items:
                ready.put(_Ready(item))
                if wanted.get() is _STOP:
                    return
            ready.put(_END)
        except BaseException as error:  # noqa: BLE001 (raised again by the thread that waits)
            ready.put(_Ready(None, error))

    task = Task(work)
    try:
        for _ in range(depth):
            wanted.put(None)
        task.start()
        while (entry := _take(ready, task)) is not _END:
            if entry is None:
                yield from items
                return
            if entry.error is not None:
                raise entry.error
            wanted.put(None)
            yield entry.item
    finally:
        wanted.put(_STOP)
        # A pipe that sends nothing can block the thread for ever; it is not waited for then.
        task.settle(seconds=1.0)


def _take(ready: SimpleQueue[_Ready], task: Task[None]) -> _Ready | None:
    """Wait for what is ready; None if no thread will ever bring something."""
    while True:
        try:
            return ready.get(timeout=_LOOK_AGAIN_SECONDS)
        except Empty:
            if task.cancel():
                return None


class _Ready(NamedTuple):
    item: Any
    error: BaseException | None = None


_END, _STOP = _Ready(None), object()

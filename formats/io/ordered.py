"""Work on a stream with several threads, keeping its order and bounding what is in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, TypeVar

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
    """Yield function(item) in the order of the items, at most threads + 2 of them in flight.

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
            if len(waiting) > threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def over_ranges(
    kernel: Callable[..., Any], size: int, threads: int, *arguments: object
) -> list[Any]:
    """Run a kernel over ranges of 0 … size-1 in parallel; its last two arguments are the range."""

    def work(first: int) -> Any:  # noqa: ANN401
        return kernel(*arguments, first, min(first + _PIECE, size))

    return list(ordered_map(work, range(0, size, _PIECE), threads))

"""Calls of Dask in the loop of its client: who waits for one, waits as long as it likes.

Answers come through a ``SimpleQueue``, which stays whole if an interruption meets it; locks that a
loop shares with an interrupted thread would not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")


class Loop:
    """The loop in which a client of Dask's lives, in a thread of its own."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._calls: set[asyncio.Task[None]] = set()  # which asyncio itself would forget

    def start(
        self,
        call: Callable[[], Awaitable[Result]],
        tell: Callable[[Result | None, BaseException | None], object],
    ) -> None:
        """Begin a call, whose result or error is told in the end."""

        async def work() -> None:
            try:
                result = await call()
            except BaseException as error:  # noqa: BLE001 - for who waits
                tell(None, error)
            else:
                tell(result, None)

        def begin() -> None:
            task = asyncio.ensure_future(work())
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

        self._loop.add_callback(begin)

    def answer(self, call: Callable[[], Awaitable[Result]], seconds: float) -> Result:
        """Call something, and give its answer.

        Raises
        ------
        TimeoutError
            If there is none after so many seconds.
        """
        answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.start(call, lambda *answer: answers.put(answer))
        try:
            result, error = answers.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

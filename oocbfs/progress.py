"""Progress of long jobs, and the seconds each phase took.

On a terminal it is a bar. Elsewhere, as in jobs at night, it is a line in the log every half
minute, so that short commands say nothing and long ones show that they are alive.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Self
from weakref import ref

from tqdm import tqdm

from oocbfs import console
from oocbfs.kernels.threads import Task
from oocbfs.settings import plural

# Between two lines where there is no terminal.
INTERVAL_SECONDS = 30.0
_log = logging.getLogger(__name__)


class Lines:
    """What replaces a bar where there is no terminal; counts as one does."""

    def __init__(
        self, name: str, total: int | None, unit: str, note: Callable[[], str] = str
    ) -> None:
        self.n = 0
        self._note = note
        self.total = total
        self._name, self._unit = name, unit
        self._start = time.perf_counter()
        self._ended: SimpleQueue[object] = SimpleQueue()
        # A thread of its own, since nobody calls update while a long step runs.
        # The queue also hears of the end of an object that nobody closed.
        self._watch = Task(_watch, ref(self, self._ended.put), self._ended)
        self._watch.start()

    def update(self, done: float | None = 1) -> None:
        """Count what was done."""
        self.n += int(done or 0)

    def clear(self) -> None:
        """Make room for other lines, which these do not take."""

    def close(self) -> None:
        """Write no more lines."""
        self._ended.put(None)
        self._watch.settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def line(self) -> str:
        """Write how far it is, and how long it has taken and will take."""
        seconds = time.perf_counter() - self._start
        done, total, unit = self.n, self.total, self._unit
        divisor = 1024 if unit == "B" else 1000

        def amount(number: int) -> str:
            if number < divisor:
                return str(number)
            return tqdm.format_sizeof(number, divisor=divisor)

        line = f"{self._name}: "
        line += f"{min(1, done / total):.0%}, {amount(done)} of " if total else ""
        line += f"{amount(total or done)} {'bytes' if unit == 'B' else plural(unit)}"
        line += f", {tqdm.format_interval(seconds)} so far"
        if total and 0 < done < total:
            left = tqdm.format_interval(seconds * (total - done) / done)
            line += f", about {left} left"
        note = self._note()
        return f"{line}; {note}" if note else line


def _watch(watched: ref[Lines], ended: SimpleQueue[object]) -> None:
    """Write a line now and then until the end, or until nobody holds what is watched."""
    while True:
        try:
            ended.get(timeout=INTERVAL_SECONDS)
        except Empty:
            if (lines := watched()) is not None:
                _log.info("%s", lines.line())
                del lines
                continue
        return


def make_bar(
    name: str,
    total: int | None,
    unit: str,
    *,
    disable: bool = False,
    note: Callable[[], str] = str,
) -> tqdm[Any] | Lines:
    """Make a bar that goes away when it is closed, or what replaces one; ``note`` adds a remark."""
    disable = disable or console.is_quiet()
    if not disable and not sys.stderr.isatty():
        return Lines(name, total, unit, note)
    return tqdm(
        total=total,
        desc=f"{name:>8}",
        unit=unit,
        unit_scale=True,
        unit_divisor=1024 if unit == "B" else 1000,
        disable=disable,
        leave=False,
        postfix=note() or None,
    )


class Phases:
    """Show the progress of each phase of a long job, and keep its time."""

    def __init__(self, *, show: bool = True) -> None:
        self.seconds: dict[str, float] = {}
        # What to remark beside every bar.
        self.note: Callable[[], str] = str
        self._show = show

    @contextmanager
    def __call__(self, name: str, total: int | None, unit: str) -> Iterator[tqdm[Any] | Lines]:
        """Run a phase; the block advances the bar it is given."""
        start = time.perf_counter()
        with make_bar(name, total, unit, disable=not self._show, note=self.note) as bar:
            yield bar
        seconds = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        _log.debug("%s took %.3f s", name, seconds)

"""Progress bars and the seconds each phase took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm


def make_bar(name: str, total: int | None, unit: str, *, disable: bool | None = None) -> tqdm[Any]:
    """Make a bar that goes away when it is closed; by default on a terminal only."""
    return tqdm(
        total=total,
        desc=f"{name:>8}",
        unit=unit,
        unit_scale=True,
        unit_divisor=1024 if unit == "B" else 1000,
        disable=disable,
        leave=False,
    )


class Phases:
    """Show a bar for each phase of a long job, on a terminal only, and keep its time."""

    def __init__(self, *, show: bool = True) -> None:
        self.seconds: dict[str, float] = {}
        self._disable = None if show else True

    @contextmanager
    def __call__(self, name: str, total: int | None, unit: str) -> Iterator[tqdm[Any]]:
        """Run a phase; the block advances the bar it is given."""
        start = time.perf_counter()
        with make_bar(name, total, unit, disable=self._disable) as bar:
            yield bar
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

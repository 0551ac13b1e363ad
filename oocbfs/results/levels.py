"""The work of each level of a traversal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from oocbfs.results.counts import Counts

# The direction of a level that was found but not expanded, because the traversal was to stop there.
STOPPED = "stopped"


@dataclass(frozen=True)
class Level:
    """The work of one level: expanding its frontier; edges are None where they are not counted.

    The last level of a traversal that stops at a depth or a target took no work: it is ``STOPPED``.
    GPUs run several small levels at once: then this sums up ``num_levels``. ``slow_bytes`` are the
    bytes that came from slower memory, by tier ("disk"), where they are counted by level.
    ``counts`` are what a device counted, ``link_bytes`` what devices sent each other, by link
    ("0>1"), ``exchange`` the messages of a graph in parts.
    """

    direction: str
    frontier: int
    edges_examined: int | None
    heads_answered: int
    tail_bytes: int
    seconds: float
    num_levels: int = 1
    slow_bytes: dict[str, int] = field(default_factory=dict)
    counts: Counts | None = None
    link_bytes: dict[str, int] = field(default_factory=dict)
    exchange: dict[str, Any] | None = None

    def summary(self) -> dict[str, Any]:
        """Give the figures of the level, for JSON."""
        counted = None if self.counts is None else self.counts.summary()
        return {**vars(self), "counts": counted}


class LevelTable(Sequence[Level]):
    """The work of each level as the CPU recorded it; a ``Level`` is made when it is asked for.

    The last record sums up all levels that had no record of their own.
    """

    def __init__(self, records: NDArray[np.void], depth: int, sizes: NDArray[np.int64]) -> None:
        self._records, self._depth, self._sizes = records, depth, sizes

    @cached_property
    def _frontiers(self) -> NDArray[np.int64]:
        """How many vertices each record is about.

        Records are not asked: two threads may have counted a vertex that both found.
        """
        count = self._records.size
        frontiers = self._sizes[:count].copy()
        if self._depth > count > 0:
            frontiers[-1] = self._sizes[count - 1 : self._depth].sum()
        return frontiers

    @property
    def _unexpanded(self) -> int:
        """Vertices of the level at which the traversal was to stop."""
        return int(self._sizes[-1]) if self._sizes.size > self._depth else 0

    def __len__(self) -> int:
        return len(self._records) + (self._unexpanded > 0)

    @overload
    def __getitem__(self, number: int) -> Level: ...
    @overload
    def __getitem__(self, number: slice) -> list[Level]: ...
    def __getitem__(self, number: int | slice) -> Level | list[Level]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        from_disk = "disk_bytes" in (self._records.dtype.names or ())
        if number == len(self._records):
            moved = {"disk": 0} if from_disk else {}
            return Level(STOPPED, self._unexpanded, 0, 0, 0, 0.0, slow_bytes=moved)
        record = self._records[number]
        return Level(
            direction=("top-down", "bottom-up")[int(record["direction"])],
            frontier=int(self._frontiers[number]),
            edges_examined=int(record["edges"]),
            heads_answered=int(record["heads"]),
            tail_bytes=int(record["tail_bytes"]),
            seconds=float(record["seconds"]),
            num_levels=1 + (self._depth - number - 1 if number + 1 == len(self._records) else 0),
            slow_bytes={"disk": int(record["disk_bytes"])} if from_disk else {},
        )

"""The work of each level of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.record import DIRECTIONS, LEVEL_RECORD
from oocbfs.results.counts import Counts

# The direction of a level that was found but not expanded, because the search was to stop there.
STOPPED = "stopped"


@dataclass(frozen=True)
class Level:
    """The work of one level: expanding its frontier; edges are None where they are not counted.

    The last level of a search that stops at a depth or a target took no work: it is ``STOPPED``.
    GPUs run several small levels at once: then this sums up ``num_levels``. ``slow_bytes`` are the
    bytes that came from slower memory, by tier ("disk"), where they are counted by level.
    ``counts`` are what a device counted, ``link_bytes`` what devices sent each other, by link
    ("0>1"), ``exchange`` the messages of a sharded graph.
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
        """Return the figures of the level, for JSON."""
        counted = None if self.counts is None else self.counts.summary()
        return {**vars(self), "counts": counted}


@dataclass
class Beside:
    """What some engines know of a level besides its record; see ``Level``.

    ``way`` is how a method of the papers went in this direction.
    """

    counts: Counts | None = None
    way: str | None = None
    link_bytes: dict[str, int] = field(default_factory=dict)
    exchange: dict[str, Any] | None = None


_NOTHING = Beside()


class LevelLog:
    """The records of a level loop on the host, and what goes beside each.

    ``tiers`` are those of which bytes are counted.
    """

    def __init__(self, tiers: Sequence[str] = ()) -> None:
        self.tiers = tuple(tiers)
        self.beside: list[Beside] = []
        self._records: list[np.void] = []

    def add(
        self, direction: str, frontier: int, beside: Beside = _NOTHING, **columns: float
    ) -> None:
        """Record a level; ``columns`` are those of ``kernels.record.LEVEL_RECORD``."""
        record = np.zeros(1, LEVEL_RECORD)[0]
        record["direction"], record["frontier"] = DIRECTIONS.index(direction), frontier
        record["num_levels"] = 1
        for name, value in columns.items():
            record[name] = value
        self._records.append(record)
        self.beside.append(beside)

    @property
    def last(self) -> np.void:
        """The record that was added last, to be completed."""
        return self._records[-1]

    @property
    def records(self) -> NDArray[np.void]:
        """All records, one row each."""
        return np.array(self._records, LEVEL_RECORD)

    def __len__(self) -> int:
        return len(self._records)


def moved_by_tier(records: NDArray[np.void], tiers: Sequence[str]) -> dict[str, int]:
    """Return how many bytes came from each of these tiers."""
    return {tier: int(records[f"{tier}_bytes"].sum()) for tier in tiers}


class LevelTable(Sequence[Level]):
    """The work of each level, from records; each ``Level`` is made when one is asked for."""

    def __init__(
        self,
        records: NDArray[np.void],
        depth: int,
        sizes: NDArray[np.int64],
        tiers: Sequence[str] = (),
        beside: Sequence[Beside] = (),
    ) -> None:
        self._records, self._depth, self._sizes = records, depth, sizes
        self._tiers, self._beside = tuple(tiers), beside

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """The first level of each record, and the one after the last.

        One launch on a device may run levels after that of the target.
        """
        ends = np.cumsum(self._records["num_levels"])
        return np.concatenate(([0], np.minimum(ends, self._depth)))

    @cached_property
    def _found(self) -> NDArray[np.int64]:
        """How many vertices all levels before each have.

        Records are not asked: two threads may have counted a vertex that both found.
        """
        return np.concatenate(([0], np.cumsum(self._sizes)))

    @property
    def _unexpanded(self) -> int:
        """Vertices of the level at which the search was to stop."""
        return int(self._sizes[-1]) if self._sizes.size > self._depth else 0

    def __len__(self) -> int:
        return len(self._records) + (self._unexpanded > 0)

    @overload
    def __getitem__(self, number: int) -> Level: ...
    @overload
    def __getitem__(self, number: slice) -> list[Level]: ...
    def __getitem__(self, number: int | slice) -> Level | list[Level]:
        return self._levels[number]

    def __iter__(self) -> Iterator[Level]:
        return iter(self._levels)

    @cached_property
    def _levels(self) -> list[Level]:
        """All levels, made column by column: there may be thousands."""
        records = self._records
        names = ("direction", "edges", "heads", "tail_bytes", "seconds")
        moved = [records[f"{tier}_bytes"].tolist() for tier in self._tiers]
        rows = zip(
            np.diff(self._found[self._bounds]).tolist(),
            np.diff(self._bounds).tolist(),
            zip(*(records[name].tolist() for name in names), strict=True),
            zip(*moved, strict=True) if moved else repeat(()),
            self._beside or repeat(_NOTHING),
            strict=False,
        )
        levels = [
            Level(
                direction=beside.way or DIRECTIONS[direction],
                frontier=frontier,
                edges_examined=None if edges < 0 else edges,
                heads_answered=heads,
                tail_bytes=tail_bytes,
                seconds=seconds,
                num_levels=num_levels,
                slow_bytes=dict(zip(self._tiers, read, strict=True)),
                counts=beside.counts,
                link_bytes=beside.link_bytes,
                exchange=beside.exchange,
            )
            for frontier, num_levels, record, read, beside in rows
            for direction, edges, heads, tail_bytes, seconds in (record,)
        ]
        if self._unexpanded:
            edges = None if (records["edges"] < 0).any() else 0
            none = dict.fromkeys(self._tiers, 0)
            levels.append(Level(STOPPED, self._unexpanded, edges, 0, 0, 0.0, slow_bytes=none))
        return levels

"""What a search on a device is told to do, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from oocbfs.results.counts import Counts, sum_counts
from oocbfs.results.levels import Beside, LevelTable

# Where the level of a vertex would be, in a byte, on a device.
NOT_REACHED = 255


class DeviceDirection(Enum):
    """Which steps a search may use."""

    AUTO = "auto"
    TOP_DOWN = "top-down"
    BOTTOM_UP = "bottom-up"
    # Every level is cut after three quarters of the tails, unless some are on disk.
    SPLIT = "split"


@dataclass
class GpuResult:
    """Levels and parents where they were wanted (-1 and NO_VERTEX: not reached), and what it took.

    ``depth`` is the number of levels that were expanded: all, or fewer where it stopped early.
    ``records`` are those of launches, each of which finished a level, several, or none; ``tiers``
    those of which bytes are counted. ``around`` are the counts of what belongs to no level.
    ``visited`` is a bitmap of one device's stored vertices, from which results took
    ``to_ids_seconds`` to the host.
    """

    levels: NDArray[np.int32]
    parents: NDArray[np.uint32] | None
    level_sizes: list[int]
    depth: int
    records: NDArray[np.void]
    tiers: Sequence[str]
    beside: list[Beside]
    control: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    around: Counts = field(default_factory=Counts)
    to_ids_seconds: float = 0.0
    visited: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))

    @property
    def steps(self) -> LevelTable:
        """What each record is about; the frontier of several levels is all of theirs."""
        sizes = np.array(self.level_sizes)
        return LevelTable(self.records, self.depth, sizes, self.tiers, self.beside)

    @property
    def counts(self) -> Counts:
        """What was counted in the whole search."""
        levels = (step.counts for step in self.steps if step.num_levels and step.counts is not None)
        return sum_counts([self.around, *levels])

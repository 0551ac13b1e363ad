"""What a traversal on a device is told to do, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from oocbfs.results.counts import Counts, sum_counts

# Where the level of a vertex would be, in a byte, on a device.
NOT_REACHED = 255


class DeviceDirection(Enum):
    """Which steps a traversal may use."""

    AUTO = "auto"
    TOP_DOWN = "top-down"
    BOTTOM_UP = "bottom-up"
    # Every level is cut after three quarters of the tails, unless some are on disk.
    SPLIT = "split"


@dataclass
class DeviceStep:
    """The launches that finished at least one level; ``slow_bytes`` are by tier, where counted."""

    kind: str
    level: int
    num_levels: int
    frontier: int
    frontier_bytes: int
    pending: int = 0
    pending_bytes: int = 0
    heads_found: int = 0
    slow_bytes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    edges_examined: int = 0
    claims_lost: int = 0
    counts: Counts = field(default_factory=Counts)
    # What each link between devices carried, where there are several.
    link_bytes: dict[str, int] = field(default_factory=dict)


@dataclass
class GpuResult:
    """Levels and parents where they were wanted (-1 and NO_VERTEX: not reached), and what it took.

    ``depth`` is the number of levels that were expanded: all, or fewer where it stopped early.
    ``around`` are the counts of what belongs to no level. ``visited`` is a bitmap of one device's
    stored vertices, from which results took ``naming_seconds`` to the host.
    """

    levels: NDArray[np.int32]
    parents: NDArray[np.uint32] | None
    level_sizes: list[int]
    depth: int
    steps: list[DeviceStep] = field(default_factory=list)
    control: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    around: Counts = field(default_factory=Counts)
    naming_seconds: float = 0.0
    visited: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))

    @property
    def counts(self) -> Counts:
        """What was counted in the whole traversal."""
        return sum_counts([self.around, *(step.counts for step in self.steps if step.num_levels)])

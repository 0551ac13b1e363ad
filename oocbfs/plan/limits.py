"""Where one kind of step on a device stops being the best."""

from __future__ import annotations

from dataclasses import dataclass

from oocbfs.plan.costs import large_level_seconds
from oocbfs.plan.rates import Rates

# Bytes that the warps of small_levels decode at a time, and the accesses to device memory that
# follow one another until their neighbours are claimed.
_BYTES_AT_A_TIME = 2048
_ACCESSES_EACH = 10


@dataclass(frozen=True)
class StepLimits:
    """What the level loop compares a frontier with."""

    # A frontier that one block expands in less time than the launches of a large level take. The
    # bytes are what its rows may hold, in any memory, beyond SMALL_BYTES_PER_VERTEX each.
    small_vertices: int = 8192
    small_bytes: int = 8 << 10
    # A heads pass pays where expanding the frontier costs at least this many of them.
    heads_passes: float = 1.0

    def worth_asking(self, heads_cost: int) -> int:
        """Return what expanding a frontier costs at least where heads are asked first."""
        return int(self.heads_passes * heads_cost)


def limits_of(rates: Rates) -> StepLimits:
    """Return the limits for a device with these rates."""
    turns = large_level_seconds(rates) / (_ACCESSES_EACH * rates.latency_seconds)
    return StepLimits(small_bytes=int(_BYTES_AT_A_TIME * turns))

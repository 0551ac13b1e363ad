"""Steps of a search on a device, with the levels that they found."""

from __future__ import annotations

from collections.abc import Iterator

from oocbfs.gpu.result import GpuResult
from oocbfs.results.levels import Level


def numbered(result: GpuResult) -> Iterator[tuple[int, Level]]:
    """Yield each step, and the first level that it found."""
    level = 1
    for step in result.steps:
        yield level, step
        level += step.num_levels

"""Distances from one source of many."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Levels = NDArray[np.int8] | NDArray[np.int16] | NDArray[np.int32]


@dataclass(frozen=True)
class SourceResult:
    """Distances from one source.

    ``levels`` are aligned with the ids in ascending order, -1 where not reached, in the smallest
    type that holds them; ``distances`` belong to the targets that were asked for. Each is None
    unless it was asked for. The levels of up to 64 results lie in one block of memory: copy what
    you keep.
    """

    source: int
    num_vertices: int
    level_sizes: NDArray[np.int64]
    strategy: str
    levels: Levels | None = field(default=None, repr=False)
    distances: NDArray[np.int32] | None = field(default=None, repr=False)

    @property
    def reached(self) -> int:
        """Number of vertices reached, the source included."""
        return int(self.level_sizes.sum())

    @property
    def depth(self) -> int:
        """Level of the farthest vertex reached."""
        return self.level_sizes.size - 1

    @property
    def eccentricity(self) -> int:
        """Largest distance to a vertex that can be reached, which is the depth."""
        return self.depth

    @cached_property
    def closeness(self) -> float:
        """Vertices reached per step, times the share of all vertices that was reached.

        The formula of Wasserman and Faust, by distances *from* the source; 0 if it reaches nothing.
        """
        total = int((np.arange(self.level_sizes.size) * self.level_sizes).sum())
        others = self.reached - 1
        return others / total * (others / (self.num_vertices - 1)) if total else 0.0

    @cached_property
    def harmonic(self) -> float:
        """Sum of 1 / distance over all other vertices reached."""
        return float((self.level_sizes[1:] / np.arange(1, self.level_sizes.size)).sum())


def smallest(levels: NDArray[np.int32], depth: int) -> Levels:
    """Give levels in the smallest type that holds the depth."""
    if depth <= np.iinfo(np.int8).max:
        return levels.astype(np.int8)
    if depth <= np.iinfo(np.int16).max:
        return levels.astype(np.int16)
    return levels

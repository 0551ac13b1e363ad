"""Closeness and harmonic centrality of every vertex from a sample of sources (Eppstein and Wang).

The mean of a vertex's distances from sources that were drawn independently is near to that from all
vertices: by Hoeffding's bound, for all vertices and both centralities at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.distances.scope import Scope
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.kernels.distances import bounds as kernels

if TYPE_CHECKING:
    from oocbfs.results.source import Levels


class Estimate(NamedTuple):
    """Values of vertices, and between which numbers all of them are with the confidence."""

    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def error(self) -> float:
        """How far any value may be off."""
        off = np.maximum(self.high - self.values, self.values - self.low)
        return float(off.max(initial=0.0))


class Estimates:
    """Sums over sources of the distance to each vertex, and of 1 / distance, by position."""

    def __init__(self, scope: Scope, threads: int) -> None:
        self._scope = scope
        self._threads = threads
        self.totals = np.zeros(scope.total)
        self.inverses = np.zeros(scope.total)

    def add(self, levels: Levels) -> None:
        """Add the distances from a source."""
        row = np.ascontiguousarray(levels)
        over_ranges(kernels.add, row.size, self._threads, self.totals, self.inverses, row)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the sums."""
        return {"distances": self.totals, "inverses": self.inverses}

    def go_on(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take what an earlier run summed up."""
        self.totals, self.inverses = state["distances"].copy(), state["inverses"].copy()

    def closeness(self, num_sources: int, confidence: float, most: float) -> Estimate | None:
        """Estimate the closeness of the vertices of the scope; no distance is above ``most``.

        None where a vertex need not be reached, and its mean distance is unknown.
        """
        if not self._scope.is_mutual:
            return None
        means, error = self._means(self.totals, num_sources, confidence, most)
        low, high = np.maximum(means - error, 1.0), np.minimum(means + error, max(most, 1.0))
        with np.errstate(divide="ignore"):
            found = (np.where(one > 0, 1 / one, 0.0) for one in (means, high, low))
            value, least, largest = found
        if self._scope.num_vertices == 1:
            return Estimate(value, value, value)
        return Estimate(value, np.minimum(least, value), np.maximum(largest, value))

    def harmonic(self, num_sources: int, confidence: float) -> Estimate:
        """Estimate the harmonic centrality of the vertices of the scope."""
        others = self._scope.num_vertices - 1
        means, error = self._means(self.inverses, num_sources, confidence, 1.0)
        low, high = np.maximum(means - error, 0.0), np.minimum(means + error, 1.0)
        low, high = np.minimum(low, means), np.maximum(high, means)
        return Estimate(means * others, low * others, high * others)

    def _means(
        self, sums: NDArray[np.float64], num_sources: int, confidence: float, most: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return means over all other vertices, and how far any of them may be off."""
        n = self._scope.num_vertices
        means = sums[self._scope.positions()]
        if n < 2:
            return means, 0.0
        if num_sources >= n:
            return means / (n - 1), 0.0
        # A source may be the vertex itself, which is no other.
        scale = n / (n - 1)
        chance = (1 - confidence) / (2 * n)
        error = most * math.sqrt(math.log(2 / chance) / (2 * num_sources))
        return means * scale / num_sources, error * scale

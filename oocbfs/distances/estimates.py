"""Closeness and harmonic centrality of every vertex from a sample of sources (Eppstein and Wang).

The mean of a vertex's distances from sources that were drawn independently is near to that from all
vertices: by Hoeffding's bound, for all vertices and both centralities at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import over_pieces, pieces_of
from oocbfs.distances.scope import Scope
from oocbfs.distances.state import copy_into
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
        parts = ((one[part] for one in self) for part in pieces_of(*self))
        return max(
            (float(max((high - value).max(), (value - low).max())) for value, low, high in parts),
            default=0.0,
        )


class Estimates:
    """Sums over sources of the distance to each vertex, and of 1 / distance, by position."""

    def __init__(self, scope: Scope, threads: int) -> None:
        self._scope = scope
        self._threads = threads
        self.totals, self.inverses = (
            scope.room.allocate(scope.total, np.float64) for _ in range(2)
        )
        for part in pieces_of(self.totals, self.inverses):
            self.totals[part] = self.inverses[part] = 0

    def add(self, levels: Levels) -> None:
        """Add the distances from a source."""
        sums = self.totals, self.inverses
        over_pieces(kernels.add, levels.size, self._threads, *sums, levels)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the sums."""
        return {"distances": self.totals, "inverses": self.inverses}

    def go_on(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take what an earlier run summed up."""
        copy_into(self.totals, state["distances"])
        copy_into(self.inverses, state["inverses"])

    def closeness(self, num_sources: int, confidence: float, most: float) -> Estimate | None:
        """Estimate the closeness of the vertices of the scope; no distance is above ``most``.

        None where a vertex need not be reached, and its mean distance is unknown.
        """
        if not self._scope.is_mutual:
            return None

        def turned(means: NDArray[np.float64], error: float) -> Estimate:
            low, high = np.maximum(means - error, 1.0), np.minimum(means + error, max(most, 1.0))
            with np.errstate(divide="ignore"):
                found = (np.where(one > 0, 1 / one, 0.0) for one in (means, high, low))
                value, least, largest = found
            if self._scope.num_vertices == 1:
                return Estimate(value, value, value)
            return Estimate(value, np.minimum(least, value), np.maximum(largest, value))

        return self._of_all(self.totals, num_sources, confidence, most, turned)

    def harmonic(self, num_sources: int, confidence: float) -> Estimate:
        """Estimate the harmonic centrality of the vertices of the scope."""
        others = self._scope.num_vertices - 1

        def scaled(means: NDArray[np.float64], error: float) -> Estimate:
            low, high = np.maximum(means - error, 0.0), np.minimum(means + error, 1.0)
            low, high = np.minimum(low, means), np.maximum(high, means)
            return Estimate(means * others, low * others, high * others)

        return self._of_all(self.inverses, num_sources, confidence, 1.0, scaled)

    def _of_all(
        self,
        sums: NDArray[np.float64],
        num_sources: int,
        confidence: float,
        most: float,
        of: Callable[[NDArray[np.float64], float], Estimate],
    ) -> Estimate:
        """Return what follows from means over all other vertices, and how far these may be off."""
        scope = self._scope
        n = scope.num_vertices
        scale, count, error = 1.0, max(1, n - 1), 0.0
        if 2 <= n > num_sources:
            # A source may be the vertex itself, which is no other.
            scale, count = n / (n - 1), num_sources
            chance = (1 - confidence) / (2 * n)
            error = scale * most * math.sqrt(math.log(2 / chance) / (2 * num_sources))
        found = Estimate(*(scope.room.allocate(n, np.float64) for _ in Estimate._fields))
        first = 0
        for part in scope.pieces_of(sums, *found):
            some = sums[part] if scope.inside is None else sums[part][scope.inside[part]]
            stop = first + some.size
            for values, those in zip(found, of(some * scale / count, error), strict=True):
                values[first:stop] = those
            first = stop
        return found

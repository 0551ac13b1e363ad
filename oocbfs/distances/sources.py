"""What searches from some or all vertices of a scope count, source by source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.distances.estimates import Estimates
from oocbfs.distances.scope import Scope
from oocbfs.distances.searches import Searches

# Sources after which what was found may be kept.
_GROUP = 256


def choose(scope: Scope, count: int, seed: int) -> NDArray[np.int64]:
    """Draw sources by position, some maybe twice; all of them if that many are wanted."""
    if count >= scope.num_vertices:
        return scope.positions()
    drawn = np.random.default_rng(seed).integers(0, scope.num_vertices, count)
    return scope.at(np.sort(drawn))


class Sources:
    """The figures of each source: how many vertices it reaches, how far, and its harmonic sum."""

    def __init__(
        self,
        searches: Searches,
        positions: NDArray[np.int64],
        estimates: Estimates | None = None,
    ) -> None:
        self._searches = searches
        self.scope = searches.scope
        self.positions = positions
        # What they say about all other vertices, if that is wanted.
        self.estimates = estimates
        self.done = 0
        self.reached = np.zeros(positions.size, np.int64)
        self.totals = np.zeros(positions.size, np.int64)
        self.harmonic = np.zeros(positions.size, np.float64)
        self.depths = np.zeros(positions.size, np.int32)
        # Pairs of a source and another vertex at each distance; at 0 the sources themselves.
        self.pairs = np.zeros(1, np.int64)
        # Squares of how many others each source has within each distance, summed up.
        self.squares = np.zeros(1)

    @property
    def is_all(self) -> bool:
        """Whether every vertex of the scope is a source."""
        return self.positions.size == self.scope.num_vertices

    @property
    def waiting(self) -> int:
        """How many sources are left."""
        return self.positions.size - self.done

    def run(self, after_group: Callable[[Sources], object] = lambda found: None) -> None:
        """Search from all that were not searched from yet."""
        while self.done < self.positions.size:
            group = self.positions[self.done : self.done + _GROUP]
            wanted = self._searches.sizes if self.estimates is None else self._searches.levels
            for found in wanted(group):
                number = self.done
                if self.estimates is not None:
                    assert found.levels is not None
                    self.estimates.add(found.levels)
                self.reached[number], self.totals[number] = found.reached, found.total
                self.harmonic[number], self.depths[number] = found.harmonic, found.depth
                self._count(found.sizes)
                self.done += 1
            after_group(self)

    def _count(self, sizes: NDArray[np.int64]) -> None:
        """Add the pairs of one source."""
        more = sizes.size - self.pairs.size
        if more > 0:
            self.pairs = np.pad(self.pairs, (0, more))
            # Earlier sources have no more others within a larger distance.
            self.squares = np.pad(self.squares, (0, more), mode="edge")
        within = np.cumsum(sizes) - 1.0
        self.pairs[: sizes.size] += sizes
        self.squares[: sizes.size] += within**2
        self.squares[sizes.size :] += within[-1] ** 2

    def closeness(self, *, wf_improved: bool = True) -> NDArray[np.float64]:
        """Return the closeness of each source, as networkx defines it."""
        others = self.reached - 1.0
        with np.errstate(invalid="ignore"):
            found: NDArray[np.float64] = np.where(self.totals > 0, others / self.totals, 0.0)
        if wf_improved and self.scope.num_vertices > 1:
            found *= others / (self.scope.num_vertices - 1)
        return found

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that it takes to go on later."""
        done = slice(self.done)
        return {
            "reached": self.reached[done],
            "totals": self.totals[done],
            "harmonic": self.harmonic[done],
            "depths": self.depths[done],
            "pairs": self.pairs,
            "squares": self.squares,
            **({} if self.estimates is None else self.estimates.state()),
        }

    def go_on(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take what an earlier run found."""
        self.done = state["reached"].size
        for name in ("reached", "totals", "harmonic", "depths"):
            getattr(self, name)[: self.done] = state[name]
        self.pairs, self.squares = state["pairs"].copy(), state["squares"].copy()
        if self.estimates is not None:
            self.estimates.go_on(state)

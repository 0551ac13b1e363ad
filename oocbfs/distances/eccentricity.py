"""Eccentricities from few searches, with bounds that narrow: diameter, radius, center.

A search from c that finds v at distance d and has depth e says that the eccentricity of v lies
between max(d, e - d) and e + d (Takes and Kosters, 2011). In a strongly connected component a
search from c and one back to it say the same, as ExactSumSweep has it (Borassi et al., 2015).
Searches start where bounds are extreme, up to 64 at a time, until what is wanted follows. Where
vertices of a directed graph need not reach each other, no search bounds others: all are searched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.distances.searches import Found, Searches
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.kernels.distances import bounds as kernels
from oocbfs.plan.many import DEEP

WANTED = ("diameter", "radius", "center", "periphery", "eccentricities")
_MOST_AT_ONCE = 64
# A group of searches that decides fewer eccentricities than this times its own is not worth its
# levels: from then on each search decides its own.
_LEAST_GAIN = 3
UNKNOWN = np.iinfo(np.int32).max


@dataclass
class Extremes:
    """What is certain so far: at least and at most, of the diameter and of the radius."""

    diameter: tuple[int, int]
    radius: tuple[int, int]
    searches: int
    waiting: int

    def text(self) -> str:
        """Write it in one line."""
        bounds = (
            f"{name} {low:,}" if low == high else f"{name} between {low:,} and {high:,}"
            for name, (low, high) in (("diameter", self.diameter), ("radius", self.radius))
        )
        return f"{', '.join(bounds)}: {self.searches:,} searches, {self.waiting:,} vertices wait"


class Side(NamedTuple):
    """Bounds of the eccentricities in one direction, by position; 0 outside the scope."""

    lower: NDArray[np.int32]
    upper: NDArray[np.int32]


class Eccentricities:
    """Bounds of the eccentricities of a scope.

    An eccentricity is the largest distance *from* a vertex. In a strongly connected component the
    largest distances *to* vertices are bounded besides, because the largest of all is the same.
    """

    def __init__(self, searches: Searches, wanted: Collection[str]) -> None:
        self._searches = searches
        self._scope = searches.scope
        self._wanted = frozenset(wanted)
        directed = searches.graph.directed
        # Whether a search says anything about others.
        self._spreads = self._scope.is_mutual or not directed
        self._sides = [self._side() for _ in range(2 if directed and self._spreads else 1)]
        self._degrees = searches.graph.degrees
        # Who leads nowhere is at no distance from anybody.
        alone = self._degrees == 0
        if self._scope.inside is not None:
            alone &= self._scope.inside
        self.upper[alone] = 0
        self.least, self.most = (0, 0) if alone.any() else (UNKNOWN, -1)
        self.searched = 0
        self._at_once = 1

    def _side(self) -> Side:
        n = self._scope.total
        side = Side(
            np.zeros(n, np.int32), np.full(n, max(0, self._scope.num_vertices - 1), np.int32)
        )
        if self._scope.inside is not None:
            side.upper[~self._scope.inside] = 0
        return side

    @property
    def lower(self) -> NDArray[np.int32]:
        """Least eccentricities, by position."""
        return self._sides[0].lower

    @property
    def upper(self) -> NDArray[np.int32]:
        """Largest eccentricities, by position."""
        return self._sides[0].upper

    def run(self, after_group: Callable[[Eccentricities], object] = lambda found: None) -> None:
        """Search until all that is wanted is certain."""
        while sum(map(np.count_nonzero, unresolved := self._unresolved())):
            self._search_group(unresolved)
            after_group(self)

    def _search_group(self, unresolved: list[NDArray[np.bool_]]) -> None:
        """Search from some of those that are waiting."""
        waiting = [np.flatnonzero(mask) for mask in unresolved]
        chosen = self._choose(waiting)
        deepest = 0
        if self._spreads:
            every = np.unique(np.concatenate(chosen))
            for position, found in zip(
                every.tolist(), self._searches.levels(every, back=True), strict=True
            ):
                self._narrow(found)
                self._know(0, position, found.depth)
                if len(self._sides) > 1:
                    self._know(1, position, found.back_depth)
                deepest = max(deepest, found.depth)
            num_chosen = every.size
        else:
            num_chosen = sum(some.size for some in chosen)
            for number, some in enumerate(chosen):
                results = self._searches.sizes(some, back=number == 1)
                for position, found in zip(some.tolist(), results, strict=True):
                    self._know(number, position, found.depth)
                    deepest = max(deepest, found.depth)
        self.searched += num_chosen
        if self._at_once == _MOST_AT_ONCE and self._spreads:
            before = sum(some.size for some in waiting)
            left = sum(int(np.count_nonzero(mask)) for mask in self._unresolved())
            self._spreads = before - left >= _LEAST_GAIN * num_chosen
        # On long thin graphs searches share nothing, and the next is better chosen than many.
        most = _MOST_AT_ONCE if deepest <= DEEP or not self._spreads else self._searches.threads
        self._at_once = min(2 * self._at_once, most)

    def _narrow(self, found: Found) -> None:
        """Take the bounds that follow from one search."""
        rows = [np.ascontiguousarray(row) for row in (found.forward, found.backward)]
        depths = found.depth, found.back_depth
        for side, depth in zip(self._sides, depths, strict=False):
            arguments = (*side, *rows, depth)
            over_ranges(kernels.narrow, side.lower.size, self._searches.threads, *arguments)
            rows.reverse()

    def _know(self, number: int, position: int, depth: int) -> None:
        """Take what is known of a vertex that was searched from."""
        side = self._sides[number]
        side.lower[position] = side.upper[position] = depth
        self.most = max(self.most, depth)
        if number == 0:
            self.least = min(self.least, depth)

    def _unresolved(self) -> list[NDArray[np.bool_]]:
        """Return which vertices must still be searched from, on each side."""
        lower, upper = self._sides[0]
        rules: dict[str, Callable[[], Any]] = {
            "eccentricities": lambda: True,
            "periphery": lambda: upper >= self.most,
            "radius": lambda: lower < self.least,
            "center": lambda: lower <= self.least,
        }
        waiting = [np.zeros(lower.size, np.bool_) for _ in self._sides]
        for name in self._wanted - {"diameter"}:
            waiting[0] |= rules[name]()
        if "diameter" in self._wanted:
            # One side is enough: the one that takes less.
            rest = [side.upper > self.most for side in self._sides]
            number = int(np.argmin([np.count_nonzero(mask) for mask in rest]))
            waiting[number] |= rest[number]
        for mask, side in zip(waiting, self._sides, strict=True):
            mask &= side.lower < side.upper
        return waiting

    def _choose(self, waiting: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Choose where to search from, of each side: large upper bounds, and small lower bounds.

        Of equal ones those with more neighbours come first.
        """
        if not self._spreads:
            return [
                some[largest_of(self._key(some, side.upper, 1), self._at_once)]
                for some, side in zip(waiting, self._sides, strict=True)
            ]
        count = self._at_once
        far = [self._open(side) for side in self._sides]
        near = waiting[0] if waiting[0].size else waiting[-1]
        if self._wanted == {"diameter"}:
            near = far[0]  # those near all others narrow it most, and none of them is waiting
        if waiting[0].size:
            far[0] = waiting[0]
        keys = [(near, self._sides[0].lower, -1)]
        keys += [(some, side.upper, 1) for some, side in zip(far, self._sides, strict=True)]
        chosen = []
        for number, (some, bound, sign) in enumerate(reversed(keys)):
            share = (count + number) // len(keys)
            chosen.append(some[largest_of(self._key(some, bound, sign), share)])
        return chosen

    def _open(self, side: Side) -> NDArray[np.int64]:
        """Return the vertices whose eccentricity on a side is not known."""
        return np.flatnonzero(side.lower < side.upper)

    def _key(
        self, some: NDArray[np.int64], bound: NDArray[np.int32], sign: int
    ) -> NDArray[np.int64]:
        """Return what is larger where to search first."""
        return (sign * bound[some].astype(np.int64) << 32) + self._degrees[some]

    def eccentricities(self) -> NDArray[np.int32]:
        """Return the eccentricities, -1 outside; all of them were asked for."""
        found = self.lower.copy()
        if self._scope.inside is not None:
            found[~self._scope.inside] = -1
        return found

    def positions_at(self, value: int) -> NDArray[np.int64]:
        """Return the positions whose eccentricity is certain to be this."""
        known = (self.lower == value) & (self.upper == value)
        if self._scope.inside is not None:
            known &= self._scope.inside
        return np.flatnonzero(known)

    def extremes(self) -> Extremes:
        """Return what is certain."""
        inside = slice(None) if self._scope.inside is None else self._scope.inside
        at_most = min(int(side.upper[inside].max(initial=0)) for side in self._sides)
        at_least = int(self.lower[inside].min(initial=UNKNOWN))
        return Extremes(
            diameter=(max(self.most, 0), max(at_most, self.most, 0)),
            radius=(at_least, min(self.least, int(self.upper[inside].min(initial=UNKNOWN)))),
            searches=self.searched,
            waiting=sum(int(np.count_nonzero(mask)) for mask in self._unresolved()),
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that it takes to go on later."""
        known = (self._at_once, self._spreads, self.least, self.most, self.searched)
        bounds = {
            f"{name}{number}": bound
            for number, side in enumerate(self._sides)
            for name, bound in side._asdict().items()
        }
        return {"known": np.array(known, np.int64), **bounds}

    def go_on(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take what an earlier run knew."""
        for number, side in enumerate(self._sides):
            for name, bound in side._asdict().items():
                bound[:] = state[f"{name}{number}"]
        at_once, spreads, self.least, self.most, self.searched = state["known"].tolist()
        self._at_once, self._spreads = at_once, bool(spreads)


def largest_of(keys: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return where the largest keys are, of equal ones the first; fewer if there are fewer."""
    if count >= keys.size:
        return np.arange(keys.size)
    if count == 0:
        return np.empty(0, np.int64)
    least = np.partition(keys, keys.size - count)[keys.size - count]
    above = np.flatnonzero(keys > least)
    equal = np.flatnonzero(keys == least)[: count - above.size]
    return np.concatenate((above, equal))

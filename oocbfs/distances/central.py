"""Who is central: the top by closeness or harmonic centrality, exactly, by searches with bounds.

A search from c says of a vertex v at level i that it is at least |i - j| away from all of level j,
and of all but its neighbours at least 2 (Bergamini, Borassi, Crescenzi, Marino and Meyerhenke,
2019). Of a directed graph, j - i. The vertices with the largest bounds are searched from, 64 at a
time, until no bound is above the last that is on top. Where that looks at fewer edges, each is
first searched by itself until its centrality cannot be large enough.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import over_pieces, pieces_of
from oocbfs.distances.eccentricity import largest_of
from oocbfs.distances.searches import Found, Searches
from oocbfs.distances.state import copy_into
from oocbfs.kernels.distances import bounds as kernels
from oocbfs.plan.many import DEEP

By = Literal["closeness", "harmonic"]
_AT_ONCE = 64
# So many of 64 searches at a time look at an edge together, more or less.
_SHARED = 8
# Searches that may be cut, before those that were not are finished.
_MANY_CUT = 512
# Searches whose levels are looked at: those that follow narrow little, and are for themselves.
_MOST_LEVELS = 512
# How far walks are counted: a pass over all rows for each step.
_MOST_WALKED = 4
# What sums of rounded numbers may be off.
_SLACK = 1e-9


class Central(NamedTuple):
    """A vertex and its centrality."""

    vertex: Any
    value: float


class Top:
    """The most central vertices of a scope."""

    def __init__(self, searches: Searches, count: int, by: By) -> None:
        self._searches = searches
        self._scope = searches.scope
        self._by = by
        self._count = min(count, self._scope.num_vertices)
        self._degrees = searches.degrees
        self.searched = self.cut = 0
        self._deepest = 0
        # Whether searches that may be cut look at fewer edges; where reading waits, they do not.
        self._cuts = searches.may_cut and (by == "harmonic" or self._scope.is_mutual)
        # The best so far: value, and the position below 0, so that of equal ones the first stays.
        self.best: list[tuple[float, int]] = []
        self.caps = self._first_caps()

    def _first_caps(self) -> NDArray[np.float64]:
        """Cap by how many vertices can be at each distance, as far as walks tell.

        For closeness, a cap is above minus the sum of all distances, so that more is better here
        too; where vertices may reach less than all, nothing is known before a search.
        """
        scope, harmonic = self._scope, self._by == "harmonic"
        caps, left = (scope.room.allocate(scope.total, np.float64) for _ in range(2))
        is_unknown = not harmonic and not scope.is_mutual
        for part in pieces_of(caps, left):
            caps[part] = np.inf if is_unknown else 0
            left[part] = scope.num_vertices - 1.0
        away, is_left = 0, not is_unknown
        for counts in self._searches.walks() if is_left else ():
            away, is_left = away + 1, False
            for part in pieces_of(caps, left, counts):
                found = np.minimum(counts[part], left[part])
                left[part] -= found
                caps[part] += found / away if harmonic else -away * found
                is_left |= bool(left[part].any())
            if away == _MOST_WALKED or not is_left:
                break
        for part in scope.pieces_of(caps, left):
            if not is_unknown:
                caps[part] += left[part] / (away + 1) if harmonic else -(away + 1) * left[part]
                caps[part] += _SLACK * np.abs(caps[part])
            if scope.inside is not None:
                caps[part][~scope.inside[part]] = -np.inf
        scope.room.release(left)
        return caps

    def run(self, after_group: Callable[[Top], object] = lambda found: None) -> None:
        """Search until the top is certain."""
        while (chosen := self._choose()).size:
            chosen = self._cut(chosen)
            spreads = self._by == "harmonic" or self._scope.is_mutual
            if spreads and self.searched < _MOST_LEVELS:
                results = self._searches.levels(chosen)
            else:
                results = self._searches.sizes(chosen)
            for position, found in zip(chosen.tolist(), results, strict=True):
                self._learn(position, found)
                self._deepest = max(self._deepest, found.depth)
            self.searched += chosen.size
            after_group(self)

    @property
    def waiting(self) -> int:
        """How many vertices may still be on top, each of which takes a search at most."""
        least = self._least()
        return sum(int(np.count_nonzero(self.caps[part] > least)) for part in pieces_of(self.caps))

    def _least(self) -> float:
        """Return the cap of the last that is on top."""
        if len(self.best) < self._count:
            return -np.inf
        least = self._as_cap(self.best[0][0])
        return least + _SLACK * abs(least)

    def _choose(self) -> NDArray[np.int64]:
        """Choose vertices of the largest caps that may still be on top."""
        if not self._count:
            return np.empty(0, np.int64)
        # Few at first, so that their levels help to choose the next.
        count = min(_AT_ONCE, max(1, self.searched))
        if self._cuts and self.cut and self.waiting > count:
            count = _MANY_CUT
        least, best = self._least(), np.empty(0, np.int64)
        for part in pieces_of(self.caps):
            best = np.append(best, part.start + np.flatnonzero(self.caps[part] > least))
            best = best[largest_of(self.caps[best], count)]
        return np.sort(best)

    def _cut(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Leave out vertices that a search of their own shows not to be on top, if that pays."""
        if not self._cuts or self.searched < _AT_ONCE or len(self.best) < self._count:
            return chosen
        harmonic = self._by == "harmonic"
        kept, edges = self._searches.above(chosen, self._least(), harmonic=harmonic)
        self.caps[chosen] = -np.inf
        self.caps[kept] = np.inf
        self.cut += chosen.size - kept.size
        # Searches of deep graphs share nothing.
        shared = 1 if self._deepest > DEEP else _SHARED
        self._cuts = edges * shared <= chosen.size * self._searches.graph._stored.num_arcs
        # The others wait; the next choice takes them.
        return kept[:_AT_ONCE]

    def _as_cap(self, value: float) -> float:
        """Return a value as caps have it."""
        if self._by == "closeness" and self._scope.is_mutual and value > 0:
            return -(self._scope.num_vertices - 1) / value
        return value

    def _learn(self, position: int, found: Found) -> None:
        """Take a value, and what its levels say about others."""
        self.caps[position] = -np.inf
        entry = self._value(found), -position
        if len(self.best) < self._count:
            heapq.heappush(self.best, entry)
        else:
            heapq.heappushpop(self.best, entry)
        if found.levels is None:
            return
        each = 0.5 if self._by == "harmonic" else 1.0
        arguments = (self.caps, found.levels, self._degrees, self._table(found.sizes), each)
        over_pieces(kernels.cap, found.levels.size, self._searches.threads, *arguments)

    def _value(self, found: Found) -> float:
        """Return the centrality of the vertex that was searched from."""
        if self._by == "harmonic":
            return found.harmonic
        others = found.reached - 1.0
        if not found.total:
            return 0.0
        return others / found.total * (others / (self._scope.num_vertices - 1))

    def _table(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cap of a vertex without neighbours at each level."""
        levels = np.arange(sizes.size)
        caps = np.empty(sizes.size)
        for level in levels:
            away = levels - level
            if not self._searches.graph.directed:
                away = np.abs(away)
            away = np.maximum(away, 2)
            # The vertex itself is no other, and was counted at 2.
            if self._by == "harmonic":
                caps[level] = (sizes / away).sum() - 0.5
            else:
                caps[level] = -float(sizes @ away) + 2
        return caps + _SLACK * np.abs(caps)

    def top(self) -> list[tuple[int, float]]:
        """Return positions and values, the largest first."""
        return [(-below, value) for value, below in sorted(self.best, reverse=True)]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that it takes to go on later."""
        best = np.array(self.best, np.float64).reshape(-1, 2)
        known = self.searched, self.cut, self._deepest, self._cuts
        return {"caps": self.caps, "best": best, "known": np.array(known, np.int64)}

    def go_on(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take what an earlier run knew."""
        copy_into(self.caps, state["caps"])
        self.best = [(value, int(below)) for value, below in state["best"].tolist()]
        heapq.heapify(self.best)
        self.searched, self.cut, self._deepest, cuts = state["known"].tolist()
        self._cuts = bool(cuts)

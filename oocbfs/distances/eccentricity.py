"""Eccentricities from few searches, with bounds that narrow: diameter, radius, center.

A search from c that finds v at distance d and has depth e says that the eccentricity of v lies
between max(d, e - d) and e + d (Takes and Kosters, 2011). In a strongly connected component a
search from c and one back to it say the same, as ExactSumSweep has it (Borassi et al., 2015).
Searches start where bounds are extreme, of equal ones where the sum of distances is, until what is
wanted follows: in memory one after the other, unless many are left, and otherwise up to 64 at a
time, which share what they read. Where vertices of a directed graph need not reach each other, no
search bounds others: all are searched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import let_go, over_pieces, pieces_of
from oocbfs.distances.searches import Around, Searches
from oocbfs.distances.state import copy_into
from oocbfs.kernels.distances import bounds as kernels
from oocbfs.plan.many import DEEP
from oocbfs.settings import several

WANTED = ("diameter", "radius", "center", "periphery", "eccentricities")
_MOST_AT_ONCE = 64
# A group of searches that decides fewer eccentricities than this times its own is not worth its
# levels: from then on each search decides its own.
_LEAST_GAIN = 3
# After so many searches, those that are left are estimated; many share what they read.
_LOOK_AGAIN = 16
_MANY = 128
# A kind of vertex that decided little is tried again after so many others.
_AGAIN = 8
UNKNOWN = np.iinfo(np.int32).max
_NEVER = np.iinfo(np.int64).max
# By what a vertex is chosen, itself last, and that of no vertex: the least.
_Key: TypeAlias = tuple[int, int, int, int]
_NO_KEY = (-_NEVER, 0, 0, 1)


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
        done, left = several(self.searches, "search"), several(self.waiting, "vertex")
        return f"{', '.join(bounds)}: {done}, {left} left"


class Side(NamedTuple):
    """Bounds of the eccentricities in one direction, by position; -1 outside the scope.

    ``sums`` are the distances to all that were searched from.
    """

    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    sums: NDArray[np.int32]


class Survey(NamedTuple):
    """What bounds of a side look like; see ``kernels.distances.bounds.survey``."""

    waiting: int
    far: int
    near: int
    most: int
    least_lower: int
    least_upper: int


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
        self._degrees = searches.degrees
        self.least, self.most = UNKNOWN, -1
        self._sides = [self._side() for _ in range(2 if directed and self._spreads else 1)]
        self.searched = 0
        self._at_once = 1
        # Sums of distances may be up to this.
        self._summed = 0
        # Of near and of far vertices: the last search from one, and what it decided.
        self._turns = np.zeros((1 + len(self._sides), 2), np.int64)
        # What was decided since searches were last looked at as a group.
        self._gain = self._grouped = 0
        self._look()

    def _side(self) -> Side:
        scope, room = self._scope, self._scope.room
        side = Side(*(room.allocate(scope.total, np.int32) for _ in Side._fields))
        for part in scope.pieces_of(*side, self._degrees):
            lower, upper, sums = (one[part] for one in side)
            lower[:] = sums[:] = 0
            upper[:] = max(0, scope.num_vertices - 1)
            if scope.inside is not None:
                lower[~scope.inside[part]] = upper[~scope.inside[part]] = -1
            # Who leads nowhere is at no distance from anybody.
            alone = (self._degrees[part] == 0) & (upper >= 0)
            upper[alone] = 0
            if alone.any():
                self.least = self.most = 0
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
        while self.waiting:
            self._search_group()
            after_group(self)

    @property
    def waiting(self) -> int:
        """How many vertices must still be decided, each by a search at most."""
        return sum(survey.waiting for survey in self._surveys)

    def _look(self) -> None:
        """Look at all bounds: what they leave open, and where to search next."""
        thresholds = [[_NEVER, -1] for _ in self._sides]
        first = thresholds[0]
        if "diameter" in self._wanted:
            # One side is enough: the one that takes less.
            rest = [self._survey(side, self.most, -1).waiting for side in self._sides[1:]]
            here = self._survey(self._sides[0], self.most, -1).waiting if rest else 0
            thresholds[1 if rest and rest[0] < here else 0][0] = self.most
        if "periphery" in self._wanted:
            first[0] = min(first[0], self.most - 1)
        if "eccentricities" in self._wanted:
            first[0] = -1
        if self._wanted & {"radius", "center"}:
            first[1] = self.least + ("center" in self._wanted)
        self._thresholds = thresholds
        self._surveys = [
            self._survey(side, *bounds)
            for side, bounds in zip(self._sides, thresholds, strict=True)
        ]

    def _survey(self, side: Side, above: int, below: int) -> Survey:
        def look(*columns: Any) -> tuple[Survey, _Key, _Key]:
            """Look at a range; a page of each range that is looked up later would bring many."""
            lower, upper, sums, degrees = columns[:4]
            found = Survey(*kernels.survey(*columns))

            def key(v: int, bound: NDArray[np.int32], sign: int) -> _Key:
                return (sign * int(bound[v]), sign * int(sums[v]), int(degrees[v]), -v)

            far = key(found.far, upper, 1) if found.far >= 0 else _NO_KEY
            near = key(found.near, lower, -1) if found.near >= 0 else _NO_KEY
            return found, far, near

        arguments = (*side, self._degrees, above, below)
        parts = over_pieces(look, side.lower.size, self._searches.threads, *arguments)
        if not parts:
            return Survey(0, -1, -1, -1, UNKNOWN, UNKNOWN)
        # The best of the best of each range, of equal ones the first.
        surveys, far, near = zip(*parts, strict=True)
        waiting, _, _, most, least_lower, least_upper = zip(*surveys, strict=True)
        return Survey(
            sum(waiting),
            -max(far)[-1],
            -max(near)[-1],
            max(most),
            min(least_lower),
            min(least_upper),
        )

    def _search_group(self) -> None:
        """Search from some of those that are waiting."""
        before = self.waiting
        kind, chosen = self._choose()
        deepest = 0
        if self._spreads:
            for position, found in zip(chosen.tolist(), self._searches.around(chosen), strict=True):
                self._narrow(found)
                for number, depth in enumerate((found.depth, found.back_depth)):
                    self._know(number, position, depth)
                deepest = max(deepest, found.depth)
        else:
            # Those of the other side are only waiting where the diameter is.
            back = self._surveys[0].waiting == 0
            results = self._searches.sizes(chosen, back=back)
            for position, result in zip(chosen.tolist(), results, strict=True):
                self._know(int(back), position, result.depth)
        self.searched += chosen.size
        self._look()
        self._learn(kind, before - self.waiting, chosen.size, deepest)

    def _narrow(self, found: Around) -> None:
        """Take the bounds that follow from one search."""
        rows = [found.forward, found.backward]
        depths = found.depth, found.back_depth
        # One of the first levels that hold one vertex each may be nearer to all.
        self.least = min(self.least, found.depth - min(found.alone, found.depth // 2))
        self._summed += max(depths)
        counts = int(self._summed < UNKNOWN)
        for side, depth in zip(self._sides, depths, strict=False):
            arguments = (*side, *rows, depth, found.alone, counts)
            over_pieces(kernels.narrow, side.lower.size, self._searches.threads, *arguments)
            rows.reverse()

    def _know(self, number: int, position: int, depth: int) -> None:
        """Take what is known of a vertex that was searched from."""
        if number < len(self._sides):
            side = self._sides[number]
            side.lower[position] = side.upper[position] = depth
            let_go(side.lower)
            let_go(side.upper)
            self.most = max(self.most, depth)
        if number == 0:
            self.least = min(self.least, depth)

    def _learn(self, kind: int, gain: int, num_searches: int, deepest: int) -> None:
        """Learn from what a group decided how to search on."""
        if kind >= 0:
            self._turns[kind] = self.searched, gain
        self._gain += gain
        self._grouped += num_searches
        is_long = False
        if self._grouped % _LOOK_AGAIN == 0:
            is_long = self.waiting * self._grouped > _MANY * self._gain
        if self._grouped >= _MOST_AT_ONCE and self._spreads:
            self._spreads = self._gain >= _LEAST_GAIN * self._grouped
            self._gain = self._grouped = 0
        if not self._spreads:
            self._at_once = _MOST_AT_ONCE
        elif self._searches.shares or is_long or self._at_once > 1:
            # On long thin graphs searches share nothing, and the next is better chosen than many.
            most = _MOST_AT_ONCE if deepest <= DEEP else self._searches.threads
            self._at_once = most if is_long else min(2 * self._at_once, most)

    def _choose(self) -> tuple[int, NDArray[np.int64]]:
        """Choose where to search from: large upper bounds, or small lower bounds.

        Returns the kind besides: -1 for several.
        """
        if self._at_once > 1 or not self._spreads:
            return -1, self._choose_many()
        candidates = [self._surveys[0].near, *(survey.far for survey in self._surveys)]
        kinds = [kind for kind, candidate in enumerate(candidates) if candidate >= 0]
        if not self.searched and candidates[0] >= 0:
            return -1, np.array(candidates[:1])
        last, gains = self._turns.T.tolist()

        def rank(kind: int) -> tuple[bool, int]:
            """Take turns, but those less often that decide little where others decide more."""
            useless = gains[kind] < min(_LEAST_GAIN, max(gains[other] for other in kinds))
            return not useless or self.searched - last[kind] >= _AGAIN or not last[kind], -last[
                kind
            ]

        kind = max(reversed(kinds), key=rank)
        return kind, np.array(candidates[kind : kind + 1])

    def _choose_many(self) -> NDArray[np.int64]:
        """Choose as many as are searched at once, from those that wait if these are few."""
        sides = list(zip(self._sides, self._thresholds, strict=True))
        waiting = [survey.waiting for survey in self._surveys]
        count = self._at_once
        if not self._spreads or sum(waiting) <= count:
            side, thresholds = sides[int(waiting[0] == 0)]
            return self._first(side, 1, thresholds, count)
        ways = [(side, 1, thresholds) for side, thresholds in reversed(sides)]
        ways = [way for way, some in zip(ways, reversed(waiting), strict=True) if some]
        # All that are open.
        ways.append((self._sides[0], -1, [-1, -1]))
        chosen = [self._first(*way, (count + turn) // len(ways)) for turn, way in enumerate(ways)]
        return np.unique(np.concatenate(chosen))

    def _first(self, side: Side, sign: int, thresholds: list[int], count: int) -> NDArray[np.int64]:
        """Return where to search first of those that wait: large upper or small lower bounds.

        Of equal ones those with more neighbours.
        """
        above, below = thresholds
        bound = side.upper if sign > 0 else side.lower
        best = keys = np.empty(0, np.int64)
        for part in pieces_of(side.lower, side.upper, self._degrees):
            lower, upper = side.lower[part], side.upper[part]
            some = np.flatnonzero((lower < upper) & ((upper > above) | (lower < below)))
            key = (sign * bound[part][some].astype(np.int64) << 32) + self._degrees[part][some]
            best, keys = np.append(best, part.start + some), np.append(keys, key)
            kept = largest_of(keys, count)
            best, keys = best[kept], keys[kept]
        return best

    def eccentricities(self) -> NDArray[np.int32]:
        """Return the eccentricities, -1 outside; all of them were asked for."""
        return self.lower

    def positions_at(self, value: int) -> NDArray[np.int64]:
        """Return the positions whose eccentricity is certain to be this."""
        found = [
            part.start + np.flatnonzero((self.lower[part] == value) & (self.upper[part] == value))
            for part in pieces_of(self.lower, self.upper)
        ]
        return np.concatenate((np.empty(0, np.int64), *found))

    def extremes(self) -> Extremes:
        """Return what is certain."""
        first = self._surveys[0]
        at_most = min(survey.most for survey in self._surveys)
        return Extremes(
            diameter=(max(self.most, 0), max(at_most, self.most, 0)),
            radius=(min(first.least_lower, UNKNOWN), min(self.least, first.least_upper)),
            searches=self.searched,
            waiting=self.waiting,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that it takes to go on later."""
        numbers = [getattr(self, name) for name in _NUMBERS]
        bounds = {
            f"{name}{number}": bound
            for number, side in enumerate(self._sides)
            for name, bound in side._asdict().items()
        }
        return {"known": np.array(numbers, np.int64), "turns": self._turns, **bounds}

    def go_on(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take what an earlier run knew."""
        for number, side in enumerate(self._sides):
            for name, bound in side._asdict().items():
                copy_into(bound, state[f"{name}{number}"])
        self._turns[:] = state["turns"]
        for name, value in zip(_NUMBERS, state["known"].tolist(), strict=True):
            setattr(self, name, value)
        self._look()


# What is known besides bounds.
_NUMBERS = ("_at_once", "_spreads", "least", "most", "searched", "_summed", "_gain", "_grouped")


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

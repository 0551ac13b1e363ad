"""How many pairs of vertices are how far apart: exactly, or from a sample with its interval."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.distances.intervals import Figure, mean_of, shares_within
from oocbfs.distances.sources import Sources
from oocbfs.results import tables
from oocbfs.settings import file_name

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored


@dataclass(frozen=True, repr=False)
class DistanceDistribution(tables.Table, tables.Drawn):
    """The distances of all ordered pairs of different vertices of a scope.

    ``pairs[d]`` counts pairs at distance d whose first vertex was searched from; pairs that do not
    reach each other are in none. ``errors`` bound at once how far all shares may be off: 0 if every
    vertex was searched from.
    """

    _stored: AnyStored = field(repr=False)
    scope: str
    num_vertices: int
    num_sources: int
    pairs: NDArray[np.int64]
    confidence: float
    errors: NDArray[np.float64] = field(repr=False)
    is_mutual: bool = field(repr=False)
    _sources: Sources = field(repr=False)
    # No distance is larger, for certain.
    _most: float = field(repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether every vertex was searched from."""
        return self.num_sources >= self.num_vertices

    @property
    def depth(self) -> int:
        """Largest distance that was found."""
        return self.pairs.size - 1

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of all pairs within each distance: 0 at 0, reachable ones at the last."""
        others = self.num_sources * max(1, self.num_vertices - 1)
        shares: NDArray[np.float64] = np.cumsum(self.pairs) / others
        return shares

    @property
    def error(self) -> float:
        """How far any share may be off."""
        return float(self.errors.max(initial=0.0))

    @cached_property
    def low(self) -> NDArray[np.float64]:
        """Least shares within each distance."""
        low: NDArray[np.float64] = np.maximum.accumulate(np.maximum(self.shares - self.errors, 0))
        return low

    @cached_property
    def high(self) -> NDArray[np.float64]:
        """Largest shares within each distance."""
        high = np.minimum(self.shares + self.errors, 1)
        # No share is larger than that within a larger distance.
        least: NDArray[np.float64] = np.minimum.accumulate(high[::-1])[::-1]
        return least

    @property
    def num_pairs(self) -> int:
        """All ordered pairs of different vertices."""
        return self.num_vertices * (self.num_vertices - 1)

    def _figure(self, value: float, low: float, high: float) -> Figure:
        if self.is_exact:
            return Figure.exactly(value)
        return Figure(value, min(low, value), max(high, value), self.confidence)

    @cached_property
    def reachable(self) -> Figure:
        """Share of the pairs whose first vertex reaches the second."""
        if self.is_mutual:
            return Figure.exactly(1.0)
        values = (self._sources.reached - 1) / max(1, self.num_vertices - 1)
        return mean_of(values, 0.0, 1.0, self.num_vertices, self.confidence)

    @cached_property
    def average(self) -> Figure:
        """Mean distance of the pairs that reach each other; NaN if none does."""
        sources, others = self._sources, max(1, self.num_vertices - 1)
        reached = int((sources.reached - 1).sum())
        value = float(sources.totals.sum() / reached) if reached else math.nan
        if self.is_exact:
            return Figure.exactly(value)
        if not math.isfinite(self._most):
            return Figure(value, 1.0, math.inf, self.confidence)
        if self.is_mutual:
            values = sources.totals / others
            return mean_of(values, 1.0, self._most, self.num_vertices, self.confidence)
        # A quotient of two means, each of which may be off half as often.
        half = (1 + self.confidence) / 2
        above = mean_of(sources.totals / others, 0.0, self._most, self.num_vertices, half)
        below = mean_of((sources.reached - 1) / others, 0.0, 1.0, self.num_vertices, half)
        high = above.high / below.low if below.low > 0 else math.inf
        low = above.low / below.high if below.high > 0 else 1.0
        return self._figure(value, max(1.0, low), min(self._most, high))

    @cached_property
    def harmonic_mean(self) -> Figure:
        """Harmonic mean of all distances, where pairs that do not reach each other add nothing."""
        values = self._sources.harmonic / max(1, self.num_vertices - 1)
        found = mean_of(values, 0.0, 1.0, self.num_vertices, self.confidence)

        def turned(value: float) -> float:
            return 1 / value if value > 0 else math.inf

        return self._figure(turned(found.value), turned(found.high), turned(found.low))

    def effective_diameter(self, share: float = 0.9) -> Figure:
        """Return within which distance so many of the reachable pairs are.

        Between two distances it is interpolated, as by Leskovec, Kleinberg and Faloutsos (2005).
        """
        last = float(self.shares[-1])
        if last == 0:
            return self._figure(math.nan, math.nan, math.nan)
        value = _where(self.shares, share * last)
        if self.is_exact:
            return Figure.exactly(value)
        # The share of all reachable pairs may be off, too.
        least, most = (1.0, 1.0) if self.is_mutual else (self.low[-1], self.high[-1])
        low = _where(self.high, share * least)
        high = _where(self.low, share * most)
        return self._figure(value, low, min(high, self._most))

    def median(self) -> Figure:
        """Return the distance within which half of the reachable pairs are, a whole number."""
        found = self.effective_diameter(0.5)
        if math.isnan(found.value):
            return found
        value, low, high = (
            float(math.ceil(x)) if math.isfinite(x) else x
            for x in (found.value, found.low, found.high)
        )
        return self._figure(value, low, high)

    def about(self) -> dict[str, str]:
        """Return what the table is about; nothing of it depends on how long it took."""
        found = {
            "scope": self.scope,
            "scope_vertices": self.num_vertices,
            "sources": self.num_sources,
            "exact": self.is_exact,
            "confidence": self.confidence,
            "error": self.error,
        }
        return tables.about(self._stored, **found)

    def _types(self) -> tables.Types:
        return {name: column.dtype for name, column in self.columns().items()}

    def _batches(self, *, reached_only: bool = False) -> Iterator[tables.Columns]:
        yield self.columns()

    def columns(self) -> tables.Columns:
        """Return the table as columns by their names: a row for each distance."""
        return {
            "distance": np.arange(1, self.pairs.size),
            "pairs": self.pairs[1:],
            "share_within": self.shares[1:],
            "low": self.low[1:],
            "high": self.high[1:],
        }

    def _draw(self, path: str | os.PathLike[str] | None, *, force: bool) -> Any:
        from oocbfs.distances.plots import plot_distribution

        return plot_distribution(self, path, force=force)

    @property
    def certainty(self) -> str:
        """How certain the shares are, in words."""
        if self.is_exact:
            return "exact"
        return f"sampled, ± {self.error:.2g} at {100 * self.confidence:.4g} %"

    @property
    def title(self) -> str:
        """What was counted, and what was found, in one line."""
        return (
            f"{file_name(self._stored.path)}: {self.num_vertices:,} vertices, "
            f"{self.num_sources:,} sources: average distance {self.average.text()}"
        )

    def summary(self) -> dict[str, Any]:
        """Return the figures, for JSON."""
        return {
            "sources": self.num_sources,
            "exact": self.is_exact,
            "confidence": self.confidence,
            "error": self.error,
            "pairs": self.num_pairs,
            "shares_within": self.shares.tolist(),
            "reachable": self.reachable.summary(),
            "average_distance": _json(self.average),
            "median_distance": _json(self.median()),
            "effective_diameter": _json(self.effective_diameter()),
            "harmonic_mean_distance": _json(self.harmonic_mean),
        }


def _json(figure: Figure) -> dict[str, Any] | None:
    """Return a figure, or nothing where there is no such number."""
    return figure.summary() if math.isfinite(figure.value) else None


def _where(shares: NDArray[np.float64], wanted: float) -> float:
    """Return where shares, which grow from one distance to the next, reach a number.

    Between two of them on a straight line; never is infinity.
    """
    if wanted <= shares[0]:
        return 0.0
    at = int(np.searchsorted(shares, wanted - 1e-12))
    if at >= shares.size:
        return math.inf
    below = float(shares[at - 1])
    return at - 1 + (wanted - below) / (float(shares[at]) - below)


def distribution_of(
    stored: AnyStored, sources: Sources, confidence: float, most: float
) -> DistanceDistribution:
    """Put together what sources found; no distance is larger than ``most``."""
    scope = sources.scope
    pairs = sources.pairs.copy()
    pairs[0] = 0
    errors = np.zeros(pairs.size)
    if not sources.is_all:
        count, others = sources.positions.size, max(1, scope.num_vertices - 1)
        shares = np.cumsum(pairs) / (count * others)
        squares = sources.squares / others**2
        variances = np.maximum(squares - count * shares**2, 0) / max(1, count - 1)
        distances = min(most, scope.num_vertices) + 1
        errors = shares_within(shares, variances, count, distances, confidence)
        errors[0] = 0  # nothing else is at distance 0
    return DistanceDistribution(
        stored,
        scope.text,
        scope.num_vertices,
        sources.positions.size,
        pairs,
        confidence,
        errors,
        scope.is_mutual,
        sources,
        most,
    )


def most_distant(searches: Any, sources: Sources) -> float:
    """Return what no distance is larger than, from what the sources found; may be infinite."""
    scope = sources.scope
    if sources.is_all or scope.num_vertices < 2:
        return float(sources.pairs.size - 1)
    if not searches.graph.directed:
        # All in one component, or some in the others, which are smaller.
        if sources.reached.max(initial=0) < scope.largest:
            return float(scope.num_vertices - 1)  # nothing of the largest component was drawn
        depths = sources.depths[sources.reached == scope.largest]
        return float(max(2 * int(depths.min()), scope.second - 1))
    if not scope.is_mutual:
        return math.inf
    number = int(sources.depths.argmin())
    back = next(iter(searches.sizes(sources.positions[number : number + 1], back=True)))
    return float(int(sources.depths[number]) + back.depth)

"""Intervals that hold: what a sample of sources says about all of them, for certain enough.

Nothing is assumed about a graph: sources are drawn independently of each other, so that one may
come twice, and what each of them counts lies between two numbers that are known for certain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Figure:
    """A number, and between which numbers it lies; both are the number itself where it is exact."""

    value: float
    low: float
    high: float
    confidence: float = 1.0

    @classmethod
    def exactly(cls, value: float) -> Figure:
        """Return a number that is known."""
        return cls(value, value, value)

    @property
    def is_exact(self) -> bool:
        """Whether the number is known."""
        return self.confidence == 1.0

    @property
    def error(self) -> float:
        """How far the number may be off."""
        return max(self.high - self.value, self.value - self.low)

    def text(self, form: str = ",.4g") -> str:
        """Write the number, and how certain it is."""
        value = format(self.value, form)
        if self.is_exact:
            return f"{value}, exact"
        at = f"at {100 * self.confidence:.4g} %"
        if not math.isfinite(self.error):
            return f"{value}, sampled, at least {format(self.low, form)} {at}"
        if self.error > 2 * min(self.high - self.value, self.value - self.low):
            return f"{value}, sampled, {format(self.low, form)} to {format(self.high, form)} {at}"
        return f"{value}, sampled, ± {format(self.error, '.2g')} {at}"

    def __float__(self) -> float:
        return self.value

    def summary(self) -> dict[str, float | bool | None]:
        """Return the figures, for JSON, which has no infinity."""
        high = self.high if math.isfinite(self.high) else None
        return {
            "value": self.value,
            "exact": self.is_exact,
            "low": self.low,
            "high": high,
            "confidence": self.confidence,
        }


def band(num_sources: int, confidence: float) -> float:
    """Return how far all shares of pairs within each distance may be off, at the same time.

    Each source has a distribution of distances to the others, and a sample averages k of them. If
    each source drew one of the others, the distances drawn would have that average as their mean,
    and by the inequality of Dvoretzky, Kiefer and Wolfowitz (with Massart's constant) they would
    be within x of all distances but with a chance of 2 exp(-2 k x²). Averaging only narrows this:
    by Jensen's inequality the mean of exp(t × largest error) is no larger, which for t = 4 k e
    bounds the chance of an error of e = z / √k by exp(-4 z²) + 8 z √(π / 2) exp(-2 z²). Neither the
    number of distances nor their largest matters.
    """
    chance = 1 - confidence
    low, high = 0.5, 64.0
    for _ in range(100):
        middle = (low + high) / 2
        at_most = math.exp(-4 * middle**2) + 8 * middle * math.sqrt(math.pi / 2) * math.exp(
            -2 * middle**2
        )
        low, high = (middle, high) if at_most > chance else (low, middle)
    return min(1.0, high / math.sqrt(num_sources))


def sources_for(error: float, confidence: float) -> int:
    """Return how many sources keep all shares within an error, whatever the graph."""
    return math.ceil((band(1 << 40, (1 + confidence) / 2) * (1 << 20) / error) ** 2)


def shares_within(
    shares: NDArray[np.float64],
    variances: NDArray[np.float64],
    num_sources: int,
    num_distances: float,
    confidence: float,
) -> NDArray[np.float64]:
    """Return how far each share of pairs within a distance may be off, all at the same time.

    That is the band or, where sources differ little, Bernstein's bound for each of so many
    distances; each of both may fail half as often.
    """
    errors = np.full(shares.size, band(num_sources, (1 + confidence) / 2))
    if num_sources > 1:
        log = math.log(4 * num_distances / (1 - confidence) * 2)
        spread = np.sqrt(2 * variances * log / num_sources)
        errors = np.minimum(errors, spread + 7 * log / (3 * (num_sources - 1)))
    return errors


def mean_of(
    values: NDArray[np.float64], least: float, most: float, total: int, confidence: float
) -> Figure:
    """Return the mean of ``total`` numbers between ``least`` and ``most``, from a sample of them.

    By the better of Hoeffding's bound (1963) and the empirical one of Bernstein's kind (Maurer and
    Pontil, 2009), each of which may fail half as often.
    """
    count = values.size
    value = float(values.mean()) if count else math.nan
    if count >= total:
        return Figure.exactly(value)
    log = math.log(4 / (1 - confidence))
    error = (most - least) * math.sqrt(log / (2 * count))
    if count > 1:
        spread = math.sqrt(2 * float(values.var(ddof=1)) * log / count)
        error = min(error, spread + 7 * (most - least) * log / (3 * (count - 1)))
    return Figure(value, max(least, value - error), min(most, value + error), confidence)

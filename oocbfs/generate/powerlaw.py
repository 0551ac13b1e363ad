"""Degree sequences that follow a truncated power law and meet their mean exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.errors import BudgetError, QueryError
from oocbfs.formats.edges import Ids

_STEEPEST = 64.0
_MAX_STUBS = 1 << 62
# Solving takes arrays with an entry for each degree; and the bytes for each degree.
_HIGHEST_DEGREE = 1 << 24
_SOLVING_BYTES = 64


@dataclass(frozen=True)
class DegreeClasses:
    """How many vertices have which degree: ``counts[i]`` vertices of ``degrees[i]``, none empty."""

    exponent: float
    degrees: Ids
    counts: Ids

    @property
    def num_stubs(self) -> int:
        """Sum of all degrees."""
        return int((self.degrees * self.counts).sum())

    def first_stubs(self) -> Ids:
        """Where the stubs of each class begin, and where the last one ends."""
        return _starts(self.degrees * self.counts)

    def first_vertices(self) -> Ids:
        """Where the vertices of each class begin, and where the last one ends."""
        return _starts(self.counts)

    def guide(self) -> tuple[Ids, np.uint64]:
        """Class of every 2^shift-th stub, as many as there are classes or more, and shift."""
        shift = max(0, (self.num_stubs // self.degrees.size).bit_length() - 1)
        stubs = np.arange(0, self.num_stubs, 1 << shift, dtype=np.uint64)
        classes = np.searchsorted(self.first_stubs(), stubs, side="right") - 1
        return classes.astype(np.uint64), np.uint64(shift)


def check_memory(max_degree: int, min_degree: int, budget_bytes: int) -> None:
    """Refuse degrees whose power law cannot be solved within a budget for the whole process."""
    degrees = min(max_degree, _HIGHEST_DEGREE) - min_degree + 1
    needed = memory.resident_bytes() + _SOLVING_BYTES * degrees
    if needed > budget_bytes:
        raise BudgetError(
            f"a power law of {degrees:,} degrees needs {memory.format_size(needed)} of memory: "
            "raise --memory or lower --max-degree"
        )


def degree_classes(
    num_vertices: int, mean_degree: float, max_degree: int, min_degree: int = 1
) -> DegreeClasses:
    """Solve for the power law with a given mean, maximum and minimum, in whole vertices.

    One vertex gets the maximum degree; the degrees d of all others are distributed as d^-exponent
    on min_degree…max_degree, with an exponent of at least 0. The sum of all degrees is the even
    number nearest to num_vertices * mean_degree.
    """
    num_stubs = _checked_stubs(num_vertices, mean_degree, max_degree, min_degree)
    others = num_vertices - 1
    exponent, share = _solve((num_stubs - max_degree) / others, max_degree, min_degree)
    # above[i] is the number of vertices of degree above min_degree + i. The sum of all degrees is
    # num_vertices * min_degree plus the sum of these. So rounding them, and not the counts, by
    # largest remainder keeps both the number of vertices and the mean.
    above = np.cumsum(share[:0:-1])[::-1] * others
    wanted = num_stubs - max_degree - others * min_degree
    total = above.sum()
    if total > 0:
        above *= wanted / total
    rounded = np.floor(above).astype(np.int64)
    missing = wanted - int(rounded.sum())
    # A stable sort raises the smaller degree first among equals, so that the sequence stays sorted.
    rounded[np.argsort(rounded - above, kind="stable")[:missing]] += 1
    counts = -np.diff(rounded, prepend=others, append=0)
    counts[-1] += 1
    used = np.flatnonzero(counts)
    degrees = (used + min_degree).astype(np.uint64)
    return DegreeClasses(exponent, degrees, counts[used].astype(np.uint64))


def _checked_stubs(num_vertices: int, mean_degree: float, max_degree: int, min_degree: int) -> int:
    """Sum of all degrees, or a QueryError that says which means are possible."""
    if not 1 <= max_degree <= _HIGHEST_DEGREE:
        raise QueryError(f"powerlaw: the maximum degree must be 1 to 2^24, not {max_degree}")
    if not 1 <= min_degree <= max_degree:
        raise QueryError(
            f"powerlaw: the minimum degree must be 1 to {max_degree}, the maximum, not {min_degree}"
        )
    if num_vertices <= max_degree:
        raise QueryError(
            f"powerlaw: a vertex of degree {max_degree} needs more than {num_vertices} vertices"
        )
    others = num_vertices - 1
    least = others * min_degree + max_degree
    most = max_degree + others * (min_degree + max_degree) // 2
    if not math.isfinite(mean_degree):
        raise QueryError(f"powerlaw: the mean degree must be a number, not {mean_degree}")
    num_stubs = 2 * round(num_vertices * mean_degree / 2)
    if not least <= num_stubs <= most:
        raise QueryError(
            f"powerlaw: the degrees of {num_vertices} vertices, from {min_degree} to {max_degree}, "
            f"must have an even sum from {least} to {most}; "
            f"a mean degree of {mean_degree:g} makes it {num_stubs}"
        )
    if num_stubs > _MAX_STUBS:
        raise QueryError("powerlaw: there can be at most 2^61 edges")
    return num_stubs


def _solve(mean: float, max_degree: int, min_degree: int) -> tuple[float, NDArray[np.float64]]:
    """Exponent and shares of the degrees of a power law with a given mean, between two degrees."""
    degrees = np.arange(min_degree, max_degree + 1, dtype=np.float64)
    logs = np.log(degrees)
    low, high = 0.0, _STEEPEST
    while True:
        exponent = (low + high) / 2
        weights = np.exp(-exponent * logs)
        share = weights / weights.sum()
        if exponent in (low, high):
            return exponent, share
        if share @ degrees > mean:
            low = exponent
        else:
            high = exponent


def _starts(sizes: Ids) -> Ids:
    """Prefix sums that begin with 0."""
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(sizes)])

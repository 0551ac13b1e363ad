"""Which combinations of options are tested: all of them with ``scripts/test --all``, else a few.

Most mistakes show with one option or with two. So the few hold every pair of values of two options.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

ALL = os.environ.get("OOCBFS_TEST_ALL") == "1"


def crossing(*options: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return combinations of one value of each option: all, or few that hold all pairs."""
    return list(itertools.product(*options)) if ALL else pairwise(*options)


def some(values: Sequence[Any], most: int) -> Sequence[Any]:
    """Return all values, or so many of them from the first to the last; always the same ones."""
    return values if ALL else values[:: -(-len(values) // most)]


def pairwise(*options: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return few combinations in which any two values of two options meet; always the same ones."""
    combinations = {
        combination: set(itertools.combinations(enumerate(combination), 2))
        for combination in itertools.product(*(range(len(values)) for values in options))
    }
    missing = set().union(*combinations.values())
    chosen = [] if len(options) > 1 else list(combinations)
    while missing:
        best = max(combinations, key=lambda combination: len(combinations[combination] & missing))
        missing -= combinations[best]
        chosen.append(best)
    return [tuple(values[i] for values, i in zip(options, best, strict=True)) for best in chosen]

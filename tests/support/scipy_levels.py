"""Levels by SciPy, the independent answer that traversals are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.csgraph
from numba import njit
from numpy.typing import NDArray


def scipy_levels(matrix: Any, source: int, *, directed: bool) -> NDArray[np.int64]:
    """Distance of every vertex from the source, -1 if there is no way."""
    order, before = scipy.sparse.csgraph.breadth_first_order(matrix, source, directed=directed)
    levels = np.full(matrix.shape[0], -1)
    _levels(levels, order, before)
    return levels


@njit(cache=True)  # type: ignore[untyped-decorator]
def _levels(levels: NDArray[np.int64], order: NDArray[np.int32], before: NDArray[np.int32]) -> None:
    levels[order[0]] = 0
    for vertex in order[1:]:
        levels[vertex] = levels[before[vertex]] + 1

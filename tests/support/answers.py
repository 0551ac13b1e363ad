"""Independent answers that ours are compared with: by SciPy, or by a simpler engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.csgraph
from numba import njit
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from oocbfs.results.source import SourceResult
from oocbfs.search.graph import Graph


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


def scipy_components(matrix: Any, *, directed: bool) -> NDArray[np.int64]:
    """Smallest vertex of each vertex's (weakly connected) component."""
    num_components, numbers = connected_components(matrix, directed=directed, connection="weak")
    least = np.full(num_components, matrix.shape[0])
    np.minimum.at(least, numbers, np.arange(matrix.shape[0]))
    smallest: NDArray[np.int64] = least[numbers]
    return smallest


def check_against_single(graph: Graph, results: list[SourceResult], sources: list[int]) -> None:
    """Every level of every source."""
    assert [result.source for result in results] == sources
    singles = {source: graph.bfs(source, threads=1) for source in set(sources)}
    for result in results:
        single = singles[result.source]
        assert result.levels is not None
        np.testing.assert_array_equal(result.levels, single.levels)
        assert result.levels.dtype == (np.int8 if single.depth <= 127 else np.int16)
        np.testing.assert_array_equal(result.level_sizes, single.level_sizes)
        assert (result.reached, result.depth) == (single.reached, single.depth)

"""Eccentricities of an undirected graph from few searches (Takes and Kosters, 2011).

A search from c that finds v at distance d and has depth e tells that the eccentricity of v lies
between max(d, e - d) and e + d. Searches go on until what is wanted follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from oocbfs.networkx.backing import ids_at

if TYPE_CHECKING:
    from oocbfs.search.graph import Graph

_MOST_AT_ONCE = 64
# A group of searches that decides fewer eccentricities than this times its own is not worth its
# levels: from then on each search decides its own.
_LEAST_GAIN = 3
_UNKNOWN = np.iinfo(np.int32).max


class Bounds(NamedTuple):
    """Bounds of each vertex's eccentricity, by position; equal where it is known."""

    lower: NDArray[np.int32]
    upper: NDArray[np.int32]


Rule = Callable[[Bounds], Any]


def all_of_them(bounds: Bounds) -> Any:
    """Return which vertices must be searched from for all eccentricities."""
    return bounds.lower < bounds.upper


def for_diameter(bounds: Bounds) -> Any:
    """Return which vertices may have a larger eccentricity than any that is known."""
    return bounds.upper > bounds.lower.max()


def for_radius(bounds: Bounds) -> Any:
    """Return which vertices may have a smaller eccentricity than any that is known."""
    return bounds.lower < bounds.upper.min()


def for_periphery(bounds: Bounds) -> Any:
    """Return which vertices may have the largest eccentricity or not."""
    return (bounds.upper >= bounds.lower.max()) & (bounds.lower < bounds.upper)


def for_center(bounds: Bounds) -> Any:
    """Return which vertices may have the smallest eccentricity or not."""
    return (bounds.lower <= bounds.upper.min()) & (bounds.lower < bounds.upper)


def eccentricities(graph: Graph, unresolved: Rule, not_connected: str) -> Bounds:
    """Narrow the bounds until the rule finds no vertex that is not decided.

    Raises
    ------
    NetworkXError
        With the message ``not_connected``, if the graph is not.
    """
    n = graph.num_vertices
    bounds = Bounds(np.zeros(n, np.int32), np.full(n, _UNKNOWN, np.int32))
    degrees = graph.degrees.astype(np.int32)
    at_once, spreads = 1, True
    while (waiting := np.flatnonzero(unresolved(bounds))).size:
        chosen = _choose(waiting, bounds, degrees, at_once)
        results = graph.bfs_many(ids_at(graph, chosen), emit="levels" if spreads else "summary")
        for position, result in zip(chosen.tolist(), results, strict=True):
            if result.reached != n:
                raise nx.NetworkXError(not_connected)
            depth = result.eccentricity
            if result.levels is not None:
                distances = result.levels.astype(np.int32)
                at_least = np.maximum(distances, depth - distances)
                np.maximum(bounds.lower, at_least, out=bounds.lower)
                np.minimum(bounds.upper, depth + distances, out=bounds.upper)
            bounds.lower[position] = bounds.upper[position] = depth
        if at_once == _MOST_AT_ONCE and spreads:
            left = int(np.count_nonzero(unresolved(bounds)))
            spreads = waiting.size - left >= _LEAST_GAIN * chosen.size
        at_once = min(2 * at_once, _MOST_AT_ONCE)
    return bounds


def _choose(
    waiting: NDArray[np.int64], bounds: Bounds, degrees: NDArray[np.int32], count: int
) -> NDArray[np.int64]:
    """Choose vertices to search from: of largest upper bounds, and of smallest lower bounds.

    Of equal ones those with more neighbours come first.
    """
    by_upper = np.lexsort((-degrees[waiting], -bounds.upper[waiting]))[: -(-count // 2)]
    by_lower = np.lexsort((-degrees[waiting], bounds.lower[waiting]))[: count // 2]
    chosen: NDArray[np.int64] = waiting[np.unique(np.concatenate((by_upper, by_lower)))]
    return chosen

"""Check a traversal of a graph in parts by the rules of Graph500, some edges at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.kernels.constants import NO_HEAD

if TYPE_CHECKING:
    from oocbfs.cluster.graph import ShardedGraph


def validate(
    graph: ShardedGraph,
    sources: NDArray[np.uint32],
    levels: NDArray[np.int32],
    parents: NDArray[np.uint32] | None,
    last_level: int,
) -> None:
    """Check levels and parents of stored vertices; the rules are those of ``search.validation``.

    Vertices on ``last_level`` were found, but not expanded.

    Raises
    ------
    QueryError
        If a rule is broken.
    """
    if not np.array_equal(np.flatnonzero(levels == 0), np.unique(sources)):
        raise QueryError("validation failed: level 0 is not the set of sources")
    if parents is not None and not np.array_equal(parents == NO_HEAD, levels < 0):
        raise QueryError("validation failed: parents and levels do not cover the same vertices")
    confirmed = levels <= 0
    if parents is not None:
        confirmed[sources] = parents[sources] == sources
    for tails, ends in graph.stored_edges():
        near, far = levels[tails], levels[ends]
        expanded = (near >= 0) & (near < last_level)
        wrong = np.flatnonzero(expanded & ((far < 0) | (far > near + 1)))
        if wrong.size:
            raise _failed(graph, int(ends[wrong[0]]), "an edge spans more than one level")
        leads = (near >= 0) & (far == near + 1)
        if parents is not None:
            leads &= parents[ends] == tails
        confirmed[ends[leads]] = True
    orphans = np.flatnonzero(~confirmed)
    if orphans.size:
        raise _failed(graph, int(orphans[0]), "no edge from a parent one level up")


def _failed(graph: ShardedGraph, vertex: int, problem: str) -> QueryError:
    name = int(graph.ids_of(np.array([vertex]))[0])
    return QueryError(f"validation failed at vertex {name}: {problem}")

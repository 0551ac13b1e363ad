"""Check a traversal by the rules of Graph500."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.results import levels as kernels

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

_NO_PARENTS = np.empty(0, np.uint32)


def validate(
    graph: StoredGraph,
    sources: NDArray[np.int64],
    levels: NDArray[np.int32],
    parents: NDArray[np.uint32] | None,
    *,
    last_level: int,
    threads: int,
) -> None:
    """Check a traversal of stored vertices by the rules of Graph500.

    1. the sources are on level 0, alone, and their own parents;
    2. every other vertex reached has a parent one level up, to which an edge leads;
    3. every edge spans at most one level;
    4. no edge leads from the reached set out of it.

    Raises
    ------
    QueryError
        If a rule is broken.
    """
    tree = _NO_PARENTS if parents is None else parents
    if not np.array_equal(np.flatnonzero(levels == 0), np.unique(sources)):
        raise QueryError("validation failed: level 0 is not the set of sources")
    if tree.size and not (tree[sources] == sources).all():
        raise QueryError("validation failed: a source is not its own parent")
    if tree.size and not np.array_equal(tree == NO_HEAD, levels < 0):
        raise QueryError("validation failed: parents and levels do not cover the same vertices")
    confirmed = np.zeros(levels.size, np.uint8)
    rows = graph.rows
    for problem, row in over_ranges(
        kernels.check_levels,
        levels.size,
        threads,
        confirmed,
        levels,
        tree,
        rows.heads,
        rows.bases,
        rows.starts,
        rows.shift,
        rows.tails,
        last_level,
        not graph.directed,
    ):
        if problem:
            vertex = graph.given_one(graph.ids_of(np.array([row]))[0])
            raise QueryError(f"validation failed at vertex {vertex}: {kernels.PROBLEMS[problem]}")
    orphans = np.flatnonzero((levels > 0) & (confirmed == 0))
    if orphans.size:
        vertex = graph.given_one(graph.ids_of(orphans[:1])[0])
        raise QueryError(
            f"validation failed at vertex {vertex}: no edge from a parent one level up"
        )

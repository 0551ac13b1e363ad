"""Check a traversal by the rules of Graph500."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.graph.rows import rows_before
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.results import levels as kernels
from oocbfs.kernels.rows import Rows
from oocbfs.plan.host import CHECKED_BYTES

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
    let_go: Callable[[], object] = lambda: None,
) -> None:
    """Check a traversal of stored vertices by the rules of Graph500.

    1. the sources are on level 0, alone, and their own parents;
    2. every other vertex reached has a parent one level up, to which an edge leads;
    3. every edge spans at most one level;
    4. no edge leads from the reached set out of it.

    ``let_go`` is called after every piece of the rows, in any thread.

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
    undirected = not graph.directed
    index = rows.heads, rows.bases, rows.starts, rows.shift, rows.tails
    cuts = _cuts(rows)

    def check(piece: int) -> tuple[int, int]:
        begin, end = cuts[piece : piece + 2]
        found: tuple[int, int] = kernels.check_levels(
            confirmed, levels, tree, *index, last_level, undirected, begin, end
        )
        let_go()
        return found

    for problem, row in ordered_map(check, range(len(cuts) - 1), threads):
        if problem:
            vertex = graph.given_one(graph.ids_of(np.array([row]))[0])
            raise QueryError(f"validation failed at vertex {vertex}: {kernels.PROBLEMS[problem]}")
    orphans = np.flatnonzero((levels > 0) & (confirmed == 0))
    if orphans.size:
        vertex = graph.given_one(graph.ids_of(orphans[:1])[0])
        raise QueryError(
            f"validation failed at vertex {vertex}: no edge from a parent one level up"
        )


def _cuts(rows: Rows) -> list[int]:
    """Cut the rows where neither their index nor their tails take more than a piece of memory."""
    by_tails = rows_before(rows, np.arange(0, rows.tails.size, CHECKED_BYTES // 2))
    by_rows = np.arange(0, rows.heads.size, CHECKED_BYTES // 32)
    ends = np.array([0, rows.heads.size])
    cuts: list[int] = np.unique(np.concatenate([by_tails, by_rows, ends])).tolist()
    return cuts

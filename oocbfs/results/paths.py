"""Shortest paths of a search that is over: from parent to parent, or through rows and levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.edges import Ids

if TYPE_CHECKING:
    from oocbfs.graph.vertices import Vertex
    from oocbfs.results.bfs import BfsResult

# Vertices of all paths that are followed at a time.
_AT_A_TIME = 1 << 20


def path_to(result: BfsResult, vertex: Vertex) -> list[Any]:
    """Return the ids, or names, on a shortest path to a vertex; refuse one that was not reached."""
    from oocbfs.results.bfs import listed

    stored = result._stored
    wanted = np.array([stored.one(vertex)], np.uint64)
    found = next(_paths(result, wanted))
    if not found.size:
        raise QueryError(f"vertex {vertex} was not reached from {listed(result.sources)}")
    return list(stored.given(found).tolist())


def paths_to(result: BfsResult, vertices: Iterable[Vertex]) -> list[list[Any]]:
    """Return a shortest path to each vertex; an empty list where it was not reached."""
    wanted = result._stored.as_ids(vertices)
    return [list(result._stored.given(path).tolist()) for path in _paths(result, wanted)]


def _paths(result: BfsResult, wanted: Ids) -> Iterator[Ids]:
    """Yield a path to each id."""
    if not result.has_parents:
        for one in wanted:
            yield _through_rows(result, int(one))
        return
    size = max(1, _AT_A_TIME // max(1, result.depth))
    for first in range(0, wanted.size, size):
        yield from _through_parents(result, wanted[first : first + size])


def _through_parents(result: BfsResult, wanted: Ids) -> Iterator[Ids]:
    """Follow the parents of several ids at once; yields the path to each."""
    levels = result._levels_of(wanted)
    steps = [wanted]
    for level in range(1, int(levels.max(initial=0)) + 1):
        before = steps[-1].copy()
        on_way = levels >= level
        before[on_way] = result._parents_of(before[on_way])
        steps.append(before)
    trails = np.array(steps)
    for place, level in enumerate(levels.tolist()):
        yield trails[: level + 1, place][::-1]


def _through_rows(result: BfsResult, wanted: int) -> Ids:
    """Go to any neighbour that is one level nearer, level by level."""
    stored = result._stored
    level = int(result._levels_of(np.array([wanted], np.uint64))[0])
    path = [wanted] if level >= 0 else []
    while level > 0:
        try:
            before = stored.neighbor_ids(path[-1], inward=True)
        except QueryError as error:
            raise QueryError(
                f"{error}; or search with parents=True, which paths follow without the graph"
            ) from error
        levels = result._levels_of(before)
        level -= 1
        nearer = np.flatnonzero(levels == level)
        if nearer.size == 0:
            raise FormatError(
                f"{stored.path}: no edge leads to vertex {stored.given_one(path[-1])} from one "
                "level nearer: run 'oocbfs verify'"
            )
        path.append(int(before[nearer[0]]))
    return np.array(path[::-1], np.uint64)

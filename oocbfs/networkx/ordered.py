"""Searches whose order is a part of the answer: vertices as networkx would find them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import fresh
from oocbfs.distances.searches import ids_at
from oocbfs.errors import FormatError, QueryError
from oocbfs.kernels.ordered import search as kernels
from oocbfs.networkx.backing import Backing
from oocbfs.settings import is_verifying

# So many vertices are looked at before what they found is given out: first few, then more, because
# nobody may want the rest.
_FIRST_PIECE = 16
_LARGEST_PIECE = 1 << 16


class Found(NamedTuple):
    """Vertices that were found at one level: their places in the queue, from first to stop - 1."""

    level: int
    first: int
    stop: int


class OrderedSearch:
    """A search from some vertices, one level after the other; ``queue`` holds what was found."""

    def __init__(self, backing: Backing, sources: list[int], *, inward: bool = False) -> None:
        self._backing = backing
        self._inward = inward
        count = len(backing.names)
        self.queue: NDArray[np.uint32] = fresh(count, np.uint32)
        self.finders: NDArray[np.uint32] = fresh(count, np.uint32)
        self._visited = np.zeros(count, np.uint8)
        self.queue[: len(sources)] = sources
        self._visited[sources] = 1
        self._num_sources = len(sources)

    def run(self, num_levels: float) -> Iterator[Found]:
        """Yield what is found, in its order, up to so many levels."""
        begin, count, level = 0, self._num_sources, 0
        piece = _FIRST_PIECE
        scratch = self._backing.row_scratch()
        levels = self._levels() if is_verifying() else None
        while begin < count and level < num_levels:
            level += 1
            level_end = count
            while begin < level_end and count < self.queue.size:
                end = min(begin + piece, level_end)
                found = self._expand(count, begin, end, scratch)
                if levels is not None and (levels[self.queue[count:found]] != level).any():
                    raise _wrong(self._backing)
                if found > count:
                    yield Found(level, count, found)
                begin, count, piece = end, found, min(2 * piece, _LARGEST_PIECE)
            begin = level_end
        if levels is not None and count < np.count_nonzero((levels >= 0) & (levels <= num_levels)):
            raise _wrong(self._backing)

    def _levels(self) -> NDArray[np.int32]:
        """Find the levels of all vertices by a search that is checked."""
        backing = self._backing
        engine = backing.reversed_engine if self._inward else backing.engine
        sources = self.queue[: self._num_sources].astype(np.int64)
        return engine.bfs(ids_at(engine, sources)).levels

    def _expand(self, count: int, begin: int, end: int, scratch: NDArray[np.uint32]) -> int:
        backing = self._backing
        with backing.reading():
            rows = backing.rows(inward=self._inward)
            arrays = self.queue, self.finders, self._visited
            found = int(kernels.expand(*arrays, count, begin, end, rows, scratch))
            if found == kernels.DAMAGED:
                raise _damaged(backing)
        backing.release()
        return found

    def nodes(self, found: Found) -> list[Any]:
        """Return the nodes that were found."""
        return self._backing.names.nodes(self.queue[found.first : found.stop])

    def parents(self, found: Found) -> list[Any]:
        """Return the nodes from which they were found."""
        places = self.finders[found.first : found.stop]
        return self._backing.names.nodes(self.queue[places])


def shortest_path(backing: Backing, source: int, target: int) -> list[int] | None:
    """Return the positions on the path that a search from both ends finds, None if none."""
    if source == target:
        return [source]
    count = len(backing.names)
    queues = [fresh(count, np.uint32) for _ in range(2)]
    before, after = (np.zeros(count, np.uint32) for _ in range(2))
    with backing.reading():
        scratch = backing.row_scratch()
        rows = backing.rows(), backing.rows(inward=True)
        met = int(kernels.meet(*queues, before, after, source, target, *rows, scratch))
        if met == kernels.DAMAGED:
            raise _damaged(backing)
    backing.release()
    path = None
    if met != kernels.NO_PATH:
        path = [*reversed(_way(before, met)), met, *_way(after, met)]
    if is_verifying():
        engine = backing.engine
        level = engine.bfs(ids_at(engine, np.array([source]))).levels[target]
        if level != (-1 if path is None else len(path) - 1):
            raise _wrong(backing)
    return path


def _way(towards: NDArray[np.uint32], vertex: int) -> list[int]:
    """Follow one half of a path to its end."""
    way = []
    while (step := int(towards[vertex])) != kernels.END:
        vertex = step - kernels.BEFORE
        way.append(vertex)
    return way


def _wrong(backing: Backing) -> QueryError:
    return QueryError(
        f"{backing.engine.path}: validation failed: vertices were found on other levels than those "
        "of a search that was checked: this is a mistake of oocbfs"
    )


def _damaged(backing: Backing) -> FormatError:
    return FormatError(f"{backing.engine.path}: a row is damaged: run 'oocbfs verify'")

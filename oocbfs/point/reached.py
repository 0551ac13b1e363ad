"""Who is reached in a few steps: searched in tables, handed out like any other search."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Ids
from oocbfs.kernels.compiling import clock
from oocbfs.kernels.point import near as kernels
from oocbfs.kernels.point import state as words
from oocbfs.kernels.structs import Struct
from oocbfs.point.search import NO_PATH, PairSearch
from oocbfs.query import Query
from oocbfs.results.later import LaterResult
from oocbfs.results.levels import LevelLog
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# A search that enters more than this share of the vertices goes over: from then on, arrays of all
# vertices cost less than a table. Up to here, it has taken a tenth of the time of the other.
REACH_SHARE = 1 / 64
_NO_DEPTH = np.iinfo(np.int64).max
_NO_LIMIT = np.iinfo(np.int64).max


class Reach(NamedTuple):
    """What was reached, in stored vertices, the nearest first, and what that took."""

    vertices: NDArray[np.uint32]
    levels: NDArray[np.int32]
    parents: NDArray[np.uint32]
    log: LevelLog
    disk_bytes: int
    from_disk: bool


class ReachSearch:
    """Searches from some vertices up to a depth, or up to the level of a target."""

    def __init__(self, graph: StoredGraph, settings: Settings) -> None:
        self._pairs = PairSearch(graph, settings.for_pairs())
        self._most_entries = self._pairs.most_entries_of(REACH_SHARE)
        self._path = graph.path

    def search(self, query: Query) -> Reach | None:
        """Return what is reached; None if that is too much for tables."""
        start = clock()
        depth = self._depth(query)
        if depth is None:
            return None
        none = np.empty(0, np.uint32)
        seeds = np.ascontiguousarray(query.sources, np.uint32)
        near = kernels.Near(
            seeds,
            np.array([seeds.size], np.int64),
            np.zeros(1, np.int64),
            np.zeros(1, np.uint8),
            none,
            np.empty(0, np.int32),
            none,
        )
        struct = Struct(near)
        with self._pairs.borrowed() as work:
            control = work.control
            while True:
                control[[kernels.MAX_DEPTH, kernels.LIMIT]] = depth, _NO_LIMIT
                control[kernels.MOST_ENTRIES] = self._most_entries
                rows = self._pairs.reader.out_rows.address
                kernels.search_near(rows, work.address, struct.address, 0, 0)
                outcome = int(control[words.OUTCOME])
                if outcome == words.NO_ROOM:  # in what was given to it, which is nothing
                    break
                if outcome == kernels.GIVEN_UP:
                    return None
                work.make_room(self._path)
            size = int(control[words.ENTRIES])
            reach = work.reach
            vertices, levels = reach.queue[:size].copy(), reach.levels[:size].copy()
            parents = vertices[reach.owners[:size]] if query.parents else none
            edges, pages = int(control[words.EDGES]), work.disk_bytes
        log = LevelLog(("disk",) if self._pairs.from_disk else ())
        sizes = np.bincount(levels)
        if expanded := min(depth, sizes.size):
            # All levels that were expanded are one record.
            frontier = int(sizes[:expanded].sum())
            log.add("small", frontier, num_levels=expanded, edges=edges, disk_bytes=pages)
            log.last["seconds"] = clock() - start
        return Reach(vertices, levels, parents, log, pages, self._pairs.from_disk)

    def _depth(self, query: Query) -> int | None:
        """Return up to which level to search; None if a target is too far to be found."""
        depth = _NO_DEPTH if query.max_depth is None else query.max_depth
        if query.target is None:
            return depth
        targets = np.full(query.sources.size, query.target, np.uint32)
        sources = np.ascontiguousarray(query.sources, np.uint32)
        distances = self._pairs.nearby(sources, targets)
        if (distances < NO_PATH).any():
            return None
        reached = distances[distances >= 0]
        return min(depth, int(reached.min())) if reached.size else depth


class ReachedSet:
    """What was reached, by ascending positions."""

    def __init__(self, graph: StoredGraph, reach: Reach) -> None:
        positions = graph.lookup.positions_of(reach.vertices)
        order = np.argsort(positions)
        self.positions, self.levels = positions[order], reach.levels[order]
        self.parents: NDArray[np.int64] | None = None
        if reach.parents.size:
            self.parents = graph.lookup.ids_of(reach.parents[order]).astype(np.int64)

    def between(
        self, values: NDArray[Any], first: int, stop: int, dtype: type[Any]
    ) -> NDArray[Any]:
        """Return values at positions first … stop-1; -1 where nothing was reached."""
        found = np.full(stop - first, -1, dtype)
        begin, end = np.searchsorted(self.positions, (first, stop))
        found[self.positions[begin:end] - first] = values[begin:end]
        return found

    def at(self, values: NDArray[Any], positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return values at some positions; -1 where nothing was reached."""
        places = np.minimum(np.searchsorted(self.positions, positions), self.positions.size - 1)
        return np.where(self.positions[places] == positions, values[places], -1)


class ReachedResult(LaterResult):
    """Levels of few vertices; ``levels`` and ``parents`` of all are made when asked for."""

    _stored: StoredGraph
    _found: ReachedSet

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """Id of each vertex's parent; see ``BfsResult.parents``."""
        if self._found.parents is None:
            return self._again().parents
        return self.parents_between(0, self._stored.num_vertices)

    @property
    def has_parents(self) -> bool:
        """Whether parents were asked for."""
        return self._found.parents is not None

    def levels_between(self, first: int, stop: int) -> NDArray[np.int32]:
        """Levels at positions first … stop-1."""
        return self._found.between(self._found.levels, first, stop, np.int32)

    def parents_between(self, first: int, stop: int) -> NDArray[np.int64]:
        """Parents at positions first … stop-1, as ids."""
        if self._found.parents is None:
            return self._again().parents[first:stop]
        return self._found.between(self._found.parents, first, stop, np.int64)

    def _levels_of(self, ids: Ids) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self._found.at(self._found.levels, self._stored.positions(ids))
        return found

    def _parents_of(self, ids: Ids) -> Ids:
        assert self._found.parents is not None
        return self._found.at(self._found.parents, self._stored.positions(ids)).astype(np.uint64)

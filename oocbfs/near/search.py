"""Who is within some steps of a seed: seed by seed, or of several together; on all cores.

Memory and reads are in proportion to what is touched. A seed near so much of the graph that tables
take longer than a search of all of it is handed over to that; so are all seeds of a sharded graph.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.kernels.point import near as kernels
from oocbfs.kernels.point import state as words
from oocbfs.kernels.structs import Struct
from oocbfs.options import is_whole
from oocbfs.point.search import PairSearch
from oocbfs.settings import DEPTHS, Settings, check_whole

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.single_rows import Work
    from oocbfs.graph.stored import StoredGraph

# A search that finds more than this share of the vertices goes over to one of the whole graph,
# where arrays cost less than tables: on Kronecker graphs, 0.6 to 0.9 of the time that 1/8 takes.
# With rows from disk, where the other reads most of the file, it goes on as long as pairs do.
_REACH_SHARE = 1 / 32
# Rows that one thread finds before it hands them out, about; and seeds that it takes at most.
_ROWS_AT_ONCE = 1 << 17
_MOST_SEEDS = 1 << 10
_NO_LIMIT = np.iinfo(np.int64).max
_NOTHING = np.empty(0, np.uint32)
_LIMITS = range(1, 1 << 62)


_Columns = tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint32]]


class Found(NamedTuple):
    """What some searches found: ids, one search after the other, the nearest first.

    ``ends`` are where each search ends, ``cut`` which of them the limit has cut off.
    """

    ends: NDArray[np.int64]
    cut: NDArray[np.bool_]
    ids: Ids
    levels: NDArray[np.int32]
    parents: Ids | None


class _Part(NamedTuple):
    """The same in stored vertices; ``given_up`` are the searches that somebody else has to do."""

    ends: NDArray[np.int64]
    cut: NDArray[np.bool_]
    vertices: NDArray[np.uint32]
    levels: NDArray[np.int32]
    parents: NDArray[np.uint32]
    given_up: list[int]


class NearSearch:
    """Finds what is near seeds of one graph."""

    def __init__(
        self,
        graph: AnyStored,
        settings: Settings,
        *,
        depth: int,
        limit: int | None = None,
        parents: bool = False,
    ) -> None:
        check_whole("depth", depth, DEPTHS)
        if depth == 0:
            raise QueryError(
                "nothing is within 0 steps but the seed itself: give a depth from 1 on"
            )
        if limit is not None and (not is_whole(limit) or limit not in _LIMITS):
            raise QueryError(f"limit cannot be {limit!r}: it is a whole number of vertices, from 1")
        self.graph, self.depth, self.limit, self.with_parents = graph, depth, limit, parents
        self._settings = settings
        self._threads = available_threads(settings.threads)
        self._small: PairSearch | None = None
        self._most_entries = 0
        if not graph.is_sharded:
            with graph.reading():
                small = self._small = PairSearch(cast("StoredGraph", graph), settings)
            self._most_entries = small.most_entries_of(1 if small.from_disk else _REACH_SHARE)
        # Rows and searches so far, from which it follows how many seeds are taken at once.
        self._rows = self._searches = 0

    def apart(self, seeds: Ids) -> Generator[Found]:
        """Yield what is near each seed, some seeds at a time, in their order."""
        if self._small is None:
            for seed in seeds:
                yield self._whole(np.array([seed], np.uint64))
            return
        with self.graph.reading():
            stored = self._stored(seeds)
        groups = ((stored[part], part) for part in self._parts(seeds.size))
        found = ordered_map(lambda group: (self._near(group[0]), group[1]), groups, self._threads)
        with closing(found):
            for near, part in found:
                self._searches += near.ends.size
                for one in self._completed(self._named(near), near.given_up, seeds[part]):
                    self._rows += one.ids.size
                    yield one
                if self._small.from_disk:
                    # Pages of ids that were looked up count as memory.
                    self.graph.release()

    def together(self, seeds: Ids) -> Generator[Found]:
        """Yield what is near any of the seeds, all at once."""
        if self._small is None:
            yield self._whole(seeds)
            return
        with self.graph.reading():
            stored = self._stored(seeds)
        near = self._near(stored, np.array([stored.size]))
        yield self._whole(seeds) if near.given_up else self._named(near)

    def _stored(self, seeds: Ids) -> NDArray[np.uint32]:
        """Return stored vertices of ids that are known."""
        assert self._small is not None
        graph = cast("StoredGraph", self.graph)
        positions = graph.positions(seeds)
        return graph.lookup.stored(positions, from_disk=self._small.from_disk).astype(np.uint32)

    def _parts(self, count: int) -> Iterator[slice]:
        """Yield which seeds are taken at once: about as many as find so many rows."""
        first, size = 0, 1
        while first < count:
            yield slice(first, min(first + size, count))
            first += size
            mean = self._rows / self._searches if self._searches else _ROWS_AT_ONCE
            size = max(1, min(2 * size, _MOST_SEEDS, int(_ROWS_AT_ONCE / max(1, mean))))

    def _near(self, seeds: NDArray[np.uint32], ends: NDArray[np.int64] | None = None) -> _Part:
        """Search by one thread: from each seed, or from all those up to each end."""
        assert self._small is not None
        if ends is None:
            ends = np.arange(1, seeds.size + 1)
        with self.graph.reading(), self._small.borrowed() as work:
            control = work.control
            control[kernels.MAX_DEPTH] = self.depth
            control[kernels.LIMIT] = _NO_LIMIT if self.limit is None else self.limit
            control[kernels.MOST_ENTRIES] = self._most_entries
            return self._run(work, seeds, ends)

    def _run(self, work: Work, seeds: NDArray[np.uint32], seed_ends: NDArray[np.int64]) -> _Part:
        """Do some searches, with more room where there is too little."""
        assert self._small is not None
        count = seed_ends.size
        room = min(_ROWS_AT_ONCE, count * min(_ROWS_AT_ONCE, self.limit or _ROWS_AT_ONCE))
        near = kernels.Near(
            seeds,
            seed_ends,
            np.zeros(count, np.int64),
            np.zeros(count, np.uint8),
            np.empty(room, np.uint32),
            np.empty(room, np.int32),
            np.empty(room if self.with_parents else 0, np.uint32),
        )
        struct, rows = Struct(near), self._small.reader.out_rows.address
        sizes = np.zeros(count, np.int64)
        pieces: list[tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint32]]] = []
        given_up: list[int] = []
        done = 0
        while True:
            first, done = done, kernels.search_near(rows, work.address, struct.address, done, 0)
            sizes[first:done] = np.diff(near.ends[first:done], prepend=0)
            size = int(near.ends[done - 1]) if done > first else 0
            kept = (near.vertices[:size], near.levels[:size], near.parents[:size])
            if done == count:
                pieces.append(kept)
                break
            pieces.append(cast("_Columns", tuple(column.copy() for column in kept)))
            outcome = int(work.control[words.OUTCOME])
            if outcome == words.NO_ROOM:
                pieces.append(self._reached(work))
                sizes[done] = pieces[-1][0].size
                done += 1
            elif outcome == kernels.GIVEN_UP or (
                outcome == words.NO_ENTRY_ROOM and work.reach.queue.size > self._most_entries
            ):
                given_up.append(done)
                done += 1
            else:
                work.make_room(self.graph.path)
            if done == count:
                break
        vertices, levels, found = (np.concatenate(column) for column in zip(*pieces, strict=True))
        cut = near.cut.astype(np.bool_)
        return _Part(np.cumsum(sizes), cut, vertices, levels, found, given_up)

    def _reached(self, work: Work) -> _Columns:
        """Return what the search found that is in the reach."""
        reach, size = work.reach, int(work.control[words.ENTRIES])
        vertices = reach.queue[:size].copy()
        parents = vertices[reach.owners[:size]] if self.with_parents else _NOTHING
        return vertices, reach.levels[:size].copy(), parents

    def _named(self, near: _Part) -> Found:
        """Return what was found in ids."""
        lookup = cast("StoredGraph", self.graph).lookup
        with self.graph.reading():
            ids = lookup.ids_of(near.vertices)
            parents = lookup.ids_of(near.parents) if self.with_parents else None
        return Found(near.ends, near.cut, ids, near.levels, parents)

    def _completed(self, found: Found, given_up: list[int], seeds: Ids) -> Iterator[Found]:
        """Yield what was found, and search the whole graph for what was given up."""
        first = 0
        for k in (*given_up, seeds.size):
            if first < k:
                yield _between(found, first, k)
            if k < seeds.size:
                yield self._whole(seeds[k : k + 1])
            first = k + 1

    def _whole(self, seeds: Ids) -> Found:
        """Search the whole graph from some seeds together; the nearest come first."""
        graph = self.graph
        # What users see knows how all of it is searched.
        shown: Any = graph.graph
        settings = replace(self._settings, max_depth=self.depth)
        given = graph.given(seeds).tolist()
        result = shown.bfs(given, parents=self.with_parents, options=settings)
        positions = np.flatnonzero(result.levels >= 0)
        levels = result.levels[positions]
        nearest = np.argsort(levels, kind="stable")[: self.limit]
        positions, levels = positions[nearest], levels[nearest]
        parents = result.parents[positions].astype(np.uint64) if self.with_parents else None
        return Found(
            np.array([positions.size]),
            np.array([positions.size < result.reached]),
            graph.ids_at_positions(positions),
            levels,
            parents,
        )


def _between(found: Found, first: int, stop: int) -> Found:
    """Return what the searches first … stop-1 found."""
    begin = int(found.ends[first - 1]) if first else 0
    rows = slice(begin, int(found.ends[stop - 1]))
    return Found(
        found.ends[first:stop] - begin,
        found.cut[first:stop],
        found.ids[rows],
        found.levels[rows],
        None if found.parents is None else found.parents[rows],
    )

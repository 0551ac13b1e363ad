"""Searches from many vertices of a scope: what they find of it, whatever engine runs them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import over_pieces, pieces_of
from oocbfs.distances.scope import Scope
from oocbfs.distances.state import copy_into
from oocbfs.errors import FormatError
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.graph.passes import pass_over
from oocbfs.graph.stored import StoredGraph
from oocbfs.kernels.distances import bounds as kernels
from oocbfs.kernels.distances.cut import cut_searches
from oocbfs.kernels.distances.walks import sum_neighbours
from oocbfs.memory import parse_size
from oocbfs.results.source import Levels
from oocbfs.results.to_ids import levels_to_ids
from oocbfs.settings import Emit

if TYPE_CHECKING:
    from oocbfs.distances.measures import Measures


# Searches that may be cut, of one thread after the other.
_TOGETHER = 64
# Whole numbers below are exact.
_EXACT = 2.0**52


class Around(NamedTuple):
    """Distances from a vertex and to it, of vertices that reach each other, and the largest.

    ``alone`` is the last of the first levels that hold one vertex each, without directions.
    """

    forward: NDArray[Any]
    backward: NDArray[Any]
    depth: int
    back_depth: int
    alone: int = 0


class Found(NamedTuple):
    """What one search found: vertices of the scope at each distance, and maybe the distances."""

    sizes: NDArray[np.int64]
    levels: Levels | None = None

    @property
    def depth(self) -> int:
        """Largest distance."""
        return self.sizes.size - 1

    @property
    def reached(self) -> int:
        """Number of vertices reached, the one that was searched from included."""
        return int(self.sizes.sum())

    @property
    def total(self) -> int:
        """Sum of all distances."""
        return int(self.sizes @ np.arange(self.sizes.size))

    @property
    def harmonic(self) -> float:
        """Sum of 1 / distance."""
        return float((self.sizes[1:] / np.arange(1, self.sizes.size)).sum())


class Searches:
    """Searches on a graph; a context manager, because the graph turned around is open, too."""

    def __init__(
        self, graph: Measures, scope: Scope, *, inward: bool = False, **settings: Any
    ) -> None:
        self.graph = graph
        self.scope = scope
        self.threads = available_threads(settings.get("threads"))
        # Bytes of tails read from disk.
        self.disk_bytes = 0
        # Whether many searches at a time take less than one after the other.
        self.shares = False
        self._settings = settings
        self._turned = graph.reversed() if graph.directed and (inward or scope.is_mutual) else None
        if self._turned is not None and scope.plan.engine == "disk":
            graph._stored.share_disk_rows(self._turned._stored)  # type: ignore[attr-defined]
        self._sides = (self._turned, graph) if inward and graph.directed else (graph, self._turned)

    @property
    def _budget(self) -> int | None:
        """Bytes that the process may take; None is without bound."""
        memory = self._settings.get("memory")
        return self.graph._stored.budget_bytes if memory is None else parse_size(memory)

    @cached_property
    def degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each vertex, in the direction of the searches, by position."""
        side = self._sides[0]
        assert side is not None
        if self._budget is None or not isinstance(side._stored, StoredGraph):
            return side.degrees
        stored, room = side._stored, self.scope.room
        with stored.reading():
            degrees: NDArray[np.uint32] = stored.stored_degrees
            if stored.order is None:
                found = room.allocate(degrees.size, np.uint32)
                copy_into(found, degrees)
            else:
                levels = levels_to_ids(stored, degrees.view(np.int32), room, self.threads)
                found = levels.view(np.uint32)
            stored.release()
        return found

    @property
    def may_cut(self) -> bool:
        """Whether rows can be read one by one: in one file, without a budget and a device."""
        engine = self._settings.get("engine") or "auto"
        one_file = isinstance(self.graph._stored, StoredGraph)
        return one_file and self._budget is None and engine in ("auto", "cpu")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._turned is not None:
            self._turned.close()

    def walks(self) -> Iterator[NDArray[Any]]:
        """Yield for each distance, by position, what no more vertices can be at it.

        Those are the walks of so many steps that do not go straight back; of a directed graph, all.
        """
        stored = self._sides[0]._stored  # type: ignore[union-attr]
        if not isinstance(stored, StoredGraph) or self._budget is not None:
            # Counts of walks are written at random, and would take as much as all else.
            yield self.degrees
            return
        yield self.degrees.astype(np.float64)
        with stored.reading():
            degrees = np.asarray(stored.stored_degrees).astype(np.float64)
            before, counts, back = np.ones(degrees.size), degrees.copy(), degrees
            while True:
                sums = np.empty_like(counts)
                pass_over(stored, sum_neighbours, sums, counts, threads=self.threads, bounded=False)
                if not self.graph.directed:
                    with np.errstate(invalid="ignore"):
                        sums -= back * before
                    back = degrees - 1
                # Too many to be counted exactly are all.
                sums[~(sums < _EXACT)] = np.inf
                before, counts = counts, sums
                by_id = np.empty_like(counts)
                by_id[slice(None) if stored.order is None else stored.order] = counts
                yield by_id

    def above(
        self, positions: NDArray[np.int64], least: float, *, harmonic: bool
    ) -> tuple[NDArray[np.int64], int]:
        """Return which of some vertices may be more central than a cap, and the edges looked at.

        Each is searched by one thread until it cannot be; see ``kernels.distances.cut``.
        """
        stored = self._sides[0]._stored  # type: ignore[union-attr]
        assert isinstance(stored, StoredGraph)
        with stored.reading():
            sources = positions if stored.order is None else stored.stored_at[positions]
            inside = np.empty(0, np.bool_)
            if self.graph.directed and self.scope.inside is not None:
                inside = self.scope.inside if stored.order is None else self._inside_stored(stored)
            rows = stored.rows
            kept = np.zeros(positions.size, np.int64)
            limits = np.array((self.scope.num_vertices, least))
            back = int(not self.graph.directed)
            columns = rows.heads, rows.bases, rows.starts, rows.shift, rows.tails

            def work(first: int) -> tuple[int, int]:
                n = rows.heads.size
                # One place more, for what turns out not to be new.
                queue, seen = np.empty(n + 1, np.uint32), np.zeros(n, np.uint32)
                many = sources.astype(np.int64), inside, np.asarray(stored.stored_degrees)
                found: tuple[int, int] = cut_searches(
                    kept, *many, queue, seen, back, limits, harmonic, *columns,
                    first, min(first + _TOGETHER, sources.size),
                )  # fmt: skip
                return found

            parts = list(ordered_map(work, range(0, sources.size, _TOGETHER), self.threads))
        if any(failed for failed, _ in parts):
            raise FormatError(f"{stored.path}: a row is damaged: run 'oocbfs verify'")
        return positions[kept > 0], sum(edges for _, edges in parts)

    def _inside_stored(self, stored: StoredGraph) -> NDArray[np.bool_]:
        assert self.scope.inside is not None
        inside: NDArray[np.bool_] = self.scope.inside[stored.order]
        return inside

    def sizes(self, positions: NDArray[np.int64], *, back: bool = False) -> Iterator[Found]:
        """Search for how many vertices are at each distance; with ``back`` the other way round."""
        # Of a component that is strongly connected, searches get out.
        if not self.graph.directed or self.scope.is_whole:
            yield from self._search(self._sides[back], positions, "summary")
            return
        for found in self._search(self._sides[back], positions, "levels"):
            assert found.levels is not None
            yield Found(self._sizes_inside(found.levels))

    def levels(self, positions: NDArray[np.int64]) -> Iterator[Found]:
        """Search for the distance of each vertex, -1 outside the scope."""
        for found in self._search(self._sides[0], positions, "levels"):
            if self.graph.directed and self.scope.inside is not None:
                assert found.levels is not None
                sizes = self._sizes_inside(found.levels)
                row = np.full(found.levels.size, -1, found.levels.dtype)
                for part in self.scope.pieces_of(row):
                    np.copyto(row[part], found.levels[part], where=self.scope.inside[part])
                found = Found(sizes, row)
            yield found

    def around(self, positions: NDArray[np.int64]) -> Iterator[Around]:
        """Search from each vertex and, with directions, back to it."""
        forward = self._search(self._sides[0], positions, "levels")
        if not self.graph.directed:
            for found in forward:
                row = found.levels
                assert row is not None
                alone = int(np.argmin(np.append(found.sizes, 0) == 1)) - 1
                yield Around(row, row, found.depth, found.depth, alone)
            return
        backward = self._search(self._sides[1], positions, "levels")
        for there, back in zip(forward, backward, strict=True):
            one, other = there.levels, back.levels
            assert one is not None
            assert other is not None
            common = np.promote_types(one.dtype, other.dtype)
            one, other = one.astype(common, copy=False), other.astype(common, copy=False)
            parts = over_pieces(kernels.depths, one.size, self.threads, one, other)
            yield Around(one, other, *map(max, zip(*parts, strict=True)))
            del one, other, there, back

    def _search(
        self, graph: Measures | None, positions: NDArray[np.int64], emit: Emit
    ) -> Iterator[Found]:
        assert graph is not None
        ids = ids_at(graph, positions)
        if positions.size == 1 and emit == "levels":
            # All threads work on one search, where 64 of few would not share enough.
            alone = graph.bfs(ids, **self._settings)
            self.shares = self._pays_to_share(alone.stats.engine)
            self.disk_bytes += alone.stats.slow_bytes_by_tier.get("disk", 0)
            yield Found(alone.level_sizes, alone.levels)
        elif positions.size:
            results, before = graph.bfs_many(ids, emit=emit, **self._settings), 0
            for result in results:
                self.disk_bytes += results.disk_bytes - before
                before = results.disk_bytes
                yield Found(result.level_sizes, result.levels)

    def _pays_to_share(self, engine: str) -> bool:
        """Return whether searches should share a pass: in memory the next one is better chosen.

        Without a budget, only the first of searches reads a large file.
        """
        if self.graph._stored.is_sharded:
            return False
        return engine not in ("cpu", "disk") or (engine == "disk" and self._budget is not None)

    def _sizes_inside(self, levels: Levels) -> NDArray[np.int64]:
        """Count the vertices of the scope by level."""
        depth = max((int(levels[part].max()) for part in pieces_of(levels)), default=0)

        def count(*columns: Any) -> NDArray[np.int64]:
            sizes = np.zeros(max(depth, 0) + 1, np.int64)
            kernels.count_inside(sizes, *columns)
            return sizes

        parts = over_pieces(count, levels.size, self.threads, levels, self.scope.inside)
        sizes: NDArray[np.int64] = np.trim_zeros(np.sum(parts, axis=0), "b")
        return sizes


def ids_at(graph: Measures, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the ids at some positions, which an engine is asked about."""
    stored = graph._stored
    listed = stored.listed_ids
    if listed is None:
        return positions.astype(np.uint64) + np.uint64(stored.first_id)
    with stored.reading():
        return listed[positions]

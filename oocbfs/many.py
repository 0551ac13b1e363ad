"""Traverse from many sources: 64 at a time where they share their work, one per core where not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError, FormatError, QueryError
from oocbfs.formats.ordered import available_threads, ordered_map
from oocbfs.kernels import bfs as single
from oocbfs.kernels import many as kernels
from oocbfs.kernels import many_spread, results
from oocbfs.memory import format_size, parse_size

if TYPE_CHECKING:
    from oocbfs.graph import Graph

Emit = Literal["summary", "levels", "pairs"]
Strategy = Literal["auto", "together", "one-per-core"]
Levels = NDArray[np.int8] | NDArray[np.int16] | NDArray[np.int32]

WIDTH = kernels.WIDTH
# With fewer sources, nothing is gained by sharing.
_FEW = 8
# Graphs with more levels are long and thin: their frontiers hardly overlap.
_DEEP = 64
_NO_RANKS = np.empty(0, np.uint32)
_PIECE = 1 << 18


@dataclass(frozen=True)
class SourceResult:
    """Distances from one source.

    ``levels`` are aligned with the ids in ascending order, -1 where not reached, in the smallest type
    that holds them; ``distances`` belong to the targets that were asked for. Each is None unless it
    was asked for. The levels of up to 64 results lie in one block of memory: copy what you keep.
    """

    source: int
    num_vertices: int
    level_sizes: NDArray[np.int64]
    strategy: str
    levels: Levels | None = field(default=None, repr=False)
    distances: NDArray[np.int32] | None = field(default=None, repr=False)

    @property
    def reached(self) -> int:
        """Number of vertices reached, the source included."""
        return int(self.level_sizes.sum())

    @property
    def depth(self) -> int:
        """Level of the farthest vertex reached."""
        return self.level_sizes.size - 1

    @property
    def eccentricity(self) -> int:
        """Largest distance to a vertex that can be reached, which is the depth."""
        return self.depth

    @cached_property
    def closeness(self) -> float:
        """Vertices reached per step, times the share of all vertices that was reached.

        The formula of Wasserman and Faust, by distances *from* the source; 0 if it reaches nothing.
        """
        total = int((np.arange(self.level_sizes.size) * self.level_sizes).sum())
        others = self.reached - 1
        return others / total * (others / (self.num_vertices - 1)) if total else 0.0

    @cached_property
    def harmonic(self) -> float:
        """Sum of 1 / distance over all other vertices reached."""
        return float((self.level_sizes[1:] / np.arange(1, self.level_sizes.size)).sum())


class Traversals:
    """How to traverse a graph from many sources, within a budget of memory."""

    def __init__(
        self,
        graph: Graph,
        *,
        emit: Emit = "summary",
        threads: int | None = None,
        memory: str | int | None = None,
        strategy: Strategy = "auto",
    ) -> None:
        self._graph = graph
        self._emit = emit
        self._threads = available_threads(threads)
        self._budget = None if memory is None else parse_size(memory)
        self.strategy: Strategy = strategy
        self.reason = "it was asked for"
        self._rows_at_once = WIDTH
        self._plan()

    def _plan(self) -> None:
        """Fit the budget: fewer rows of levels at a time, then no sharing, then fewer threads."""
        n = self._graph.num_vertices
        if self._budget is None:
            return
        # Words and lists of vertices; planes, one more while they grow.
        together = n * kernels.bytes_per_vertex(self._threads, levels=self._emit != "summary")
        alone = n * (17 if self._emit == "summary" else 26)
        left = self._budget - together
        if self._emit == "levels":
            self._rows_at_once = min(WIDTH, left // max(1, n))
            left = self._rows_at_once - 1
        if left >= 0 and self.strategy != "one-per-core":
            return
        if self.strategy == "together" or alone > self._budget:
            needed = together + n if self.strategy == "together" else alone
            raise BudgetError(
                f"{self._graph.path}: {format_size(self._budget)} are not enough: "
                f"allow {format_size(needed)} for {n:,} vertices"
            )
        if self.strategy == "auto":
            self.strategy = "one-per-core"
            self.reason = f"traversing 64 at a time takes {format_size(together)}"
        # Results wait in line while others are under way.
        self._threads = max(1, min(self._threads, self._budget // max(1, alone) - 2))

    def run(
        self, sources: Sequence[int], targets: Sequence[NDArray[np.int64]] | None = None
    ) -> Iterator[SourceResult]:
        """Yield the result of each source, in their order; targets are stored vertices."""
        stored = self._graph.stored(sources)
        for first in range(0, len(sources), WIDTH):
            part = slice(first, first + WIDTH)
            wanted = None if targets is None else targets[part]
            yield from self._run_group(list(sources[part]), stored[part], wanted)

    def _run_group(
        self,
        sources: list[int],
        stored: NDArray[np.int64],
        targets: Sequence[NDArray[np.int64]] | None,
    ) -> Iterator[SourceResult]:
        if self.strategy == "together" or (self.strategy == "auto" and len(sources) >= _FEW):
            block = self._block(len(sources))
            found = self._traverse_together(stored, block)
            if not found.too_deep:
                yield from self._share_out(found, sources, targets, block)
                return
            del block, found
            self.strategy = "one-per-core"
            self.reason = f"the graph has more than {_DEEP} levels"
        elif self.strategy == "auto":
            self.reason = f"{len(sources)} sources share too little"
        yield from self._traverse_alone(sources, stored, targets)

    def _block(self, count: int) -> NDArray[np.int8]:
        """Allocate the levels of a group; none if nobody wants them, or memory is too short for all."""
        whole = self._emit == "levels" and count <= self._rows_at_once
        return np.zeros((count if whole else 0, self._graph.num_vertices), np.int8)

    def _traverse_together(
        self, stored: NDArray[np.int64], block: NDArray[np.int8]
    ) -> kernels.Found:
        """Traverse; the words live where levels will be, because memory is dear when it is fresh."""
        kernels.load()
        words = None
        shape = kernels.num_words(self._threads), self._graph.num_vertices
        if block.nbytes >= 8 * shape[0] * shape[1]:
            words = block.reshape(-1)[: 8 * shape[0] * shape[1]].view(np.uint64).reshape(shape)
        found = kernels.traverse_many(
            self._graph.rows,
            self._graph.in_rows,
            stored.astype(np.uint32),
            levels=self._emit != "summary",
            threads=self._threads,
            max_levels=-1 if self.strategy == "together" else _DEEP,
            words=words,
        )
        if found.malformed:
            raise self._damaged()
        if self.strategy == "auto" and not found.too_deep:
            self.reason = "the sources share their work"
        return found

    def _share_out(
        self,
        found: kernels.Found,
        sources: list[int],
        targets: Sequence[NDArray[np.int64]] | None,
        block: NDArray[np.int8],
    ) -> Iterator[SourceResult]:
        """Give each source its part of what was found together."""
        rows: Iterator[Levels | None] = iter([None] * len(sources))
        if self._emit == "levels":
            rows = self._rows_of_levels(found, len(sources), block)
        for number, (source, row) in enumerate(zip(sources, rows, strict=True)):
            sizes = np.trim_zeros(found.sizes[:, number], "b")
            yield SourceResult(
                source,
                self._graph.num_vertices,
                sizes,
                "together",
                row,
                None if targets is None else _look_up(found, number, targets[number]),
            )

    def _rows_of_levels(
        self, found: kernels.Found, count: int, block: NDArray[np.int8]
    ) -> Iterator[Levels]:
        """Yield the levels of each source: from the block, or as many at a time as memory allows."""
        assert found.planes is not None
        n = self._graph.num_vertices
        ranks = _NO_RANKS if self._graph.order is None else self._graph.ranks
        if found.planes.shape[0] > many_spread.BYTE_PLANES:
            for number in range(count):
                deep = np.empty(n, np.int32)
                many_spread.spread_deep(deep, found.planes, ranks, number)
                yield _smallest(deep, int(deep.max(initial=0)))
            return
        if block.size:
            yield from self._spread(block, found.planes, ranks, 0)
            return
        for source in range(0, count, self._rows_at_once):
            fresh = np.empty((min(self._rows_at_once, count - source), n), np.int8)
            yield from self._spread(fresh, found.planes, ranks, source)
            del fresh

    def _spread(
        self,
        block: NDArray[np.int8],
        planes: NDArray[np.uint64],
        ranks: NDArray[np.uint32],
        source: int,
    ) -> NDArray[np.int8]:
        """Fill a block with the levels of the sources from ``source`` on."""
        n = block.shape[1]

        def work(first: int) -> None:
            many_spread.spread_bytes(block, planes, ranks, source, first, min(first + _PIECE, n))

        for _ in ordered_map(work, range(0, n, _PIECE), self._threads):
            pass
        return block

    def _traverse_alone(
        self,
        sources: list[int],
        stored: NDArray[np.int64],
        targets: Sequence[NDArray[np.int64]] | None,
    ) -> Iterator[SourceResult]:
        """Traverse from each source on one core, as many at a time as there are threads."""
        single.load()
        graph = self._graph

        def work(number: int) -> SourceResult:
            levels = np.empty(graph.num_vertices, np.int32)
            done = single.traverse(
                graph.rows, graph.in_rows, stored[number : number + 1].astype(np.uint32), levels
            )
            if done.malformed:
                raise self._damaged()
            sizes = np.zeros(done.depth + 2, np.int64)
            results.count_levels(sizes, levels, 0, levels.size)
            sizes = np.trim_zeros(sizes, "b")
            distances = None if targets is None else levels[targets[number]]
            row: Levels | None = None
            if self._emit == "levels":
                named = levels
                if graph.order is not None:
                    named = np.empty_like(levels)
                    results.rename_levels(named, 0, levels, graph.order, 0, levels.size)
                row = _smallest(named, sizes.size - 1)
            return SourceResult(
                sources[number], graph.num_vertices, sizes, "one-per-core", row, distances
            )

        yield from ordered_map(work, range(len(sources)), self._threads)

    def _damaged(self) -> FormatError:
        return FormatError(f"{self._graph.path}: a row is damaged: run 'oocbfs verify'")


def _smallest(levels: NDArray[np.int32], depth: int) -> Levels:
    """Give levels in the smallest type that holds the depth."""
    if depth <= np.iinfo(np.int8).max:
        return levels.astype(np.int8)
    if depth <= np.iinfo(np.int16).max:
        return levels.astype(np.int16)
    return levels


def _look_up(found: kernels.Found, number: int, targets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Give the distances of stored vertices from one source."""
    assert found.planes is not None
    values = np.zeros(targets.size, np.int32)
    for plane, words in enumerate(found.planes):
        bits = words[targets] >> np.uint64(number) & np.uint64(1)
        values |= bits.astype(np.int32) << plane
    return values - 1


def bfs_many(
    graph: Graph,
    sources: Iterable[int],
    *,
    emit: Emit,
    targets: Iterable[Iterable[int]] | None,
    threads: int | None,
    memory: str | int | None,
    strategy: Strategy,
) -> Iterator[SourceResult]:
    """Traverse from each source; see ``Graph.bfs_many``."""
    listed = [int(source) for source in sources]
    if emit not in ("summary", "levels", "pairs"):
        raise QueryError(f"cannot emit {emit!r}: ask for summary, levels or pairs")
    if (emit == "pairs") != (targets is not None):
        raise QueryError("pairs need targets for each source, and nothing else takes them")
    graph.stored(listed)  # unknown ids are refused before the first traversal
    places = None if targets is None else [graph.stored(list(ids)) for ids in targets]
    if places is not None and len(places) != len(listed):
        raise QueryError(f"{len(listed)} sources need as many lists of targets, not {len(places)}")
    work = Traversals(graph, emit=emit, threads=threads, memory=memory, strategy=strategy)
    return work.run(listed, places)

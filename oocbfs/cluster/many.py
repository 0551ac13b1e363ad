"""Search a sharded graph from many sources, one after the other: all shards work on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.budget import result_arrays
from oocbfs.cluster.levels import watch_levels
from oocbfs.cluster.results import AllResults, fill_levels
from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.query import Query
from oocbfs.results.source import Levels, SourceResult, smallest
from oocbfs.results.validation import checked
from oocbfs.settings import Emit, Settings, Strategy, check_choice

if TYPE_CHECKING:
    from oocbfs.cluster.stored_shards import StoredShards
    from oocbfs.graph.vertices import Vertex


class ShardedSearches:
    """Searches of a sharded graph; what ``search.many.Searches`` is for one file.

    A word for 64 sources a vertex would be 64 of the bitmaps that have to travel, and 8 bytes a
    vertex in every process, of graphs that were cut because they are large. So sources take turns.
    """

    width = 1
    reason = "all shards work on one source"
    fallback: str | None = None

    def __init__(self, graph: StoredShards, emit: Emit, settings: Settings) -> None:
        self._graph, self._emit, self._settings = graph, emit, settings
        self._exchange = graph.exchange(settings)
        self.disk_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing: the graph keeps its shards."""

    def run(
        self, sources: Sequence[Vertex], targets: Sequence[NDArray[np.int64]] | None = None
    ) -> Iterator[SourceResult]:
        """Yield the result of each source, in their order; targets are stored vertices."""
        return self._graph.each(self._run(sources, targets))

    def _run(
        self, sources: Sequence[Vertex], targets: Sequence[NDArray[np.int64]] | None
    ) -> Iterator[SourceResult]:
        stored = self._graph.stored(sources).astype(np.uint32)
        for number, source in enumerate(sources):
            wanted = None if targets is None else targets[number].astype(np.uint32)
            yield self._search(source, stored[number : number + 1], wanted)

    def _search(
        self, source: Vertex, stored: NDArray[np.uint32], targets: NDArray[np.uint32] | None
    ) -> SourceResult:
        graph, settings, exchange = self._graph, self._settings, self._exchange
        arrays = result_arrays(graph, settings)
        results = AllResults(graph.shape.cut, arrays)
        query = graph.shape.ask(Query(stored), graph.stored_degrees)
        with watch_levels(graph, exchange, settings) as watch:
            outcome = exchange.search(query, results, watch)
        self.disk_bytes += int(outcome.log.records["disk_bytes"].sum())
        levels: Levels | None = None
        if self._emit == "levels" or settings.checks:
            room = arrays.allocate(graph.num_vertices, np.int32)
            by_id, _ = fill_levels(graph, results, outcome.sizes, room, arrays, settings)
            levels = smallest(np.asarray(by_id), len(outcome.sizes) - 1)
        distances = None
        if targets is not None:
            distances = results.levels_of(targets)
        sizes = np.array(outcome.sizes, np.int64)
        result = SourceResult(source, graph, sizes, "one-by-one", levels, distances)
        if not settings.checks:
            return result
        wanted = None if targets is None else targets.astype(np.int64)
        threads, bounded = available_threads(settings.threads), settings.memory is not None
        return checked(result, self._emit, wanted, threads=threads, bounded=bounded)


def check_strategy(graph: StoredShards, strategy: Strategy) -> None:
    """Refuse what only a graph in one file can do.

    Raises
    ------
    QueryError
        Says what to do.
    """
    check_choice("strategy", strategy, Strategy)
    if strategy != "auto":
        raise QueryError(
            f"{graph.path}: the shards of a graph work on one source together: leave out "
            f"--strategy {strategy}"
        )

"""Traverse a graph in parts from many sources, one after the other: all parts work on each."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.budget import result_arrays
from oocbfs.cluster.driver import AllResults, traverse
from oocbfs.cluster.levels import Watch
from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.results.naming import name_levels
from oocbfs.results.source import Levels, SourceResult, SourceResults, asked_for, smallest
from oocbfs.settings import Emit, Settings, Strategy, check_choice

if TYPE_CHECKING:
    from oocbfs.cluster.graph import ShardedGraph
    from oocbfs.graph.vertices import Vertex


class PartTraversals:
    """Traversals of a graph in parts; what ``search.many.Traversals`` is for one file.

    A word for 64 sources a vertex would be 64 of the bitmaps that have to travel, and 8 bytes a
    vertex in every process, of graphs that were cut because they are large. So sources take turns.
    """

    width = 1
    reason = "all parts work on one source"
    fallback: str | None = None

    def __init__(
        self, graph: ShardedGraph, emit: Emit, settings: Settings, *, force: bool = False
    ) -> None:
        self._graph, self._emit, self._settings, self._force = graph, emit, settings, force
        self._threads = available_threads(settings.threads)
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
            yield self._traverse(source, stored[number : number + 1], wanted)

    def _traverse(
        self, source: Vertex, stored: NDArray[np.uint32], targets: NDArray[np.uint32] | None
    ) -> SourceResult:
        graph, settings, exchange = self._graph, self._settings, self._exchange
        arrays = result_arrays(graph, parents=False, settings=settings)
        results = AllResults(graph.shape.cut, None, arrays)
        results.start(stored)
        with Watch(graph, exchange, show=False, force=self._force) as watch:
            outcome = traverse(
                exchange,
                graph.shape,
                stored,
                int(graph.degrees[stored].sum(dtype=np.int64)),
                results,
                on_level=watch.on_level,
            )
        self.disk_bytes += sum(record.disk_bytes for record in outcome.records)
        levels: Levels | None = None
        if self._emit == "levels":
            named = results.fill(np.asarray(arrays.allocate(graph.num_vertices, np.int32)))
            named = name_levels(graph, named, arrays, self._threads)
            levels = smallest(np.asarray(named), len(outcome.sizes) - 1)
        distances = None
        if targets is not None:
            distances = results.fill(np.empty(targets.size, np.int32), targets)
        sizes = np.array(outcome.sizes, np.int64)
        return SourceResult(source, graph, sizes, "one-by-one", levels, distances)


def check_strategy(graph: ShardedGraph, strategy: Strategy) -> None:
    """Refuse what only a graph in one file can do.

    Raises
    ------
    QueryError
        Says what to do.
    """
    check_choice("strategy", strategy, Strategy)
    if strategy != "auto":
        raise QueryError(
            f"{graph.path}: the parts of a graph work on one source together: leave out "
            f"--strategy {strategy}"
        )


def bfs_many(
    graph: ShardedGraph,
    sources: Iterable[Vertex],
    *,
    emit: Emit,
    targets: Iterable[Iterable[Vertex]] | None,
    strategy: Strategy,
    settings: Settings,
    force: bool,
) -> SourceResults:
    """Traverse from each source; see ``ShardedGraph.bfs_many``."""
    check_choice("emit", emit, Emit)
    check_strategy(graph, strategy)
    settings.check()
    listed, stored_targets = asked_for(graph, sources, emit, targets)
    traversals = PartTraversals(graph, emit, settings, force=force)

    def run() -> Generator[SourceResult]:
        yield from traversals.run(listed, stored_targets)

    return SourceResults(graph, run())

"""Search from many sources with the tails on disk, within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays, fresh
from oocbfs.disk import many as disk_many
from oocbfs.plan.many import DEEP, DiskShare
from oocbfs.results.source import SourceResult, smallest
from oocbfs.results.to_ids import levels_to_ids
from oocbfs.search.run import bfs
from oocbfs.settings import Emit, Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.graph.vertices import Vertex


class Group(NamedTuple):
    """Sources that are searched together: ids, stored vertices, and those of their targets."""

    sources: Sequence[Vertex]
    stored: NDArray[np.int64]
    targets: Sequence[NDArray[np.int64]] | None


class DiskSearches:
    """Groups of sources that share what is read, or sources one after the other."""

    def __init__(
        self,
        graph: StoredGraph,
        emit: Emit,
        threads: int,
        share: DiskShare,
        *,
        until_found: bool = False,
    ) -> None:
        self._graph, self._emit, self._until_found = graph, emit, until_found
        self._threads, self._share = threads, share
        self.disk_bytes = 0

    @property
    def width(self) -> int:
        """Sources that are searched together."""
        return self._share.width

    def run_together(self, group: Group) -> Iterator[SourceResult] | None:
        """Search from all sources at once; None if the graph is too deep for that."""
        graph = self._graph
        levels = None
        if self._emit != "summary":
            levels = fresh((len(group.sources), graph.num_vertices), np.int8)
        with graph.disk_rows.lock:
            found = disk_many.search_many(
                graph.disk_rows,
                group.stored,
                levels,
                width=self.width,
                threads=self._threads,
                max_levels=DEEP,
                targets=group.targets if self._until_found else None,
            )
        self.disk_bytes += found.disk_bytes
        return None if found.too_deep else self._share_out(found, group, levels)

    def _share_out(
        self,
        found: disk_many.DiskManySearch,
        group: Group,
        levels: NDArray[np.int8] | None,
    ) -> Iterator[SourceResult]:
        """Yield each source's part of what was found together."""
        graph, targets = self._graph, group.targets
        for number, source in enumerate(group.sources):
            row = distances = None
            if levels is not None and targets is not None:
                distances = levels[number, targets[number]].astype(np.int32)
            if levels is not None and self._emit == "levels":
                row = levels_to_ids(graph, levels[number], ResultArrays(), self._threads)
            sizes = np.trim_zeros(found.sizes[:, number], "b")
            yield SourceResult(source, graph, sizes, "together", row, distances)

    def run_alone(self, group: Group) -> Iterator[SourceResult]:
        """Search from one source after the other, on all cores."""
        graph, targets = self._graph, group.targets
        for number, source in enumerate(group.sources):
            settings = Settings(
                engine="disk", memory=self._share.budget_bytes, threads=self._threads
            )
            done = bfs(graph, source, parents=False, settings=settings)
            self.disk_bytes += done.stats.slow_bytes or 0
            row = distances = None
            if targets is not None:
                stored = targets[number]
                natural = stored if graph.order is None else graph.order[stored]
                distances = np.asarray(done.levels[natural], np.int32)
            if self._emit == "levels":
                row = smallest(done.levels, done.level_sizes.size - 1)
            sizes = done.level_sizes
            del done
            yield SourceResult(source, graph, sizes, "one-by-one", row, distances)

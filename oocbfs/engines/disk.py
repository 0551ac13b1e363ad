"""All cores, with heads and starts in memory, and tails read from disk as they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.disk import bfs, components
from oocbfs.engines.base import Engine
from oocbfs.engines.cpu import label_isolated, limits_of
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.compiling import clock
from oocbfs.query import Output, Query, Run
from oocbfs.results.components import ComponentsRun
from oocbfs.results.levels import moved_by_tier
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


class _Disk(Engine):
    def run(self, graph: StoredGraph, query: Query, out: Output, settings: Settings) -> Run:
        bfs.load()
        rows = graph.disk_rows
        with rows.lock:
            rows.load()
            if settings.memory is not None:
                # Pages of the file count as memory, and the file has no room there.
                graph.release()
            start = clock()
            done = bfs.search(
                rows,
                query.sources.astype(np.int64),
                out.levels,
                out.parents,
                cache_bytes=out.memory_plan.cache_bytes,
                threads=out.threads,
                **limits_of(query),
            )
            seconds = clock() - start
        moved = moved_by_tier(done.records, ("disk",))
        return Run(self.name, out.threads, done.depth, seconds, done.records, moved)

    def connect(
        self, graph: StoredGraph, labels: NDArray[np.uint32], settings: Settings
    ) -> ComponentsRun:
        components.load()
        rows, threads = graph.disk_rows, available_threads(settings.threads)
        with rows.lock:
            rows.load()
            start = clock()
            non_isolated = label_isolated(graph, labels)
            steps, moved = components.connect(
                rows, non_isolated, both=graph.directed, threads=threads
            )
            seconds = clock() - start
        return ComponentsRun(self.name, threads, steps, seconds, {"disk": moved})


ENGINES = {"disk": _Disk("disk")}

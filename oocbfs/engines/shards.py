"""The shards of a graph, over an exchange: in this process, in others, on Dask or MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.budget import result_arrays
from oocbfs.cluster.components import connect
from oocbfs.cluster.levels import watch_levels
from oocbfs.cluster.results import AllResults, fill_levels
from oocbfs.engines.base import Engine
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.compiling import clock
from oocbfs.plan.host import MemoryPlan
from oocbfs.query import ById, Output, Query, Reached, Run
from oocbfs.results.components import ComponentsRun
from oocbfs.results.levels import moved_by_tier
from oocbfs.results.to_ids import check_parents, parents_to_ids
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.stored_shards import StoredShards


class _Shards(Engine):
    def refusal(self, graph: StoredShards, settings: Settings) -> str | None:
        return graph.refusal(settings)

    def needs(self, graph: StoredShards, settings: Settings) -> MemoryPlan:
        return MemoryPlan(self.name, result_arrays(graph, settings))

    def run(self, graph: StoredShards, query: Query, out: Output, settings: Settings) -> Run:
        if query.parents:
            check_parents(graph)
        exchange = graph.exchange(settings)
        pool = graph.result_pool if settings.memory is None else None
        # Only sources may have no edges and a level.
        most = max(graph.shape.non_isolated, int(query.sources.max()) + 1)
        results = AllResults(
            graph.shape.cut, out.arrays, parents=query.parents, most=most, pool=pool
        )
        start = clock()
        with watch_levels(graph, exchange, settings) as watch:
            done = exchange.search(graph.shape.ask(query, graph.stored_degrees), results, watch)
        found = clock()
        levels: NDArray[np.int32] | None = None
        parents: NDArray[np.int64] | None = None
        if settings.gather:
            levels, arcs = fill_levels(graph, results, done.sizes, out.room, out.arrays, settings)
            if query.parents:
                parents = parents_to_ids(graph, results.parents, out.arrays, out.threads)
        else:
            sums = graph.stored_degrees, graph.num_arcs, done.sizes
            arcs = results.fill(np.empty(0, np.int32), *sums, threads=out.threads)
        reached = Reached(np.array(done.sizes, np.int64), arcs)
        records = done.log.records
        moved = moved_by_tier(records, done.log.tiers)
        return Run(
            exchange.name,
            out.threads,
            records.size,
            found - start,
            records,
            {tier: count for tier, count in moved.items() if count},
            done.log.beside,
            by_id=ById(levels, parents, reached, clock() - found),
            kept=results,
        )

    def connect(
        self, graph: StoredShards, labels: NDArray[np.uint32], settings: Settings
    ) -> ComponentsRun:
        """Join the vertices of each shard, and what they found."""
        exchange, threads = graph.exchange(settings), available_threads(settings.threads)
        start = clock()
        steps = connect(exchange, graph.shape.cut, graph.stored_degrees, labels, threads)
        return ComponentsRun(exchange.name, threads, steps, clock() - start, {})


ENGINES = {"shards": _Shards("shards")}

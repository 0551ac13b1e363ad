"""The CUDA kernels, on a GPU or in the emulator, as planned."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.engines.base import Engine
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.components import connect
from oocbfs.gpu.load import Budget, load_graph, make_device, usable_bytes
from oocbfs.gpu.many import GpuMany, open_many
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.gpu.results import Into
from oocbfs.gpu.search import follow_schedule, run_of, timed
from oocbfs.gpu.verification import verify_first
from oocbfs.kernels.cuda.source import BFS_KERNELS, CHECK_KERNELS, KernelOptions
from oocbfs.kernels.results import levels as kernels
from oocbfs.plan.host import pinnable_bytes
from oocbfs.plan.shape import shape_of
from oocbfs.progress import Phases
from oocbfs.query import ById, Output, Query, Reached, Run
from oocbfs.results.components import ComponentsRun
from oocbfs.results.to_ids import check_parents
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


class _Gpu(Engine):
    def run(self, graph: StoredGraph, query: Query, out: Output, settings: Settings) -> Run:
        """Fill levels in the order of ids, if the device can, else of stored vertices."""
        # A source without edges may lie behind the last non-isolated one, and a target, too.
        last = max(int(query.sources.max()), -1 if query.target is None else query.target)
        whole = last >= graph.num_non_isolated
        where = (settings.vram, settings.resident_tails, settings.memory)

        def load() -> GpuBfs:
            return self._load(graph, settings, with_parents=query.parents, whole=whole)

        with graph.kept_search.use((self.name, query.parents, whole, *where), load) as search:
            follow_schedule(search.device, settings)
            by_id = graph.order is None or search.results.in_order
            into = (
                _into(graph, query, out)
                if by_id
                else Into(out.levels, out.parents, threads=out.threads)
            )
            searching = partial(search.run, direction=DeviceDirection(query.direction), into=into)
            done, seconds = timed(graph, searching, query)
            verify_first(search)
        run = run_of(self.name, done, seconds - done.to_ids_seconds)._replace(note=search.note)
        start = time.perf_counter()
        reached = Reached(np.array(done.level_sizes), _sum_degrees(graph, done, out.threads))
        if not by_id:
            return run._replace(reached=reached)
        seconds = done.to_ids_seconds + time.perf_counter() - start
        return run._replace(by_id=ById(out.levels, into.parents, reached, seconds))

    def connect(
        self, graph: StoredGraph, labels: NDArray[np.uint32], settings: Settings
    ) -> ComponentsRun:
        """Fill labels, alone on the device."""
        with graph.kept_search.emptied():
            return connect(graph, self.name, labels, settings)

    def open_many(self, graph: StoredGraph, settings: Settings, *, with_levels: bool) -> GpuMany:
        return open_many(graph, self.name, settings, with_levels=with_levels)

    def _load(
        self, graph: StoredGraph, settings: Settings, *, with_parents: bool, whole: bool
    ) -> GpuBfs:
        """Bring the graph where a plan wants it."""
        options = KernelOptions(with_parents=with_parents)
        phases = Phases(show=settings.progress)
        kernels = (*BFS_KERNELS, *CHECK_KERNELS) if self.name == "cuda" else BFS_KERNELS
        device = make_device(self.name, options, kernels, phases, counted=True)
        budget = Budget(
            shape_of(graph, whole=whole),
            vram_bytes=usable_bytes(device, settings.vram),
            host_bytes=pinnable_bytes(graph, settings.memory, with_parents=with_parents),
            resident_tails=settings.resident_tails,
            with_parents=with_parents,
        )
        return load_graph(
            GpuBfs, device, graph, budget, phases, whole=whole, with_parents=with_parents
        )


def _into(graph: StoredGraph, query: Query, out: Output) -> Into:
    """Return where results in the order of ids go."""
    parents = None
    if query.parents:
        check_parents(graph)
        parents = out.arrays.allocate(out.num_vertices, np.int64)
    ids = {} if graph.listed_ids is None else {"ids": np.asarray(graph.listed_ids)}
    return Into(out.levels, parents, first_id=graph.first_id, threads=out.threads, **ids)


def _sum_degrees(graph: StoredGraph, done: GpuResult, threads: int) -> int:
    """Sum up the degrees of those that were reached; of the others, if they are fewer."""
    degrees = graph.stored_degrees[: 32 * done.visited.size]
    few_left = 2 * sum(done.level_sizes) > degrees.size
    parts = over_ranges(
        kernels.sum_degrees, done.visited.size, threads, done.visited, degrees, few_left
    )
    return graph.num_arcs - sum(parts) if few_left else sum(parts)


ENGINES = {name: _Gpu(name) for name in ("cuda", "emulator")}

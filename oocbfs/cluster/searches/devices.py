"""Traverse a graph in parts on several GPUs of this host, or of the emulator: a part on each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from oocbfs.arrays import ResultArrays
from oocbfs.devices.engine import check_host, load_parts
from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, over_ranges
from oocbfs.gpu.engine import fill, follow_schedule, outcome_of
from oocbfs.gpu.result import DeviceDirection
from oocbfs.graph.rows import load_rows
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.kernels.results import levels as kernels
from oocbfs.results.bfs import BfsResult, Stats, Task
from oocbfs.results.levels import Level
from oocbfs.results.naming import check_parents, name_levels, name_parents
from oocbfs.results.validation import Levels, validate
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.stored_parts import StoredParts
    from oocbfs.kernels.rows import Rows


def bfs_on_devices(
    graph: StoredParts, sources: Ids, *, parents: bool, settings: Settings
) -> BfsResult:
    """Traverse from ids; see ``AnyGraph.bfs``."""
    start, compiled = clock(), compile_seconds()
    settings.check()
    names = settings.devices or ()
    _check(graph, sources, names, parents=parents)
    engine = "cuda" if settings.engine == "auto" else settings.engine
    check_host(graph, graph.tail_bytes, settings, with_parents=parents)
    arrays = ResultArrays(pool=graph.result_pool)
    stored = np.unique(graph.stored(sources)).astype(np.uint32)
    target = None if settings.target is None else graph.stored_one(settings.target)
    levels = np.asarray(arrays.allocate(graph.num_vertices, np.int32))
    task = Task(stored, levels, target, parents, arrays)

    def rows_of(part: int) -> list[Rows]:
        container = graph.part(part)
        sides = (False, True) if graph.directed else (False,)
        return [load_rows(container, transposed=side) for side in sides]

    cut = graph.shape.cut
    with load_parts(cut, rows_of, engine, names, settings, with_parents=parents) as search:
        for device in search.devices:
            follow_schedule(device, settings)
        done, seconds = fill(graph, search, task, settings, DeviceDirection(settings.direction))
    outcome, threads = outcome_of(done, seconds), available_threads(settings.threads)
    found = clock()
    counts = over_ranges(kernels.count_reached, levels.size, threads, levels, graph.stored_degrees)
    edges = sum(edges for _, edges in counts)
    named_parents = None
    if task.parents is not None:
        named_parents = name_parents(graph, task.parents, arrays, threads)
    named = name_levels(graph, levels, arrays, threads)
    end = clock()
    stats = Stats(
        engine=engine,
        threads=1,
        seconds=end - start,
        load_seconds=found - start - seconds,
        compile_seconds=compile_seconds() - compiled,
        traversal_seconds=seconds,
        naming_seconds=end - found,
        edges_traversed=edges if graph.directed else edges // 2,
        levels=cast(list[Level], outcome.records),
        slow_bytes_by_tier=outcome.slow_bytes_by_tier,
        graph_bytes=graph.graph_bytes,
        around=outcome.around,
    )

    again = partial(bfs_on_devices, graph, sources, parents=True, settings=settings)
    sizes = np.array(done.level_sizes, np.int64)
    if settings.checks:
        handed_out = Levels(named, named_parents, sizes, outcome.depth)
        validate(graph, sources, handed_out, threads=1)
    listed = graph.given(sources).tolist()
    return BfsResult(graph, listed, named, sizes, stats, named_parents, again)


def _check(graph: StoredParts, sources: Ids, names: Sequence[int], *, parents: bool) -> None:
    """Refuse what cannot be searched so."""
    if graph.cluster is not None:
        raise QueryError("--devices are of this machine: leave out --cluster, or --devices")
    if len(names) != graph.num_parts:
        raise QueryError(
            f"{graph.path}: has {graph.num_parts} parts, and each takes a device: name so many, or "
            f"cut the graph again with 'oocbfs shard --parts {len(names)}'"
        )
    if not sources.size:
        raise QueryError("a traversal needs at least one source")
    if parents:
        check_parents(graph)

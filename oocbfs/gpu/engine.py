"""Traverse a graph by the CUDA kernels, on a GPU or in the emulator, as planned."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.errors import BudgetError, FormatError
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.cuda_device import DeviceError
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.load import Budget, load_graph, make_device, usable_bytes
from oocbfs.gpu.many import GpuMany, many_arrays
from oocbfs.gpu.pinned import PinError
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.gpu.results import Into
from oocbfs.gpu.verification import verify_first
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import BFS_KERNELS, CHECK_KERNELS, MANY_KERNELS, KernelOptions
from oocbfs.kernels.many.traverse import WIDTH
from oocbfs.kernels.results import levels as kernels
from oocbfs.memory import available_bytes, format_size
from oocbfs.plan.host import pinnable_bytes
from oocbfs.plan.search_arrays import ArrayShape, search_arrays
from oocbfs.plan.shape import shape_of, sides_of
from oocbfs.progress import Phases
from oocbfs.results.bfs import BfsOutcome, Named, Reached, Task
from oocbfs.results.levels import Level
from oocbfs.results.naming import check_parents
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph

# What says that this graph cannot be traversed on this GPU; another engine may.
UNUSABLE = (DeviceError, PinError, BudgetError)


def follow_schedule(device: Device, settings: Settings) -> None:
    """Let the emulator run threads in the order that the settings want."""
    schedule = settings.schedule
    if isinstance(device, EmulatorDevice):
        device.schedule(schedule.seed, schedule.blocks, schedule.resident_blocks)


def run_search(
    graph: AnyStored,
    search: Any,  # noqa: ANN401
    task: Task,
    settings: Settings,
    *how: object,
    **more: object,
) -> tuple[Any, float]:
    """Run a search; give what it found and did, and seconds."""
    start = time.perf_counter()
    limits = {"max_depth": settings.max_depth, "target": task.target}
    try:
        done = search.run(task.sources, *how, **limits, **more)
    except FormatError as error:
        raise FormatError(f"{graph.path}: {error}") from error
    return done, time.perf_counter() - start


def fill(
    graph: AnyStored,
    search: Any,  # noqa: ANN401
    task: Task,
    settings: Settings,
    *how: object,
) -> tuple[Any, float]:
    """Run a search and fill levels and parents; give what it did, and seconds."""
    done, seconds = run_search(graph, search, task, settings, *how)
    linked = done.levels.size
    task.levels[:linked] = done.levels
    task.levels[linked:] = -1
    if task.parents is not None and done.parents is not None:
        task.parents[:linked] = done.parents
        task.parents[linked:] = NO_HEAD
    return done, seconds


def on_device(graph: StoredGraph, engine: str, task: Task, settings: Settings) -> BfsOutcome:
    """Fill levels and parents: in the order of ids, if the device can, else of stored vertices."""
    with_parents, threads = task.with_parents, task.threads
    # A source without edges may lie behind those that are linked, and a target, too.
    last = max(int(task.sources.max()), -1 if task.target is None else task.target)
    whole = last >= graph.num_linked
    key = (engine, with_parents, whole, settings.vram, settings.resident_tails, settings.memory)

    def load() -> GpuBfs:
        return _load(graph, engine, settings, with_parents=with_parents, whole=whole)

    with graph.kept_search.use(key, load) as search:
        follow_schedule(search.device, settings)
        in_order = graph.order is None or search.results.in_order
        into = _into(graph, task) if in_order else Into(task.levels, task.parents, threads=threads)
        direction = DeviceDirection(settings.direction)
        done, seconds = run_search(graph, search, task, settings, direction, into=into)
        verify_first(search)
    outcome = outcome_of(done, seconds - done.naming_seconds)._replace(note=search.note)
    start = time.perf_counter()
    reached = Reached(np.array(done.level_sizes), _sum_degrees(graph, done, threads))
    if not in_order:
        return outcome._replace(reached=reached)
    naming = done.naming_seconds + time.perf_counter() - start
    return outcome._replace(named=Named(task.levels, into.parents, *reached, naming))


def _into(graph: StoredGraph, task: Task) -> Into:
    """Say where results in the order of ids go."""
    parents = None
    if task.with_parents:
        check_parents(graph)
        parents = task.arrays.allocate(task.levels.size, np.int64)
    ids = {} if graph.listed_ids is None else {"ids": np.asarray(graph.listed_ids)}
    return Into(task.levels, parents, first_id=graph.first_id, threads=task.threads, **ids)


def _sum_degrees(graph: StoredGraph, done: GpuResult, threads: int) -> int:
    """Sum up the degrees of those that were reached; of the others, if they are fewer."""
    degrees = graph.stored_degrees[: 32 * done.visited.size]
    few_left = 2 * sum(done.level_sizes) > degrees.size
    parts = over_ranges(
        kernels.sum_degrees, done.visited.size, threads, done.visited, degrees, few_left
    )
    return graph.num_arcs - sum(parts) if few_left else sum(parts)


def outcome_of(done: GpuResult, seconds: float) -> BfsOutcome:
    """Give what was done level by level, as all engines do."""
    records = [
        Level(
            direction=step.kind,
            frontier=step.frontier,
            edges_examined=step.counts.edges_examined,
            heads_answered=step.heads_found,
            tail_bytes=step.frontier_bytes,
            seconds=step.seconds,
            num_levels=step.num_levels,
            slow_bytes=step.slow_bytes,
            counts=step.counts,
            link_bytes=step.link_bytes,
        )
        for step in done.steps
        if step.num_levels
    ]
    by_tier = Counter[str]()
    for step in done.steps:
        by_tier.update(step.slow_bytes)
    return BfsOutcome(done.depth, seconds, records, dict(by_tier), around=done.around)


def open_many(graph: StoredGraph, engine: str, settings: Settings, *, with_levels: bool) -> GpuMany:
    """Bring the graph to a device, for traversals from many sources; close what it gives."""
    graph.release_device()
    device = make_device(engine, KernelOptions(with_parents=False), MANY_KERNELS)
    vram_bytes = usable_bytes(device, settings.vram)
    if vram_bytes is not None:
        # The plan counts the arrays of one source.
        sizes = graph.num_vertices, tuple(side.tails.size for side in sides_of(graph))
        one = search_arrays(*sizes, with_parents=False)
        vram_bytes += _num_bytes(one) - _num_bytes(many_arrays(*sizes, with_levels=with_levels))
        if vram_bytes < 0:
            raise BudgetError(
                f"the words of {WIDTH} sources need {format_size(-vram_bytes)} more device memory; "
                "use --engine cpu"
            )
    # These kernels know no tails on disk.
    shape = shape_of(graph, whole=True).of_rows()
    budget = Budget(shape, vram_bytes, available_bytes(), settings.resident_tails)
    return load_graph(GpuMany, device, graph, budget, whole=True, with_levels=with_levels)


def _num_bytes(arrays: dict[str, ArrayShape]) -> int:
    return sum(array.num_bytes for array in arrays.values())


def _load(
    graph: StoredGraph, engine: str, settings: Settings, *, with_parents: bool, whole: bool
) -> GpuBfs:
    """Bring the graph where a plan wants it."""
    options = KernelOptions(with_parents=with_parents)
    phases = Phases(show=settings.progress)
    kernels = (*BFS_KERNELS, *CHECK_KERNELS) if engine == "cuda" else BFS_KERNELS
    device = make_device(engine, options, kernels, phases, counted=True)
    budget = Budget(
        shape_of(graph, whole=whole),
        vram_bytes=usable_bytes(device, settings.vram),
        host_bytes=pinnable_bytes(graph, settings.memory, with_parents=with_parents),
        resident_tails=settings.resident_tails,
        with_parents=with_parents,
    )
    return load_graph(GpuBfs, device, graph, budget, phases, whole=whole, with_parents=with_parents)

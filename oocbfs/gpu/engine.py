"""Traverse a graph by the CUDA kernels, on a GPU or in the emulator, as planned."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oocbfs.errors import BudgetError, FormatError
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.cuda_device import DeviceError
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.load import load_graph, make_device, usable_bytes
from oocbfs.gpu.many import GpuMany, many_arrays
from oocbfs.gpu.pinned import PinError
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.gpu.staging import DiskTails
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import BFS_KERNELS, MANY_KERNELS, KernelOptions
from oocbfs.kernels.many.traverse import WIDTH
from oocbfs.memory import available_bytes, format_size
from oocbfs.plan.device import plan
from oocbfs.plan.host import pinnable_bytes
from oocbfs.plan.search_arrays import ArrayShape, search_arrays
from oocbfs.plan.shape import shape_of, sides_of
from oocbfs.progress import Phases
from oocbfs.results.bfs import BfsOutcome, Task
from oocbfs.results.levels import Level
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph

# What says that this graph cannot be traversed on this GPU; another engine may.
UNUSABLE = (DeviceError, PinError, BudgetError)


def run_search(
    graph: StoredGraph,
    search: Any,  # noqa: ANN401
    task: Task,
    settings: Settings,
    *how: object,
) -> tuple[Any, float]:
    """Run a search that is on a device, as ``fill``, after the schedule of the settings."""
    follow_schedule(search.device, settings)
    return fill(graph, search, task, settings, *how)


def follow_schedule(device: Device, settings: Settings) -> None:
    """Let the emulator run threads in the order that the settings want."""
    schedule = settings.schedule
    if isinstance(device, EmulatorDevice):
        device.schedule(schedule.seed, schedule.blocks, schedule.resident_blocks)


def fill(
    graph: AnyStored,
    search: Any,  # noqa: ANN401
    task: Task,
    settings: Settings,
    *how: object,
) -> tuple[Any, float]:
    """Run a search and fill levels and parents; give what it did, and seconds."""
    start = time.perf_counter()
    try:
        done = search.run(task.sources, *how, max_depth=settings.max_depth, target=task.target)
    except FormatError as error:
        raise FormatError(f"{graph.path}: {error}") from error
    seconds = time.perf_counter() - start
    linked = done.levels.size
    task.levels[:linked] = done.levels
    task.levels[linked:] = -1
    if task.parents is not None and done.parents is not None:
        task.parents[:linked] = done.parents
        task.parents[linked:] = NO_HEAD
    return done, seconds


def on_device(graph: StoredGraph, engine: str, task: Task, settings: Settings) -> BfsOutcome:
    """Fill levels and parents of stored vertices."""
    with_parents = task.with_parents
    # A source without edges may lie behind those that are linked, and a target, too.
    last = max(int(task.sources.max()), -1 if task.target is None else task.target)
    whole = last >= graph.num_linked
    key = (engine, with_parents, whole, settings.vram, settings.resident_tails, settings.memory)

    def load() -> GpuBfs:
        return _load(graph, engine, settings, with_parents=with_parents, whole=whole)

    with graph.kept_search.use(key, load) as search:
        done, seconds = run_search(
            graph, search, task, settings, DeviceDirection(settings.direction)
        )
    return outcome_of(done, seconds)


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


def open_many(graph: StoredGraph, engine: str, *, with_levels: bool) -> GpuMany:
    """Bring the graph to a device, for traversals from many sources; close what it gives."""
    graph.release_device()
    device = make_device(engine, KernelOptions(with_parents=False), MANY_KERNELS)
    vram_bytes = device.free_bytes()
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
    shape = replace(shape_of(graph, whole=True), on_disk=False)
    decided = plan(shape, vram_bytes=vram_bytes, host_bytes=available_bytes())
    return load_graph(GpuMany, device, graph, decided, whole=True, with_levels=with_levels)


def _num_bytes(arrays: dict[str, ArrayShape]) -> int:
    return sum(array.num_bytes for array in arrays.values())


def _disks(graph: StoredGraph) -> tuple[DiskTails, DiskTails]:
    rows = graph.disk_rows
    out, back = (DiskTails(rows.file, disk.offset) for disk in (rows.out_disk, rows.in_disk))
    return out, back


def _load(
    graph: StoredGraph, engine: str, settings: Settings, *, with_parents: bool, whole: bool
) -> GpuBfs:
    """Bring the graph where a plan wants it."""
    options = KernelOptions(with_parents=with_parents)
    phases = Phases(show=settings.progress)
    device = make_device(engine, options, BFS_KERNELS, phases, counted=True)
    decided = plan(
        shape_of(graph, whole=whole),
        vram_bytes=usable_bytes(device, settings.vram),
        host_bytes=pinnable_bytes(graph, settings.memory, with_parents=with_parents),
        resident_tails=settings.resident_tails,
        with_parents=with_parents,
    )
    disks = _disks(graph) if decided.disk_bytes else ()
    options_of_search = {"with_parents": with_parents, "disks": disks}
    return load_graph(GpuBfs, device, graph, decided, phases, whole=whole, **options_of_search)

"""Traverse a graph by the CUDA kernels, on a GPU or in the emulator, as planned."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.errors import BudgetError, FormatError
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.cuda_device import CudaDevice, DeviceError
from oocbfs.gpu.device import Device, EmulatorDevice
from oocbfs.gpu.many import GpuMany, many_arrays
from oocbfs.gpu.pinned import PinError
from oocbfs.gpu.result import Direction
from oocbfs.gpu.staging import DiskTails
from oocbfs.kernels.cuda.source import MANY_KERNELS, KernelOptions
from oocbfs.kernels.many.traverse import WIDTH
from oocbfs.memory import available_bytes, format_size, parse_size
from oocbfs.plan.device import Shape, Tails, plan, search_arrays
from oocbfs.plan.host import pinnable_bytes
from oocbfs.progress import Phases
from oocbfs.results.bfs import BfsOutcome, Level, Task
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.kernels.rows import Rows

_PLACES = 4096

# What says that this graph cannot be traversed on this GPU; another engine may.
UNUSABLE = (DeviceError, PinError, BudgetError)


def shape_of(graph: StoredGraph) -> Shape:
    """Give what a plan needs to know."""
    tails = tuple(tails_of(side) for side in _sides(graph))
    on_disk = not graph.sizes.unpacked_bytes
    return Shape(graph.num_vertices, graph.rows.shift, tails, on_disk)


def graph_bytes(graph: StoredGraph) -> int:
    """Sum up heads and tails, of both directions if there are two."""
    return sum(side.heads.nbytes + side.tails.nbytes for side in _sides(graph))


def _sides(graph: StoredGraph) -> list[Rows]:
    return [graph.rows, graph.in_rows] if graph.directed else [graph.rows]


def tails_of(rows: Rows) -> Tails:
    """Look where some thousand rows begin."""
    looked_at = np.linspace(0, rows.heads.size, _PLACES, endpoint=False).astype(np.int64)
    places = rows.bases[looked_at >> rows.shift] + rows.starts[looked_at]
    return Tails(rows.tails.size, rows.heads.size, places.astype(np.int64))


def on_device(graph: StoredGraph, engine: str, task: Task, settings: Settings) -> BfsOutcome:
    """Fill levels and parents of stored vertices."""
    with_parents = task.parents is not None
    key = (engine, with_parents, settings.vram, settings.resident_tails, settings.memory)

    def load() -> GpuBfs:
        return _load(graph, engine, settings, with_parents=with_parents)

    with graph.kept_search.use(key, load) as search:
        start = time.perf_counter()
        try:
            done = search.run(
                task.sources,
                Direction(settings.direction),
                max_depth=settings.max_depth,
                target=task.target,
            )
        except FormatError as error:
            raise FormatError(f"{graph.path}: {error}") from error
        seconds = time.perf_counter() - start
    task.levels[:] = done.levels
    if task.parents is not None and done.parents is not None:
        task.parents[:] = done.parents
    records = [
        Level(
            step.kind,
            step.frontier,
            None,
            step.heads_found,
            step.frontier_bytes,
            step.seconds,
            step.num_levels,
            step.slow_bytes,
        )
        for step in done.steps
        if step.num_levels
    ]
    by_tier = Counter[str]()
    for step in done.steps:
        by_tier.update(step.slow_bytes)
    return BfsOutcome(done.depth, seconds, records, dict(by_tier))


def open_many(graph: StoredGraph, engine: str, *, with_levels: bool) -> GpuMany:
    """Bring the graph to a device, for traversals from many sources; close what it gives."""
    graph.release_device()
    options = KernelOptions(with_parents=False)
    device: Device = (
        CudaDevice(options, kernels=MANY_KERNELS)
        if engine == "cuda"
        else EmulatorDevice(options, kernels=MANY_KERNELS)
    )
    device.load_kernels()
    vram_bytes = device.free_bytes()
    if vram_bytes is not None:
        # The plan counts the arrays of one source.
        sizes = graph.num_vertices, tuple(side.tails.size for side in _sides(graph))
        one = search_arrays(*sizes, with_parents=False)
        vram_bytes += _num_bytes(one) - _num_bytes(many_arrays(*sizes, with_levels=with_levels))
        if vram_bytes < 0:
            raise BudgetError(
                f"the words of {WIDTH} sources need {format_size(-vram_bytes)} more device memory; "
                "use --engine cpu"
            )
    # These kernels know no tails on disk.
    shape = replace(shape_of(graph), on_disk=False)
    decided = plan(shape, vram_bytes=vram_bytes, host_bytes=available_bytes())
    return GpuMany(
        device,
        graph.rows,
        graph.in_rows,
        with_levels=with_levels,
        windows=decided.windows,
    )


def _num_bytes(arrays: dict[str, tuple[int, Any]]) -> int:
    return sum(size * np.dtype(dtype).itemsize for size, dtype in arrays.values())


def _disks(graph: StoredGraph) -> tuple[DiskTails, DiskTails]:
    rows = graph.disk_rows
    out, back = (DiskTails(rows.file, disk.offset) for disk in (rows.out_disk, rows.in_disk))
    return out, back


def _load(graph: StoredGraph, engine: str, settings: Settings, *, with_parents: bool) -> GpuBfs:
    """Bring the graph where a plan wants it."""
    options = KernelOptions(with_parents=with_parents)
    phases = Phases(show=settings.progress)
    device: Device = (
        CudaDevice(options, phases=phases) if engine == "cuda" else EmulatorDevice(options)
    )
    device.load_kernels()
    decided = plan(
        shape_of(graph),
        vram_bytes=device.free_bytes() if settings.vram is None else parse_size(settings.vram),
        host_bytes=pinnable_bytes(graph, settings.memory, with_parents=with_parents),
        resident_tails=settings.resident_tails,
        with_parents=with_parents,
    )
    total = decided.device["heads"] + decided.device["starts"] + decided.resident_bytes
    with phases("load", total, "B") as bar:
        return GpuBfs(
            device,
            graph.rows,
            graph.in_rows,
            with_parents=with_parents,
            windows=decided.windows,
            homes=decided.homes,
            disks=_disks(graph) if decided.disk_bytes else (),
            copied=bar.update,
        )

"""Connected components by the CUDA kernels, on a GPU or in the emulator: the host's part."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device, EmulatorDevice
from oocbfs.gpu.engine import shape_of
from oocbfs.gpu.rows import OnDevice, ResidentRows
from oocbfs.kernels.components.connect import ENOUGH, Step, guess_giant, sample_vertices
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import (
    BLOCK_THREADS,
    COMPONENTS_KERNELS,
    FOREST_STRUCT,
    ForestControl,
    KernelOptions,
)
from oocbfs.kernels.rows import Rows
from oocbfs.memory import available_bytes, parse_size
from oocbfs.plan.device import Window, plan
from oocbfs.progress import Phases
from oocbfs.results.components import ComponentsOutcome
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


class GpuComponents(OnDevice):
    """The components of one graph on one device."""

    def __init__(
        self,
        device: Device,
        rows: Rows,
        in_rows: Rows | None = None,
        *,
        windows: tuple[Window, ...] = ((0, 0),),
        copied: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.device = device
        sides = [rows] if in_rows is None else [rows, in_rows]
        with ExitStack() as stack:
            self._sides = [
                ResidentRows(device, side, stack, window=window, copied=copied)
                for side, window in zip(sides, (windows[0], windows[-1]), strict=False)
            ]
            self._num_vertices = rows.heads.size
            self._places = sample_vertices(self._num_vertices).astype(np.uint32)
            self._memory = {
                "labels": device.allocate(self._num_vertices, np.uint32),
                "samples": device.allocate(self._places.size, np.uint32),
                "control": device.allocate(len(ForestControl), np.uint64),
            }
            self._stack = stack.pop_all()
        self._forest = np.zeros((), FOREST_STRUCT)
        for name, memory in self._memory.items():
            self._forest[name] = memory.address
        self._control = np.zeros(len(ForestControl), np.uint64)
        self.steps: list[Step] = []

    def run(self) -> NDArray[np.uint32]:
        """Give every stored vertex the smallest of its component for a label."""
        if self._num_vertices == 0:
            return np.empty(0, np.uint32)  # not even the giant has a vertex
        out, *others = (side.struct for side in self._sides)
        size = np.array(self._num_vertices, np.uint64)
        compress = ("components_compress", size)
        self._run(
            "heads",
            ("components_heads", out),
            ("components_link", out, np.array(1, np.uint32)),
            *(("components_link", other, np.array(0, np.uint32)) for other in others),
            compress,
        )
        giant, share = self._find_giant(out)
        if share < ENOUGH:
            self._run(
                "first of tails",
                *(("components_firsts", side, giant) for side in (out, *others)),
                compress,
            )
            giant, _ = self._find_giant(out)
        self._run("tails", *(("components_tails", side, giant) for side in (out, *others)))
        self._run("compress", compress)
        return self.device.download(self._memory["labels"])

    def _run(self, name: str, *launches: tuple[Any, ...]) -> None:
        """Run kernels as one step, and read back what they counted."""
        begin = self.device.mark()
        for kernel, *arguments in launches:
            most = self.device.num_blocks(kernel, BLOCK_THREADS)
            blocks = min(most, self._num_vertices // BLOCK_THREADS + 1)
            self.device.launch(kernel, blocks, BLOCK_THREADS, (self._forest, *arguments))
        end = self.device.mark()
        before = self._control
        self._control = self.device.download(self._memory["control"])
        if self._control[ForestControl.DAMAGED]:
            raise FormatError("a row is damaged: run 'oocbfs verify'")
        edges, num_bytes = (
            int(self._control[word] - before[word])
            for word in (ForestControl.EDGES, ForestControl.TAIL_BYTES)
        )
        self.steps.append(Step(name, edges, num_bytes, self.device.seconds_between(begin, end)))

    def _find_giant(self, rows: NDArray[Any]) -> tuple[NDArray[np.uint32], float]:
        """Look which component most sampled vertices are in; give a vertex of it and its share."""
        self.device.upload(self._memory["samples"], self._places)
        size = np.array(self._places.size, np.uint64)
        self.device.launch("components_sample", 1, BLOCK_THREADS, (self._forest, rows, size))
        roots = self.device.download(self._memory["samples"])
        giant, share = guess_giant(roots[roots != NO_HEAD])
        return np.array(giant, np.uint32), share


def on_device(
    graph: StoredGraph, engine: str, labels: NDArray[np.uint32], settings: Settings
) -> ComponentsOutcome:
    """Fill labels of stored vertices, alone on the device."""
    with graph.kept_search.emptied():
        return _connect(graph, engine, labels, settings)


def _connect(
    graph: StoredGraph, engine: str, labels: NDArray[np.uint32], settings: Settings
) -> ComponentsOutcome:
    """Bring the graph to the device; what is resident is planned as for a traversal, which needs more."""
    options = KernelOptions(with_parents=False)
    phases = Phases(show=settings.progress)
    device: Device = (
        CudaDevice(options, kernels=COMPONENTS_KERNELS, phases=phases)
        if engine == "cuda"
        else EmulatorDevice(options, kernels=COMPONENTS_KERNELS)
    )
    device.load_kernels()
    decided = plan(
        # These kernels know no tails on disk.
        replace(shape_of(graph), on_disk=False),
        vram_bytes=device.free_bytes() if settings.vram is None else parse_size(settings.vram),
        host_bytes=available_bytes(),
        resident_tails=settings.resident_tails,
    )
    total = decided.device["heads"] + decided.device["starts"] + decided.resident_bytes
    with phases("load", total, "B") as bar:
        search = GpuComponents(
            device,
            graph.rows,
            graph.in_rows if graph.directed else None,
            windows=decided.windows,
            copied=bar.update,
        )
    with search:
        start = time.perf_counter()
        try:
            labels[:] = search.run()
        except FormatError as error:
            raise FormatError(f"{graph.path}: {error}") from error
        seconds = time.perf_counter() - start
    moved = device.usage.slow_bytes
    return ComponentsOutcome(search.steps, seconds, {} if moved is None else {"host": moved})

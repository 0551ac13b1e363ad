"""Connected components by the CUDA kernels, on a GPU or in the emulator: the host's part."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.gpu.device import Argument, Device, u32, u64
from oocbfs.gpu.load import Budget, load_graph, make_device, usable_bytes
from oocbfs.gpu.rows import OnDevice, Placement, struct_of
from oocbfs.kernels.components.connect import ENOUGH, ComponentStep, guess_largest, sample_vertices
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import (
    BLOCK_THREADS,
    COMPONENTS_KERNELS,
    FOREST_STRUCT,
    ForestControl,
    KernelOptions,
)
from oocbfs.kernels.rows import Rows
from oocbfs.memory import available_bytes
from oocbfs.plan.launches import pieces
from oocbfs.plan.search_arrays import ArrayShape
from oocbfs.plan.shape import shape_of
from oocbfs.progress import Phases
from oocbfs.results.components import ComponentsRun
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
        **placement: Unpack[Placement],
    ) -> None:
        super().__init__(device, rows, in_rows, placement)
        self._control = np.zeros(len(ForestControl), np.uint64)
        self.steps: list[ComponentStep] = []

    def _prepare(self, stack: ExitStack) -> None:
        self._sides = [self.out_rows]
        if self.in_rows is not self.out_rows:
            self._sides.append(self.in_rows)
        self._samples = sample_vertices(self.num_vertices).astype(np.uint32)
        arrays = {
            "labels": ArrayShape(self.num_vertices, np.uint32),
            "samples": ArrayShape(self._samples.size, np.uint32),
            "control": ArrayShape(len(ForestControl), np.uint64),
        }
        self._memory = self._allocate(arrays)
        self._forest = struct_of(FOREST_STRUCT, self._memory)

    def run(self) -> NDArray[np.uint32]:
        """Label every stored vertex with the smallest vertex of its component."""
        if self.num_vertices == 0:
            return np.empty(0, np.uint32)  # not even the largest component has a vertex
        out, *others = (side.struct for side in self._sides)
        compress = ("components_compress", u64(self.num_vertices))
        self._run(
            "heads",
            ("components_heads", out),
            ("components_link", out, u32(1)),
            *(("components_link", other, u32(0)) for other in others),
            compress,
        )
        largest, share = self._find_largest(out)
        if share < ENOUGH:
            self._run(
                "first of tails",
                *self._by_pieces("components_firsts", largest),
                compress,
            )
            largest, _ = self._find_largest(out)
        self._run("tails", *self._by_pieces("components_tails", largest))
        self._run("compress", compress)
        return self.device.download(self._memory["labels"])

    def _by_pieces(self, kernel: str, largest: Argument) -> Iterator[tuple[Any, ...]]:
        """List the launches of a kernel that reads tails, of as many rows as one may read."""
        for side in self._sides:
            for begin, end in pieces(0, self.num_vertices, side.rows_a_launch):
                yield kernel, side.struct, largest, u64(begin), u64(end)

    def _run(self, name: str, *launches: tuple[Any, ...]) -> None:
        """Run kernels as one step, and read back what they counted."""
        begin = self.device.mark()
        for kernel, *arguments in launches:
            self.device.launch_threads(kernel, (self._forest, *arguments), self.num_vertices)
        end = self.device.mark()
        before = self._control
        self._control = self.device.download(self._memory["control"])
        if self._control[ForestControl.DAMAGED]:
            raise FormatError("a row is damaged: run 'oocbfs verify'")
        edges, num_bytes = (
            int(self._control[word] - before[word])
            for word in (ForestControl.EDGES, ForestControl.TAIL_BYTES)
        )
        self.steps.append(
            ComponentStep(name, edges, num_bytes, self.device.seconds_between(begin, end))
        )

    def _find_largest(self, rows: Argument) -> tuple[Argument, float]:
        """Find the component of most sampled vertices; return a vertex of it and its share."""
        self.device.upload(self._memory["samples"], self._samples)
        size = u64(self._samples.size)
        self.device.launch("components_sample", 1, BLOCK_THREADS, (self._forest, rows, size))
        roots = self.device.download(self._memory["samples"])
        largest, share = guess_largest(roots[roots != NO_HEAD])
        return u32(int(largest)), share


def connect(
    graph: StoredGraph, engine: str, labels: NDArray[np.uint32], settings: Settings
) -> ComponentsRun:
    """Bring the graph to the device, planned as for a search, which needs more memory."""
    options = KernelOptions(with_parents=False)
    phases = Phases(show=settings.progress)
    device = make_device(engine, options, COMPONENTS_KERNELS, phases)
    budget = Budget(
        # These kernels know no tails on disk.
        shape_of(graph).of_rows(),
        vram_bytes=usable_bytes(device, settings.vram),
        host_bytes=available_bytes(),
        resident_tails=settings.resident_tails,
    )
    with load_graph(GpuComponents, device, graph, budget, phases) as search:
        start = time.perf_counter()
        try:
            found = search.run()
        except FormatError as error:
            raise FormatError(f"{graph.path}: {error}") from error
        labels[: found.size] = found
        labels[found.size :] = np.arange(found.size, labels.size)
        seconds = time.perf_counter() - start
    moved = device.usage.slow_bytes
    by_tier = {} if moved is None else {"host": moved}
    return ComponentsRun(engine, 1, search.steps, seconds, by_tier, search.note)

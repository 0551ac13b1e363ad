"""A graph on a device, ready for breadth-first searches."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.device import Device
from oocbfs.gpu.levels import LevelLoop
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.gpu.results import DeviceResults, Into
from oocbfs.gpu.rows import OnDevice, Placement
from oocbfs.gpu.staging import DiskTails, Staging
from oocbfs.kernels.rows import Rows
from oocbfs.plan.costs import costs_of
from oocbfs.plan.cuts import Cuts
from oocbfs.plan.device import SLOT_BYTES
from oocbfs.plan.limits import StepLimits, limits_of
from oocbfs.plan.search_arrays import RESULT_SLOT_BYTES, search_arrays


class GpuBfs(OnDevice):
    """Searches of one graph on one device."""

    def __init__(
        self,
        device: Device,
        rows: Rows,
        in_rows: Rows | None = None,
        *,
        with_parents: bool = True,
        disks: tuple[DiskTails, ...] = (),
        slot_bytes: int = SLOT_BYTES,
        result_slot_bytes: int = RESULT_SLOT_BYTES,
        limits: StepLimits | None = None,
        order: NDArray[np.uint32] | None = None,
        **placement: Unpack[Placement],
    ) -> None:
        self.with_parents = with_parents
        self.limits = limits or limits_of(device.rates)
        self.staging: Staging | None = None
        # What the last search started from, and how many levels of it were expanded.
        self.num_sources = self.num_expanded = 0
        self._disks, self._slot_bytes = disks, slot_bytes
        self._result_slot_bytes = result_slot_bytes
        self._order, self._copied = order, placement.get("copied", lambda _: None)
        super().__init__(device, rows, in_rows, placement)

    def _prepare(self, stack: ExitStack) -> None:
        tail_bytes = (self.out_rows.tail_bytes, self.in_rows.tail_bytes)
        arrays = search_arrays(self.num_vertices, tail_bytes, with_parents=self.with_parents)
        self.memory = self._allocate(arrays)
        self.cuts = Cuts(self.out_rows.host, self.in_rows.host)
        self.costs = costs_of(self.device.rates, self.out_rows.host)
        self.device.upload(self.memory["cuts"], self.cuts.vertices)
        if self._disks:
            self.staging = Staging(
                self.device,
                rows=(self.out_rows, self.in_rows),
                marks=(self.memory["expanded_blocks"], self.memory["searched_blocks"]),
                disks=self._disks,
                stack=stack,
                largest_slot=self._slot_bytes,
            )
        # After what the search cannot do without: results need no pinned memory.
        self.results = DeviceResults(
            self.device,
            self.num_vertices,
            self._order,
            with_parents=self.with_parents,
            stack=stack,
            copied=self._copied,
            largest_slot=self._result_slot_bytes,
        )
        self._memories += self.results.memories

    def run(
        self,
        sources: NDArray[np.uint32],
        direction: DeviceDirection = DeviceDirection.AUTO,
        *,
        max_depth: int | None = None,
        target: int | None = None,
        into: Into | None = None,
    ) -> GpuResult:
        """Search from stored vertices; stop after a level, or after the one with a vertex.

        Levels and parents go into arrays of the caller's, or into new ones.
        """
        if into is None:
            size = self.num_vertices if self._order is None else self._order.size
            parents = np.empty(size, np.uint32) if self.with_parents else None
            into = Into(np.empty(size, np.int32), parents)
        result = LevelLoop(self, sources, direction, max_depth, target, into).run()
        self.num_sources, self.num_expanded = np.unique(sources).size, result.depth
        return result

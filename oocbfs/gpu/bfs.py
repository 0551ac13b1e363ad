"""A graph on a device, ready for breadth-first searches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.device import Device, Memory
from oocbfs.gpu.result import Direction, GpuResult, Limits
from oocbfs.gpu.rows import OnDevice, ResidentRows
from oocbfs.gpu.staging import DiskTails, Staging
from oocbfs.gpu.traversal import Traversal
from oocbfs.kernels.rows import Rows
from oocbfs.plan.cuts import Cuts
from oocbfs.plan.device import SLOT_BYTES, Window, search_arrays


class GpuBfs(OnDevice):
    """Traversals of one graph on one device."""

    def __init__(
        self,
        device: Device,
        rows: Rows,
        in_rows: Rows | None = None,
        *,
        with_parents: bool = True,
        windows: tuple[Window, ...] = ((0, 0),),
        homes: tuple[Window | None, ...] = (None,),
        disks: tuple[DiskTails, ...] = (),
        slot_bytes: int = SLOT_BYTES,
        limits: Limits | None = None,
        copied: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.device = device
        self.limits = limits or Limits()
        with ExitStack() as stack:
            self.out_rows = ResidentRows(device, rows, stack, windows[0], homes[0], copied)
            self.in_rows = self.out_rows
            if in_rows is not None and in_rows is not rows:
                self.in_rows = ResidentRows(device, in_rows, stack, windows[-1], homes[-1], copied)
            tail_bytes = (self.out_rows.tail_bytes, self.in_rows.tail_bytes)
            arrays = search_arrays(
                self.out_rows.num_vertices, tail_bytes, with_parents=with_parents
            )
            self.memory: dict[str, Memory] = {
                name: device.allocate(size, dtype) for name, (size, dtype) in arrays.items()
            }
            self.cuts = Cuts(rows, self.in_rows.host)
            device.upload(self.memory["cuts"], self.cuts.vertices)
            self.staging = None
            if disks:
                marks = (self.memory["expanded_blocks"], self.memory["searched_blocks"])
                sides = (self.out_rows, self.in_rows)
                self.staging = Staging(device, sides, marks, disks, stack, slot_bytes)
            self._stack = stack.pop_all()
        self.with_parents = with_parents

    def run(
        self,
        sources: NDArray[np.uint32],
        direction: Direction = Direction.AUTO,
        *,
        max_depth: int | None = None,
        target: int | None = None,
    ) -> GpuResult:
        """Traverse from stored vertices; stop behind a level, or behind the one with a vertex."""
        return Traversal(self, sources, direction, max_depth, target).run()

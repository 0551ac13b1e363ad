"""One direction of a graph on a device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

import numpy as np

from oocbfs.gpu.device import Device
from oocbfs.kernels.cuda.source import ROWS_STRUCT
from oocbfs.kernels.rows import Rows
from oocbfs.plan.device import Window, align_window, slow_range


class OnDevice:
    """Work on a graph that a device holds; a context manager, because tails are mapped."""

    _stack: ExitStack

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()


class ResidentRows:
    """Rows as kernels take them: heads, starts and a window of the tails copied, other tails mapped.

    Tails outside of the home window are neither.
    """

    def __init__(
        self,
        device: Device,
        rows: Rows,
        stack: ExitStack,
        window: Window = (0, 0),
        home: Window | None = None,
        copied: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.host = rows
        self.tail_bytes = rows.tails.size
        self.home = (0, self.tail_bytes) if home is None else home
        begin, end = align_window(window, rows.tails.size)
        self._memories = [
            device.place(array, copied=copied) for array in (rows.heads, rows.starts, rows.bases)
        ]
        if begin < end:
            self._memories.append(device.place(rows.tails[begin:end], end - begin, copied))
        self.struct = np.zeros((), ROWS_STRUCT)
        for name, memory in zip(("heads", "starts", "bases", "fast"), self._memories, strict=False):
            self.struct[name] = memory.address
        first, last = slow_range((begin, end), self.home, rows.tails.size)
        if first < last:
            mapped = stack.enter_context(device.map_host(rows.tails[first:last]))
            self.struct["slow"] = (mapped - first) % (1 << 64)
        self.struct["fast_begin"], self.struct["fast_end"] = begin, end
        self.struct["served_begin"], self.struct["served_end"] = self.home
        self.struct["num_vertices"], self.struct["shift"] = rows.heads.size, rows.shift
        self.num_vertices = rows.heads.size

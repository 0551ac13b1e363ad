"""One direction of a graph on a device."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from oocbfs.device import LINE_BYTES, Device
from oocbfs.kernels.bfs_rows import Rows
from oocbfs.kernels.cuda_source import ROWS_STRUCT


class ResidentRows:
    """Rows as kernels take them: the tails mapped except for a resident window, the rest copied."""

    def __init__(
        self, device: Device, rows: Rows, stack: ExitStack, window: tuple[int, int] = (0, 0)
    ) -> None:
        begin, end = (edge // LINE_BYTES * LINE_BYTES for edge in window)
        if end >= rows.tails.size // LINE_BYTES * LINE_BYTES:
            end = -(-rows.tails.size // LINE_BYTES) * LINE_BYTES
        begin = min(begin, end)
        self._memories = [
            device.place(np.ascontiguousarray(a)) for a in (rows.heads, rows.starts, rows.bases)
        ]
        fast = device.allocate(end - begin, np.uint8)
        device.upload(fast, np.ascontiguousarray(rows.tails[begin:end]))
        self._memories.append(fast)
        self.struct = np.zeros((), ROWS_STRUCT)
        for name, memory in zip(("heads", "starts", "bases", "fast"), self._memories, strict=True):
            self.struct[name] = memory.address
        self.struct["slow"] = stack.enter_context(device.map_host(rows.tails))
        self.struct["fast_begin"], self.struct["fast_end"] = begin, end
        self.struct["num_vertices"], self.struct["shift"] = rows.heads.size, rows.shift
        self.num_vertices = rows.heads.size
        self.tail_bytes = rows.tails.size

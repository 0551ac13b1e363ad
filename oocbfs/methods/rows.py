"""The rows of a graph as methods read them: plain CSR or compressed, always in host memory."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.gpu.device import Argument, Device
from oocbfs.graph.rows import decode_edges
from oocbfs.kernels.methods.axes import METHOD_ROWS_STRUCT
from oocbfs.kernels.rows import Rows


def row_offsets(rows: Rows) -> NDArray[np.uint64]:
    """Return where each plain row begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(rows.degrees, dtype=np.uint64)]).astype(np.uint64)


def decode_columns(columns: NDArray[np.uint32], rows: Rows) -> None:
    """Write the neighbours of all stored vertices one after the other, ascending in each row."""
    written = 0
    for sources, targets in decode_edges(rows, None, once=False):
        if written + targets.size > columns.size:
            break
        keys = sources << np.uint64(32) | targets
        keys.sort()
        columns[written : written + keys.size] = keys & np.uint64(0xFFFFFFFF)
        written += keys.size
    if written != columns.size:
        raise FormatError("the degrees are damaged: run 'oocbfs verify'")


class MethodRows:
    """One direction of a graph: neighbours in pinned host memory, offsets on the device.

    The heads of compressed rows are in host memory too, or else they would not count.
    """

    def __init__(self, device: Device, rows: Rows, kind: str, stack: ExitStack) -> None:
        self.struct: Argument = np.zeros((), METHOD_ROWS_STRUCT)
        self.offsets = row_offsets(rows)
        self.columns: NDArray[np.uint32] = np.empty(0, np.uint32)
        if kind == "csr":
            size = 4 * max(1, int(self.offsets[-1]))
            memory, address = stack.enter_context(device.allocate_host(size))
            self.columns = memory.view(np.uint32)[: int(self.offsets[-1])]
            decode_columns(self.columns, rows)
            self._memories = {"offsets": device.copy_in(self.offsets)}
            self.struct["columns"] = address
            self.struct["offsets"] = self._memories["offsets"].address
            return
        packed = self.struct["packed"]
        self._memories = {
            "starts": device.copy_in(rows.starts),
            "bases": device.copy_in(rows.bases),
        }
        for name, copied in self._memories.items():
            packed[name] = copied.address
        memory, address = stack.enter_context(device.allocate_host(max(1, rows.heads.nbytes)))
        memory[: rows.heads.nbytes] = rows.heads.view(np.uint8)
        packed["heads"] = address
        if rows.tails.size:
            packed["slow"] = stack.enter_context(device.map_host(rows.tails))
        packed["readable_end"] = rows.tails.size
        packed["num_vertices"], packed["shift"] = rows.heads.size, rows.shift
        packed["num_ids"] = rows.num_ids

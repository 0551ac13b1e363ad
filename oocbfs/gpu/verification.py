"""Check a search on the device that ran it, by Graph500's rules: every arc of what was reached.

The first search of a process on a GPU that ``oocbfs doctor --gpu`` has not verified is checked. It
reads the rows of all reached vertices once, which takes about as long as copying them would.
"""

from __future__ import annotations

import logging

import numpy as np

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.cuda_device import DeviceError
from oocbfs.gpu.device import Argument, u32, u64
from oocbfs.gpu.rows import struct_of
from oocbfs.kernels.cuda.source import CHECKED_STRUCT, LEVEL_PERIOD, SEARCH_STRUCT, Control
from oocbfs.plan.launches import pieces

_log = logging.getLogger(__name__)


def verify_first(bfs: GpuBfs) -> None:
    """Check the last search, if nothing that its device found has been checked yet.

    Raises
    ------
    DeviceError
        If it is wrong; the device is refused from then on.
    """
    device = bfs.device
    # Bytes do not tell the levels of a deeper search apart; the next one may be less deep.
    if device.is_trusted or bfs.num_expanded >= LEVEL_PERIOD:
        return
    broken = count_broken(bfs)
    device.trust(right=not broken)
    if broken:
        raise DeviceError(
            f"{device.unique_name} gives wrong answers: what it found breaks {broken:,} of "
            "Graph500's rules; run 'oocbfs doctor --gpu', and use --engine cpu"
        )
    _log.info(
        "%s: the first search was checked by Graph500's rules, and is right; "
        "'oocbfs doctor --gpu' checks all kernels for good",
        device.unique_name,
    )


def count_broken(bfs: GpuBfs) -> int:
    """Return how often the last search breaks a rule."""
    return _Check(bfs).run()


class _Check:
    """Launches of the kernels that check."""

    def __init__(self, bfs: GpuBfs) -> None:
        self._bfs, self._device, self._rows = bfs, bfs.device, bfs.out_rows
        self._search = struct_of(SEARCH_STRUCT, bfs.memory)
        self._broken = self._device.allocate(1, np.uint64, "broken")
        # A bitmap that the next search fills anew before it reads it.
        self._confirmed = bfs.memory["claimed"]
        written = {"confirmed": self._confirmed, "broken": self._broken}
        self._checked = struct_of(CHECKED_STRUCT, written)

    def run(self) -> int:
        n = self._bfs.num_vertices
        self._device.upload(self._broken, np.zeros(1, np.uint64))
        self._device.upload(self._confirmed, np.zeros(self._confirmed.size, np.uint32))
        self._check(self._rows.struct, 0, n)
        staging = self._bfs.staging
        if staging:
            staging.stream_all(staging.out_side, self._check)
        self._launch("check_found", u64(n), u64(self._bfs.num_sources), num_threads=n)
        return int(self._device.download(self._broken)[0])

    def _check(self, rows: Argument, first_vertex: int, num_vertices: int) -> None:
        """Check the rows of some vertices, as far as they can be read."""
        hubs = self._bfs.memory["control"].slice(Control.HUBS, Control.HUBS + 1)
        self._device.upload(hubs, np.zeros(1, np.uint64))
        num_expanded = u32(self._bfs.num_expanded)
        last = first_vertex + num_vertices
        for begin, end in pieces(first_vertex, last, self._rows.rows_a_launch):
            bounds, size = (u64(begin), u64(end)), end - begin
            self._launch("check_rows", rows, *bounds, num_expanded, num_threads=size)
        for begin, end in self._rows.hub_pieces():
            self._launch("check_hubs", rows, u64(begin), u64(end))

    def _launch(self, kernel: str, *arguments: Argument, num_threads: int | None = None) -> None:
        everything = (self._search, self._checked, *arguments)
        self._device.launch_threads(kernel, everything, num_threads)

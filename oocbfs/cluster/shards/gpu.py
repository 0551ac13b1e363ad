"""A shard on a device: the CUDA kernels of several GPUs, driven by an exchange, shard by shard.

The emulator runs them on the CPU. A GPU never has: see the page on several GPUs. Every call brings
its bitmaps to the device and back, and keeps nothing there but rows and scratch.
"""

from __future__ import annotations

import time
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.shard import Bitmap, BottomUp, ShardRef, TopDown, Work, full_bitmap
from oocbfs.cluster.shards.file import FileShard, damaged
from oocbfs.devices.load import make_shard_device, place
from oocbfs.devices.shard import ShardKernels
from oocbfs.formats.container.reader import Container
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.graph.rows import load_rows
from oocbfs.kernels.cuda.source import CONTROL_WORDS, SECTOR_WORDS, Control, KernelOptions
from oocbfs.kernels.emulator.library import Library
from oocbfs.kernels.shards.run import list_vertices
from oocbfs.settings import Settings

_ALL = ~np.uint64(0)
_NO_ROWS = np.empty(0, np.uint32)
_NO_SECTORS = np.zeros(SECTOR_WORDS, np.int64)
# Levels are the driver's; a device wants one.
_LEVEL = 1


class GpuShard(FileShard):
    """A shard of a graph, searched by the kernels of a device that holds it."""

    in_memory = False

    def __init__(self, container: Container, ref: ShardRef) -> None:
        super().__init__(container, ref.threads)
        options = KernelOptions(with_parents=True, block_cyclic=True)
        if ref.engine == "cuda":
            # The current one, which all shards of a process share.
            device = make_shard_device("cuda", None, options)
        else:
            device = make_shard_device("emulator", None, options, library=_library(options))
        settings = Settings(vram=ref.vram, resident_tails=ref.resident_tails)
        with container.file.reading():
            rows = load_rows(container)
            self._sides = (
                (rows, load_rows(container, transposed=True)) if container.directed else (rows,)
            )
            self._rows = place(device, self._sides, self.cut, self.number, settings, options)
        self._device, self._kernels = device, ShardKernels(self._rows)

    def bottom_up(self, frontier: Bitmap, visited: Bitmap, *, parents: bool) -> BottomUp:
        """Find own vertices that are not visited and have an in-neighbour in a full frontier."""
        start = time.perf_counter()
        kernels, words = self._kernels, self.cut.words_of(self.number)
        with self._container.file.reading():
            kernels.start(_NO_ROWS)
            before = self._full_words(visited)
            self._device.upload(kernels.visited, before)
            # Whoever has a neighbour in the frontier is found, by whatever bitmap it is told.
            self._device.upload(self._rows.messages["reached"], frontier[:-1])
            begun = self._read()
            kernels.look(_LEVEL, _NO_SECTORS)
            looked = self._read() - begun
            kernels.swap_bitmaps()
            if looked[Control.PENDING]:
                kernels.search(_LEVEL, int(looked[Control.PENDING]))
            done = self._read() - begun
            found = (self._device.download(kernels.visited) & ~before)[:words]
            work = self._work(done, start)
            if not parents:
                return BottomUp(found, None, work)
            by_row = self._device.download(self._rows.memory["parents"], self._rows.num_vertices)
        return BottomUp(found, by_row[list_vertices(found)], work)

    def top_down(self, frontier: Bitmap, *, parents: bool) -> TopDown:
        """Find the neighbours of an own frontier, always as a bitmap."""
        start = time.perf_counter()
        kernels, rows = self._kernels, list_vertices(np.ascontiguousarray(frontier))
        found = full_bitmap(self.cut)
        with self._container.file.reading():
            kernels.start(rows)
            begun = self._read()
            kernels.mark(_LEVEL, (0, rows.size))
            done = self._read() - begun
            found[:-1] = self._device.download(self._rows.messages["marked"])
        return TopDown(None, found, None, self._work(done, start))

    def _full_words(self, visited: Bitmap) -> Bitmap:
        """Return visited words as a device has them: what is no vertex is visited."""
        words = np.full(self._kernels.visited.size, _ALL)
        words[: visited.size] = visited
        rows = self._rows.num_vertices
        if rows % 64:
            words[rows // 64] |= _ALL << np.uint64(rows % 64)
        return words

    def _read(self) -> NDArray[np.uint64]:
        """Read the control words back, from which the next launch goes on."""
        control = self._device.download(self._rows.memory["control"], CONTROL_WORDS)
        self._kernels.control = control
        if control[Control.DAMAGED]:
            raise damaged(self.path)
        return control

    def _work(self, counted: NDArray[np.uint64], start: float) -> Work:
        tested = int(counted[Control.HEADS_TESTED])
        return Work(
            edges=int(counted[Control.EDGES]) + tested,
            heads=int(counted[Control.HEADS_FOUND]),
            tested=tested,
            seconds=time.perf_counter() - start,
        )

    def close(self) -> None:
        """Release device memory and the file."""
        self._rows.__exit__()
        self._container.close()


@cache
def _library(options: KernelOptions) -> Library:
    """Load the emulator once for all shards of this process."""
    return cast(EmulatorDevice, make_shard_device("emulator", None, options)).library

"""The device that is the CPU pretending to be a GPU: the CUDA sources run in the emulator."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.io.direct import page_aligned
from oocbfs.gpu.device import Argument, Device, Memory, Usage
from oocbfs.kernels.constants import SLACK_BYTES
from oocbfs.kernels.cuda.source import BFS_KERNELS, Kernel, KernelOptions, sources
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import Counters, Library
from oocbfs.plan.ranges import LINE_BYTES
from oocbfs.plan.rates import KNOWN_GPUS, Rates
from oocbfs.results.counts import Counts, HottestWord

# Where CUDA begins an allocation. Else the sectors of device memory would differ from run to run.
_ALIGNMENT = 256
# What the emulator counts of every access, by the names of its counters.
_COUNTED = (
    "loads",
    "load_lanes",
    "device_sectors_read",
    "device_sectors_written",
    "busiest_work",
    "mean_work",
)


def align_tails(tails: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Copy tails to a line boundary, with readable bytes after them."""
    memory = np.empty(tails.size + SLACK_BYTES + LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % LINE_BYTES
    aligned = memory[first : first + tails.size + SLACK_BYTES]
    aligned[: tails.size] = tails
    aligned[tails.size :] = 0
    return aligned[: tails.size]


class EmulatorDevice(Device):
    """Runs the CUDA sources on one CPU thread in a random order that the seed decides.

    Searches decide as on the GPU whose rates it is given, by default the first known one.
    """

    def __init__(
        self,
        options: KernelOptions | None = None,
        *,
        kernels: Sequence[Kernel] = BFS_KERNELS,
        checks: Checks = Checks.NONE,
        seed: int = 1,
        num_blocks: int = 3,
        resident_blocks: int = 2,
        yield_probability: float = 1 / 16,
        library: Library | None = None,
        rates: Rates | None = None,
    ) -> None:
        self.rates = rates or KNOWN_GPUS[0].rates
        self.library = library or Library(
            options or KernelOptions(),
            checks,
            sources=sources([kernel for kernel in kernels if isinstance(kernel, str)]),
            variants=[kernel for kernel in kernels if not isinstance(kernel, str)],
        )
        self.schedule(seed, num_blocks, resident_blocks, yield_probability)
        self.library.counters(reset=True)
        self._counted = Counters()
        self.usage = Usage(slow_bytes=0)

    def close(self) -> None:
        """Release the stacks of threads."""
        self.library.release()

    def schedule(
        self, seed: int, num_blocks: int, resident_blocks: int, yield_probability: float = 1 / 16
    ) -> None:
        """Choose how the following launches run."""
        self._num_blocks = num_blocks
        self.library.configure(seed, resident_blocks, yield_probability)

    def num_blocks(self, kernel: str, threads: int) -> int:
        """Return as many as it was told to, whatever the kernel."""
        return self._num_blocks

    def free_bytes(self) -> int | None:
        """Know no limit: the memory is the host's."""
        return None

    def load_kernels(self) -> None:
        """Do nothing: the library is compiled before there is a device."""

    def allocate(self, size: int, dtype: Any, name: str = "") -> Memory:
        """Return memory of the process, filled with a pattern that is no sensible value."""
        dtype = np.dtype(dtype)
        num_bytes = max(size, 1) * dtype.itemsize
        whole = np.full(num_bytes + _ALIGNMENT, 0xAB, np.uint8)
        first = -whole.ctypes.data % _ALIGNMENT
        array = whole[first : first + num_bytes].view(dtype)
        self.library.allocated(array.ctypes.data, num_bytes, name)
        weakref.finalize(whole, self.library.freed, array.ctypes.data).atexit = False
        return Memory(array.ctypes.data, dtype, size, array)

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy at once."""
        memory.owner[: array.size] = array

    def download(self, memory: Memory, size: int | None = None) -> NDArray[Any]:
        """Copy; kernels have finished when their launch returns."""
        copy: NDArray[Any] = memory.owner[: memory.size if size is None else size].copy()
        self.usage.read_backs += 1
        self.usage.read_back_bytes += copy.nbytes
        return copy

    def start_download(self, memory: Memory, out: NDArray[Any]) -> None:
        """Copy at once."""
        out[:] = memory.owner.view(out.dtype)[: out.size]
        self.usage.read_backs += 1
        self.usage.read_back_bytes += out.nbytes

    @contextmanager
    def map_host(self, array: NDArray[np.uint8]) -> Iterator[int]:
        """Count loads from the array, and from the slack after it, as bytes over the bus."""
        if array.ctypes.data % LINE_BYTES:  # else the sectors counted were not the sectors moved
            array = align_tails(array)
        with self._mapped(array.ctypes.data, array.size + SLACK_BYTES) as address:
            yield address

    @contextmanager
    def allocate_host(self, size: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Count loads from this memory as bytes over the bus too."""
        memory = page_aligned(size + SLACK_BYTES)
        with self._mapped(memory.ctypes.data, size + SLACK_BYTES) as address:
            yield memory[:size], address

    @contextmanager
    def _mapped(self, address: int, size: int) -> Iterator[int]:
        self.library.map_host(address, size)
        self.library.allocated(address, size)
        try:
            yield address
        finally:
            self.library.unmap_host(address)
            self.library.freed(address)

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        """Run the kernel to its end."""
        self.usage.launches += 1
        before = self.library.counters().host_sectors  # of all devices that share the library
        self.library.launch(kernel, blocks, threads, arguments)
        moved = int(self.library.counters().host_sectors - before)
        self.usage.slow_bytes = (self.usage.slow_bytes or 0) + 32 * moved

    def take_counts(self) -> Counts:
        """Return what kernels did to memory, too, where the library counts every access."""
        taken = super().take_counts()
        if not self.library.counts_accesses:
            return taken
        now, before = self.library.counters(), self._counted
        self._counted = now
        grown = {name: getattr(now, name) - getattr(before, name) for name in _COUNTED}
        by_array, hottest = self.library.take_atomics()
        return replace(
            taken,
            atomics_by_array=by_array,
            hottest_word=None if hottest is None else HottestWord(*hottest),
            device_sectors=grown.pop("device_sectors_read") + grown.pop("device_sectors_written"),
            **grown,
        )

    def mark(self) -> float:
        """Read the clock; kernels have finished when their launch returns."""
        return time.perf_counter()

    def wait_for(self, mark: float) -> None:
        """Do nothing: it has passed."""

    def seconds_between(self, begin: float, end: float) -> float:
        """Subtract."""
        return end - begin

"""What a traversal needs from a device, and the device that is the CPU pretending to be a GPU."""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.io.direct import page_aligned
from oocbfs.kernels.constants import SLACK_BYTES
from oocbfs.kernels.cuda.source import BFS_KERNELS, KernelOptions, sources
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import Library
from oocbfs.plan.device import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

# Copied at a time, so that a bar moves and Ctrl-C is heard.
_PIECE_BYTES = 64 << 20

# What a kernel takes: a struct or a number, as an array of no dimensions.
Argument = NDArray[Any]


@dataclass
class Usage:
    """What a device did; slow_bytes is None on devices that cannot count them."""

    launches: int = 0
    read_backs: int = 0
    slow_bytes: int | None = None


class Memory:
    """Device memory as kernels see it: an address. ``owner`` keeps it alive."""

    def __init__(self, address: int, dtype: np.dtype[Any], size: int, owner: Any) -> None:  # noqa: ANN401
        self.address = address
        self.dtype = dtype
        self.size = size
        self.owner = owner

    def part(self, begin: int, end: int) -> Memory:
        """Give items ``begin`` to ``end`` as memory of their own."""
        address = self.address + begin * self.dtype.itemsize
        return Memory(address, self.dtype, end - begin, self.owner[begin:end])


class Device(ABC):
    """Memory, transfers and launches; launches and uploads are in order, downloads wait for them."""

    usage: Usage

    @abstractmethod
    def num_blocks(self, kernel: str, threads: int) -> int:
        """Tell how many blocks of a kernel the device holds at a time: what a launch that fills it has."""

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Tell how much device memory a traversal may take; None where there is no such limit."""

    @abstractmethod
    def load_kernels(self) -> None:
        """Compile the kernels, so that no traversal's time includes it."""

    @abstractmethod
    def allocate(self, size: int, dtype: Any) -> Memory:  # noqa: ANN401
        """Give uninitialised device memory for ``size`` items."""

    @abstractmethod
    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy an array to the start of device memory."""

    @abstractmethod
    def download(self, memory: Memory, size: int | None = None) -> NDArray[Any]:
        """Copy the first ``size`` items back, after everything launched so far."""

    @abstractmethod
    def map_host(self, array: NDArray[np.uint8]) -> AbstractContextManager[int]:
        """Let kernels read a host array in place; gives the address for them."""

    @abstractmethod
    def allocate_host(self, size: int) -> AbstractContextManager[tuple[NDArray[np.uint8], int]]:
        """Give host memory on a page boundary that kernels read in place, and its address for them.

        The host may change it between two launches.
        """

    @abstractmethod
    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        """Start a kernel."""

    def place(
        self,
        array: NDArray[Any],
        size: int | None = None,
        copied: Callable[[int], object] = lambda _: None,
    ) -> Memory:
        """Allocate device memory for ``size`` items that holds a copy of the array, and then zeros.

        It is copied piece by piece, and ``copied`` is told the bytes of each.
        """
        memory = self.allocate(array.size if size is None else size, array.dtype)
        if array.size < memory.size:
            behind = memory.part(array.size, memory.size)
            self.upload(behind, np.zeros(behind.size, array.dtype))
        step = _PIECE_BYTES // array.itemsize
        for begin in range(0, array.size, step):
            piece = array[begin : begin + step]
            self.upload(memory.part(begin, begin + piece.size), np.ascontiguousarray(piece))
            copied(piece.nbytes)
        return memory

    @abstractmethod
    def mark(self) -> Any:  # noqa: ANN401
        """Note the moment at which everything launched so far is done."""

    @abstractmethod
    def wait_for(self, mark: Any) -> None:  # noqa: ANN401
        """Wait for the moment of a mark."""

    @abstractmethod
    def seconds_between(self, begin: Any, end: Any) -> float:  # noqa: ANN401
        """Tell the time between two marks, after a download that came behind them."""


def align_tails(tails: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Give the tails on a line boundary with readable bytes behind; copies unless they are mapped."""
    room = np.empty(tails.size + SLACK_BYTES + LINE_BYTES, np.uint8)
    first = -room.ctypes.data % LINE_BYTES
    aligned = room[first : first + tails.size + SLACK_BYTES]
    aligned[: tails.size] = tails
    aligned[tails.size :] = 0
    return aligned[: tails.size]


class EmulatorDevice(Device):
    """Runs the CUDA sources on one CPU thread in a random order that the seed decides."""

    def __init__(
        self,
        options: KernelOptions | None = None,
        *,
        kernels: Sequence[str] = BFS_KERNELS,
        checks: Checks = Checks.NONE,
        seed: int = 1,
        num_blocks: int = 3,
        resident_blocks: int = 2,
        yield_probability: float = 1 / 16,
        library: Library | None = None,
    ) -> None:
        self._num_blocks = num_blocks
        self.library = library or Library(
            options or KernelOptions(), checks, sources=sources(kernels)
        )
        self.library.configure(seed, resident_blocks, yield_probability)
        self.library.counters(reset=True)
        self.usage = Usage(slow_bytes=0)

    def num_blocks(self, kernel: str, threads: int) -> int:
        """Give as many as it was told to, whatever the kernel."""
        return self._num_blocks

    def free_bytes(self) -> int | None:
        """Know no limit: there is no device whose memory could be asked."""
        return None

    def load_kernels(self) -> None:
        """Do nothing: the library is compiled before there is a device."""

    def allocate(self, size: int, dtype: Any) -> Memory:  # noqa: ANN401
        """Give memory of the process, filled with a pattern that is no sensible value."""
        array = np.empty(max(size, 1), dtype)
        array.view(np.uint8)[:] = 0xAB
        self.library.allocated(array.ctypes.data, array.nbytes)
        weakref.finalize(array, self.library.freed, array.ctypes.data).atexit = False
        return Memory(array.ctypes.data, array.dtype, size, array)

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy at once."""
        memory.owner[: array.size] = array

    def download(self, memory: Memory, size: int | None = None) -> NDArray[Any]:
        """Copy; kernels have finished when their launch returns."""
        self.usage.read_backs += 1
        copy: NDArray[Any] = memory.owner[: memory.size if size is None else size].copy()
        return copy

    @contextmanager
    def map_host(self, array: NDArray[np.uint8]) -> Iterator[int]:
        """Count loads from the array, and the slack behind it, as bytes over the bus."""
        if array.ctypes.data % LINE_BYTES:  # or the sectors counted were not the sectors moved
            array = align_tails(array)
        with self._mapped(array.ctypes.data, array.size + SLACK_BYTES) as address:
            yield address

    @contextmanager
    def allocate_host(self, size: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Count loads from this memory as bytes over the bus, too."""
        room = page_aligned(size + SLACK_BYTES)
        with self._mapped(room.ctypes.data, size + SLACK_BYTES) as address:
            yield room[:size], address

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
        self.library.launch(kernel, blocks, threads, arguments)
        self.usage.slow_bytes = 32 * int(self.library.counters().host_sectors)

    def mark(self) -> float:
        """Read the clock; kernels have finished when their launch returns."""
        return time.perf_counter()

    def wait_for(self, mark: float) -> None:
        """Do nothing: it has passed."""

    def seconds_between(self, begin: float, end: float) -> float:
        """Subtract."""
        return end - begin

"""What a search needs from a device: memory, transfers and launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.cuda.source import BLOCK_THREADS
from oocbfs.plan.rates import Rates
from oocbfs.results.counts import Counts

# Copied at a time, so that a progress bar moves and Ctrl-C works.
_PIECE_BYTES = 64 << 20

# What a kernel takes: a struct or a number, as an array of no dimensions.
Argument = NDArray[Any]


def u32(value: int) -> Argument:
    """Return a number as a kernel takes it, modulo 2^32."""
    return np.array(value % (1 << 32), np.uint32)


def u64(value: int) -> Argument:
    """Return a number as a kernel takes it, modulo 2^64."""
    return np.array(value % (1 << 64), np.uint64)


@dataclass
class Usage:
    """What a device did; slow_bytes is None on devices that cannot count them."""

    launches: int = 0
    read_backs: int = 0
    read_back_bytes: int = 0
    slow_bytes: int | None = None


class Resources(NamedTuple):
    """What a kernel takes: of a thread, of a block, and how many blocks a multiprocessor holds."""

    registers: int
    shared_bytes: int
    local_bytes: int
    blocks: int


class Memory:
    """Device memory as kernels see it: an address. ``owner`` keeps it alive."""

    def __init__(self, address: int, dtype: np.dtype[Any], size: int, owner: Any) -> None:
        self.address = address
        self.dtype = dtype
        self.size = size
        self.owner = owner

    def slice(self, begin: int, end: int) -> Memory:
        """Return items ``begin`` to ``end`` as memory of their own."""
        address = self.address + begin * self.dtype.itemsize
        return Memory(address, self.dtype, end - begin, self.owner[begin:end])

    def seen_as(self, dtype: Any) -> Memory:
        """Return the same memory as items of another type."""
        dtype = np.dtype(dtype)
        size = self.size * self.dtype.itemsize // dtype.itemsize
        return Memory(self.address, dtype, size, self.owner.view(dtype))


class Device(ABC):
    """Memory, transfers and launches. Launches and uploads run in order; downloads wait.

    ``rates`` say what it takes, measured or published; searches decide by them.
    """

    usage: Usage
    rates: Rates
    # What only this device is called: its rates are kept by this name.
    unique_name: str = "emulator"
    # What one launch may move over the bus; None where no watchdog ends those that take long.
    launch_bytes: int | None = None
    # Whether its answers need no check any more.
    is_trusted: bool = True
    _taken = Usage()

    def close(self) -> None:  # noqa: B027
        """Release what is kept between launches; memory goes with those who use it."""

    def trust(self, *, right: bool) -> None:  # noqa: B027
        """Note that an answer was checked, and whether it was right."""

    def trim(self) -> None:  # noqa: B027
        """Release memory that nobody uses any more to the system."""

    def pinnable_bytes(self, most_bytes: int) -> int:
        """Return how much host memory can be pinned, up to what is asked for."""
        return most_bytes

    @abstractmethod
    def num_blocks(self, kernel: str, threads: int) -> int:
        """Return how many blocks of a kernel the device holds at a time."""

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Return how much device memory a search may take; None where there is no such limit."""

    @abstractmethod
    def load_kernels(self) -> None:
        """Compile the kernels, so that no search's time includes it."""

    @abstractmethod
    def allocate(self, size: int, dtype: Any, name: str = "") -> Memory:
        """Return uninitialised device memory for ``size`` items; counts call it by its name."""

    @abstractmethod
    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy an array to the start of device memory."""

    @abstractmethod
    def download(self, memory: Memory, size: int | None = None) -> NDArray[Any]:
        """Copy the first ``size`` items back, after everything launched so far."""

    @abstractmethod
    def start_download(self, memory: Memory, out: NDArray[Any]) -> None:
        """Copy the first bytes to pinned memory, after everything launched so far; do not wait."""

    @abstractmethod
    def map_host(self, array: NDArray[np.uint8]) -> AbstractContextManager[int]:
        """Let kernels read a host array in place; returns the address for them."""

    @abstractmethod
    def allocate_host(self, size: int) -> AbstractContextManager[tuple[NDArray[np.uint8], int]]:
        """Return host memory on a page boundary that kernels read in place, and its device address.

        The host may change it between two launches.
        """

    @abstractmethod
    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        """Start a kernel."""

    def launch_threads(
        self, kernel: str, arguments: Sequence[Argument], num_threads: int | None = None
    ) -> None:
        """Start a kernel that fills the device, with no more blocks than so many threads need."""
        blocks = self.num_blocks(kernel, BLOCK_THREADS)
        if num_threads is not None:
            blocks = min(blocks, num_threads // BLOCK_THREADS + 1)
        self.launch(kernel, blocks, BLOCK_THREADS, arguments)

    def copy_in(
        self,
        array: NDArray[Any],
        size: int | None = None,
        copied: Callable[[int], object] = lambda _: None,
    ) -> Memory:
        """Allocate device memory for ``size`` items that holds a copy of the array, then zeros.

        The array is copied piece by piece; ``copied`` is called with the bytes of each.
        """
        memory = self.allocate(array.size if size is None else size, array.dtype)
        if array.size < memory.size:
            rest = memory.slice(array.size, memory.size)
            self.upload(rest, np.zeros(rest.size, array.dtype))
        step = _PIECE_BYTES // array.itemsize
        for begin in range(0, array.size, step):
            piece = array[begin : begin + step]
            self.upload(memory.slice(begin, begin + piece.size), np.ascontiguousarray(piece))
            copied(piece.nbytes)
        return memory

    def take_counts(self) -> Counts:
        """Return what was done since the last call."""
        now, before = replace(self.usage), self._taken
        self._taken = now
        sectors = None
        if now.slow_bytes is not None:
            sectors = (now.slow_bytes - (before.slow_bytes or 0)) // 32
        return Counts(
            launches=now.launches - before.launches,
            read_backs=now.read_backs - before.read_backs,
            read_back_bytes=now.read_back_bytes - before.read_back_bytes,
            pcie_sectors=sectors,
        )

    @abstractmethod
    def mark(self) -> Any:
        """Note the moment at which everything launched so far is done."""

    @abstractmethod
    def wait_for(self, mark: Any) -> None:
        """Wait for the moment of a mark."""

    @abstractmethod
    def seconds_between(self, begin: Any, end: Any) -> float:
        """Return the time between two marks, after a download that followed them."""

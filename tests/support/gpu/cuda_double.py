"""A double of the CUDA runtime: it refuses what CUDA refuses, and is as late as CUDA may be.

Kernels and copies to the device wait in a queue until the host waits for them. Host memory is the
device's to read only while it is pinned: a kernel that runs too late faults, and every call after
a fault is refused, as by CUDA.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from oocbfs.kernels.emulator.library import EmulatorError, Library
from oocbfs.plan.ranges import LINE_BYTES

# Where the double's device sees host memory.
DEVICE_OFFSET = 1 << 40

_READ_ONLY = 8


class CUDARuntimeError(RuntimeError):
    """What CuPy raises."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def _refusal(status: int, name: str, words: str) -> CUDARuntimeError:
    return CUDARuntimeError(f"{name}: {words}", status)


def _invalid(words: str) -> CUDARuntimeError:
    return _refusal(1, "cudaErrorInvalidValue", f"invalid argument, {words}")


class Pinned(NamedTuple):
    """Host memory that the device may read: registered, or allocated, which is then kept."""

    begin: int
    end: int
    memory: Any = None


class Runtime:
    """Records calls to the CUDA runtime; refuses those it is told to as well, from the n-th on.

    It is the runtime of one device, which is the current one: see several_double for more.
    """

    CUDARuntimeError = CUDARuntimeError
    is_hip = False
    memcpyDeviceToHost = 2  # noqa: N815
    current = 0

    def __init__(
        self,
        *,
        read_only: bool = True,
        refused: tuple[str, ...] = (),
        accepted: int = 0,
        scattered: bool = False,
        error: BaseException | None = None,
        offset: int = DEVICE_OFFSET,
        free_bytes: int = 5 << 30,
        pooled_bytes: int = 0,
        most_pinned: int | None = None,
        library: Library | None = None,
    ) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.pinned: dict[int, Pinned] = {}
        # What the driver has left, and what CuPy's pool holds of the rest but does not use.
        self.free_bytes, self.pooled_bytes = free_bytes, pooled_bytes
        self.fault: RuntimeError | None = None
        # Streams that were made on this device, by their addresses.
        self.streams: set[int] = set()
        # How many of them are entered.
        self.entered = 0
        # What all pinned memory may take, as under WSL; None is no limit.
        self.most_pinned = most_pinned
        # How often the host waits until Ctrl-C is pressed.
        self.waits_left: int | None = None
        self.library = library
        self._read_only = read_only
        self._refused = refused
        self._accepted = accepted
        self._scattered = scattered
        self._error = error
        self._offset = offset
        self._queue: list[Callable[[], None]] = []
        self._num_queued = self._num_done = 0
        self._device_memory: dict[int, Any] = {}
        self._freed: list[int] = []

    def _record(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        if self.fault:
            raise self.fault
        if name in self._refused and self.names().count(name) > self._accepted:
            raise self._error or CUDARuntimeError(f"{name}: cudaErrorMemoryAllocation", 2)

    @property
    def here(self) -> Runtime:
        """The runtime of the current device."""
        return self

    def check_launch(self, arguments: tuple[Any, ...]) -> None:
        """Accept all addresses: there is only one device."""

    def names(self) -> list[str]:
        quiet = ("pointerGetAttributes", "deviceSynchronize", "free_all_blocks", "memcpyAsync")
        return [call[0] for call in self.calls if call[0] not in quiet]

    # What CuPy gives of the runtime.

    def getDeviceCount(self) -> int:  # noqa: N802
        self._record("getDeviceCount")
        return 1

    def getDeviceProperties(self, device: int) -> dict[str, Any]:  # noqa: N802
        return {"name": b"A double", "uuid": bytes([device]), "major": 8, "minor": 6}

    def deviceGetAttribute(self, attribute: int, device: int) -> int:  # noqa: N802
        self._record("deviceGetAttribute", attribute, device)
        return int(self._read_only)

    def deviceSynchronize(self) -> None:  # noqa: N802
        self._record("deviceSynchronize")
        self.run_queue()

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802
        self._record("memGetInfo")
        return self.free_bytes, 6 << 30

    def hostRegister(self, address: int, size: int, flags: int) -> None:  # noqa: N802
        self._record("hostRegister", address, size, flags)
        if size <= 0 or address % mmap.PAGESIZE or size % mmap.PAGESIZE:
            raise _invalid("only whole pages can be registered")
        if any(one.begin < address + size and address < one.end for one in self.pinned.values()):
            name = "cudaErrorHostMemoryAlreadyRegistered"
            raise _refusal(712, name, "part or all of the memory range is registered")
        rights = _rights(address, address + size)
        if "r" not in rights:
            raise _invalid("nothing is mapped there")
        if flags & _READ_ONLY and not self._read_only:
            raise _refusal(801, "cudaErrorNotSupported", "operation not supported")
        if "w" not in rights and not flags & _READ_ONLY:
            raise _invalid("pages that may only be read need their flag")
        self._pin(Pinned(address, address + size))

    def hostUnregister(self, address: int) -> None:  # noqa: N802
        self._record("hostUnregister", address)
        if address not in self.pinned or self.pinned[address].memory is not None:
            name = "cudaErrorHostMemoryNotRegistered"
            raise _refusal(713, name, "pointer does not correspond to a registered memory region")
        self._unpin(address)

    def hostAlloc(self, size: int, flags: int) -> int:  # noqa: N802
        self._record("hostAlloc", size, flags)
        if size <= 0:
            raise _invalid("nothing is asked for")
        memory = ctypes.create_string_buffer(size)
        begin = ctypes.addressof(memory)
        self._pin(Pinned(begin, begin + size, memory))
        return begin

    def freeHost(self, address: int) -> None:  # noqa: N802
        self._record("freeHost", address)
        if address not in self.pinned or self.pinned[address].memory is None:
            raise _invalid("this was never allocated, or is freed")
        self._unpin(address)

    def memcpyAsync(  # noqa: N802
        self, target: int, source: int, size: int, kind: int, stream: int
    ) -> None:
        """Copy to the host when its turn comes; CUDA would wait if the host's memory moved."""
        self._record("memcpyAsync", target, source, size, kind, stream)
        if kind != self.memcpyDeviceToHost or not self.holds(source):
            raise _invalid("this is no copy from the device")
        if not any(one.begin <= target <= one.end - size for one in self.pinned.values()):
            raise _invalid("a copy that should not wait needs pinned memory")

        def copy() -> None:
            ctypes.memmove(target, source, size)

        self.queue(copy)

    def pointerGetAttributes(self, address: int) -> SimpleNamespace:  # noqa: N802
        self._record("pointerGetAttributes", address)
        if not any(one.begin <= address < one.end for one in self.pinned.values()):
            return SimpleNamespace(type=0, devicePointer=0)
        gap = len(self.calls) << 20 if self._scattered else 0
        return SimpleNamespace(type=1, devicePointer=address + self._offset + gap)

    def _pin(self, one: Pinned) -> None:
        held = sum(other.end - other.begin for other in self.pinned.values())
        if self.most_pinned is not None and held + one.end - one.begin > self.most_pinned:
            raise _refusal(2, "cudaErrorMemoryAllocation", "out of memory")
        self.pinned[one.begin] = one
        if self.library:
            self.library.map_host(one.begin, one.end - one.begin)

    def _unpin(self, address: int) -> None:
        """Take memory from the device; fails if kernels still wait that may read it."""
        del self.pinned[address]
        if self.library:
            self.library.unmap_host(address)
        if self._queue:
            self._fail("work waits that may read what is unpinned")

    def end_process(self) -> None:
        """Let go of what is still pinned, as the system does."""
        for address in list(self.pinned):
            del self.pinned[address]
            if self.library:
                self.library.unmap_host(address)

    # What runs on the device, in order.

    def queue(self, work: Callable[[], None]) -> int:
        """Note work for the device; returns its number."""
        if self.fault:
            raise self.fault
        self._queue.append(work)
        self._num_queued += 1
        return self._num_queued

    def run_queue(self, number: int | None = None) -> None:
        """Wait for all work, or for that up to a number."""
        if self.waits_left is not None:
            self.waits_left -= 1
            if self.waits_left == 0:
                raise KeyboardInterrupt
        self._run(len(self._queue) if number is None else number - self._num_done)
        if self.fault:
            raise self.fault

    def is_done(self, number: int) -> bool:
        return number <= self._num_done

    @property
    def num_queued(self) -> int:
        return self._num_queued

    def _run(self, count: int) -> None:
        for _ in range(count):
            work = self._queue.pop(0)
            self._num_done += 1
            try:
                if not self.fault:
                    work()
            except EmulatorError as error:
                self._fail(str(error))
        if not self._queue:
            self._drop_freed()

    def _fail(self, words: str) -> None:
        name = "cudaErrorIllegalAddress"
        self.fault = _refusal(700, name, f"an illegal memory access was encountered: {words}")

    # Device memory, as CuPy's pool hands it out: what is freed stays until the kernels before are
    # done.

    def allocate(self, size: int) -> tuple[int, Any] | None:
        """Return memory for so many bytes, None if there is no more."""
        if size > self.free_bytes + self.pooled_bytes:
            return None
        from_pool = min(size, self.pooled_bytes)
        self.pooled_bytes -= from_pool
        self.free_bytes -= size - from_pool
        memory = np.full(size, 0xAB, np.uint8)
        self._device_memory[memory.ctypes.data] = memory
        return memory.ctypes.data, memory

    def holds(self, address: int) -> bool:
        """Return whether an address is in memory of this device."""
        return any(0 <= address - first < one.size for first, one in self._device_memory.items())

    def free(self, address: int) -> None:
        self._freed.append(address)
        if not self._queue:
            self._drop_freed()

    def _drop_freed(self) -> None:
        while self._freed:
            self.pooled_bytes += self._device_memory.pop(self._freed.pop()).size

    def free_all_blocks(self) -> None:
        """Release what the pool holds to the driver."""
        self._record("free_all_blocks")
        self.run_queue()
        self.free_bytes, self.pooled_bytes = self.free_bytes + self.pooled_bytes, 0


def off_the_page(array: np.ndarray) -> np.ndarray:
    """Copy to memory that surely begins inside a page: such is never registered as it is."""
    memory = np.empty(array.size + 2 * mmap.PAGESIZE, np.uint8)
    begin = -memory.ctypes.data % mmap.PAGESIZE + LINE_BYTES
    copy = memory[begin : begin + array.size]
    copy[:] = array
    return copy


def _rights(begin: int, end: int) -> str:
    """Return the rights that all pages between two addresses have, none if one is not mapped."""
    rights = "rw"
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, theirs, *_ = line.split(maxsplit=2)
        first, last = (int(part, 16) for part in span.split("-"))
        if first <= begin < last:
            rights = "".join(right for right in rights if right in theirs)
            begin = last
        if begin >= end:
            return rights
    return ""

"""Doubles of what CUDA gives: its runtime, recorded, and what CudaDevice uses of CuPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from oocbfs.kernels.emulator.library import Library

# Where the double's device sees host memory.
DEVICE_OFFSET = 1 << 40


class CUDARuntimeError(RuntimeError):
    """What CuPy raises."""


class Runtime:
    """Records calls to the CUDA runtime; refuses those it is told to, from the n-th on."""

    CUDARuntimeError = CUDARuntimeError
    is_hip = False

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
    ) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.pinned: set[int] = set()
        self._read_only = read_only
        self._refused = refused
        self._accepted = accepted
        self._scattered = scattered
        self._error = error
        self._offset = offset
        self._free_bytes = free_bytes
        self._held: dict[int, Any] = {}

    def _record(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        if name in self._refused and self.names().count(name) > self._accepted:
            raise self._error or CUDARuntimeError(f"{name}: cudaErrorMemoryAllocation")

    def getDeviceCount(self) -> int:  # noqa: N802
        self._record("getDeviceCount")
        return 1

    def deviceGetAttribute(self, attribute: int, device: int) -> int:  # noqa: N802
        self._record("deviceGetAttribute", attribute, device)
        return int(self._read_only)

    def hostRegister(self, address: int, size: int, flags: int) -> None:  # noqa: N802
        self._record("hostRegister", address, size, flags)
        self.pinned.add(address)

    def hostUnregister(self, address: int) -> None:  # noqa: N802
        self._record("hostUnregister", address)
        if address not in self.pinned:
            raise CUDARuntimeError("cudaErrorHostMemoryNotRegistered")
        self.pinned.remove(address)

    def hostAlloc(self, size: int, flags: int) -> int:  # noqa: N802
        self._record("hostAlloc", size, flags)
        room = ctypes.create_string_buffer(size)
        self._held[ctypes.addressof(room)] = room
        self.pinned.add(ctypes.addressof(room))
        return ctypes.addressof(room)

    def freeHost(self, address: int) -> None:  # noqa: N802
        self._record("freeHost", address)
        del self._held[address]
        self.pinned.remove(address)

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802
        self._record("memGetInfo")
        return self._free_bytes, 6 << 30

    def pointerGetAttributes(self, address: int) -> SimpleNamespace:  # noqa: N802
        self._record("pointerGetAttributes", address)
        gap = len(self.calls) << 20 if self._scattered else 0
        return SimpleNamespace(devicePointer=address + self._offset + gap)

    def names(self) -> list[str]:
        return [call[0] for call in self.calls if call[0] != "pointerGetAttributes"]


class OutOfMemoryError(MemoryError):
    """What CuPy raises when the GPU is full."""


class CompileException(Exception):  # noqa: N818
    """What CuPy raises when NVRTC refuses a source."""


class Event:
    """A mark in the stream: the number of launches before it, in milliseconds."""

    def __init__(self, launched: list[Any]) -> None:
        self._launched = launched
        self.at = -1

    def record(self) -> None:
        self.at = len(self._launched)

    def synchronize(self) -> None:
        assert 0 <= self.at <= len(self._launched)
        self._launched.append(("wait", self.at))


def fake_cupy(
    runtime: Runtime,
    launched: list[Any],
    *,
    full: bool = False,
    broken: BaseException | None = None,
    uncompiled: BaseException | None = None,
    library: Library | None = None,
) -> SimpleNamespace:
    """Give what CudaDevice uses of CuPy: the real RawModule needs a driver to load code.

    With a library of the emulator, launches run there; without, they are only noted.
    """

    class Array:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array
            self.data = SimpleNamespace(ptr=array.ctypes.data)

        def __getitem__(self, where: slice) -> Array:
            return Array(self.array[where])

        def set(self, array: np.ndarray) -> None:
            self.array[:] = array

        def get(self) -> np.ndarray:
            if broken:
                raise broken
            return self.array.copy()

    def empty(size: int, dtype: Any) -> Array:
        if full:
            raise OutOfMemoryError("Out of memory allocating 400 bytes")
        return Array(np.empty(size, dtype))

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:
            self.code, self.options, self.backend = code, options, backend

        def get_function(self, name: str) -> Callable[..., None]:
            assert f"{name}(" in self.code
            if uncompiled:
                raise uncompiled
            launched.append(("compile", name, self.options, self.backend))

            def start(*arguments: Any) -> None:
                launched.append((name, *arguments))
                if broken:
                    raise broken
                if library:
                    (blocks,), (threads,), values = arguments
                    library.launch(name, blocks, threads, values)

            return start

    device = SimpleNamespace(id=0, attributes={"MultiProcessorCount": 30})
    return SimpleNamespace(
        cuda=SimpleNamespace(
            runtime=runtime,
            Device=lambda: device,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            compiler=SimpleNamespace(CompileException=CompileException),
            Event=lambda: Event(launched),
            get_elapsed_time=lambda begin, end: float(end.at - begin.at),
        ),
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 1 << 30),
        empty=empty,
        RawModule=RawModule,
    )

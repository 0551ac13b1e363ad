"""A double of what CudaDevice uses of CuPy, on top of the double of CUDA's runtime."""

from __future__ import annotations

import weakref
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from tests.support.gpu.cuda_double import CUDARuntimeError, Runtime

# What a multiprocessor of the double has: that of the Turing generation.
MULTIPROCESSORS = 30
THREADS_EACH = 1024
SHARED_BYTES_EACH = 64 << 10
MOST_THREADS = 1024
_SCRATCH_BYTES = 2560
# CuPy's own words.
NO_HEADERS = (
    "Failed to find CUDA headers. Please install CUDA toolkit headers (e.g., pip install "
    "cupy-cuda12x[ctk]) or specify CUDA_PATH environment variable."
)


class OutOfMemoryError(MemoryError):
    """What CuPy raises when the GPU is full."""


class CompileException(Exception):  # noqa: N818
    """What CuPy raises when NVRTC refuses a source."""


class Block:
    """A piece of device memory; goes back to the pool with the last array that shows it."""

    def __init__(self, runtime: Runtime, size: int) -> None:
        self.home = runtime
        whole = -(-size // 512) * 512  # as CuPy rounds
        made = runtime.allocate(whole)
        if made is None:
            raise OutOfMemoryError(f"Out of memory allocating {whole:,} bytes")
        self.address, self.memory = made
        weakref.finalize(self, runtime.free, self.address).atexit = False


class Array:
    """Device memory as an array of one dimension."""

    def __init__(self, runtime: Runtime, block: Block, array: np.ndarray) -> None:
        self._all, self._block, self._array = runtime, block, array
        self.data = SimpleNamespace(ptr=array.ctypes.data)

    @property
    def _runtime(self) -> Runtime:
        """The device that the memory is on; CuPy would take its stream for the current one's."""
        assert self._all.here is self._block.home, "memory of another device than the current one"
        return self._block.home

    def __getitem__(self, where: slice) -> Array:
        return Array(self._all, self._block, self._array[where])

    def view(self, dtype: Any) -> Array:
        return Array(self._all, self._block, self._array.view(dtype))

    def set(self, array: np.ndarray, stream: Stream) -> None:
        stream.check()
        if array.dtype != self._array.dtype:
            raise TypeError(f"{array.dtype} array cannot be set to {self._array.dtype} array")
        if array.shape != self._array.shape:
            raise ValueError(f"Shape mismatch. {self._array.shape}, {array.shape}")
        # From memory that is not pinned: the driver has copied it when the call returns.
        copy, target = array.copy(), self._array
        self._runtime.queue(lambda: np.copyto(target, copy))

    def get(self, stream: Stream) -> np.ndarray:
        stream.check()
        self._runtime.run_queue()
        return self._array.copy()


class Stream:
    """A queue of one device, which is the current one where it is used; there is only one."""

    def __init__(self, runtime: Any, *, non_blocking: bool) -> None:
        assert non_blocking, "it would wait for what others queue"
        self._all, self._home, self.ptr = runtime, runtime.here, id(self)
        self._home.streams.add(self.ptr)

    def check(self) -> None:
        assert self._all.here is self._home, "a stream of another device than the current one"

    def __enter__(self) -> None:
        self.check()
        self._home.entered += 1

    def __exit__(self, *exception: object) -> None:
        self._home.entered -= 1

    def synchronize(self) -> None:
        self._home.run_queue()

    def wait_event(self, event: Event) -> None:
        """Let what is queued here later wait for what was queued there before."""
        self.check()
        other, number = event.runtime, event.number
        if other is not self._home:
            self._home.queue(lambda: None if other.is_done(number) else other.run_queue(number))


class Event:
    """A mark in the stream: the number of launches before it, in milliseconds."""

    def __init__(self, runtime: Runtime, launched: list[Any]) -> None:
        self.runtime, self._launched = runtime, launched
        self.position = self.number = -1

    def record(self, stream: Stream) -> None:
        stream.check()
        self.position, self.number = len(self._launched), self.runtime.num_queued

    def synchronize(self) -> None:
        assert self.position >= 0
        self._launched.append(("wait", self.position))
        self.runtime.run_queue(self.number)


class RawKernel:
    """A compiled kernel; with a library of the emulator it runs there, without it is only noted."""

    num_regs, local_size_bytes = 40, 0

    def __init__(self, double: Cupy, name: str, code: str) -> None:
        self._double, self._name, self._home = double, name, double.runtime.here
        self.shares = "__shared__ Scratch" in code
        self.kernel = SimpleNamespace(ptr=id(self))
        double.kernels[id(self)] = self

    @property
    def shared_size_bytes(self) -> int:
        return 8 * _SCRATCH_BYTES if self.shares else 0

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        double = self._double
        (blocks,), (threads,) = grid, block
        if blocks < 1 or not 1 <= threads <= MOST_THREADS:
            raise CUDARuntimeError("CUDA_ERROR_INVALID_VALUE: invalid argument", 1)
        for argument in arguments:
            if not isinstance(argument, np.ndarray) or argument.size != 1:
                raise TypeError("Only numpy.ndarrays of size one can be passed by value.")
        values = tuple(argument.copy() for argument in arguments)
        assert double.runtime.here is self._home, "a kernel that was loaded on another device"
        assert self._home.entered, "a kernel in the stream of somebody else"
        double.runtime.check_launch(values)
        double.launched.append((self._name, grid, block, values))
        names = [entry[0] for entry in double.launched]
        if double.broken and len(names) - names.count("compile") > double.broken_after:
            if isinstance(double.broken, RuntimeError):
                double.runtime.fault = double.broken
            raise double.broken
        library = double.runtime.library

        def run() -> None:
            if library:
                library.launch(self._name, blocks, threads, values)

        double.runtime.queue(run)


class Cupy:
    """The module; ``launched`` is what it compiles, launches and waits for."""

    def __init__(
        self,
        runtime: Runtime,
        launched: list[Any],
        *,
        headers: bool = True,
        broken: BaseException | None = None,
        broken_after: int = 0,
        uncompiled: BaseException | None = None,
        watched: bool = False,
    ) -> None:
        self.runtime, self.launched = runtime, launched
        self.headers, self.watched = headers, watched
        self.broken, self.broken_after, self.uncompiled = broken, broken_after, uncompiled
        self.kernels: dict[int, RawKernel] = {}

    def empty(self, size: int, dtype: Any) -> Array:
        assert self.runtime.here.entered, "memory for the stream of somebody else"
        block = Block(self.runtime.here, size * np.dtype(dtype).itemsize)
        return Array(self.runtime, block, block.memory.view(dtype)[:size])

    def compile(self, name: str, code: str, options: tuple[str, ...], backend: str) -> RawKernel:
        assert f"{name}(" in code or f"-DAXIS_ENTRY={name}" in options
        if not self.headers:
            raise RuntimeError(NO_HEADERS)
        if self.uncompiled:
            raise self.uncompiled
        self.launched.append(("compile", name, options, backend))
        return RawKernel(self, name, code)

    def resident_blocks(self, function: int, threads: int, dynamic_bytes: int) -> int:
        """Return how many blocks a multiprocessor holds at a time."""
        shared_bytes = dynamic_bytes
        if self.kernels[function].shares:
            shared_bytes += threads // 32 * _SCRATCH_BYTES
        by_shared = SHARED_BYTES_EACH // shared_bytes if shared_bytes else THREADS_EACH
        return min(THREADS_EACH // threads, by_shared)

    def elapsed(self, begin: Event, end: Event) -> float:
        assert begin.runtime is end.runtime, "events of two devices"
        if not (begin.runtime.is_done(begin.number) and begin.runtime.is_done(end.number)):
            raise CUDARuntimeError("cudaErrorNotReady: device not ready", 600)
        return float(end.position - begin.position)


def fake_cupy(runtime: Runtime, launched: list[Any], **trouble: Any) -> SimpleNamespace:
    """Return what CudaDevice uses of CuPy: the real RawModule needs a driver to load code."""
    double = Cupy(runtime, launched, **trouble)

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:
            self._arguments = code, options, backend

        def get_function(self, name: str) -> RawKernel:
            return double.compile(name, *self._arguments)

    class Device:
        attributes = MappingProxyType(
            {"MultiProcessorCount": MULTIPROCESSORS, "KernelExecTimeout": int(double.watched)}
        )
        compute_capability = "75"

        def __init__(self, device: int | None = None) -> None:
            self.id = runtime.current if device is None else device
            self.pci_bus_id = f"0000:0{self.id}:00.0"
            self._before: list[int] = []

        def __enter__(self) -> None:
            self._before.append(runtime.current)
            runtime.current = self.id

        def __exit__(self, *exception: object) -> None:
            runtime.current = self._before.pop()

    pool = SimpleNamespace(
        free_bytes=lambda: runtime.pooled_bytes,
        free_all_blocks=lambda: runtime.free_all_blocks(),
    )
    return SimpleNamespace(
        cuda=SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(
                occupancyMaxActiveBlocksPerMultiprocessor=double.resident_blocks
            ),
            Device=Device,
            Stream=partial(Stream, runtime),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            compiler=SimpleNamespace(CompileException=CompileException),
            nvrtc=SimpleNamespace(getVersion=lambda: (12, 9)),
            Event=lambda: Event(runtime.here, launched),
            get_elapsed_time=double.elapsed,
        ),
        get_default_memory_pool=lambda: pool,
        empty=double.empty,
        RawModule=RawModule,
    )

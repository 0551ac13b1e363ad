"""The device that is a CUDA GPU, through CuPy. Nothing here has run on hardware yet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OocbfsError
from oocbfs.gpu.device import Argument, Device, Memory, Usage
from oocbfs.gpu.nvidia import HEADERS_WHEEL, NVRTC_WHEEL, ask_driver
from oocbfs.gpu.pinned import Route, allocate_pinned, map_pinned
from oocbfs.kernels.cache_folder import cache_folder
from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    Kernel,
    KernelOptions,
    compiler_options,
    name_of,
    source,
)
from oocbfs.memory import format_size
from oocbfs.plan.rates import default_rates, kept_rates
from oocbfs.progress import Phases

Pinned = TypeVar("Pinned")

# Left to the driver: code of the kernels, their stacks, and what a pool loses to rounding.
_RESERVED_BYTES = 128 << 20


class DeviceError(OocbfsError):
    """A GPU that cannot be used; says what is missing and how to get it."""


def load_cupy() -> Any:  # noqa: ANN401
    """Import CuPy and make sure that it can reach a GPU."""
    _find_cache()
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"the cuda engine needs CuPy ({_first_line(error)}): pip install 'oocbfs[gpu]'"
        ) from error
    runtime = cupy.cuda.runtime
    if runtime.is_hip:
        raise DeviceError("this CuPy is built for ROCm: install cupy-cuda12x instead")
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        driver = ask_driver()
        advice = driver.problem or (
            f"update NVIDIA's driver, which is for {driver.version}, or install the CuPy for that"
        )
        raise DeviceError(
            f"CuPy finds no usable CUDA driver ({_first_line(error)}): {advice}"
        ) from error
    if count == 0:
        raise DeviceError("CuPy finds no CUDA GPU: use --engine cpu")
    return cupy


def _find_cache() -> None:
    """Have CuPy keep what it compiles where this user can write; it would fail without a home."""
    usual = Path(os.path.expanduser("~"), ".cupy", "kernel_cache")
    if "CUPY_CACHE_DIR" not in os.environ:
        chosen = cache_folder("cupy", usual)
        if chosen != usual:
            os.environ["CUPY_CACHE_DIR"] = str(chosen)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip(" =")), "no reason")


def _explain_compiler(error: BaseException) -> str:
    """Say why CuPy would not compile, and the one thing to do; its own advice is left out."""
    reason = _first_line(error).split(". ")[0]
    for part, wheel in (("headers", HEADERS_WHEEL), ("nvrtc", NVRTC_WHEEL)):
        if part in reason.lower():
            return f"({reason}): pip install {wheel}"
    return f"({reason}): use --engine cpu"


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn what CUDA raises into one line."""
    try:
        yield
    except RuntimeError as error:  # the base of all errors of CUDA's libraries
        raise DeviceError(f"{what} ({_first_line(error)}): use --engine cpu") from error


class CudaDevice(Device):
    """Runs the kernels on a CUDA device, the current one or that of a number, through one stream.

    It is current during calls only, so that several can take turns.
    """

    def __init__(
        self,
        options: KernelOptions | None = None,
        *,
        kernels: Sequence[Kernel] = BFS_KERNELS,
        cupy: Any = None,  # noqa: ANN401
        phases: Phases | None = None,
        device_id: int | None = None,
    ) -> None:
        self.cupy = load_cupy() if cupy is None else cupy
        self._runtime = self.cupy.cuda.runtime
        self._options = options or KernelOptions()
        self._phases = phases
        self._sources = {name_of(kernel): kernel for kernel in kernels}
        self._kernels: dict[str, Any] = {}
        self.routes: list[Route] = []
        self._device = self._find(device_id)
        self.device_id = int(self._device.id)
        with self.current("the GPU cannot be used"):
            self._multiprocessors = int(self._device.attributes["MultiProcessorCount"])
            properties = self._runtime.getDeviceProperties(self.device_id)
        name, number = properties["name"].decode(), properties.get("uuid", b"").hex()
        self.unique_name = f"{name} {number}"
        capability = (properties["major"], properties["minor"])
        self.rates = kept_rates(self.unique_name) or default_rates(capability)
        self._resident: dict[tuple[str, int], int] = {}
        self.usage = Usage()

    def _find(self, device_id: int | None) -> Any:  # noqa: ANN401
        with _explained("the GPU cannot be used"):
            if device_id is None:
                return self.cupy.cuda.Device()
            count = int(self._runtime.getDeviceCount())
            if device_id >= count:
                there = f"GPUs 0 to {count - 1}" if count > 1 else "GPU 0"
                raise DeviceError(f"there is no GPU {device_id}: CuPy finds {there}")
            return self.cupy.cuda.Device(device_id)

    @contextmanager
    def current(self, what: str) -> Iterator[None]:
        """Make this the current device for some calls; turn what CUDA raises into one line."""
        with _explained(what), self._device:
            yield

    @property
    def stream(self) -> int:
        """The stream that everything goes through, as CUDA's libraries take it."""
        with self.current("the GPU cannot be used"):
            return int(self.cupy.cuda.get_current_stream().ptr)

    def free_bytes(self) -> int:
        """Ask the driver, and count what CuPy's pool holds unused."""
        with self.current("the GPU cannot be used"):
            free, _ = self._runtime.memGetInfo()
            unused = self.cupy.get_default_memory_pool().free_bytes()
        return max(0, int(free) + int(unused) - _RESERVED_BYTES)

    def load_kernels(self) -> None:
        """Compile all; CuPy keeps the result for later processes."""
        for name in self._sources:
            self._kernel(name)

    def num_blocks(self, kernel: str, threads: int) -> int:
        """Ask the driver, which knows the registers and the shared memory of both."""
        key = (kernel, threads)
        if key not in self._resident:
            function = self._kernel(kernel).kernel.ptr
            with self.current("the GPU cannot be used"):
                ask = self.cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
                self._resident[key] = self._multiprocessors * int(ask(function, threads, 0))
        return self._resident[key]

    def allocate(self, size: int, dtype: Any, name: str = "") -> Memory:  # noqa: ANN401
        """Give memory from CuPy's pool."""
        try:
            with self._device:
                array = self.cupy.empty(max(size, 1), dtype)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            need = max(size, 1) * np.dtype(dtype).itemsize
            raise DeviceError(
                f"the GPU has no {format_size(need)} left for the traversal "
                f"({_first_line(error)}): ask for less by --vram, or close what else uses the GPU"
            ) from error
        return Memory(int(array.data.ptr), np.dtype(dtype), size, array)

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy in stream order."""
        with self.current("copying to the GPU failed"):
            memory.owner[: array.size].set(np.ascontiguousarray(array))

    def download(self, memory: Memory, size: int | None = None) -> NDArray[Any]:
        """Copy back, which waits for everything launched before."""
        with self.current("the GPU failed in a kernel or a copy"):
            copy: NDArray[Any] = memory.owner[: memory.size if size is None else size].get()
        self.usage.read_backs += 1
        self.usage.read_back_bytes += copy.nbytes
        return copy

    def start_download(self, memory: Memory, out: NDArray[Any]) -> None:
        """Copy in stream order; the caller marks the moment and waits for it."""
        stream, kind = self.stream, self._runtime.memcpyDeviceToHost
        with self.current("copying from the GPU failed"):
            self._runtime.memcpyAsync(out.ctypes.data, memory.address, out.nbytes, kind, stream)
        self.usage.read_backs += 1
        self.usage.read_back_bytes += out.nbytes

    def map_host(self, array: NDArray[np.uint8]) -> AbstractContextManager[int]:
        """Register the tails with the driver, or copy them into memory that it knows."""
        return self._pinned(
            map_pinned(self._runtime, array, self.device_id, self.routes.append, self._phases)
        )

    def allocate_host(self, size: int) -> AbstractContextManager[tuple[NDArray[np.uint8], int]]:
        """Ask the driver for pinned memory."""
        return self._pinned(allocate_pinned(self._runtime, size))

    @contextmanager
    def _pinned(self, memory: AbstractContextManager[Pinned]) -> Iterator[Pinned]:
        """Pin memory and give it back while this device is current, and not in between."""
        with ExitStack() as stack:
            with self._device:
                pinned = stack.enter_context(memory)
            try:
                yield pinned
            finally:
                with self._device:
                    stack.close()

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        """Start the kernel in the current stream; structs go by value, as arrays of one item."""
        self.usage.launches += 1
        function = self._kernel(kernel)
        with self.current(f"the GPU would not start {kernel}"):
            function((blocks,), (threads,), tuple(arguments))

    def mark(self) -> Any:  # noqa: ANN401
        """Record an event in the stream."""
        with self.current("the GPU would not record an event"):
            event = self.cupy.cuda.Event()
            event.record()
        return event

    def wait_for(self, mark: Any) -> None:  # noqa: ANN401
        """Wait for the event."""
        with self.current("the GPU failed in a kernel or a copy"):
            mark.synchronize()

    def seconds_between(self, begin: Any, end: Any) -> float:  # noqa: ANN401
        """Ask the events, which have happened when something after them was downloaded."""
        return float(self.cupy.cuda.get_elapsed_time(begin, end)) / 1000

    def _kernel(self, name: str) -> Any:  # noqa: ANN401
        if name not in self._kernels:
            try:
                kernel = self._sources[name]
                with self._device:
                    module = self.cupy.RawModule(
                        code=source(kernel).read_text(),
                        options=compiler_options(self._options, kernel=kernel),
                        backend="nvrtc",
                    )
                    self._kernels[name] = module.get_function(name)
            except (RuntimeError, self.cupy.cuda.compiler.CompileException) as error:
                raise DeviceError(
                    f"{name} cannot be compiled for this GPU {_explain_compiler(error)}"
                ) from error
        return self._kernels[name]

"""The device that is a CUDA GPU, through CuPy. Nothing here has run on hardware yet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OocbfsError
from oocbfs.gpu.device import Argument, Device, Memory, Resources, Usage
from oocbfs.gpu.nvidia import HEADERS_WHEEL, NVRTC_WHEEL, ask_driver
from oocbfs.gpu.pinned import Route, allocate_pinned, find_pinnable, map_pinned
from oocbfs.kernels.cache_folder import cache_folder
from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    CHECK_KERNELS,
    Kernel,
    KernelOptions,
    compiler_options,
    name_of,
    source,
)
from oocbfs.memory import format_size
from oocbfs.plan.launches import LAUNCH_SECONDS
from oocbfs.plan.rates import SECTOR_BYTES, default_rates, kept_rates
from oocbfs.progress import Phases

Pinned = TypeVar("Pinned")

# Left to the driver: code of the kernels, their stacks, and what rounding takes. CuPy's pool rounds
# to 512 bytes, which plans count; the driver gives it whole pages, of 64 KB or 2 MB, and a search
# has at most some 25 arrays.
_RESERVED_BYTES = 128 << 20
# GPUs of which an answer was checked in this process, and whether it was right.
_ANSWERS: dict[str, bool] = {}


class DeviceError(OocbfsError):
    """A GPU that cannot be used; says what is missing and how to get it."""


def load_cupy() -> Any:
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
    """Return why CuPy would not compile, and the one thing to do; its own advice is left out."""
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

    Device and stream are current during calls only, so that several can take turns. The stream is
    ours: it neither waits for what callers of this package queue in theirs, nor do they for it.
    """

    def __init__(
        self,
        options: KernelOptions | None = None,
        *,
        kernels: Sequence[Kernel] = BFS_KERNELS,
        cupy: Any = None,
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
        with _explained("the GPU cannot be used"), self._device:
            self._stream = self.cupy.cuda.Stream(non_blocking=True)
            attributes = self._device.attributes
            self._multiprocessors = int(attributes["MultiProcessorCount"])
            properties = self._runtime.getDeviceProperties(self.device_id)
        name, number = properties["name"].decode(), properties.get("uuid", b"").hex()
        self.unique_name = f"{name} {number}"
        if _ANSWERS.get(self.unique_name) is False:
            raise DeviceError(f"{name} gave a wrong answer before: use --engine cpu")
        capability = (properties["major"], properties["minor"])
        self.rates = kept_rates(self.unique_name) or default_rates(capability)
        if attributes.get("KernelExecTimeout"):
            self.launch_bytes = int(LAUNCH_SECONDS * SECTOR_BYTES * self.rates.bus_sectors)
        self._resident: dict[tuple[str, int], int] = {}
        self.usage = Usage()

    def _find(self, device_id: int | None) -> Any:
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
        with _explained(what), self._device, self._stream:
            yield

    @property
    def is_trusted(self) -> bool:  # type: ignore[override]
        """Whether ``oocbfs doctor --gpu`` measured this GPU, or a search of it was checked."""
        return _ANSWERS.get(self.unique_name, False) or kept_rates(self.unique_name) is not None

    def trust(self, *, right: bool) -> None:
        """Remember it as long as this process lives."""
        _ANSWERS[self.unique_name] = right

    @property
    def count(self) -> int:
        """How many GPUs there are, this one included."""
        with self.current("the GPU cannot be used"):
            return int(self._runtime.getDeviceCount())

    @property
    def stream(self) -> int:
        """The stream that everything goes through, as CUDA's libraries take it."""
        return int(self._stream.ptr)

    def follow(self, other: CudaDevice) -> None:
        """Let what is queued from now on wait for all that is queued on another device."""
        mark = other.mark()
        with self.current("the GPU cannot wait for another"):
            self._stream.wait_event(mark)

    def free_bytes(self) -> int:
        """Ask the driver, and count what CuPy's pool holds unused."""
        with self.current("the GPU cannot be used"):
            free, _ = self._runtime.memGetInfo()
            unused = self.cupy.get_default_memory_pool().free_bytes()
        return max(0, int(free) + int(unused) - _RESERVED_BYTES)

    def load_kernels(self) -> None:
        """Compile all; CuPy keeps the result for later processes."""
        for name in self._sources:
            if not (self.is_trusted and name in CHECK_KERNELS):
                self._kernel(name)

    def num_blocks(self, kernel: str, threads: int) -> int:
        """Ask the driver, which knows the registers and the shared memory of both."""
        key = (kernel, threads)
        if key not in self._resident:
            function = self._kernel(kernel).kernel.ptr
            with self.current("the GPU cannot be used"):
                ask = self.cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
                # A kernel that does not fit is refused when it is started, which says why.
                each = max(1, int(ask(function, threads, 0)))
                self._resident[key] = self._multiprocessors * each
        return self._resident[key]

    def resources(self, kernel: str, threads: int) -> Resources:
        """Ask the driver what a kernel takes that was compiled for this GPU."""
        blocks = self.num_blocks(kernel, threads) // self._multiprocessors
        with self.current("the GPU cannot be used"):
            made = self._kernel(kernel)
            return Resources(
                registers=int(made.num_regs),
                shared_bytes=int(made.shared_size_bytes),
                local_bytes=int(made.local_size_bytes),
                blocks=blocks,
            )

    def allocate(self, size: int, dtype: Any, name: str = "") -> Memory:
        """Return memory from CuPy's pool."""
        try:
            with self._device, self._stream:
                array = self.cupy.empty(max(size, 1), dtype)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            need = max(size, 1) * np.dtype(dtype).itemsize
            raise DeviceError(
                f"the GPU has no {format_size(need)} left for the search "
                f"({_first_line(error)}): ask for less by --vram, or close what else uses the GPU"
            ) from error
        return Memory(int(array.data.ptr), np.dtype(dtype), size, array)

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy in stream order."""
        with self.current("copying to the GPU failed"):
            memory.owner[: array.size].set(np.ascontiguousarray(array), self._stream)

    def download(self, memory: Memory, size: int | None = None) -> NDArray[Any]:
        """Copy back, which waits for everything launched before."""
        with self.current("the GPU failed in a kernel or a copy"):
            part = memory.owner[: memory.size if size is None else size]
            copy: NDArray[Any] = part.get(self._stream)
            self._stream.synchronize()
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

    def pinnable_bytes(self, most_bytes: int) -> int:
        """Try how much the driver pins."""
        with self.current("the GPU cannot be used"):
            return find_pinnable(self._runtime, most_bytes)

    def trim(self) -> None:
        """Release what CuPy's pool holds and nobody uses to the driver."""
        with suppress(RuntimeError), self._device:  # a device that failed refuses everything
            self.cupy.get_default_memory_pool().free_all_blocks()

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
        """Start the kernel in the stream; structs go by value, as arrays of one item."""
        self.usage.launches += 1
        function = self._kernel(kernel)
        with self.current(f"the GPU would not start {kernel}"):
            function((blocks,), (threads,), tuple(arguments))

    def mark(self) -> Any:
        """Record an event in the stream."""
        with self.current("the GPU would not record an event"):
            event = self.cupy.cuda.Event()
            event.record(self._stream)
        return event

    def wait_for(self, mark: Any) -> None:
        """Wait for the event."""
        with self.current("the GPU failed in a kernel or a copy"):
            mark.synchronize()

    def seconds_between(self, begin: Any, end: Any) -> float:
        """Ask the events, which have happened when something after them was downloaded."""
        return float(self.cupy.cuda.get_elapsed_time(begin, end)) / 1000

    def _kernel(self, name: str) -> Any:
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

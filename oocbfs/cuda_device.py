"""The device that is a CUDA GPU, through CuPy. Nothing here has run on hardware yet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.device import Argument, Device, Memory, Usage
from oocbfs.errors import OocbfsError
from oocbfs.kernels.cuda_source import (
    BLOCKS_PER_MULTIPROCESSOR,
    FOLDER,
    KernelOptions,
    source,
)
from oocbfs.pinned import Route, map_pinned


class DeviceError(OocbfsError):
    """A GPU that cannot be used; says what is missing and how to get it."""


def load_cupy() -> Any:  # noqa: ANN401
    """Import CuPy and make sure that it can reach a GPU."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"the cuda engine needs CuPy ({error}): pip install 'oocbfs[gpu]', or use --engine cpu"
        ) from error
    runtime = cupy.cuda.runtime
    if runtime.is_hip:
        raise DeviceError("this CuPy is built for ROCm: install cupy-cuda12x instead")
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"CuPy finds no usable CUDA driver ({error}): install NVIDIA's driver, "
            "or use --engine cpu"
        ) from error
    if count == 0:
        raise DeviceError("CuPy finds no CUDA GPU: use --engine cpu")
    return cupy


class CudaDevice(Device):
    """Runs the kernels on the current CUDA device; everything goes through one stream."""

    def __init__(self, options: KernelOptions | None = None, *, cupy: Any = None) -> None:  # noqa: ANN401
        self._cupy = load_cupy() if cupy is None else cupy
        self._runtime = self._cupy.cuda.runtime
        self._options = options or KernelOptions()
        self._kernels: dict[str, Any] = {}
        self.routes: list[Route] = []
        device = self._cupy.cuda.Device()
        self._device_id = int(device.id)
        multiprocessors = int(device.attributes["MultiProcessorCount"])
        self.num_blocks = multiprocessors * BLOCKS_PER_MULTIPROCESSOR
        self.usage = Usage()

    def allocate(self, size: int, dtype: Any) -> Memory:  # noqa: ANN401
        """Give memory from CuPy's pool."""
        try:
            array = self._cupy.empty(max(size, 1), dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            need = max(size, 1) * np.dtype(dtype).itemsize
            raise DeviceError(
                f"the GPU has no {need / 2**20:,.0f} MB left for the traversal ({error}): "
                "use --engine cpu, or close what else uses the GPU"
            ) from error
        return Memory(int(array.data.ptr), np.dtype(dtype), size, array)

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy in stream order."""
        memory.owner[: array.size].set(np.ascontiguousarray(array))

    def download(self, memory: Memory, size: int | None = None) -> NDArray[Any]:
        """Copy back, which waits for everything launched before."""
        self.usage.read_backs += 1
        copy: NDArray[Any] = memory.owner[: memory.size if size is None else size].get()
        return copy

    def map_host(self, array: NDArray[np.uint8]) -> AbstractContextManager[int]:
        """Register the tails with the driver, or copy them into memory that it knows."""
        return map_pinned(self._runtime, array, self._device_id, self.routes.append)

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        """Start the kernel in the current stream; structs go by value, as arrays of one item."""
        self.usage.launches += 1
        self._kernel(kernel)((blocks,), (threads,), tuple(arguments))

    def _kernel(self, name: str) -> Any:  # noqa: ANN401
        if name not in self._kernels:
            module = self._cupy.RawModule(
                code=source(name).read_text(),
                options=("--std=c++17", f"-I{FOLDER}", *self._options.definitions()),
                backend="nvrtc",
            )
            self._kernels[name] = module.get_function(name)
        return self._kernels[name]

"""The CUDA device as far as a machine without a driver allows; the double stands for CUDA only."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oocbfs.cuda_device import CudaDevice, DeviceError, load_cupy
from oocbfs.kernels.cuda_source import (
    BLOCKS_PER_MULTIPROCESSOR,
    ROWS_STRUCT,
    SEARCH_STRUCT,
    KernelOptions,
)
from oocbfs.pinned import PinError, Route, map_pinned


class CUDARuntimeError(RuntimeError):
    """What CuPy raises."""


class Runtime:
    """Records calls to the CUDA runtime; refuses those it is told to."""

    CUDARuntimeError = CUDARuntimeError
    is_hip = False

    def __init__(self, *, read_only: bool = True, refused: tuple[str, ...] = ()) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._read_only = read_only
        self._refused = refused
        self._held: dict[int, Any] = {}

    def _record(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        if name in self._refused:
            raise CUDARuntimeError(f"{name}: cudaErrorMemoryAllocation")

    def getDeviceCount(self) -> int:  # noqa: N802
        self._record("getDeviceCount")
        return 1

    def deviceGetAttribute(self, attribute: int, device: int) -> int:  # noqa: N802
        self._record("deviceGetAttribute", attribute, device)
        return int(self._read_only)

    def hostRegister(self, address: int, size: int, flags: int) -> None:  # noqa: N802
        self._record("hostRegister", address, size, flags)

    def hostUnregister(self, address: int) -> None:  # noqa: N802
        self._record("hostUnregister", address)

    def hostAlloc(self, size: int, flags: int) -> int:  # noqa: N802
        self._record("hostAlloc", size, flags)
        room = ctypes.create_string_buffer(size)
        self._held[ctypes.addressof(room)] = room
        return ctypes.addressof(room)

    def freeHost(self, address: int) -> None:  # noqa: N802
        self._record("freeHost", address)
        del self._held[address]

    def pointerGetAttributes(self, address: int) -> SimpleNamespace:  # noqa: N802
        self._record("pointerGetAttributes", address)
        return SimpleNamespace(devicePointer=address + (1 << 40))

    def names(self) -> list[str]:
        return [call[0] for call in self.calls if call[0] != "pointerGetAttributes"]


@pytest.fixture
def mapped(tmp_path: Path) -> np.ndarray:
    """Give a read-only array that shows the second page of a file, as containers do."""
    path = tmp_path / "graph.ocg"
    path.write_bytes(bytes(range(256)) * 64)
    with path.open("rb") as file:
        whole = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    return whole[mmap.PAGESIZE : mmap.PAGESIZE + 5000]


def pin(runtime: Runtime, array: np.ndarray) -> tuple[list[Route], int]:
    routes: list[Route] = []
    with map_pinned(runtime, array, 0, routes.append) as address:
        inside = address
    return routes, inside


def test_a_mapping_is_registered_as_it_is(mapped: np.ndarray) -> None:
    runtime = Runtime()
    routes, address = pin(runtime, mapped)
    assert routes == [Route.READ_ONLY]
    assert address == mapped.ctypes.data + (1 << 40)
    assert runtime.calls[0] == ("deviceGetAttribute", 113, 0)
    assert runtime.calls[1] == ("hostRegister", mapped.ctypes.data, 2 * mmap.PAGESIZE, 2 | 8)
    assert runtime.calls[-1] == ("hostUnregister", mapped.ctypes.data)


def test_a_private_mapping_is_the_second_choice(mapped: np.ndarray) -> None:
    runtime = Runtime(read_only=False)
    routes, address = pin(runtime, mapped)
    assert routes == [Route.PRIVATE]
    assert address != mapped.ctypes.data + (1 << 40)
    assert runtime.names() == ["deviceGetAttribute", "hostRegister", "hostUnregister"]
    assert runtime.calls[1][3] == 2


def test_the_private_mapping_shows_the_same_bytes(mapped: np.ndarray) -> None:
    runtime = Runtime(read_only=False)
    with map_pinned(runtime, mapped, 0, lambda _: None) as address:
        assert ctypes.string_at(address - (1 << 40), 5000) == mapped.tobytes()


def test_a_copy_is_the_last_choice(mapped: np.ndarray) -> None:
    runtime = Runtime(refused=("hostRegister",))
    routes: list[Route] = []
    with map_pinned(runtime, mapped, 0, routes.append) as address:
        assert routes == [Route.COPY]
        assert ctypes.string_at(address - (1 << 40), 5016) == mapped.tobytes() + bytes(16)
    assert runtime.names()[-2:] == ["hostAlloc", "freeHost"]
    assert "hostUnregister" not in runtime.names()


def test_memory_that_is_no_file_is_copied() -> None:
    array = np.arange(100, dtype=np.uint8)
    array.flags.writeable = False
    assert pin(Runtime(read_only=False), array)[0] == [Route.COPY]


def test_refusal_of_every_route_is_explained(mapped: np.ndarray) -> None:
    runtime = Runtime(refused=("hostRegister", "hostAlloc"))
    with pytest.raises(PinError, match=r"ulimit -l"):
        pin(runtime, mapped)


def test_everything_is_undone_when_the_traversal_fails(mapped: np.ndarray) -> None:
    for runtime in (Runtime(), Runtime(read_only=False), Runtime(refused=("hostRegister",))):
        with pytest.raises(ZeroDivisionError), map_pinned(runtime, mapped, 0, lambda _: None):
            raise ZeroDivisionError
        assert runtime.names()[-1] in ("hostUnregister", "freeHost")


class OutOfMemoryError(MemoryError):
    """What CuPy raises when the GPU is full."""


def fake_cupy(runtime: Runtime, launched: list[Any], *, full: bool = False) -> SimpleNamespace:
    """Give what CudaDevice uses of CuPy: the real RawModule needs a driver to load code."""

    class Array:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array
            self.data = SimpleNamespace(ptr=array.ctypes.data)

        def __getitem__(self, where: slice) -> Array:
            return Array(self.array[where])

        def set(self, array: np.ndarray) -> None:
            self.array[:] = array

        def get(self) -> np.ndarray:
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
            launched.append(("compile", name, self.options, self.backend))
            return lambda *arguments: launched.append((name, *arguments))

    device = SimpleNamespace(id=0, attributes={"MultiProcessorCount": 30})
    return SimpleNamespace(
        cuda=SimpleNamespace(
            runtime=runtime,
            Device=lambda: device,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        ),
        empty=empty,
        RawModule=RawModule,
    )


def test_arguments_are_marshalled_by_value() -> None:
    launched: list[Any] = []
    options = KernelOptions(probe_bytes=128)
    device = CudaDevice(options, cupy=fake_cupy(Runtime(), launched))
    assert device.num_blocks == 30 * BLOCKS_PER_MULTIPROCESSOR
    search, rows = np.zeros((), SEARCH_STRUCT), np.zeros((), ROWS_STRUCT)
    device.launch("top_down", 7, 256, (search, rows, np.array(3, np.uint64)))
    device.launch("top_down", 7, 256, (search, rows, np.array(4, np.uint64)))
    (_, name, flags, backend), first, second = launched
    assert (name, backend) == ("top_down", "nvrtc")
    assert set(options.definitions()) < set(flags)
    assert first == ("top_down", (7,), (256,), (search, rows, np.array(3, np.uint64)))
    assert second[3][2] == 4
    assert device.usage.launches == 2
    assert device.usage.slow_bytes is None


def test_transfers() -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(), []))
    memory = device.place(np.arange(10, dtype=np.uint32))
    assert np.array_equal(device.download(memory, 4), np.arange(4))
    assert np.array_equal(device.download(memory), np.arange(10))
    assert device.usage.read_backs == 2


def test_a_full_gpu_is_explained() -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(), [], full=True))
    with pytest.raises(DeviceError, match=r"no 400 MB left.*--engine cpu"):
        device.allocate(100 << 20, np.uint32)


def test_no_cupy_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"pip install 'oocbfs\[gpu\]'"):
        load_cupy()


@pytest.mark.parametrize(
    ("runtime", "words"),
    [
        (Runtime(refused=("getDeviceCount",)), "driver"),
        (SimpleNamespace(is_hip=True), "ROCm"),
        (
            SimpleNamespace(
                is_hip=False, CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: 0
            ),
            "no CUDA GPU",
        ),
    ],
)
def test_unusable_cupy_is_explained(
    monkeypatch: pytest.MonkeyPatch,
    runtime: Any,
    words: str,
) -> None:
    double = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", double)
    with pytest.raises(DeviceError, match=words):
        load_cupy()


def test_the_real_cupy_without_a_driver_is_explained() -> None:
    cupy = pytest.importorskip("cupy", reason="cupy-cuda12x is not installed")
    if cupy.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceError, match="driver"):
        CudaDevice()


def test_the_real_runtime_has_what_is_called() -> None:
    pytest.importorskip("cupy", reason="cupy-cuda12x is not installed")
    from cupy.cuda import runtime

    for name in [name for name in vars(Runtime) if name[0].islower() and name != "names"]:
        assert hasattr(runtime, name), name

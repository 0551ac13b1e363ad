"""The CUDA device as far as a machine without a driver allows; the double stands for CUDA only."""

from __future__ import annotations

import ctypes
import mmap
import resource
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.formats.io.direct import page_aligned
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.cuda_device import CudaDevice, DeviceError, load_cupy
from oocbfs.gpu.pinned import PinError, Route, map_pinned
from oocbfs.kernels.cuda.source import (
    BLOCK_THREADS,
    FOLDER,
    ROWS_STRUCT,
    SEARCH_STRUCT,
    SMALL_BLOCK_THREADS,
    KernelOptions,
    compiler_options,
)
from oocbfs.plan.device import LINE_BYTES
from oocbfs.progress import Phases
from tests.support.cuda_double import CUDARuntimeError, Runtime
from tests.support.cupy_double import CompileException, fake_cupy
from tests.support.gpu_graphs import mixed_graph, rows_of


@pytest.fixture
def mapped(tmp_path: Path) -> np.ndarray:
    """Give a read-only array that shows the second page of a file, as containers do."""
    path = tmp_path / "graph.ocg"
    path.write_bytes(bytes(range(256)) * 64)
    with path.open("rb") as file:
        whole = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    return whole[mmap.PAGESIZE : mmap.PAGESIZE + 5000]


def off_the_page(array: np.ndarray) -> np.ndarray:
    """Copy to memory that surely begins inside a page: such is never registered in place."""
    room = np.empty(array.size + 2 * mmap.PAGESIZE, np.uint8)
    begin = -room.ctypes.data % mmap.PAGESIZE + LINE_BYTES
    copy = room[begin : begin + array.size]
    copy[:] = array
    return copy


def pin(runtime: Runtime, array: np.ndarray) -> tuple[list[Route], int]:
    routes: list[Route] = []
    with map_pinned(runtime, array, 0, routes.append) as address:
        inside = address
    return routes, inside


def test_a_mapping_is_registered_as_it_is(mapped: np.ndarray) -> None:
    runtime = Runtime()
    routes, address = pin(runtime, mapped)
    assert routes == [Route.IN_PLACE]
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
    assert not runtime.pinned


@pytest.mark.parametrize("second", [Route.PRIVATE, Route.COPY])
def test_pages_that_somebody_else_registered_stay_so(mapped: np.ndarray, second: Route) -> None:
    """A batch and a traversal may want the same pages; who comes second takes another route."""
    runtime = Runtime()
    if second is Route.COPY:
        mapped = page_aligned(mapped.size)
    with map_pinned(runtime, mapped, 0, lambda _: None):
        before = set(runtime.pinned)
        assert pin(runtime, mapped)[0] == [second]
        assert set(runtime.pinned) == before
    assert not runtime.pinned


def test_memory_that_is_no_file_is_copied() -> None:
    array = off_the_page(np.arange(100, dtype=np.uint8))
    array.flags.writeable = False
    assert pin(Runtime(read_only=False), array)[0] == [Route.COPY]


def test_refusal_of_every_route_is_explained(mapped: np.ndarray) -> None:
    runtime = Runtime(refused=("hostRegister", "hostAlloc"))
    with pytest.raises(PinError, match=r"in place.*private.*copied.*free host memory") as caught:
        pin(runtime, mapped)
    assert "\n" not in str(caught.value)
    assert not runtime.pinned


def test_a_low_limit_is_named(mapped: np.ndarray) -> None:
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1024, before[1]))
    try:
        with pytest.raises(PinError, match=r"only 1\.0 KB may be locked.*ulimit -l unlimited"):
            pin(Runtime(refused=("hostRegister", "hostAlloc")), mapped)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


@pytest.fixture
def pieces(tmp_path: Path) -> np.ndarray:
    """Give a mapped file of several pages, to be registered a page at a time."""
    path = tmp_path / "graph.ocg"
    path.write_bytes(np.random.default_rng(1).bytes(5 * mmap.PAGESIZE + 100))
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def pin_pages(runtime: Runtime, array: np.ndarray) -> list[Route]:
    routes: list[Route] = []
    show = Phases(show=False)
    with map_pinned(runtime, array, 0, routes.append, show, piece_bytes=mmap.PAGESIZE) as address:
        assert ctypes.string_at(address - (1 << 40), array.size) == array.tobytes()
        assert runtime.pinned
    return routes


def test_pieces_are_registered_side_by_side(pieces: np.ndarray) -> None:
    runtime = Runtime()
    assert pin_pages(runtime, pieces) == [Route.IN_PLACE]
    registered = [call[1:3] for call in runtime.calls if call[0] == "hostRegister"]
    first = pieces.ctypes.data
    assert registered == [(first + i * mmap.PAGESIZE, mmap.PAGESIZE) for i in range(6)]
    assert not runtime.pinned


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("accepted", range(6))
def test_a_piece_that_is_refused_undoes_its_route(
    pieces: np.ndarray, accepted: int, read_only: bool
) -> None:
    runtime = Runtime(refused=("hostRegister",), accepted=accepted, read_only=read_only)
    assert pin_pages(runtime, pieces) == [Route.COPY]
    assert not runtime.pinned


@pytest.mark.parametrize("accepted", range(6))
def test_ctrl_c_in_the_middle_leaves_nothing_pinned(pieces: np.ndarray, accepted: int) -> None:
    runtime = Runtime(refused=("hostRegister",), accepted=accepted, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        pin_pages(runtime, pieces)
    assert not runtime.pinned
    assert runtime.names().count("hostUnregister") == accepted + 1


def test_pieces_that_are_scattered_are_copied(pieces: np.ndarray) -> None:
    runtime = Runtime(scattered=True)
    routes: list[Route] = []
    with map_pinned(runtime, pieces, 0, routes.append, piece_bytes=mmap.PAGESIZE):
        assert routes == [Route.COPY]
    assert not runtime.pinned


def test_decompressed_tails_are_pinned_in_place(tmp_path: Path) -> None:
    oocbfs.convert(np.random.default_rng(1).integers(0, 3000, (20000, 2)), tmp_path / "g", zstd=1)
    with oocbfs.open(tmp_path / "g") as graph:
        tails = graph.rows.tails
        runtime = Runtime(read_only=False)
        assert pin_pages(runtime, tails) == [Route.IN_PLACE]
        assert all(call[3] == 2 for call in runtime.calls if call[0] == "hostRegister")


def test_everything_is_undone_when_the_traversal_fails(mapped: np.ndarray) -> None:
    for runtime in (Runtime(), Runtime(read_only=False), Runtime(refused=("hostRegister",))):
        with pytest.raises(ZeroDivisionError), map_pinned(runtime, mapped, 0, lambda _: None):
            raise ZeroDivisionError
        assert runtime.names()[-1] in ("hostUnregister", "freeHost")


def test_arguments_are_marshalled_by_value() -> None:
    launched: list[Any] = []
    options = KernelOptions(probe_bytes=128)
    device = CudaDevice(options, cupy=fake_cupy(Runtime(), launched))
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


def test_grids_are_as_large_as_what_is_resident() -> None:
    """Shared memory of four blocks that stage rows does not fit a multiprocessor of 64 KB."""
    device = CudaDevice(cupy=fake_cupy(Runtime(), []))
    assert device.num_blocks("initialise", BLOCK_THREADS) == 30 * 4
    assert device.num_blocks("top_down", BLOCK_THREADS) == 30 * 3
    assert device.num_blocks("small_levels", SMALL_BLOCK_THREADS) == 30 * 1


def test_an_upgrade_in_place_is_compiled_anew(tmp_path: Path) -> None:
    """CuPy keeps kernels by source and options, and does not look into headers."""
    folder = tmp_path / "kernels"
    shutil.copytree(
        FOLDER, folder, ignore=shutil.ignore_patterns("*.py", "emulator", "__pycache__")
    )
    options = KernelOptions()
    before = compiler_options(options, folder)
    assert compiler_options(options, folder) == before
    headers = sorted(folder.glob("*/*.cuh"))
    assert len(headers) == len(list(FOLDER.rglob("*.cuh"))) > 5
    for header in headers:
        text = header.read_text()
        header.write_text(text + "\n")
        assert compiler_options(options, folder) != before, header.name
        header.write_text(text)
        assert compiler_options(options, folder) == before
    (folder / "cuda" / "more.cuh").touch()
    assert compiler_options(options, folder) != before
    launched: list[Any] = []
    CudaDevice(options, cupy=fake_cupy(Runtime(), launched)).load_kernels()
    assert {entry[2] for entry in launched} == {compiler_options(options)}


def test_transfers() -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(), []))
    memory = device.place(np.arange(10, dtype=np.uint32))
    assert np.array_equal(device.download(memory, 4), np.arange(4))
    assert np.array_equal(device.download(memory), np.arange(10))
    assert device.usage.read_backs == 2


def test_a_full_gpu_is_explained() -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(free_bytes=(400 << 20) - 1), []))
    with pytest.raises(DeviceError, match=r"no 400\.0 MB left.*--vram"):
        device.allocate(100 << 20, np.uint32)


def test_free_memory_counts_the_pool() -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(free_bytes=5 << 30, pooled_bytes=1 << 30), []))
    assert device.free_bytes() == (6 << 30) - (128 << 20)


def test_marks_are_events() -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(), []))
    begin = device.mark()
    device.launch("initialise", 1, 256, ())
    end = device.mark()
    device.wait_for(end)
    assert device.seconds_between(begin, end) == 0.002  # compiled and launched


@pytest.mark.parametrize(
    "error",
    [
        CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access\nand more"),
        RuntimeError("CUDA_ERROR_LAUNCH_FAILED"),
    ],
)
def test_failures_on_the_gpu_are_one_line(error: RuntimeError) -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(), [], broken=error))
    memory = device.allocate(3, np.uint32)
    with pytest.raises(DeviceError, match=r"would not start initialise.*--engine cpu"):
        device.launch("initialise", 1, 256, ())
    with pytest.raises(DeviceError, match=r"failed in a kernel") as caught:
        device.download(memory)
    assert "\n" not in str(caught.value)
    refusing = Runtime(refused=("memGetInfo",))
    with pytest.raises(DeviceError, match=r"cannot be used"):
        CudaDevice(cupy=fake_cupy(refusing, [])).free_bytes()


@pytest.mark.parametrize(
    ("trouble", "advice"),
    [
        ({"headers": False}, "pip install nvidia-cuda-runtime-cu12"),
        (
            {
                "uncompiled": RuntimeError(
                    "CuPy failed to load libnvrtc.so.12: OSError: cannot open"
                )
            },
            "pip install nvidia-cuda-nvrtc-cu12",
        ),
        ({"uncompiled": CompileException("top_down.cu(3): error")}, "use --engine cpu"),
    ],
    ids=["headers", "NVRTC", "source"],
)
def test_kernels_that_do_not_compile_are_explained(trouble: dict[str, Any], advice: str) -> None:
    """One thing is advised, and not what brought CuPy, which is there already."""
    device = CudaDevice(cupy=fake_cupy(Runtime(), [], **trouble))
    with pytest.raises(DeviceError, match=r"^top_down cannot be compiled for this GPU") as caught:
        device.launch("top_down", 1, 256, ())
    text = str(caught.value)
    assert text.endswith(advice)
    assert text.count("install") == advice.count("install")
    assert "\n" not in text


@pytest.mark.parametrize("refused", ["hostAlloc", "allocate"])
def test_a_search_that_cannot_be_made_leaves_nothing_pinned(refused: str) -> None:
    """Directed graphs map twice, and allocate afterwards: whatever fails, all is undone."""
    runtime = Runtime(refused=("hostAlloc",), accepted=1 if refused == "hostAlloc" else 2)
    device = CudaDevice(cupy=fake_cupy(runtime, []))
    rows, in_rows = (
        rows._replace(tails=off_the_page(rows.tails))
        for rows in (rows_of(mixed_graph(1)), rows_of(mixed_graph(2)))
    )
    held: list[int] = []

    def copied(_: int) -> None:
        held.append(len(runtime.pinned))
        if refused == "allocate" and len(held) == 6:
            raise DeviceError("full")

    with pytest.raises((PinError, DeviceError)):
        GpuBfs(device, rows, in_rows, copied=copied)
    assert max(held) > 0
    assert not runtime.pinned


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

    for name in ("is_hip", *(name for name in vars(Runtime) if name != name.lower())):
        assert hasattr(runtime, name), name


def test_the_real_cupy_has_what_is_used() -> None:
    cupy = pytest.importorskip("cupy", reason="cupy-cuda12x is not installed")
    double = fake_cupy(Runtime(), [])
    for name in vars(double):
        assert hasattr(cupy, name), name
    for name in vars(double.cuda):
        assert hasattr(cupy.cuda, name), name
    for name in vars(double.cuda.driver):
        assert hasattr(cupy.cuda.driver, name), name
    assert hasattr(cupy.RawKernel, "kernel")
    assert hasattr(cupy.cuda.function.Function, "ptr")
    for error in (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError):
        assert issubclass(error, RuntimeError)

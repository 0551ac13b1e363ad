"""The CUDA device as far as a machine without a driver allows; the double stands for CUDA only."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.cuda_device import CudaDevice, DeviceError, load_cupy
from oocbfs.gpu.pinned import PinError
from oocbfs.kernels.cuda.source import (
    BLOCK_THREADS,
    FOLDER,
    ROWS_STRUCT,
    SEARCH_STRUCT,
    SMALL_BLOCK_THREADS,
    KernelOptions,
    compiler_options,
)
from oocbfs.plan.rates import default_rates, keep_rates
from tests.support.gpu.cuda_double import CUDARuntimeError, Runtime, off_the_page
from tests.support.gpu.cupy_double import CompileException, fake_cupy
from tests.support.gpu.gpu_graphs import mixed_graph, rows_of


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


def test_rates_are_those_that_were_measured_on_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    device = CudaDevice(cupy=fake_cupy(Runtime(), []))
    assert device.rates == default_rates((8, 6))
    measured = replace(device.rates, launch_seconds=7e-6)
    keep_rates(device.unique_name, measured)
    assert CudaDevice(cupy=fake_cupy(Runtime(), [])).rates == measured


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
    memory = device.copy_in(np.arange(10, dtype=np.uint32))
    assert np.array_equal(device.download(memory, 4), np.arange(4))
    assert np.array_equal(device.download(memory), np.arange(10))
    assert device.usage.read_backs == 2


def test_a_full_gpu_is_explained() -> None:
    device = CudaDevice(cupy=fake_cupy(Runtime(free_bytes=(400 << 20) - 1), []))
    with pytest.raises(DeviceError, match=r"no 400\.0 MB left.*vram"):
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
    with pytest.raises(DeviceError, match=r"would not start initialise.*engine=.cpu."):
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
        ({"uncompiled": CompileException("top_down.cu(3): error")}, 'use engine="cpu"'),
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

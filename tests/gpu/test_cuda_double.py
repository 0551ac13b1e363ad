"""The double of CUDA refuses what CUDA refuses, and kernels run as late as they may."""

from __future__ import annotations

import mmap
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oocbfs.formats.io.direct import page_aligned
from oocbfs.kernels.cuda.source import KernelOptions, source
from oocbfs.kernels.emulator.library import Library
from tests.support import children
from tests.support.gpu.cuda_double import CUDARuntimeError, Runtime
from tests.support.gpu.cupy_double import NO_HEADERS, OutOfMemoryError, fake_cupy

PAGE = mmap.PAGESIZE
MAPPED = 2
STRIDE = Path(__file__).parents[1] / "cuda" / "broken.cu"


@pytest.fixture
def pages() -> Any:
    return page_aligned(4 * PAGE)


def refused(status: int) -> Any:
    return pytest.raises(CUDARuntimeError, check=lambda error: error.status == status)


def test_registering_twice(pages: np.ndarray) -> None:
    runtime, first = Runtime(), pages.ctypes.data
    runtime.hostRegister(first + PAGE, 2 * PAGE, MAPPED)
    for begin, count in ((1, 2), (1, 1), (2, 1), (0, 2), (2, 2), (0, 4)):
        with refused(712):
            runtime.hostRegister(first + begin * PAGE, count * PAGE, MAPPED)
    runtime.hostRegister(first, PAGE, MAPPED)
    runtime.hostUnregister(first + PAGE)
    runtime.hostRegister(first + PAGE, 2 * PAGE, MAPPED)


def test_unregistering_what_is_not_registered(pages: np.ndarray) -> None:
    runtime, first = Runtime(), pages.ctypes.data
    with refused(713):
        runtime.hostUnregister(first)
    runtime.hostRegister(first, 2 * PAGE, MAPPED)
    with refused(713):
        runtime.hostUnregister(first + PAGE)
    runtime.hostUnregister(first)
    with refused(713):
        runtime.hostUnregister(first)
    allocated = runtime.hostAlloc(100, MAPPED)
    with refused(713):
        runtime.hostUnregister(allocated)


def test_freeing_what_is_not_allocated(pages: np.ndarray) -> None:
    runtime = Runtime()
    runtime.hostRegister(pages.ctypes.data, PAGE, MAPPED)
    allocated = runtime.hostAlloc(100, MAPPED)
    for address in (pages.ctypes.data, allocated + 1):
        with refused(1):
            runtime.freeHost(address)
    runtime.freeHost(allocated)
    with refused(1):
        runtime.freeHost(allocated)
    with refused(1):
        runtime.hostAlloc(0, MAPPED)


def test_registering_what_cannot_be(pages: np.ndarray, tmp_path: Path) -> None:
    runtime, first = Runtime(), pages.ctypes.data
    for begin, size in ((first + 64, PAGE), (first, 100), (first, 0), (PAGE, PAGE)):
        with refused(1):
            runtime.hostRegister(begin, size, MAPPED)
    path = tmp_path / "file"
    path.write_bytes(bytes(PAGE))
    with path.open("rb") as file:
        only_read = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    address = np.frombuffer(only_read, np.uint8).ctypes.data
    with refused(1):
        runtime.hostRegister(address, PAGE, MAPPED)
    runtime.hostRegister(address, PAGE, MAPPED | 8)
    with refused(801):
        Runtime(read_only=False).hostRegister(address, PAGE, MAPPED | 8)


def test_addresses_that_the_device_does_not_know(pages: np.ndarray) -> None:
    runtime, first = Runtime(), pages.ctypes.data
    assert runtime.pointerGetAttributes(first).devicePointer == 0
    runtime.hostRegister(first, PAGE, MAPPED)
    assert runtime.pointerGetAttributes(first + 5).devicePointer == first + 5 + (1 << 40)
    assert runtime.pointerGetAttributes(first + PAGE).devicePointer == 0
    runtime.hostUnregister(first)
    assert runtime.pointerGetAttributes(first).devicePointer == 0


def kernel(cupy: Any, name: str = "initialise") -> Any:
    return cupy.RawModule(code=source(name).read_text(), options=(), backend="nvrtc").get_function(
        name
    )


def streaming(runtime: Runtime) -> Any:
    """Return a double of CuPy with a stream of ours, which stays the current one."""
    cupy = fake_cupy(runtime, [])
    cupy.cuda.Stream(non_blocking=True).__enter__()
    return cupy


def test_unpinning_before_kernels_are_over(pages: np.ndarray) -> None:
    for pinned in ("registered", "allocated"):
        for waits in (True, False):
            runtime = Runtime()
            start = kernel(streaming(runtime))
            if pinned == "registered":
                address, give_back = pages.ctypes.data, runtime.hostUnregister
                runtime.hostRegister(address, PAGE, MAPPED)
            else:
                address, give_back = runtime.hostAlloc(PAGE, MAPPED), runtime.freeHost
            start((1,), (32,), ())
            if waits:
                runtime.deviceSynchronize()
            give_back(address)
            assert (runtime.fault is None) == waits


@cache
def library() -> Library:
    return Library(KernelOptions(), sources=[STRIDE])


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
@pytest.mark.parametrize("too_early", [False, True])
def test_reading_after_unregistering(pages: np.ndarray, too_early: bool) -> None:
    """A kernel runs when it is waited for."""
    runtime = Runtime(offset=0, library=library())
    cupy = streaming(runtime)
    stream = cupy.cuda.Stream(non_blocking=True)
    start = cupy.RawModule(code=STRIDE.read_text(), options=(), backend="").get_function(
        "loads_with_stride"
    )
    out, host = cupy.empty(32, np.uint32), pages.view(np.uint32)
    host[:] = np.arange(host.size)
    runtime.hostRegister(pages.ctypes.data, PAGE, MAPPED)
    numbers = (out.data.ptr, pages.ctypes.data)
    stride = np.array(3, np.uint32)
    arguments = (*(np.array(number, np.uint64) for number in numbers), stride)
    start((1,), (32,), arguments)
    host[0] = 77
    stride[()] = 0  # kernels have a copy of their own
    if not too_early:
        found = out.get(stream)
        np.testing.assert_array_equal(found[1:], np.arange(3, 96, 3))
        assert found[0] == 77
    runtime.hostUnregister(pages.ctypes.data)
    if too_early:
        with pytest.raises(CUDARuntimeError, match=r"cudaErrorIllegalAddress.*unpinned"):
            runtime.deviceSynchronize()
        for call in (
            lambda: out.get(stream),
            runtime.memGetInfo,
            lambda: runtime.hostAlloc(1, MAPPED),
        ):
            with refused(700):
                call()
    else:
        start((1,), (32,), arguments)
        with pytest.raises(CUDARuntimeError, match=r"cudaErrorIllegalAddress.*not mapped"):
            out.get(stream)


def test_launching_without_headers() -> None:
    with pytest.raises(RuntimeError, match="Failed to find CUDA headers"):
        kernel(fake_cupy(Runtime(), [], headers=False))


def test_the_real_cupy_wants_headers_in_the_same_words() -> None:
    pytest.importorskip("cupy", reason="cupy-cuda12x is not installed")
    code = (
        "import cuda.pathfinder as finder; finder.find_nvidia_header_directory = lambda _: None\n"
        "from cupy._core import core\n"
        "try: core.assemble_cupy_compiler_options(())\n"
        "except RuntimeError as error: print(error)"
    )
    done = children.run_python(code)
    assert done.stdout.strip() == NO_HEADERS


def test_launching_what_no_device_can() -> None:
    start = kernel(fake_cupy(Runtime(), []))
    for blocks, threads in ((0, 32), (1, 0), (1, 1025)):
        with refused(1):
            start((blocks,), (threads,), ())
    with pytest.raises(TypeError):
        start((1,), (32,), (np.zeros(2, np.uint64),))


def test_a_device_that_is_full() -> None:
    cupy = streaming(runtime := Runtime(free_bytes=4096, pooled_bytes=1024))
    first = cupy.empty(1000, np.uint32)
    assert (runtime.memGetInfo()[0], runtime.pooled_bytes) == (1024, 0)
    with pytest.raises(OutOfMemoryError):
        cupy.empty(1025, np.uint8)
    kernel(cupy)((1,), (32,), ())
    del first
    assert runtime.pooled_bytes == 0  # the kernel may still use it
    runtime.deviceSynchronize()
    assert runtime.pooled_bytes == 4096
    cupy.empty(5000, np.uint8)


def test_copies_between_types_and_times_that_have_not_come() -> None:
    cupy = streaming(Runtime())
    stream = cupy.cuda.Stream(non_blocking=True)
    array = cupy.empty(4, np.uint32)
    with pytest.raises(TypeError):
        array.set(np.zeros(4, np.int64), stream)
    with pytest.raises(ValueError, match="Shape mismatch"):
        array.set(np.zeros(3, np.uint32), stream)
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record(stream)
    kernel(cupy)((1,), (32,), ())
    end.record(stream)
    with refused(600):
        cupy.cuda.get_elapsed_time(begin, end)
    end.synchronize()
    cupy.cuda.get_elapsed_time(begin, end)

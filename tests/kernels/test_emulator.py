"""The emulator itself: it must notice every broken rule, and count what a warp moves."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from oocbfs.errors import OocbfsError
from oocbfs.gpu.device import Memory
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.kernels.cuda.source import KernelOptions
from oocbfs.kernels.emulator import build
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import EmulatorError, Library

BROKEN = Path(__file__).parents[1] / "cuda" / "broken.cu"


@cache
def library(checks: Checks) -> Library:
    return Library(KernelOptions(), checks, sources=[BROKEN])


def run(
    kernel: str,
    threads: int = 32,
    *,
    blocks: int = 1,
    checks: Checks = Checks.NONE,
    seed: int = 1,
    size: int = 64,
    extra: tuple[np.ndarray, ...] = (),
) -> np.ndarray:
    device = EmulatorDevice(library=library(checks), seed=seed)
    out: Memory = device.allocate(size, np.uint32)
    device.upload(out, np.zeros(size, np.uint32))
    device.launch(kernel, blocks, threads, (np.array(out.address, np.uint64), *extra))
    return device.download(out)


@pytest.mark.parametrize(
    ("kernel", "threads", "words"),
    [
        ("waits_for_lanes_that_never_come", 32, ("deadlock", "__ballot_sync", "broken.cu:6")),
        ("disagrees_about_the_mask", 32, ("mask", "broken.cu:13")),
        ("is_not_in_its_mask", 32, ("does not name it", "broken.cu:17")),
        ("meets_two_barriers", 64, ("two barriers", "broken.cu:22", "broken.cu:24")),
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_broken_rules_are_reported(
    kernel: str, threads: int, words: tuple[str, ...], seed: int
) -> None:
    with pytest.raises(EmulatorError) as caught:
        run(kernel, threads, seed=seed)
    for word in words:
        assert word in str(caught.value)


def test_a_failed_launch_leaves_the_emulator_usable() -> None:
    with pytest.raises(EmulatorError):
        run("waits_for_lanes_that_never_come")
    assert run("counts_with_atomics", 256, blocks=5)[0] == 1280


def test_schedules_differ_and_repeat() -> None:
    outcomes = {run("forgets_syncwarp", seed=seed).tobytes() for seed in range(1, 21)}
    assert len(outcomes) > 1
    assert run("forgets_syncwarp", seed=7).tobytes() == run("forgets_syncwarp", seed=7).tobytes()


def test_shared_memory_starts_as_garbage() -> None:
    values = run("reads_uninitialised_shared")[:32]
    assert len(set(values.tolist())) > 16


@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("kernel", ["forgets_syncwarp", "counts_without_atomics"])
def test_races_are_found_under_every_schedule(kernel: str, seed: int) -> None:
    with pytest.raises(
        EmulatorError, match=r"race on .* at broken\.cu:\d+, after .*broken\.cu:\d+"
    ):
        run(kernel, checks=Checks.RACES, seed=seed)


def test_atomics_do_not_race() -> None:
    assert run("counts_with_atomics", 128, blocks=3, checks=Checks.RACES)[0] == 384


def test_accesses_outside_every_allocation_are_found() -> None:
    size = np.array(16, np.uint32)
    with pytest.raises(EmulatorError, match="outside every allocation"):
        run("writes_behind_the_end", checks=Checks.RACES, size=16, extra=(size,))


@pytest.mark.parametrize(
    ("stride", "sectors", "lines"), [(0, 1, 1), (1, 4, 1), (2, 8, 2), (8, 32, 8), (32, 32, 32)]
)
def test_host_loads_count_sectors_and_lines(stride: int, sectors: int, lines: int) -> None:
    device = EmulatorDevice(library=library(Checks.NONE))
    host = np.arange(1024 + 64, dtype=np.uint32)
    host = host[-host.ctypes.data % 128 // 4 :][:1024]
    out = device.allocate(32, np.uint32)
    with device.map_host(host.view(np.uint8)) as address:
        arguments = (out.address, address, stride)
        numbers = [
            np.array(value, dtype)
            for value, dtype in zip(arguments, (np.uint64, np.uint64, np.uint32), strict=True)
        ]
        device.launch("loads_with_stride", 1, 32, numbers)
    assert np.array_equal(device.download(out), host[np.arange(32) * stride])
    counters = device.library.counters()
    assert (counters.host_loads, counters.host_sectors, counters.host_lines) == (1, sectors, lines)
    assert device.usage.slow_bytes == 32 * sectors
    assert sum((i + 1) * count for i, count in enumerate(counters.host_requests)) == sectors


def test_a_missing_compiler_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(OocbfsError, match=r"needs a C\+\+ compiler.*no-such-compiler"):
        build.build(KernelOptions())


def test_builds_are_cached_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small = tmp_path / "small.cu"
    small.write_text('extern "C" __global__ void f(unsigned* out) { out[0] = 1; }\n')
    first = build.build(KernelOptions(), sources=[small])
    time = first.stat().st_mtime_ns
    assert build.build(KernelOptions(), sources=[small]) == first
    assert first.stat().st_mtime_ns == time
    small.write_text('extern "C" __global__ void f(unsigned* out) { out[0] = 2; }\n')
    assert build.build(KernelOptions(), sources=[small]) != first


def test_the_compiler_gets_what_users_add(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = build.build(KernelOptions())
    monkeypatch.setenv("CXXFLAGS", "-O0 '-DADDED=a word'")
    assert build.build(KernelOptions()) != plain
    monkeypatch.setenv("CXXFLAGS", "-include no-such-header.h")
    with pytest.raises(OocbfsError, match=r"no-such-header\.h"):
        build.build(KernelOptions())


def test_kernels_that_do_not_compile_are_explained(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cu"
    wrong.write_text('extern "C" __global__ void f(unsigned* out) { out[0] = nonsense; }\n')
    with pytest.raises(OocbfsError, match="nonsense"):
        build.build(KernelOptions(), sources=[wrong])

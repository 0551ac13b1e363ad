"""What the emulator counts where it watches every access."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.kernels.cuda.source import KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import Library
from oocbfs.results.counts import Counts, HottestWord, sum_counts

COUNTED = Path(__file__).parents[1] / "cuda" / "counted.cu"


@cache
def library(checks: Checks) -> Library:
    return Library(KernelOptions(), checks, sources=[COUNTED])


def run(
    kernel: str,
    number: int = 1,
    *,
    threads: int = 32,
    blocks: int = 1,
    seed: int = 1,
    on_host: bool = False,
    checks: Checks = Checks.COUNTS,
) -> tuple[Counts, np.ndarray]:
    """Run a kernel on two arrays, the second of 0, 1, 2 and so on; return counts and the first."""
    device = EmulatorDevice(library=library(checks), seed=seed)
    numbers = np.arange(1024, dtype=np.uint32)
    out, copy = (device.allocate(numbers.size, np.uint32, name) for name in ("out", "in"))
    device.upload(out, np.zeros_like(numbers))
    device.upload(copy, numbers)
    with device.map_host(numbers.view(np.uint8)) as address:
        source = address if on_host else copy.address
        _launch(device, kernel, blocks, threads, out.address, source, number)
    return device.take_counts(), device.download(out)


def _launch(device: EmulatorDevice, kernel: str, blocks: int, threads: int, *values: int) -> None:
    arguments = [
        np.array(value, dtype)
        for value, dtype in zip(values, (np.uint64, np.uint64, np.uint32), strict=True)
    ]
    device.launch(kernel, blocks, threads, arguments)


@pytest.mark.parametrize("kernel", ["copies_with_stride", "copies_volatile"])
@pytest.mark.parametrize(("stride", "sectors"), [(0, 1), (1, 4), (2, 8), (8, 32), (31, 32)])
@pytest.mark.parametrize("on_host", [False, True])
def test_plain_loads_are_counted(kernel: str, stride: int, sectors: int, on_host: bool) -> None:
    counts, out = run(kernel, stride, on_host=on_host)
    assert np.array_equal(out[:32], np.arange(32) * stride)
    written = 4
    assert counts.pcie_sectors == (sectors if on_host else 0)
    assert counts.device_sectors == written + (0 if on_host else sectors)
    assert (counts.loads, counts.load_lanes, counts.lanes_used) == (1, 32, 32.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lanes_of_one_turn_share_an_instruction(seed: int) -> None:
    counts, out = run("loops_unevenly", seed=seed)
    assert out[31] == sum(range(31))
    assert counts.loads == 31
    assert counts.load_lanes == sum(range(32))
    assert counts.device_sectors == 31 + 4


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lanes_that_met_start_a_new_instruction(seed: int) -> None:
    counts, _ = run("meets_between_loads", 8, seed=seed)
    assert (counts.loads, counts.load_lanes, counts.device_sectors) == (2, 32, 32 + 4)


def test_atomics_by_array_and_the_hottest_word() -> None:
    counts, out = run("adds_to_words", 3, threads=64)
    assert out[:3].tolist() == [22, 21, 21]
    assert counts.atomics_by_array == {"in": 3, "out": 64}
    assert counts.atomics == 67
    assert counts.hottest_word is not None
    assert counts.hottest_word[0::2] == ("out", 22)
    assert counts.device_sectors == 0


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_busiest_warp_is_compared_with_the_mean(blocks: int) -> None:
    counts, _ = run("works_unevenly", threads=128, blocks=blocks)
    # The first warp of each block has 31 loads and a write, the other three a write.
    assert counts.busiest_work == 32
    assert counts.mean_work == (32 + 3) / 4
    assert counts.warp_imbalance == 32 / (35 / 4)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("checks", [Checks.NONE, Checks.RACES, Checks.COUNTS])
def test_one_compare_and_swap_wins(seed: int, checks: Checks) -> None:
    if checks is Checks.COUNTS:
        counts, out = run("takes_once", threads=256, blocks=2, seed=seed)
        assert counts.atomics_by_array == {"in": 512, "out": 1}
        assert counts.hottest_word == HottestWord("in", 0, 512)
    else:
        _, out = run("takes_once", threads=256, blocks=2, seed=seed, checks=checks)
    assert out[0] == 1


@pytest.mark.parametrize("limit", [0, 1, 63, 64, 100])
def test_barriers_that_ask(limit: int) -> None:
    _, out = run("asks_the_block", limit, threads=100, checks=Checks.NONE)
    assert set(out[:100]) == {limit << 2 | (limit > 0) << 1 | (limit == 100)}


def test_other_builds_count_no_accesses() -> None:
    counts, _ = run("copies_with_stride", checks=Checks.NONE)
    assert counts.launches == 1
    assert counts.device_sectors is counts.atomics is counts.lanes_used is None


def test_counts_are_summed_up() -> None:
    first = Counts(launches=1, edges_examined=3, atomics_by_array={"a": 1}, loads=1, load_lanes=8)
    second = Counts(launches=2, edges_examined=4, atomics_by_array={"a": 2, "b": 5}, loads=3)
    total = sum_counts([first, second])
    assert (total.launches, total.edges_examined, total.atomics) == (3, 7, 8)
    assert total.atomics_by_array == {"a": 3, "b": 5}
    assert (total.loads, total.load_lanes, total.lanes_used) == (4, None, None)
    assert sum_counts([]) == Counts()

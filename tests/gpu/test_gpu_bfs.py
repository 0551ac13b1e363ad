"""The CUDA kernels and their level loop, run by the emulator and compared with SciPy."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.errors import FormatError
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice, align_tails
from oocbfs.gpu.result import DeviceDirection
from oocbfs.graph.rows import span
from oocbfs.kernels.cuda.source import Control, KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.plan.limits import StepLimits
from oocbfs.plan.ranges import LINE_BYTES
from tests.support.exhaustive import crossing
from tests.support.gpu.device_checks import check
from tests.support.gpu.emulated import LARGE, NORMAL, SEEDS, SMALL, device, library, schedules
from tests.support.gpu.gpu_graphs import (
    grid_graph,
    levels_by_scipy,
    long_hub_graph,
    matrix_of,
    mixed_graph,
    random_graph,
    rows_of,
    rows_that_wrap_around,
)

DIRECTIONS = tuple(DeviceDirection)


@pytest.mark.parametrize(
    ("seed", "direction", "directed"), schedules(DIRECTIONS, (False, True), rounds=2)
)
def test_levels_under_ten_schedules(seed: int, direction: DeviceDirection, directed: bool) -> None:
    if directed:
        check(device(seed), mixed_graph(2, directed=True), [17], direction, directed=True)
    else:
        check(device(seed), mixed_graph(1), [300], direction)


@pytest.mark.parametrize("seed", SEEDS)
def test_small_levels_under_ten_schedules(seed: int) -> None:
    result = check(device(seed), mixed_graph(1), [300], DeviceDirection.TOP_DOWN, limits=SMALL)
    assert {step.direction for step in result.steps} == {"small"}
    assert int(result.control[Control.HUB_ROWS]) == 3


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_segments_with_stretched_varints(direction: DeviceDirection) -> None:
    matrix = long_hub_graph(1)
    rows = rows_of(matrix)
    tail = rows.tails[slice(*span(rows, 0))]
    assert tail.size > 2048
    assert any(rows.tails[slice(*span(rows, hub))][1023] == 0 for hub in range(6))
    check(device(), matrix, [0], direction)
    check(device(), matrix, [int(matrix[3].indices[5])], direction)


@pytest.mark.parametrize("direction", [DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP])
def test_every_class_of_rows_is_exercised(direction: DeviceDirection) -> None:
    result = check(device(), mixed_graph(1), [300], direction)
    rows = {
        word.name: int(result.control[word])
        for word in (Control.SHORT_ROWS, Control.LONG_ROWS, Control.HUB_ROWS, Control.HUBS)
    }
    assert rows["SHORT_ROWS"] > 100
    assert rows["LONG_ROWS"] > 10
    if direction is DeviceDirection.TOP_DOWN:
        assert rows["HUB_ROWS"] == rows["HUBS"] >> 32 == 3
        assert rows["HUBS"] & 0xFFFFFFFF >= 6
    else:
        assert int(result.control[Control.HEADS_FOUND]) > 1000
        assert int(result.control[Control.PENDING]) > 1000


def test_auto_uses_every_kind_of_step() -> None:
    kinds = set()
    for matrix in (random_graph(1, 60_000, 500_000), long_hub_graph(2)):
        result = check(device(), matrix, [200], limits=NORMAL)
        kinds |= {step.direction for step in result.steps}
    kinds |= {step.direction for step in check(device(), mixed_graph(1), [300]).steps}
    assert kinds >= {"small", "bottom-up", "heads, top-down", "heads"}


@pytest.mark.parametrize(
    ("seed", "direction", "kind"), crossing([1, 2, 3], DIRECTIONS, ["large", "small", "directed"])
)
def test_no_races(seed: int, direction: DeviceDirection, kind: str) -> None:
    made = device(seed, checks=Checks.RACES)
    if kind == "directed":
        check(made, mixed_graph(2, directed=True), [17], direction, directed=True)
    else:
        limits = SMALL if kind == "small" else LARGE
        check(made, mixed_graph(1), [300], direction, limits=limits)
    assert made.library.counters().accesses > 100_000


@pytest.mark.parametrize("probe_bytes", [32, 128])
@pytest.mark.parametrize("with_parents", [False, True])
def test_variants(probe_bytes: int, with_parents: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "-O0")  # they run once
    options = KernelOptions(with_parents=with_parents, probe_bytes=probe_bytes)
    matrix = mixed_graph(3)
    made = EmulatorDevice(library=library(options=options))
    for direction in DeviceDirection:
        with GpuBfs(made, rows_of(matrix), with_parents=with_parents) as bfs:
            result = bfs.run(np.array([5], np.uint32), direction)
        assert np.array_equal(result.levels, levels_by_scipy(matrix, [5]))
        assert (result.parents is not None) == with_parents


@pytest.mark.parametrize("device_range", [(0, 1 << 30), (1024, 8192), (128, 128)])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_device_ranges(direction: DeviceDirection, device_range: tuple[int, int]) -> None:
    moved = check_slow_bytes(direction, device_range)
    if direction is not DeviceDirection.AUTO:  # which may choose otherwise when rows are cheaper
        assert moved <= check_slow_bytes(direction, (0, 0))
    if device_range[1] > 1 << 20:
        assert moved == 0


def test_the_last_line_of_a_device_range_is_padded() -> None:
    """Lines are read whole; behind the tails there are zeros, not what the memory held before."""
    rows = rows_of(mixed_graph(4))
    assert rows.tails.size % LINE_BYTES
    with GpuBfs(device(), rows, device_ranges=((0, 1 << 30),)) as bfs:
        fast = int(bfs.out_rows.struct["fast"])
        end = int(bfs.out_rows.struct["fast_end"])
        assert rows.tails.size < end <= rows.tails.size + LINE_BYTES
        held = ctypes.string_at(fast, end)
    assert held == rows.tails.tobytes() + bytes(end - rows.tails.size)


@cache
def check_slow_bytes(direction: DeviceDirection, device_range: tuple[int, int]) -> int:
    made = device()
    check(made, mixed_graph(4), [17, 300], direction, device_range=device_range)
    assert made.usage.slow_bytes is not None
    return made.usage.slow_bytes


@given(
    st.integers(1, 70).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=200),
            st.lists(st.integers(0, n - 1), min_size=1, max_size=4, unique=True),
        )
    ),
    st.booleans(),
    st.sampled_from(DeviceDirection),
    st.sampled_from([LARGE, SMALL, NORMAL]),
    st.integers(0, 2**32),
)
@settings(max_examples=100, deadline=None)
def test_arbitrary_graphs(
    graph: tuple[int, list[tuple[int, int]], list[int]],
    directed: bool,
    direction: DeviceDirection,
    limits: StepLimits,
    seed: int,
) -> None:
    n, edges, sources = graph
    matrix = matrix_of(n, np.array(edges, np.int64), directed=directed)
    check(device(seed, num_blocks=2), matrix, sources, direction, directed=directed, limits=limits)


def test_long_grid_needs_few_launches() -> None:
    made = device()
    matrix = grid_graph(1195, 6)
    result = check(made, matrix, [0], DeviceDirection.AUTO, limits=NORMAL)
    assert len(result.level_sizes) == 1200
    assert made.usage.launches <= 12


def test_launches_and_read_backs_per_level() -> None:
    for matrix in (random_graph(1, 60_000, 300_000), mixed_graph(1), long_hub_graph(1)):
        for direction in DeviceDirection:
            made = device()
            result = check(made, matrix, [0], direction, limits=NORMAL)
            num_levels = len(result.level_sizes)
            # Two launches prepare; levels and parents are read at the end, an empty level is seen.
            assert made.usage.launches <= 2 + 3 * (num_levels + 1)
            assert made.usage.read_backs <= num_levels + 1 + 3


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_portable_fibers_run_the_same_schedule(direction: DeviceDirection) -> None:
    matrix = random_graph(1, 500, 3000)
    counted = []
    for checks in (Checks.NONE, Checks.UCONTEXT):
        made = device(7, checks=checks)
        check(made, matrix, [3], direction)
        counters = made.library.counters()
        counted.append((counters.switches, counters.collectives, counters.host_sectors))
    assert counted[0] == counted[1]


@pytest.mark.parametrize("direction", [DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP])
def test_values_that_wrap_around_are_reported(direction: DeviceDirection) -> None:
    for vertex, damaged in rows_that_wrap_around():
        source = vertex if direction is DeviceDirection.TOP_DOWN else 2999
        with GpuBfs(device(), damaged, limits=LARGE) as bfs, pytest.raises(FormatError):
            bfs.run(np.array([source], np.uint32), direction)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_damaged_tails_are_reported(direction: DeviceDirection) -> None:
    matrix = mixed_graph(1)
    rows = rows_of(matrix)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(12):
        damaged = rows._replace(tails=align_tails(rows.tails))
        offsets = rng.integers(0, rows.tails.size, 300)
        damaged.tails[offsets] = rng.choice(np.array([0x7F, 0xFF, 0x80], np.uint8), offsets.size)
        with GpuBfs(device(), damaged) as bfs:
            try:
                bfs.run(np.array([17], np.uint32), direction)
            except FormatError:
                refused += 1
    assert refused >= 6

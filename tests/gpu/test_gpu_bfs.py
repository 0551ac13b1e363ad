"""The CUDA kernels and their level loop, run by the emulator and compared with SciPy."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.errors import FormatError
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.device import Device, EmulatorDevice, align_tails
from oocbfs.gpu.result import Direction, GpuResult, Limits
from oocbfs.graph.rows import span
from oocbfs.kernels.cuda import source as cuda_source
from oocbfs.kernels.cuda.source import Control, KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import Library
from oocbfs.plan.device import LINE_BYTES
from tests.support.gpu_graphs import (
    Matrix,
    check_parents,
    grid_graph,
    levels_by_scipy,
    matrix_of,
    mixed_graph,
    random_graph,
    rows_of,
    rows_that_wrap_around,
    wide_hub_graph,
)

SEEDS = range(1, 11)
OPTIONS = KernelOptions(count_rows=True)
# test_sanitizers runs this module again, in a process that has libasan preloaded.
CHECKS = Checks(os.environ.get("OOCBFS_TEST_CHECKS", Checks.NONE.value))
# test_mutants runs it again with broken kernels.
FOLDER = Path(os.environ.get("OOCBFS_TEST_KERNELS", cuda_source.FOLDER))
# No frontier is small: the wide kernels get the work that test graphs would keep from them.
WIDE = Limits(small_vertices=0, heads_bytes=0)
# Every frontier is small: one block does it all.
SMALL = Limits(small_vertices=1 << 30, small_bytes=1 << 30)
NORMAL = Limits()


@cache
def library(checks: Checks = CHECKS, options: KernelOptions = OPTIONS) -> Library:
    return Library(options, checks, FOLDER)


def device(seed: int = 1, checks: Checks = CHECKS, num_blocks: int = 3) -> EmulatorDevice:
    return EmulatorDevice(seed=seed, library=library(checks), num_blocks=num_blocks)


def check(
    made: Device,
    matrix: Matrix,
    sources: list[int],
    direction: Direction = Direction.AUTO,
    *,
    directed: bool = False,
    window: tuple[int, int] = (0, 0),
    limits: Limits = WIDE,
) -> GpuResult:
    """Traverse, and compare levels, level sizes and parents."""
    rows = rows_of(matrix)
    in_rows = rows_of(matrix.T.tocsr()) if directed else None
    with GpuBfs(made, rows, in_rows, windows=(window,), limits=limits) as bfs:
        result = bfs.run(np.array(sources, np.uint32), direction)
    expected = levels_by_scipy(matrix, sources)
    assert np.array_equal(result.levels, expected)
    assert result.level_sizes == np.bincount(expected[expected >= 0]).tolist()
    assert result.parents is not None
    check_parents(matrix, sources, result.levels, result.parents)
    return result


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("seed", SEEDS)
def test_levels_under_ten_schedules(seed: int, direction: Direction) -> None:
    check(device(seed), mixed_graph(1), [300], direction)


@pytest.mark.parametrize("seed", SEEDS)
def test_small_levels_under_ten_schedules(seed: int) -> None:
    result = check(device(seed), mixed_graph(1), [300], Direction.TOP_DOWN, limits=SMALL)
    assert {step.kind for step in result.steps} == {"small"}
    assert int(result.control[Control.HUB_ROWS]) == 3


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("seed", SEEDS)
def test_directed_levels_under_ten_schedules(seed: int, direction: Direction) -> None:
    check(device(seed), mixed_graph(2, directed=True), [17], direction, directed=True)


@pytest.mark.parametrize("direction", Direction)
def test_segments_with_stretched_varints(direction: Direction) -> None:
    matrix = wide_hub_graph(1)
    rows = rows_of(matrix)
    tail = rows.tails[slice(*span(rows, 0))]
    assert tail.size > 2048
    assert any(rows.tails[slice(*span(rows, hub))][1023] == 0 for hub in range(6))
    check(device(), matrix, [0], direction)
    check(device(), matrix, [int(matrix[3].indices[5])], direction)


@pytest.mark.parametrize("direction", [Direction.TOP_DOWN, Direction.BOTTOM_UP])
def test_every_class_of_rows_is_exercised(direction: Direction) -> None:
    result = check(device(), mixed_graph(1), [300], direction)
    rows = {
        word.name: int(result.control[word])
        for word in (Control.SHORT_ROWS, Control.LONG_ROWS, Control.HUB_ROWS, Control.HUBS)
    }
    assert rows["SHORT_ROWS"] > 100
    assert rows["LONG_ROWS"] > 10
    if direction is Direction.TOP_DOWN:
        assert rows["HUB_ROWS"] == rows["HUBS"] >> 32 == 3
        assert rows["HUBS"] & 0xFFFFFFFF >= 6
    else:
        assert int(result.control[Control.HEADS_FOUND]) > 1000
        assert int(result.control[Control.PENDING]) > 1000


def test_auto_uses_every_kind_of_step() -> None:
    kinds = set()
    for matrix in (random_graph(1, 60_000, 500_000), wide_hub_graph(2)):
        result = check(device(), matrix, [200], limits=NORMAL)
        kinds |= {step.kind for step in result.steps}
    kinds |= {step.kind for step in check(device(), mixed_graph(1), [300]).steps}
    assert kinds >= {"small", "bottom-up", "heads, top-down", "heads"}


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_races(seed: int, direction: Direction) -> None:
    made = device(seed, Checks.RACES)
    check(made, mixed_graph(1), [300], direction)
    check(made, mixed_graph(1), [300], direction, limits=SMALL)
    check(made, mixed_graph(2, directed=True), [17], direction, directed=True)
    assert made.library.counters().accesses > 100_000


@pytest.mark.parametrize("probe_bytes", [32, 128])
@pytest.mark.parametrize("with_parents", [False, True])
def test_variants(probe_bytes: int, with_parents: bool) -> None:
    options = KernelOptions(with_parents=with_parents, probe_bytes=probe_bytes)
    matrix = mixed_graph(3)
    made = EmulatorDevice(library=library(options=options))
    for direction in Direction:
        with GpuBfs(made, rows_of(matrix), with_parents=with_parents) as bfs:
            result = bfs.run(np.array([5], np.uint32), direction)
        assert np.array_equal(result.levels, levels_by_scipy(matrix, [5]))
        assert (result.parents is not None) == with_parents


@pytest.mark.parametrize("window", [(0, 1 << 30), (1024, 8192), (128, 128)])
@pytest.mark.parametrize("direction", Direction)
def test_resident_windows(direction: Direction, window: tuple[int, int]) -> None:
    moved = check_slow_bytes(direction, window)
    if direction is not Direction.AUTO:  # which may choose otherwise when rows are cheaper
        assert moved <= check_slow_bytes(direction, (0, 0))
    if window[1] > 1 << 20:
        assert moved == 0


def test_the_last_line_of_a_window_is_padded() -> None:
    """Lines are read whole; behind the tails there are zeros, not what the memory held before."""
    rows = rows_of(mixed_graph(4))
    assert rows.tails.size % LINE_BYTES
    with GpuBfs(device(), rows, windows=((0, 1 << 30),)) as bfs:
        fast = int(bfs.out_rows.struct["fast"])
        end = int(bfs.out_rows.struct["fast_end"])
        assert rows.tails.size < end <= rows.tails.size + LINE_BYTES
        held = ctypes.string_at(fast, end)
    assert held == rows.tails.tobytes() + bytes(end - rows.tails.size)


@cache
def check_slow_bytes(direction: Direction, window: tuple[int, int]) -> int:
    made = device()
    check(made, mixed_graph(4), [17, 300], direction, window=window)
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
    st.sampled_from(Direction),
    st.sampled_from([WIDE, SMALL, NORMAL]),
    st.integers(0, 2**32),
)
@settings(max_examples=100, deadline=None)
def test_arbitrary_graphs(
    graph: tuple[int, list[tuple[int, int]], list[int]],
    directed: bool,
    direction: Direction,
    limits: Limits,
    seed: int,
) -> None:
    n, edges, sources = graph
    matrix = matrix_of(n, np.array(edges, np.int64), directed=directed)
    check(device(seed, num_blocks=2), matrix, sources, direction, directed=directed, limits=limits)


def test_long_grid_needs_few_launches() -> None:
    made = device()
    matrix = grid_graph(3995, 6)
    result = check(made, matrix, [0], Direction.AUTO, limits=NORMAL)
    assert len(result.level_sizes) == 4000
    assert made.usage.launches <= 40


def test_launches_and_read_backs_per_level() -> None:
    for matrix in (random_graph(1, 60_000, 300_000), mixed_graph(1), wide_hub_graph(1)):
        for direction in Direction:
            made = device()
            result = check(made, matrix, [0], direction, limits=NORMAL)
            num_levels = len(result.level_sizes)
            # Two launches prepare; levels and parents are read at the end, an empty level is seen.
            assert made.usage.launches <= 2 + 3 * (num_levels + 1)
            assert made.usage.read_backs <= num_levels + 1 + 3


@pytest.mark.parametrize("direction", Direction)
def test_portable_fibers_run_the_same_schedule(direction: Direction) -> None:
    matrix = random_graph(1, 500, 3000)
    counted = []
    for checks in (Checks.NONE, Checks.UCONTEXT):
        made = device(7, checks)
        check(made, matrix, [3], direction)
        counters = made.library.counters()
        counted.append((counters.switches, counters.collectives, counters.host_sectors))
    assert counted[0] == counted[1]


@pytest.mark.parametrize("direction", [Direction.TOP_DOWN, Direction.BOTTOM_UP])
def test_values_that_wrap_around_are_reported(direction: Direction) -> None:
    for vertex, damaged in rows_that_wrap_around():
        source = vertex if direction is Direction.TOP_DOWN else 2999
        with GpuBfs(device(), damaged, limits=WIDE) as bfs, pytest.raises(FormatError):
            bfs.run(np.array([source], np.uint32), direction)


@pytest.mark.parametrize("direction", Direction)
def test_damaged_tails_are_reported(direction: Direction) -> None:
    matrix = mixed_graph(1)
    rows = rows_of(matrix)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(12):
        damaged = rows._replace(tails=align_tails(rows.tails))
        places = rng.integers(0, rows.tails.size, 300)
        damaged.tails[places] = rng.choice(np.array([0x7F, 0xFF, 0x80], np.uint8), places.size)
        with GpuBfs(device(), damaged) as bfs:
            try:
                bfs.run(np.array([17], np.uint32), direction)
            except FormatError:
                refused += 1
    assert refused >= 6

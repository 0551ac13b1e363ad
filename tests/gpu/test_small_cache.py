"""Small levels keep sectors in device memory: what they load, and that nobody reads what is old."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.control import sectors_from
from oocbfs.gpu.result import DeviceDirection
from oocbfs.kernels.cuda.source import Control
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.rows import Rows
from oocbfs.plan import search_arrays
from tests.support.gpu.device_checks import check
from tests.support.gpu.emulated import CHECKS, SEEDS, SMALL, device, library
from tests.support.gpu.gpu_graphs import (
    Matrix,
    grid_graph,
    levels_by_scipy,
    matrix_of,
    random_graph,
    rows_of,
)
from tests.support.gpu.sector_count import frontier_sectors
from tests.support.gpu.slow_bytes import RecordingDevice, expected_sectors

# Neighbours are far apart: several rows of a turn want one place.
GRAPHS: dict[str, Callable[[], Matrix]] = {
    "grid": lambda: grid_graph(60, 60),
    "random": lambda: random_graph(1, 4000, 9000),
}


def path_graph(size: int) -> Matrix:
    return matrix_of(size, np.stack([np.arange(size - 1), np.arange(1, size)], axis=1))


def distinct_sectors(rows: Rows) -> int:
    """Count the sectors that hold tails of short rows; here all are short."""
    return -(-rows.tails.size // 32)


def moved_by(rows: Rows, seed: int = 1, device_range: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Search by small levels; return the sectors moved, and those of an independent count."""
    made = RecordingDevice(library=library(), seed=seed)
    with GpuBfs(made, rows, limits=SMALL, device_ranges=(device_range,)) as bfs:
        made.bfs, made.pending = bfs, []
        result = bfs.run(np.array([0], np.uint32))
        assert {step.direction for step in result.steps} == {"small"}
        return made.library.counters().host_sectors, expected_sectors(
            made, rows, result, device_range, 32
        )


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("sectors", [2, 16, 64])
def test_a_short_cache_under_schedules(
    make: Callable[[], Matrix], sectors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_arrays, "CACHED_SECTORS", sectors)
    for seed in (SEEDS[sectors % 7], SEEDS[9 - sectors % 7]):
        check(device(seed), make(), [3], DeviceDirection.TOP_DOWN, limits=SMALL)


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("sectors", [4, 64, 1 << 14])
@pytest.mark.parametrize("device_range", [(0, 0), (1024, 4096)])
def test_loads_equal_an_independent_count(
    make: Callable[[], Matrix],
    sectors: int,
    device_range: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_arrays, "CACHED_SECTORS", sectors)
    moved, expected = moved_by(rows_of(make()), sectors % 5 + 1, device_range)
    assert moved == expected


def test_a_cache_that_is_large_enough_loads_every_sector_once() -> None:
    rows = rows_of(GRAPHS["grid"]())
    assert int(np.diff(rows.starts.astype(np.int64)).max()) <= 32
    moved, _ = moved_by(rows)
    assert moved == distinct_sectors(rows)


def test_the_cache_outlives_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """More levels than one launch may run, through a cache that has to let sectors go."""
    monkeypatch.setattr(search_arrays, "CACHED_SECTORS", 64)
    rows = rows_of(path_graph(5000))
    moved, expected = moved_by(rows)
    assert moved == expected == distinct_sectors(rows)


@pytest.mark.parametrize("device_range", [(0, 0), (128, 1024)])
def test_small_levels_measure_their_last_frontier(device_range: tuple[int, int]) -> None:
    rows = rows_of(grid_graph(60, 60))
    with GpuBfs(device(), rows, limits=SMALL, device_ranges=(device_range,)) as bfs:
        result = bfs.run(np.array([0], np.uint32), max_depth=5)
    frontier, fast = np.flatnonzero(result.levels == 5), np.array(device_range) // 32
    np.testing.assert_array_equal(
        sectors_from(result.control, Control.FRONTIER_SECTORS),
        frontier_sectors(rows.bases, rows.starts, rows.shift, frontier, fast),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_no_races(make: Callable[[], Matrix], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_arrays, "CACHED_SECTORS", 16)
    made = device(seed, checks=Checks.RACES if CHECKS is Checks.NONE else CHECKS)
    check(made, make(), [3], DeviceDirection.TOP_DOWN, limits=SMALL)


def test_searches_do_not_see_the_cache_of_the_one_before() -> None:
    matrix = grid_graph(20, 20)
    with GpuBfs(device(), rows_of(matrix), limits=SMALL) as bfs:
        for source in (0, 399, 0):
            levels = bfs.run(np.array([source], np.uint32)).levels
            assert np.array_equal(levels, levels_by_scipy(matrix, [source]))


def test_a_level_waits_for_its_slowest_warp() -> None:
    """The first warp has sources without neighbours, the second one a hub."""
    near = np.stack([np.full(600, 63), np.arange(64, 664)], axis=1)
    far = np.stack([np.arange(64, 664), np.arange(664, 1264)], axis=1)
    matrix = matrix_of(1264, np.concatenate([near, far]))
    for seed in SEEDS:
        check(device(seed), matrix, list(range(64)), DeviceDirection.TOP_DOWN, limits=SMALL)

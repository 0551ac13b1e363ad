"""Rows that warps of a block share: whoever takes a part, each vertex is found once."""

from __future__ import annotations

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.rows import Rows
from oocbfs.plan.limits import StepLimits
from tests.support.gpu.emulated import LARGE, SEEDS, SMALL, library
from tests.support.gpu.gpu_graphs import Matrix, levels_by_scipy, matrix_of, rows_of
from tests.support.gpu.slow_bytes import RecordingDevice, expected_sectors

# Two segments of one byte for each neighbour, of which the second holds a few.
LEAVES = 1080


def hubs_and_leaves(num_hubs: int) -> tuple[Matrix, Rows]:
    """Join hubs to all leaves and to the last vertex, which is nobody's head."""
    hubs, leaves = np.arange(num_hubs), num_hubs + np.arange(LEAVES + 1)
    edges = np.stack(np.meshgrid(hubs, leaves), axis=-1)
    matrix = matrix_of(num_hubs + LEAVES + 1, edges)
    weights = np.repeat(np.array([3, 2, 1], np.uint32), [num_hubs, LEAVES, 1])
    return matrix, rows_of(matrix, weights=weights)


def search(
    device: EmulatorDevice,
    graph: tuple[Matrix, Rows],
    source: int,
    direction: DeviceDirection,
    limits: StepLimits,
) -> GpuResult:
    matrix, rows = graph
    with GpuBfs(device, rows, limits=limits) as bfs:
        if isinstance(device, RecordingDevice):
            device.bfs, device.pending = bfs, []
        result = bfs.run(np.array([source], np.uint32), direction)
    levels = levels_by_scipy(matrix, [source])
    np.testing.assert_array_equal(result.levels, levels)
    assert result.level_sizes == np.bincount(levels[levels >= 0]).tolist()
    return result


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_more_rows_are_left_than_a_block_lists(seed: int) -> None:
    """Their first segments hold nothing, their last neighbour is the source."""
    graph = hubs_and_leaves(68)
    made = EmulatorDevice(seed=seed, library=library(checks=Checks.RACES), num_blocks=1)
    search(made, graph, LEAVES + 68, DeviceDirection.BOTTOM_UP, LARGE)


def test_rows_that_are_left_move_what_a_plain_count_says() -> None:
    graph = hubs_and_leaves(5)
    made = RecordingDevice(library=library())
    result = search(made, graph, LEAVES + 5, DeviceDirection.BOTTOM_UP, LARGE)
    moved = made.library.counters().host_sectors
    assert moved == expected_sectors(made, graph[1], result, (0, 0), 32)


def test_a_vertex_found_in_several_segments_is_found_once() -> None:
    """All leaves but those of the first segment are visited when the hub searches."""
    matrix = matrix_of(
        4001,
        np.concatenate(
            [
                np.stack([np.zeros(3999, np.int64), np.arange(1, 4000)], axis=1),
                np.stack([np.full(2500, 4000), np.arange(1500, 4000)], axis=1),
            ]
        ),
    )
    weights = np.where(np.arange(4001) == 1, 9, 1).astype(np.uint32)
    made = EmulatorDevice(library=library(checks=Checks.RACES), num_blocks=1)
    search(made, (matrix, rows_of(matrix, weights=weights)), 4000, DeviceDirection.BOTTOM_UP, LARGE)


@pytest.mark.parametrize("segments", [1, 3, 8, 9, 20])
@pytest.mark.parametrize("limits", [SMALL, LARGE], ids=["small", "large"])
def test_rows_of_any_number_of_segments(segments: int, limits: StepLimits) -> None:
    n = 1000 * segments
    edges = np.stack([np.zeros(n - 1, np.int64), np.arange(1, n)], axis=1)
    matrix = matrix_of(n, edges)
    made = EmulatorDevice(library=library(checks=Checks.RACES), num_blocks=1)
    search(made, (matrix, rows_of(matrix)), 0, DeviceDirection.TOP_DOWN, limits)


def test_warps_share_the_claims_of_a_segment() -> None:
    """One warp alone would claim 1,000 vertices, an atomic each: they are not side by side."""
    n = 32_001
    edges = np.stack([np.zeros(1000, np.int64), np.arange(1, n, 32)], axis=1)
    matrix = matrix_of(n, edges)
    made = EmulatorDevice(library=library(checks=Checks.COUNTS))
    result = search(made, (matrix, rows_of(matrix)), 0, DeviceDirection.TOP_DOWN, SMALL)
    counts = result.steps[0].counts
    assert counts is not None
    assert counts.busiest_work is not None
    assert counts.busiest_work < 500


def test_no_warp_searches_a_long_row_alone() -> None:
    """A group of lanes alone would load 40,000 bytes, 32 at a time."""
    n = 40_002
    edges = np.stack([np.zeros(n - 3, np.int64), np.arange(1, n - 2)], axis=1)
    matrix = matrix_of(n, np.concatenate([edges, [[n - 2, n - 1]]]))
    made = EmulatorDevice(library=library(checks=Checks.COUNTS), num_blocks=1)
    result = search(made, (matrix, rows_of(matrix)), n - 1, DeviceDirection.BOTTOM_UP, LARGE)
    counts = result.steps[0].counts
    assert counts is not None
    assert counts.warp_imbalance is not None
    assert counts.warp_imbalance < 2

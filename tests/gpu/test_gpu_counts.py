"""What a search on a device says it did: levels sum up, and kernels count what they look at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection
from oocbfs.kernels.cuda.source import KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.plan.limits import StepLimits
from oocbfs.results.counts import COLUMNS, sum_counts
from tests.support.gpu.device_checks import check
from tests.support.gpu.emulated import LARGE, NORMAL, SMALL, device, library
from tests.support.gpu.gpu_graphs import Matrix, long_hub_graph, mixed_graph, random_graph, rows_of
from tests.support.gpu.steps import numbered


def degrees_of(matrix: Matrix) -> np.ndarray:
    return np.diff(matrix.indptr)


@pytest.mark.parametrize("limits", [LARGE, SMALL, NORMAL], ids=["large", "small", "normal"])
@pytest.mark.parametrize("make", [mixed_graph, long_hub_graph])
def test_top_down_looks_at_every_edge_of_what_it_reached(
    make: Callable[[int], Matrix], limits: StepLimits
) -> None:
    matrix = make(1)
    result = check(device(), matrix, [3], DeviceDirection.TOP_DOWN, limits=limits)
    assert result.counts.edges_examined == degrees_of(matrix)[result.levels >= 0].sum()
    for level, step in numbered(result):
        levels = np.arange(level - 1, level - 1 + step.num_levels)
        expanded = np.isin(result.levels, levels)
        assert step.edges_examined == degrees_of(matrix)[expanded].sum()


def test_bottom_up_looks_until_its_first_hit() -> None:
    matrix = random_graph(1, 3000, 40_000)
    result = check(device(), matrix, [3], DeviceDirection.BOTTOM_UP)
    rows = rows_of(matrix)
    for level, step in numbered(result):
        unvisited = np.flatnonzero((result.levels >= level) | (result.levels < 0))
        frontier = result.levels == level - 1
        least = most = 0
        for vertex in unvisited.tolist():
            near = matrix.indices[matrix.indptr[vertex] : matrix.indptr[vertex + 1]]
            if near.size == 0:
                continue
            least += 1
            most += 1
            if frontier[rows.heads[vertex]]:
                continue
            tail = frontier[near[near != rows.heads[vertex]]]
            least += int(np.argmax(tail)) + 1 if tail.any() else tail.size
            most += tail.size
        assert least <= (step.edges_examined or 0) <= most


@pytest.mark.parametrize("direction", DeviceDirection)
def test_levels_sum_up_to_the_whole(direction: DeviceDirection) -> None:
    made = EmulatorDevice(library=library(checks=Checks.COUNTS))
    matrix = mixed_graph(1)
    result = check(made, matrix, [300], direction)
    total, steps = result.counts, sum_counts(step.counts for step in result.steps if step.counts)
    assert total.launches == made.usage.launches
    assert total.read_backs == made.usage.read_backs
    assert total.read_back_bytes == made.usage.read_back_bytes
    assert total.pcie_sectors == steps.pcie_sectors == made.library.counters().host_sectors
    reached = int((result.levels >= 0).sum())
    assert total.claims_won == total.queue_writes == reached
    assert total.duplicates == 0
    # The heads pass of an empty frontier, and what comes first and last, belong to no step.
    for name in ("edges_examined", "device_sectors", "atomics", "launches", "read_backs"):
        assert 0 < getattr(steps, name) <= getattr(total, name)
    assert total.atomics_by_array is not None
    assert set(total.atomics_by_array) <= {"control", "visited", "claimed", "shared_memory"}
    assert 1 <= (total.lanes_used or 0) <= 32
    assert (total.warp_imbalance or 0) >= 1
    assert set(COLUMNS) < set(total.summary())


def test_a_target_leaves_counts_as_they_were() -> None:
    matrix = mixed_graph(1)
    made = device()
    with GpuBfs(made, rows_of(matrix), limits=SMALL) as bfs:
        whole = bfs.run(np.array([300], np.uint32))
        target = int(np.flatnonzero(whole.levels == 1)[0])
        found = bfs.run(np.array([300], np.uint32), target=target)
    assert found.depth == 1
    assert found.counts.edges_examined == whole.counts.edges_examined


def test_claims_are_lost_where_two_lanes_find_a_vertex() -> None:
    """Under many schedules: two neighbours of a vertex are expanded at the same time."""
    matrix = random_graph(2, 300, 6000)
    options = KernelOptions(count_rows=True)
    lost = 0
    for seed in range(1, 11):
        made = EmulatorDevice(
            library=library(options=options), seed=seed, yield_probability=0.9, resident_blocks=3
        )
        result = check(made, matrix, [3], DeviceDirection.TOP_DOWN)
        assert (result.counts.claims_lost or 0) < (result.counts.edges_examined or 0)
        lost += result.counts.claims_lost or 0
    assert lost > 0

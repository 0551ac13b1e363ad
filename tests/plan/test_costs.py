"""What levels cost: prices follow the rates of a device, and searches follow the prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.kernels.rows import Rows
from oocbfs.plan.costs import costs_of
from oocbfs.plan.limits import limits_of
from oocbfs.plan.rates import KNOWN_GPUS, Rates
from tests.support.gpu.emulated import device, library
from tests.support.gpu.gpu_graphs import levels_by_scipy, matrix_of, random_graph, rows_of

LAPTOP = KNOWN_GPUS[0].rates
MATRIX = random_graph(1, 20_000, 160_000)


@pytest.fixture(scope="module")
def rows() -> Rows:
    return rows_of(MATRIX)


def search(rows: Rows, rates: Rates = LAPTOP, share: float = 0.0, **options: object) -> GpuResult:
    made = EmulatorDevice(library=library(), rates=rates)
    device_range = (0, int(share * rows.tails.size) // 128 * 128)
    if share == 1:
        device_range = (0, rows.tails.size)
    with GpuBfs(made, rows, device_ranges=(device_range,)) as bfs:
        result = bfs.run(np.array([17], np.uint32), **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(result.levels, levels_by_scipy(MATRIX, [17]))
    return result


def test_prices_are_times(rows: Rows) -> None:
    """A sector of the bus or of device memory, and the sectors of bitmaps that are read with it."""
    costs = costs_of(LAPTOP, rows)
    slow, fast = 1e12 / LAPTOP.bus_sectors, 1e12 / LAPTOP.device_sectors
    for cost_slow, cost_fast in (
        (costs.expand_slow, costs.expand_fast),
        (costs.search_slow, costs.search_fast),
    ):
        assert cost_slow - cost_fast == pytest.approx(slow - fast, abs=1)
    # Expanding tests all neighbours of a row, searching those before the first hit.
    assert costs.search_fast < costs.expand_fast
    assert costs.disk_byte == pytest.approx(1e12 / LAPTOP.disk_bandwidth)
    assert costs.heads(0) < costs.heads(1) < costs.heads(rows.heads.size)
    sectors = np.array([3, 5, 1, 2])
    expected = [
        3 * costs.expand_slow + 5 * costs.expand_fast,
        costs.expand_slow + 2 * costs.expand_fast,
    ]
    np.testing.assert_array_equal(costs.expand(sectors), expected)
    np.testing.assert_array_equal(costs.expand(np.stack([sectors, sectors])), [expected] * 2)
    assert costs.search(np.array([64]), np.array([32])) == [
        2 * costs.search_slow + costs.search_fast
    ]


def test_slow_launches_make_small_levels_larger() -> None:
    slower = replace(LAPTOP, launch_seconds=3 * LAPTOP.launch_seconds)
    assert limits_of(slower).small_bytes > limits_of(LAPTOP).small_bytes
    slower = replace(LAPTOP, latency_seconds=3 * LAPTOP.latency_seconds)
    assert limits_of(slower).small_bytes < limits_of(LAPTOP).small_bytes


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_resident_tails_do_not_change_the_direction(rows: Rows, share: float) -> None:
    none, some = search(rows), search(rows, share=share)
    down = search(rows, share=share, direction=DeviceDirection.TOP_DOWN)
    assert some.counts.edges_examined is not None
    assert none.counts.edges_examined is not None
    assert down.counts.edges_examined is not None
    assert some.counts.edges_examined <= 1.1 * none.counts.edges_examined
    assert some.counts.edges_examined < down.counts.edges_examined / 2


def test_searches_decide_by_the_rates_of_their_device(rows: Rows) -> None:
    """Where the bus costs nothing, more bytes come over it, and fewer neighbours are tested."""
    usual = search(rows).counts
    careless = search(rows, replace(LAPTOP, bus_sectors=1000 * LAPTOP.bus_sectors)).counts
    assert usual.pcie_sectors is not None
    assert careless.pcie_sectors is not None
    assert usual.pcie_sectors < 0.9 * careless.pcie_sectors


def test_a_frontier_that_small_levels_leave_is_not_offered_again() -> None:
    """Its sectors look small, its bytes are not: no launch runs in vain a second time."""
    # 400 rows of 30 bytes or so: more than 8 KB and 8 bytes a vertex.
    middle = np.arange(1, 401)
    edges = [np.stack([np.zeros(400, np.int64), middle], axis=1)]
    edges += [
        np.stack([middle, 401 + (middle * 37 + 1009 * k) % 40_000], axis=1) for k in range(18)
    ]
    matrix = matrix_of(40_401, np.concatenate(edges))
    with GpuBfs(device(), rows_of(matrix)) as bfs:
        result = bfs.run(np.array([0], np.uint32), DeviceDirection.TOP_DOWN)
    np.testing.assert_array_equal(result.levels, levels_by_scipy(matrix, [0]))
    assert [step.direction for step in result.steps[:2]] == ["small", "top-down"]
    assert all(step.num_levels for step in result.steps[:-1])

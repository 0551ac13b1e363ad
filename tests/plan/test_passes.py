"""What heads passes teach a search: on clustered graphs it does not go up in vain."""

from __future__ import annotations

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection
from oocbfs.kernels.rows import Rows
from oocbfs.plan.costs import Costs, costs_of
from oocbfs.plan.limits import StepLimits
from oocbfs.plan.passes import HeadsPasses
from oocbfs.plan.rates import KNOWN_GPUS
from tests.support.gpu.emulated import library
from tests.support.gpu.gpu_graphs import Matrix, levels_by_scipy, matrix_of, random_graph, rows_of

TAIL_BYTES = 1 << 20
# Rows have 100 bytes in the mean, as those that a pass leaves here.
NUM_VERTICES = TAIL_BYTES // 100 + 1


def caves(num: int, size: int, links: int) -> Matrix:
    """Return cliques with a few edges between them, as pages of one site link to each other."""
    inside = np.stack(np.triu_indices(size, 1), axis=1)
    cliques = (inside + size * np.arange(num)[:, None, None]).reshape(-1, 2)
    between = np.random.default_rng(1).integers(0, num * size, (num * links, 2))
    return matrix_of(num * size, np.concatenate([cliques, between]))


@pytest.fixture(scope="module")
def costs() -> Costs:
    return costs_of(KNOWN_GPUS[0].rates, rows_of(random_graph(1, 1000, 8000)))


def passes_after(costs: Costs, *, found: int, share: float, expand_cost: int = 1000) -> HeadsPasses:
    """Return what is known after a pass that left 500 of 1,000 vertices with 50,000 bytes."""
    passes = HeadsPasses(costs, StepLimits(), TAIL_BYTES, NUM_VERTICES)
    searched(passes, found=found, share=share, expand_cost=expand_cost)
    return passes


def searched(passes: HeadsPasses, *, found: int, share: float, expand_cost: int = 1000) -> int:
    bytes_left = np.array([[50_000], [0]])
    priced = passes.search_costs(
        bytes_left,
        pending=500,
        frontier=0,
        frontier_bytes=int(share * TAIL_BYTES),
        expand_cost=expand_cost,
        tested=1000,
        found=found,
    )
    return int(priced.sum())


def test_heads_that_hit_as_often_as_any_neighbour_change_no_price(costs: Costs) -> None:
    plain = int(costs.search(np.array([50_000]), np.array([0])).sum())
    new = HeadsPasses(costs, StepLimits(), TAIL_BYTES, NUM_VERTICES)
    assert searched(new, found=500, share=0.5) == plain
    assert searched(new, found=900, share=0.5) == plain
    assert searched(new, found=100, share=0.5) > plain
    most = costs.search(np.array([50_000]), np.array([0]), vain_tests=costs.tests).sum()
    assert searched(new, found=0, share=0.5) == most


def test_rows_far_from_the_frontier_are_read_whole(costs: Costs) -> None:
    """The kernel takes rows for shorter than they are until it knows that they hold no hit."""
    new = HeadsPasses(costs, StepLimits(), TAIL_BYTES, NUM_VERTICES // 10)
    # A fifth of the heads hit where half of all rows are in the frontier: 600 of 1,000 are far, and
    # so are all 500 that are left, of about 1,000 bytes each.
    far = searched(new, found=200, share=0.5)
    assert far / searched(new, found=500, share=0.5) > 10
    # What was found among those that were left says the same, if it is next to nothing.
    assert searched(new, found=500, share=0.5) < far / 10
    new.learn(2)
    assert searched(new, found=500, share=0.5) > far * 0.9
    new.learn(499)
    assert searched(new, found=500, share=0.5) < far / 10


def test_a_pass_in_vain_is_not_repeated_before_the_frontier_has_grown(costs: Costs) -> None:
    left = int(costs.search(np.array([50_000]), np.array([0])).sum())
    new = HeadsPasses(costs, StepLimits(), TAIL_BYTES, NUM_VERTICES)
    assert new.worth_asking(800) == costs.heads(800)
    # As much to search, of 800 vertices instead of 1,000, for a frontier that is no larger.
    same = passes_after(costs, found=500, share=0.5, expand_cost=left)
    assert same.worth_asking(800) == costs.heads(800) + left * 8 // 10
    # A frontier of twice the cost would leave half as many rows, read half as far.
    smaller = passes_after(costs, found=500, share=0.5, expand_cost=left // 8)
    assert smaller.worth_asking(1000) == pytest.approx(costs.heads(1000) + left / 4, rel=1e-3)


def test_rows_in_which_little_was_found_are_expected_to_be_long(costs: Costs) -> None:
    passes = passes_after(costs, found=500, share=0.5)
    assert passes.search_bytes == TAIL_BYTES
    passes.learn(499)
    assert passes.search_bytes < 10 * TAIL_BYTES
    searched(passes, found=500, share=0.5)
    passes.learn(5)
    assert passes.search_bytes > 100 * TAIL_BYTES
    # A small frontier says nothing of larger ones, and none is asked about twice.
    few = passes_after(costs, found=10, share=0.01)
    few.learn(0)
    assert few.search_bytes == TAIL_BYTES
    passes.learn(0)
    assert passes.search_bytes > 100 * TAIL_BYTES


@pytest.mark.parametrize("share", [0, 1])
def test_clustered_graphs_are_not_searched_in_vain(share: int) -> None:
    matrix = caves(1000, 20, 4)
    rows: Rows = rows_of(matrix)
    examined: list[int] = []
    for direction in (DeviceDirection.AUTO, DeviceDirection.TOP_DOWN):
        device_range = (0, share * rows.tails.size)
        with GpuBfs(EmulatorDevice(library=library()), rows, device_ranges=(device_range,)) as bfs:
            result = bfs.run(np.array([17], np.uint32), direction)
        np.testing.assert_array_equal(result.levels, levels_by_scipy(matrix, [17]))
        examined.append(result.counts.edges_examined or 0)
    assert examined[0] < 0.75 * examined[1]

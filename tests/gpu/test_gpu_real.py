"""The CUDA kernels on every small real graph, under ten schedules: the same as the CPU engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.components import GpuComponents
from oocbfs.gpu.result import DeviceDirection
from oocbfs.kernels.components.connect import connect
from oocbfs.kernels.cuda.source import COMPONENTS_KERNELS
from oocbfs.plan.limits import StepLimits
from oocbfs.search.graph import Graph, open_file
from tests.support.answers import check_against_single
from tests.support.exhaustive import ALL
from tests.support.gpu.emulated import LARGE, NORMAL, SEEDS, device
from tests.support.real_graphs import real_graphs
from tests.support.shared import SharedGraphs

# The emulator would take long for larger ones.
MOST_VERTICES = 100_000
MOST_VERTICES_OF_MANY = 20_000
# Of larger ones, each gets one way and one schedule, in turn.
FEW_VERTICES = 20_000
DEEP = 300


class RealGraph(NamedTuple):
    """A graph, and its number, so that the schedules take turns."""

    graph: Graph
    number: int

    def seeds(self, count: int) -> list[int]:
        """Choose some of the ten schedules; all of them with ``scripts/test --all``."""
        first = self.number * count
        if self.graph.num_vertices > FEW_VERTICES:
            count = 1
        return list(islice(cycle(SEEDS), first, first + (len(SEEDS) if ALL else count)))


@pytest.fixture(
    scope="module", params=enumerate(real_graphs()), ids=lambda numbered: numbered[1].name
)
def real(request: pytest.FixtureRequest, shared_graphs: SharedGraphs) -> Iterator[RealGraph]:
    number, path = request.param
    with open_file(shared_graphs.convert(path, order="auto")) as graph:
        if not 0 < graph.num_vertices <= MOST_VERTICES:
            pytest.skip(f"{graph.num_vertices:,} vertices: the emulator would take long")
        yield RealGraph(graph, number)


def test_levels(real: RealGraph) -> None:
    graph = real.graph
    order = (
        np.arange(graph.num_vertices)
        if graph._stored.order is None
        else np.asarray(graph._stored.order)
    )
    rng = np.random.default_rng(5)
    sources = rng.choice(np.flatnonzero(np.asarray(graph._stored.rows.degrees)), 2).astype(
        np.uint32
    )
    expected = [graph.bfs(int(graph._stored.ids_of(sources[[i]])[0])).levels[order] for i in (0, 1)]
    # Kernels of large levels in every direction, and the choice with everything that a user gets.
    ways: list[tuple[DeviceDirection, StepLimits]] = [
        (DeviceDirection.TOP_DOWN, LARGE),
        (DeviceDirection.BOTTOM_UP, LARGE),
        (DeviceDirection.SPLIT, LARGE),
        (DeviceDirection.AUTO, NORMAL),
    ]
    # Thousands of launches for large levels take the emulator minutes: deep graphs run in one
    # block.
    if max(int(levels.max()) for levels in expected) > DEEP:
        ways = [(DeviceDirection.TOP_DOWN, NORMAL), (DeviceDirection.AUTO, NORMAL)]
    turns = islice(cycle(ways), real.number % len(ways), None)
    for seed, (direction, limits) in zip(real.seeds(len(ways)), turns, strict=False):
        with GpuBfs(device(seed), graph._stored.rows, graph._stored.in_rows, limits=limits) as bfs:
            found = bfs.run(sources[[seed % 2]], direction)
        assert np.array_equal(found.levels, expected[seed % 2]), (seed, direction)


def test_components(real: RealGraph) -> None:
    graph = real.graph
    in_rows = graph._stored.in_rows if graph.directed else None
    expected = np.empty(graph.num_vertices, np.uint32)
    connect(graph._stored.rows, in_rows, expected)
    for seed in real.seeds(3):
        made = device(seed, kernels=COMPONENTS_KERNELS)
        with GpuComponents(made, graph._stored.rows, in_rows) as found:
            np.testing.assert_array_equal(found.run(), expected)


def test_many_sources(real: RealGraph) -> None:
    if real.graph.num_vertices > MOST_VERTICES_OF_MANY:
        pytest.skip(f"{real.graph.num_vertices:,} vertices: the emulator would take long")
    ids = real.graph.ids()
    sources = np.random.default_rng(7).choice(ids, 64, replace=ids.size < 64).tolist()
    found = real.graph.bfs_many(sources, emit="levels", engine="emulator")
    check_against_single(real.graph, list(found), sources)

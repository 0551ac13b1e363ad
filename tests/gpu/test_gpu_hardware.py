"""The same searches on a real GPU; skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import oocbfs
from oocbfs.generate import generators
from oocbfs.gpu.cuda_device import CudaDevice, DeviceError
from oocbfs.gpu.pinned import Route
from oocbfs.gpu.result import DeviceDirection
from oocbfs.plan.limits import StepLimits
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support.gpu.device_checks import check, check_components
from tests.support.gpu.emulated import LARGE, NORMAL, OPTIONS, SMALL
from tests.support.gpu.engine_graphs import source_of
from tests.support.gpu.gpu_graphs import (
    grid_graph,
    long_hub_graph,
    matrix_of,
    mixed_graph,
    random_graph,
    sparse_graph,
    two_worlds,
)
from tests.support.real_graphs import needs_graphs, real_graphs
from tests.support.strategies import Pairs, edge_lists, pair_array

pytestmark = pytest.mark.gpu

DIRECTIONS: tuple[Any, ...] = ("auto", "top-down", "bottom-up")


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    try:
        return CudaDevice(OPTIONS)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("limits", [LARGE, SMALL, NORMAL])
@pytest.mark.parametrize("direction", DeviceDirection)
def test_levels(gpu: CudaDevice, direction: DeviceDirection, limits: StepLimits) -> None:
    for matrix in (mixed_graph(1), long_hub_graph(1), random_graph(1, 60_000, 500_000)):
        check(gpu, matrix, [300], direction, limits=limits)
    directed = mixed_graph(2, directed=True)
    check(gpu, directed, [17], direction, directed=True, limits=limits)
    check(gpu, mixed_graph(4), [17, 300], direction, device_range=(1024, 8192), limits=limits)


def test_components(gpu: CudaDevice) -> None:
    for seed in range(5):
        check_components(gpu, mixed_graph(seed), weights_seed=seed)
        check_components(gpu, sparse_graph(seed, directed=True), directed=True)
        check_components(gpu, random_graph(seed, 60_000, 500_000), weights_seed=seed)
    check_components(gpu, two_worlds()[0], device_range=(1024, 8192))


def test_long_grid(gpu: CudaDevice) -> None:
    before = gpu.usage.launches
    check(gpu, grid_graph(3995, 6), [0], limits=NORMAL)
    assert gpu.usage.launches - before <= 40


@given(edge_lists())
@settings(max_examples=200, deadline=None)
def test_arbitrary_graphs(gpu: CudaDevice, edges: Pairs) -> None:
    small = pair_array(edges).astype(np.int64) % 3001
    matrix = matrix_of(3001, small)
    for direction in DeviceDirection:
        check(gpu, matrix, [int(small[0, 0]) if small.size else 0], direction, limits=NORMAL)


def test_tails_are_registered_in_place_or_copied(gpu: CudaDevice, graph: Graph) -> None:
    gpu.routes.clear()
    with gpu.map_host(graph._stored.rows.tails) as address:
        assert address
    assert gpu.routes[0] in Route


@pytest.fixture(scope="module", params=["raw", "zstd"])
def graph(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Graph]:
    path = tmp_path_factory.mktemp("gpu") / "g.ocg"
    oocbfs.convert(generators.rmat(17, seed=1), path, directed=True, codec=request.param)
    with open_file(path) as opened:
        yield opened


@pytest.mark.parametrize("share", ["0%", "10%", "50%", "100%"])
@pytest.mark.usefixtures("gpu")
def test_plans(graph: Graph, share: str) -> None:
    source = source_of(graph)
    expected = graph.bfs(source, engine="cpu")
    for direction in DIRECTIONS:
        found = graph.bfs(
            source,
            engine="cuda",
            parents=True,
            validate=True,
            options=Settings(direction=direction, resident_tails=share),
        )
        np.testing.assert_array_equal(found.levels, expected.levels)
        assert all(level.seconds > 0 for level in found.stats.levels)


@pytest.mark.usefixtures("gpu")
def test_early_stops_and_auto(graph: Graph) -> None:
    source = source_of(graph)
    whole = graph.bfs(source)
    assert whole.stats.engine == "cuda"
    target = int(graph.ids()[np.flatnonzero(whole.levels == 2)[0]])
    stops: tuple[dict[str, Any], ...] = ({"max_depth": 1}, {"max_depth": 2}, {"target": target})
    for stop in stops:
        expected = graph.bfs(source, engine="cpu", **stop)
        found = graph.bfs(source, engine="cuda", validate=True, **stop)
        np.testing.assert_array_equal(found.levels, expected.levels)


@needs_graphs
@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
@pytest.mark.usefixtures("gpu")
def test_real_graphs(tmp_path: Path, path: Path) -> None:
    oocbfs.convert(path, tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as opened:
        sources = np.random.default_rng(1).choice(opened.ids(), 5).tolist()
        for source in sources:
            expected = opened.bfs(source, engine="cpu").levels
            for direction in DIRECTIONS:
                found = opened.bfs(
                    source, engine="cuda", options=Settings(direction=direction)
                ).levels
                np.testing.assert_array_equal(found, expected)

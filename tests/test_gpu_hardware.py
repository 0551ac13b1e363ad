"""The same traversals on a real GPU; skipped where there is none."""

from __future__ import annotations

import pytest

from oocbfs.cuda_device import CudaDevice, DeviceError
from oocbfs.gpu_result import Direction, Limits
from tests.gpu_graphs import grid_graph, mixed_graph, random_graph, wide_hub_graph
from tests.test_gpu_bfs import NORMAL, OPTIONS, SMALL, WIDE, check

pytestmark = pytest.mark.gpu


@pytest.fixture
def gpu() -> CudaDevice:
    try:
        return CudaDevice(OPTIONS)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("limits", [WIDE, SMALL, NORMAL])
@pytest.mark.parametrize("direction", Direction)
def test_levels(gpu: CudaDevice, direction: Direction, limits: Limits) -> None:
    for matrix in (mixed_graph(1), wide_hub_graph(1), random_graph(1, 60_000, 500_000)):
        check(gpu, matrix, [300], direction, limits=limits)
    directed = mixed_graph(2, directed=True)
    check(gpu, directed, [17], direction, directed=True, limits=limits)
    check(gpu, mixed_graph(4), [17, 300], direction, window=(1024, 8192), limits=limits)


def test_long_grid(gpu: CudaDevice) -> None:
    check(gpu, grid_graph(3995, 6), [0], limits=NORMAL)
    assert gpu.usage.launches <= 40

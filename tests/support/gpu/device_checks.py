"""Run the kernels on a device and compare what they find with SciPy."""

from __future__ import annotations

import numpy as np

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.components import GpuComponents
from oocbfs.gpu.device import Device
from oocbfs.gpu.many import GpuMany
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.kernels.components.connect import ComponentStep
from oocbfs.kernels.many.search import ManyFound
from oocbfs.kernels.many.spread import spread_deep
from oocbfs.plan.limits import StepLimits
from oocbfs.plan.ranges import ByteRange
from tests.support.answers import scipy_components
from tests.support.gpu.emulated import LARGE
from tests.support.gpu.gpu_graphs import Matrix, check_parents, levels_by_scipy, rows_of


def check(
    device: Device,
    matrix: Matrix,
    sources: list[int],
    direction: DeviceDirection = DeviceDirection.AUTO,
    *,
    directed: bool = False,
    device_range: ByteRange = (0, 0),
    limits: StepLimits = LARGE,
) -> GpuResult:
    """Search, and compare levels, level sizes and parents."""
    rows = rows_of(matrix)
    in_rows = rows_of(matrix.T.tocsr()) if directed else None
    with GpuBfs(device, rows, in_rows, device_ranges=(device_range,), limits=limits) as bfs:
        result = bfs.run(np.array(sources, np.uint32), direction)
    check_result(result, matrix, sources)
    return result


def check_result(result: GpuResult, matrix: Matrix, sources: list[int]) -> None:
    """Compare levels and level sizes with SciPy's, and check the parents."""
    expected = levels_by_scipy(matrix, sources)
    assert np.array_equal(result.levels, expected)
    assert result.level_sizes == np.bincount(expected[expected >= 0]).tolist()
    assert result.parents is not None
    check_parents(matrix, sources, result.levels, result.parents)


def check_many(
    device: Device,
    matrix: Matrix,
    sources: list[int],
    alpha: float = 30.0,
    *,
    directed: bool = False,
    device_range: ByteRange = (0, 0),
) -> ManyFound:
    """Search from many sources, and compare levels and level sizes."""
    rows = rows_of(matrix)
    in_rows = rows_of(matrix.T.tocsr()) if directed else None
    with GpuMany(device, rows, in_rows, device_ranges=(device_range,)) as many:
        found = many.run(np.array(sources, np.uint32), alpha=alpha)
    assert found.planes is not None
    expected = {vertex: levels_by_scipy(matrix, [vertex]) for vertex in set(sources)}
    for number, vertex in enumerate(sources):
        spread = np.empty(matrix.shape[0], np.int32)
        spread_deep(spread, found.planes, np.empty(0, np.uint32), number)
        levels = expected[vertex]
        assert np.array_equal(spread, levels)
        sizes = np.trim_zeros(found.sizes[:, number], "b")
        assert sizes.tolist() == np.bincount(levels[levels >= 0]).tolist()
    return found


def check_components(
    device: Device,
    matrix: Matrix,
    *,
    directed: bool = False,
    device_range: ByteRange = (0, 0),
    weights_seed: int | None = None,
) -> list[ComponentStep]:
    """Find the components and compare; with a seed, heads are any neighbours: tails matter more."""
    weights = None
    if weights_seed is not None:
        rng = np.random.default_rng(weights_seed)
        weights = rng.permutation(matrix.shape[0]).astype(np.uint32)
    rows = rows_of(matrix, weights=weights)
    in_rows = rows_of(matrix.T.tocsr(), weights=weights) if directed else None
    with GpuComponents(device, rows, in_rows, device_ranges=(device_range,)) as found:
        labels = found.run()
    np.testing.assert_array_equal(labels, scipy_components(matrix, directed=directed))
    return found.steps

"""Bytes over the bus: the emulator's count equals an independent one, sector by sector."""

from __future__ import annotations

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.result import Direction
from oocbfs.kernels.cuda.source import KernelOptions
from tests.gpu.test_gpu_bfs import library
from tests.support.gpu_graphs import Matrix, mixed_graph, random_graph, rows_of, wide_hub_graph
from tests.support.slow_bytes import RecordingDevice, expected_sectors


def graphs() -> list[Matrix]:
    return [mixed_graph(1), wide_hub_graph(1), random_graph(1, 20_000, 160_000)]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("probe_bytes", [32, 128])
@pytest.mark.parametrize("window", [(0, 0), (4096, 16384)])
def test_sectors_equal_an_independent_count(
    which: int, direction: Direction, probe_bytes: int, window: tuple[int, int]
) -> None:
    rows = rows_of(graphs()[which])
    options = KernelOptions(count_rows=True, probe_bytes=probe_bytes)
    device = RecordingDevice(library=library(options=options), seed=which + 5)
    with GpuBfs(device, rows, windows=(window,)) as bfs:
        device.bfs, device.pending = bfs, []
        result = bfs.run(np.array([3], np.uint32), direction)
    moved = device.library.counters().host_sectors
    assert moved > 0
    assert moved == expected_sectors(device, rows, result, window, probe_bytes)
    assert device.usage.slow_bytes == 32 * moved

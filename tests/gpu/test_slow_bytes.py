"""Bytes over the bus: the emulator's count equals an independent one, sector by sector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.result import DeviceDirection
from oocbfs.kernels.cuda.source import KernelOptions
from tests.support.exhaustive import crossing
from tests.support.gpu.emulated import library
from tests.support.gpu.gpu_graphs import Matrix, long_hub_graph, mixed_graph, random_graph, rows_of
from tests.support.gpu.slow_bytes import RecordingDevice, expected_sectors

GRAPHS: tuple[Callable[[], Matrix], ...] = (
    lambda: mixed_graph(1),
    lambda: long_hub_graph(1),
    lambda: random_graph(1, 20_000, 160_000),
)


@pytest.mark.parametrize(
    ("which", "direction", "probe_bytes", "device_range"),
    crossing(range(3), tuple(DeviceDirection), [32, 128], [(0, 0), (4096, 16384)]),
    ids=lambda value: "to".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_sectors_equal_an_independent_count(
    which: int, direction: DeviceDirection, probe_bytes: int, device_range: tuple[int, int]
) -> None:
    rows = rows_of(GRAPHS[which]())
    options = KernelOptions(count_rows=True, probe_bytes=probe_bytes)
    device = RecordingDevice(library=library(options=options), seed=which + 5)
    with GpuBfs(device, rows, device_ranges=(device_range,)) as bfs:
        device.bfs, device.pending = bfs, []
        result = bfs.run(np.array([3], np.uint32), direction)
    moved = device.library.counters().host_sectors
    assert moved > 0
    assert moved == expected_sectors(device, rows, result, device_range, probe_bytes)
    assert device.usage.slow_bytes == 32 * moved

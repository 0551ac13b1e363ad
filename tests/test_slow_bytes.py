"""Bytes over the bus: the emulator's count equals an independent one, sector by sector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from oocbfs.device import Argument, EmulatorDevice
from oocbfs.gpu_bfs import GpuBfs
from oocbfs.gpu_result import Direction, GpuResult
from oocbfs.kernels.bfs_rows import Rows
from oocbfs.kernels.cuda_source import KernelOptions
from tests.gpu_graphs import Matrix, mixed_graph, random_graph, rows_of, wide_hub_graph
from tests.sector_count import count_bottom_up, count_top_down
from tests.test_gpu_bfs import library


class RecordingDevice(EmulatorDevice):
    """Keeps a copy of every pending list that is searched."""

    bfs: GpuBfs
    pending: list[NDArray[np.uint32]]

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        if kernel == "bottom_up_tails":
            self.pending.append(self.bfs.memory["pending"].owner[: int(arguments[3])].copy())
        super().launch(kernel, blocks, threads, arguments)


def expected_sectors(
    device: RecordingDevice, rows: Rows, result: GpuResult, window: tuple[int, int], probe: int
) -> int:
    """Count what the steps of a traversal must have moved."""
    ends = np.cumsum([0, *result.level_sizes])
    queue = device.bfs.memory["queue"].owner
    fast = np.array(window, np.int64) // 32
    index = (rows.bases, rows.starts, rows.shift)
    pending = iter(device.pending)
    total = 0
    for step in result.steps:
        if step.kind == "bottom-up":
            visited = (result.levels >= 0) & (result.levels < step.level)
            total += count_bottom_up(*index, rows.tails, next(pending), visited, fast, probe)
        elif step.kind != "heads":
            for level in range(step.level, step.level + step.num_levels):
                frontier = queue[ends[level - 1] : ends[level]]
                total += count_top_down(*index, frontier, fast)
    return total


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
    with GpuBfs(device, rows, window=window) as bfs:
        device.bfs, device.pending = bfs, []
        result = bfs.run(np.array([3], np.uint32), direction)
    moved = device.library.counters().host_sectors
    assert moved > 0
    assert moved == expected_sectors(device, rows, result, window, probe_bytes)
    assert device.usage.slow_bytes == 32 * moved

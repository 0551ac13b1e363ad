"""Follow a search in the emulator and count what its steps must have moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.device import Argument
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import GpuResult
from oocbfs.kernels.rows import Rows
from tests.support.gpu.cache_count import count_small_level, empty_cache
from tests.support.gpu.sector_count import NO_CUT, count_bottom_up, count_top_down
from tests.support.gpu.steps import numbered


class RecordingDevice(EmulatorDevice):
    """Keeps a copy of every pending list that is searched, where that ends, and the queue."""

    bfs: GpuBfs
    pending: list[tuple[NDArray[np.uint32], int]]
    queue: NDArray[np.uint32]

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        self.queue = self.bfs.memory["queue"].owner
        if kernel == "bottom_up_tails":
            begin, end = map(int, arguments[3:5])
            pending = self.bfs.memory["pending"].owner[begin:end].copy()
            cut = int(arguments[0]["first_target"]) or NO_CUT
            self.pending.append((pending, cut))
        super().launch(kernel, blocks, threads, arguments)


def expected_sectors(
    device: RecordingDevice,
    rows: Rows,
    result: GpuResult,
    device_range: tuple[int, int],
    probe: int,
) -> int:
    """Count what the steps of a search must have moved."""
    ends = np.cumsum([0, *result.level_sizes])
    queue = device.queue
    fast = np.array(device_range, np.int64) // 32
    index = (rows.bases, rows.starts, rows.shift, rows.tails)
    pending = iter(device.pending)
    cache = empty_cache(rows.tails.size)
    total = 0
    for first, step in numbered(result):
        cut = NO_CUT
        if step.direction in ("bottom-up", "split"):
            visited = (result.levels >= 0) & (result.levels < first)
            searched, cut = next(pending)
            total += count_bottom_up(*index, searched, visited, fast, probe, cut)
        if step.direction not in ("bottom-up", "heads"):
            for level in range(first, first + step.num_levels):
                frontier = queue[ends[level - 1] : ends[level]]
                if step.direction == "small":
                    total += count_small_level(*index[:3], frontier, fast, cache)
                else:
                    total += count_top_down(*index, frontier, fast, cut % NO_CUT)
    return total

"""Launches where a watchdog ends long ones: none reads more rows or segments than may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from oocbfs.gpu.device import Argument
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    COMPONENTS_KERNELS,
    MANY_KERNELS,
)
from oocbfs.plan.launches import most_segments, pieces, rows_a_launch
from oocbfs.plan.shape import Tails, tails_of
from tests.support.gpu.block_cyclic import check_block_cyclic
from tests.support.gpu.device_checks import check, check_components, check_many
from tests.support.gpu.emulated import SMALL, library
from tests.support.gpu.gpu_graphs import grid_graph, long_hub_graph, mixed_graph, rows_of

LAUNCH_BYTES = 2 << 10
# Where the bounds of a launch are among its arguments.
BOUNDS = {
    "top_down": 2,
    "top_down_hubs": 3,
    "bottom_up_tails": 3,
    "many_top_down": 2,
    "many_top_down_hubs": 2,
    "many_tails": 2,
    "components_firsts": 3,
    "components_tails": 3,
}


class Watched(EmulatorDevice):
    """A device with a watchdog, which notes what each launch takes at most."""

    launch_bytes = LAUNCH_BYTES

    def __init__(self, kernels: Sequence[str]) -> None:
        super().__init__(library=library(kernels))
        self.taken: dict[str, list[int]] = {}
        self.launched = Counter[str]()

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        self.launched[kernel] += 1
        if kernel in BOUNDS:
            begin, end = (int(arguments[BOUNDS[kernel] + k]) for k in (0, 1))
            self.taken.setdefault(kernel, []).append(end - begin)
        super().launch(kernel, blocks, threads, arguments)

    def check_bounds(self, most_rows: int, *kernels: str) -> None:
        """Assert that these kernels were launched several times for one level, each for little."""
        for kernel in kernels:
            most = LAUNCH_BYTES // SEGMENT_BYTES if kernel.endswith("hubs") else most_rows
            assert max(self.taken[kernel]) <= most
            assert self.taken[kernel].count(most) > 1


def rows_of_a_launch(matrix: Any) -> int:
    most = rows_a_launch(tails_of(rows_of(matrix)), LAUNCH_BYTES)
    assert 32 <= most < matrix.shape[0] // 4
    return most


@pytest.mark.parametrize("direction", DeviceDirection)
def test_searches(direction: DeviceDirection) -> None:
    made, matrix = Watched(BFS_KERNELS), mixed_graph(1)
    check(made, matrix, [17], direction)
    down = direction in (DeviceDirection.TOP_DOWN, DeviceDirection.SPLIT)
    kernels = ("top_down", "top_down_hubs") if down else ("bottom_up_tails",)
    made.check_bounds(rows_of_a_launch(matrix), *kernels)


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_many(alpha: float) -> None:
    made, matrix = Watched(MANY_KERNELS), mixed_graph(2)
    check_many(made, matrix, [17, 300, 5], alpha)
    kernels = ("many_top_down", "many_top_down_hubs") if alpha < 1 else ("many_tails",)
    made.check_bounds(rows_of_a_launch(matrix), *kernels)


def test_components() -> None:
    made, matrix = Watched(COMPONENTS_KERNELS), mixed_graph(3)
    check_components(made, matrix, weights_seed=1)
    made.check_bounds(rows_of_a_launch(matrix), "components_tails")


@pytest.mark.parametrize("direction", [DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP])
def test_several_devices(monkeypatch: pytest.MonkeyPatch, direction: DeviceDirection) -> None:
    before = check_block_cyclic(mixed_graph(4), [17], 2, direction).counts.launches
    monkeypatch.setattr(EmulatorDevice, "launch_bytes", 4 * LAUNCH_BYTES)
    assert check_block_cyclic(mixed_graph(4), [17], 2, direction).counts.launches > 1.2 * before


def test_small_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oocbfs.gpu.search_kernels.WATCHED_SMALL_LEVELS", 8)
    made = Watched(BFS_KERNELS)
    check(made, grid_graph(60, 2), [0], limits=SMALL)
    assert 60 // 8 <= made.launched["small_levels"] <= 60 // 8 + 2


def test_any_rows_of_a_launch_are_small_enough() -> None:
    """As many of the largest rows as one launch may take have no more bytes, blocks being alike."""
    matrix = long_hub_graph(1)
    rows = rows_of(matrix)
    ends = rows.bases[np.arange(1, rows.heads.size + 1) >> rows.shift] + rows.starts[1:]
    lengths = np.sort(np.diff(ends, prepend=0))[::-1]
    for most in (1 << 12, 1 << 14, 1 << 30):
        count = rows_a_launch(tails_of(rows), most)
        assert count == 32 or count == rows.heads.size // 32 * 32 or lengths[:count].sum() <= most
    even = Tails(64_000, 1000, np.arange(0, 64_000, 64))
    assert rows_a_launch(even, 64 * 320) == 320
    assert rows_a_launch(even, 10) == 32


def test_segments_of_hubs_are_no_more_than_said() -> None:
    rows = rows_of(long_hub_graph(1))
    ends = rows.bases[np.arange(1, rows.heads.size + 1) >> rows.shift] + rows.starts[1:]
    lengths = np.diff(ends, prepend=0).astype(np.int64)
    segments = -(-lengths[lengths > SEGMENT_BYTES] // SEGMENT_BYTES)
    assert 0 < segments.sum() <= most_segments(rows.tails.size)


def test_pieces() -> None:
    assert list(pieces(3, 10, None)) == [(3, 10)]
    assert list(pieces(3, 10, 3)) == [(3, 6), (6, 9), (9, 10)]
    assert list(pieces(5, 5, 3)) == list(pieces(5, 5, None)) == [(5, 5)]

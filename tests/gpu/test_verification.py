"""The check of a search on the device that ran it: it passes right answers and no others."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.device import Device
from oocbfs.gpu.result import NOT_REACHED, DeviceDirection
from oocbfs.gpu.verification import count_broken
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import BFS_KERNELS, CHECK_KERNELS
from oocbfs.kernels.emulator.build import Checks
from tests.support.gpu import emulated
from tests.support.gpu.emulated import LARGE, SEEDS
from tests.support.gpu.gpu_graphs import Matrix, matrix_of, mixed_graph, rows_of

device = partial(emulated.device, kernels=(*BFS_KERNELS, *CHECK_KERNELS))


def searched(made: Device, matrix: Matrix, sources: list[int], **how: Any) -> GpuBfs:
    """Search, and leave what was found on the device."""
    in_rows = rows_of(matrix.T.tocsr())
    bfs = GpuBfs(made, rows_of(matrix), in_rows, limits=LARGE, device_ranges=((0, 4096),))
    bfs.run(np.array(sources, np.uint32), **how)
    return bfs


@pytest.mark.parametrize("seed", SEEDS)
def test_right_answers_break_no_rule(seed: int) -> None:
    matrix = mixed_graph(seed, directed=seed > 5)
    direction = list(DeviceDirection)[seed % 4]
    with searched(device(seed), matrix, [300], direction=direction) as bfs:
        assert count_broken(bfs) == 0


def test_searches_that_stop_early_break_no_rule() -> None:
    matrix = mixed_graph(1)
    for how in ({"max_depth": 0}, {"max_depth": 2}, {"target": 8860}):
        with searched(device(), matrix, [300], **how) as bfs:
            assert bfs.num_expanded > 0 or how == {"max_depth": 0}
            assert count_broken(bfs) == 0


def test_no_races() -> None:
    with searched(device(checks=Checks.RACES), mixed_graph(1), [17]) as bfs:
        assert count_broken(bfs) == 0


@pytest.mark.parametrize(
    ("name", "level", "value"),
    [
        ("levels", 2, 1),  # too near: nothing confirms it
        ("levels", 2, 3),  # too far
        ("levels", 2, 0),  # a source that is none
        ("levels", 0, 1),  # a source that is not one any more
        ("levels", 3, NOT_REACHED),  # forgotten
        ("levels", NOT_REACHED, 2),  # reached by nothing
        ("parents", 2, 17),
        ("parents", 2, NO_HEAD),
        ("parents", 0, 5),
        ("parents", NOT_REACHED, 5),
    ],
)
def test_one_wrong_word_is_noticed(name: str, level: int, value: int) -> None:
    with searched(device(), mixed_graph(1), [300]) as bfs:
        assert count_broken(bfs) == 0
        vertex = int(np.flatnonzero(bfs.device.download(bfs.memory["levels"]) == level)[-1])
        memory = bfs.memory[name].slice(vertex, vertex + 1)
        bfs.device.upload(memory, np.array([value], memory.dtype))
        assert count_broken(bfs) > 0


def test_every_class_of_row_is_looked_at() -> None:
    """Whichever vertex is wrong: it is found by a head, by a short or a long row, by a hub."""
    n, rng = 1600, np.random.default_rng(1)
    ends = {1: np.arange(100, 1500), 2: np.arange(50, 300, 3), 3: np.array([7, 9, 1501])}
    edges = [np.stack([np.full(to.size, of), to], axis=1) for of, to in ends.items()]
    first = np.array([[0, of] for of in ends])
    matrix = matrix_of(n, np.concatenate([first, *edges]), directed=True)
    with searched(device(), matrix, [0]) as bfs:
        levels = bfs.device.download(bfs.memory["levels"])
        for to in ends.values():
            vertex = int(rng.choice(to))
            part = bfs.memory["levels"].slice(vertex, vertex + 1)
            for wrong in (levels[vertex] + 1, levels[vertex] - 1):
                bfs.device.upload(part, np.array([wrong], np.uint8))
                assert count_broken(bfs) > 0
            bfs.device.upload(part, levels[vertex : vertex + 1])
        assert count_broken(bfs) == 0


def test_launches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = device()
    monkeypatch.setattr(made, "launch_bytes", 4096)
    with searched(made, mixed_graph(3), [17]) as bfs:
        before = made.usage.launches
        assert count_broken(bfs) == 0
        assert made.usage.launches - before > 10


def test_no_edges() -> None:
    with searched(device(), matrix_of(5, np.empty((0, 2), np.int64)), [3]) as bfs:
        assert count_broken(bfs) == 0

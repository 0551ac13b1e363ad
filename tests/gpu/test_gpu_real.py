"""The CUDA kernels on every small real graph, in ten schedules: the same as the CPU engine."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.components import GpuComponents
from oocbfs.gpu.result import Direction, Limits
from oocbfs.kernels.components.connect import connect
from tests.gpu import test_gpu_components
from tests.gpu.test_gpu_bfs import NORMAL, SEEDS, WIDE, device
from tests.support.real_graphs import real_graphs

MOST_VERTICES = 100_000
DEEP = 300


@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_levels_of_real_graphs(path: Path, tmp_path: Path) -> None:
    oocbfs.convert(path, tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        if not 0 < graph.num_vertices <= MOST_VERTICES:
            pytest.skip(f"{graph.num_vertices:,} vertices: the emulator would take long")
        order = np.arange(graph.num_vertices) if graph.order is None else np.asarray(graph.order)
        rng = np.random.default_rng(5)
        sources = rng.choice(np.flatnonzero(np.asarray(graph.rows.degrees)), 2).astype(np.uint32)
        expected = [graph.bfs(int(graph.ids_of(sources[[i]])[0])).levels[order] for i in (0, 1)]
        # Wide kernels in every direction, and the choice with everything that a user gets.
        ways: list[tuple[Direction, Limits]] = [
            (Direction.TOP_DOWN, WIDE),
            (Direction.BOTTOM_UP, WIDE),
            (Direction.SPLIT, WIDE),
            (Direction.AUTO, NORMAL),
        ]
        # Thousands of wide launches take the emulator minutes: deep graphs run in one block.
        if max(int(levels.max()) for levels in expected) > DEEP:
            ways = [(Direction.TOP_DOWN, NORMAL), (Direction.AUTO, NORMAL)]
        for seed, (direction, limits) in zip(SEEDS, itertools.cycle(ways), strict=False):
            made = device(seed)
            with GpuBfs(made, graph.rows, graph.in_rows, limits=limits) as bfs:
                found = bfs.run(sources[[seed % 2]], direction)
            assert np.array_equal(found.levels, expected[seed % 2]), (seed, direction)


@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_components_of_real_graphs(path: Path, tmp_path: Path) -> None:
    oocbfs.convert(path, tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        if graph.num_vertices > MOST_VERTICES:
            pytest.skip(f"{graph.num_vertices:,} vertices: the emulator would take long")
        in_rows = graph.in_rows if graph.directed else None
        expected = np.empty(graph.num_vertices, np.uint32)
        connect(graph.rows, in_rows, expected)
        for seed in SEEDS:
            made = test_gpu_components.device(seed)
            with GpuComponents(made, graph.rows, in_rows) as found:
                np.testing.assert_array_equal(found.run(), expected)

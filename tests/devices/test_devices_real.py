"""Real graphs cut for several devices of the emulator: the same levels as on the CPU."""

from __future__ import annotations

import shutil
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from oocbfs.search.graph import open_file
from oocbfs.settings import Settings
from tests.support.exhaustive import ALL
from tests.support.gpu.engine_graphs import source_of
from tests.support.real_graphs import real_graphs
from tests.support.shared import SharedGraphs

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)

# The emulator would take long for larger ones, and for those with many levels.
MOST_VERTICES = 20_000
MOST_LEVELS = 40
DEVICES = cycle([(0, 1), (0, 1, 2), (0,)])


@pytest.mark.parametrize("path", real_graphs()[:: 1 if ALL else 4], ids=lambda path: path.name)
def test_levels(path: Path, shared_graphs: SharedGraphs) -> None:
    with open_file(shared_graphs.convert(path, order="auto")) as graph:
        if not 0 < graph.num_vertices <= MOST_VERTICES:
            pytest.skip(f"{graph.num_vertices:,} vertices: the emulator would take long")
        source = source_of(graph)
        expected = graph.bfs(source, engine="cpu")
        if expected.depth > MOST_LEVELS:
            pytest.skip(f"{expected.depth:,} levels: the emulator would take long")
        found = graph.bfs(
            source,
            engine="emulator",
            parents=True,
            validate=True,
            options=Settings(devices=next(DEVICES)),
        )
        np.testing.assert_array_equal(found.levels, expected.levels)

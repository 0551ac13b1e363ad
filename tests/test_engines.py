"""The CUDA kernels, run by the emulator, give what the CPU engine gives."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs import generators
from oocbfs.errors import OocbfsError, QueryError

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_emulator_equals_cpu(tmp_path: Path, directed: bool, order: Any) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(11, seed=3), path, directed=directed, order=order)
    with oocbfs.open(path) as graph:
        for source in np.random.default_rng(4).integers(0, graph.num_vertices, 4).tolist():
            for direction in ("auto", "top-down", "bottom-up"):
                expected = graph.bfs(source)
                found = graph.bfs(
                    source,
                    engine="emulator",
                    direction=direction,
                    parents=True,
                    validate=True,
                )
                np.testing.assert_array_equal(found.levels, expected.levels)
                assert found.level_sizes.tolist() == expected.level_sizes.tolist()
                assert found.stats.slow_bytes is not None


def test_engines_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    oocbfs.convert(np.array([[0, 1]]), tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        with pytest.raises(QueryError, match="runs to the end"):
            graph.bfs(0, engine="emulator", max_depth=1)
        with pytest.raises(OocbfsError, match="CuPy"):
            graph.bfs(0, engine="cuda")

"""Methods on the cuda engine, end to end, with doubles of CuPy and of CUDA's runtime."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.generate import generators
from oocbfs.kernels.emulator.library import Library
from oocbfs.kernels.methods.axes import MethodOptions
from oocbfs.methods import parse_method
from oocbfs.methods.programs import make_program
from oocbfs.settings import Settings
from tests.support.gpu.cuda_double import Runtime
from tests.support.gpu.cupy_double import fake_cupy

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@pytest.mark.parametrize("method", ["v1", "v3.3", "two-phase", "async", "edge-blocks"])
def test_levels(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(9, seed=5), path, directed=True)
    program = make_program(parse_method(method), with_parents=False)
    library = Library(MethodOptions(with_parents=False), variants=program.kernels)
    library.configure(1, 2, 1 / 16)
    runtime, launched = Runtime(library=library, read_only=False, offset=0), list[Any]()
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(runtime, launched))
    with oocbfs.open(path) as graph:
        source = int(graph.ids()[int(np.argmax(graph.degrees))])
        expected = graph.bfs(source, engine="cpu").levels
        found = graph.bfs(source, engine="cuda", options=Settings(method=method))
    assert np.array_equal(found.levels, expected)
    compiled = {entry[1] for entry in launched if entry[0] == "compile"}
    assert compiled == {kernel.name for kernel in program.kernels}
    counts = found.stats.counts
    assert counts is not None
    assert counts.edges_examined
    assert counts.pcie_sectors is None  # which a GPU does not tell
    assert not runtime.pinned

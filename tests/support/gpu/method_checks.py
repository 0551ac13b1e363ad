"""Run methods of the papers in the emulator, and compare what they find with SciPy."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import GpuResult
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import Library
from oocbfs.kernels.methods.axes import MethodOptions
from oocbfs.kernels.rows import Rows
from oocbfs.methods import METHODS, parse_method
from oocbfs.methods.programs import Program, make_program
from oocbfs.methods.search import MethodSearch
from tests.support.gpu.emulated import CHECKS, FOLDER
from tests.support.gpu.gpu_graphs import (
    Matrix,
    check_parents,
    levels_by_scipy,
    matrix_of,
    rows_of,
)

ON_DEVICES = [name for name, method in METHODS.items() if "cuda" in method.engines][:-1]
# Every value of every option with some method that looks at it.
WITH_OPTIONS = [
    "simple:block=1024",
    "v2:block=1024",
    "v3.2:pull=warp",
    "v3.3:block=1024",
    "v3.3:pull=warp",
    "expand-contract:filter=none,gather=serial",
    "contract-expand:filter=mask,gather=warp",
    "two-phase:filter=warp,gather=scan",
    "two-phase:filter=none",
    "hybrid:filter=history,gather=scan+warp",
    "scan-free:balance=stride",
    "no-queue:balance=fetch1",
    "xbfs:balance=donate",
    "async:balance=donate,block=1024",
    "edge-blocks:blocks=1",
]


@cache
def program_of(text: str) -> Program:
    """Return a method with its options, put together."""
    return make_program(parse_method(text), with_parents=True)


@cache
def library(text: str, checks: Checks = CHECKS) -> Library:
    """Return a build of a method's kernels; tests share it."""
    return Library(MethodOptions(), checks, FOLDER, variants=program_of(text).kernels)


def search(
    text: str,
    rows: Rows,
    in_rows: Rows,
    *,
    seed: int = 1,
    checks: Checks = CHECKS,
    blocks: int = 3,
    resident_blocks: int = 2,
) -> MethodSearch:
    """Bring rows to a device for a method; close what it gives."""
    device = EmulatorDevice(
        library=library(text, checks),
        seed=seed,
        num_blocks=blocks,
        resident_blocks=resident_blocks,
    )
    return MethodSearch(device, parse_method(text), program_of(text), rows, in_rows)


def check_method(
    text: str,
    matrix: Matrix,
    sources: list[int],
    *,
    directed: bool = False,
    seed: int = 1,
    checks: Checks = CHECKS,
) -> GpuResult:
    """Search, and compare levels and parents."""
    rows = rows_of(matrix)
    in_rows = rows_of(matrix.T.tocsr()) if directed else rows
    with search(text, rows, in_rows, seed=seed, checks=checks) as made:
        result = made.run(np.array(sources, np.uint32))
    expected = levels_by_scipy(matrix, sources)
    assert np.array_equal(result.levels, expected)
    assert result.parents is not None
    check_parents(matrix, sources, result.levels, result.parents)
    return result


def hub_graph(seed: int, *, directed: bool = False) -> Matrix:
    """Return a small graph with rows for a block, for a warp and for a lane, and a path."""
    rng = np.random.default_rng(seed)
    n = 900
    parts: list[NDArray[np.int64]] = [rng.integers(0, n - 30, (1200, 2))]
    for hub, degree in ((5, 600), (6, 300), (7, 60), (8, 40)):
        targets = rng.choice(n - 30, degree, replace=False)
        parts.append(np.stack([np.full(degree, hub), targets], axis=1))
    path = np.arange(n - 30, n - 10)
    parts += [np.stack([path[:-1], path[1:]], axis=1), np.array([[9, path[0]]])]
    return matrix_of(n, np.concatenate(parts), directed=directed)

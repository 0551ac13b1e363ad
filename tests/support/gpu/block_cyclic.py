"""Vertices cut for several devices of the emulator, and what they find compared with SciPy."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from oocbfs.cluster.devices import DevicesBfs
from oocbfs.devices.cutting import cut_rows
from oocbfs.devices.links import EmulatorLinks
from oocbfs.devices.shard import DeviceShard
from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.kernels.cuda.source import DEVICES_KERNELS, KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.rows import Rows
from oocbfs.plan.limits import StepLimits
from tests.support.gpu.device_checks import check_result
from tests.support.gpu.emulated import CHECKS, LARGE, library
from tests.support.gpu.gpu_graphs import Matrix, rows_of

OPTIONS = KernelOptions(count_rows=True, block_cyclic=True)


def emulated(
    rows: Rows,
    in_rows: Rows | None,
    count: int,
    *,
    seed: int = 1,
    checks: Checks = CHECKS,
    limits: StepLimits = LARGE,
) -> DevicesBfs:
    """Cut rows for some devices."""
    cut = Cut(rows.heads.size, count)
    built = library(DEVICES_KERNELS, checks=checks, options=OPTIONS)
    with ExitStack() as stack:
        parts = [
            stack.enter_context(
                DeviceShard(
                    EmulatorDevice(seed=seed + part, library=built),
                    cut_rows(rows, cut, part),
                    None if in_rows is None else cut_rows(in_rows, cut, part),
                    cut=cut,
                    number=part,
                )
            )
            for part in range(count)
        ]
        return DevicesBfs(parts, EmulatorLinks(range(count)), stack.pop_all(), limits=limits)


def check_block_cyclic(
    matrix: Matrix,
    sources: list[int],
    count: int,
    direction: DeviceDirection = DeviceDirection.AUTO,
    *,
    directed: bool = False,
    seed: int = 1,
    checks: Checks = CHECKS,
    limits: StepLimits = LARGE,
) -> GpuResult:
    """Search, and compare levels, level sizes, parents, and the bytes of each link."""
    rows = rows_of(matrix)
    in_rows = rows_of(matrix.T.tocsr()) if directed else None
    with emulated(rows, in_rows, count, seed=seed, checks=checks, limits=limits) as bfs:
        result = bfs.run(np.array(sources, np.uint32), direction)
    check_result(result, matrix, sources)
    return result

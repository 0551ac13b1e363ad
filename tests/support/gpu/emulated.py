"""Devices of the emulator for tests: which kernels, under which checks and schedules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from itertools import cycle, product
from pathlib import Path
from typing import Any

from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.kernels.cuda import source as cuda_source
from oocbfs.kernels.cuda.source import BFS_KERNELS, KernelOptions, sources
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import Library
from oocbfs.plan.limits import StepLimits
from tests.support.exhaustive import ALL

# Ten schedules of blocks, warps and lanes.
SEEDS = range(1, 11)
OPTIONS = KernelOptions(count_rows=True)
# test_sanitizers runs tests again, in a process that has libasan preloaded.
CHECKS = Checks(os.environ.get("OOCBFS_TEST_CHECKS", Checks.NONE.value))
# test_mutants runs tests again with broken kernels.
FOLDER = Path(os.environ.get("OOCBFS_TEST_KERNELS", cuda_source.FOLDER))
# No frontier is small: the kernels of large levels get the work that test graphs would keep from
# them.
LARGE = StepLimits(small_vertices=0, heads_passes=0)
# Every frontier is small: one block does it all.
SMALL = StepLimits(small_vertices=1 << 30, small_bytes=1 << 30)
NORMAL = StepLimits()


def schedules(*options: Sequence[Any], rounds: int = 1) -> list[tuple[Any, ...]]:
    """Give each schedule some combinations of options, in turn, so that all of them come up.

    Schedules are random, so none is special to an option. With ``scripts/test --all``, every
    schedule meets every combination.
    """
    combinations = list(product(*options))
    if ALL:
        return [(seed, *chosen) for seed in SEEDS for chosen in combinations]
    seeds = [seed for _ in range(rounds) for seed in SEEDS]
    assert len(seeds) >= len(combinations)
    return [(seed, *chosen) for seed, chosen in zip(seeds, cycle(combinations), strict=False)]


@cache
def library(
    kernels: Sequence[str] = BFS_KERNELS,
    *,
    checks: Checks = CHECKS,
    options: KernelOptions = OPTIONS,
) -> Library:
    """Return a build of some kernels; tests share it."""
    return Library(options, checks, FOLDER, sources(kernels, FOLDER))


def device(
    seed: int = 1,
    *,
    kernels: Sequence[str] = BFS_KERNELS,
    checks: Checks = CHECKS,
    num_blocks: int = 3,
) -> EmulatorDevice:
    """Return a device that runs the schedule of a seed."""
    return EmulatorDevice(seed=seed, library=library(kernels, checks=checks), num_blocks=num_blocks)

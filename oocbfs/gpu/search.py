"""Run a search that is on a device, and tell what it did as all engines do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from oocbfs.errors import BudgetError, FormatError
from oocbfs.gpu.cuda_device import DeviceError
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.pinned import PinError
from oocbfs.gpu.result import GpuResult
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.query import Output, Query, Run
from oocbfs.results.levels import moved_by_tier
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

# What says that this graph cannot be searched on this GPU; another engine may.
UNUSABLE = (DeviceError, PinError, BudgetError)


def follow_schedule(device: Device, settings: Settings) -> None:
    """Let the emulator run threads in the order that the settings want."""
    schedule = settings.schedule
    if isinstance(device, EmulatorDevice):
        device.schedule(schedule.seed, schedule.blocks, schedule.resident_blocks)


def timed(
    graph: AnyStored, search: Callable[..., GpuResult], query: Query
) -> tuple[GpuResult, float]:
    """Search from the sources, with the limits that were asked for; return seconds, too."""
    start = time.perf_counter()
    try:
        done = search(query.sources, max_depth=query.max_depth, target=query.target)
    except FormatError as error:
        raise FormatError(f"{graph.path}: {error}") from error
    return done, time.perf_counter() - start


def fill(out: Output, done: GpuResult) -> None:
    """Bring levels and parents of stored vertices to where they go."""
    non_isolated = done.levels.size
    out.levels[:non_isolated] = done.levels
    out.levels[non_isolated:] = -1
    if out.parents is not None and done.parents is not None:
        out.parents[:non_isolated] = done.parents
        out.parents[non_isolated:] = NO_HEAD


def run_of(engine: str, done: GpuResult, seconds: float) -> Run:
    """Return what was done level by level, as all engines do."""
    finished = np.flatnonzero(done.records["num_levels"])
    moved = moved_by_tier(done.records, done.tiers)
    beside = [done.beside[number] for number in finished]
    records = done.records[finished]
    return Run(engine, 1, done.depth, seconds, records, moved, beside, around=done.around)

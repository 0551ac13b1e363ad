"""Run a search that is on a device, and tell what it did as all engines do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

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


def run_search(
    graph: AnyStored,
    search: Any,  # noqa: ANN401
    query: Query,
    *how: object,
    **more: object,
) -> tuple[Any, float]:
    """Run a search; return what it found and did, and seconds."""
    start = time.perf_counter()
    limits = {"max_depth": query.max_depth, "target": query.target}
    try:
        done = search.run(query.sources, *how, **limits, **more)
    except FormatError as error:
        raise FormatError(f"{graph.path}: {error}") from error
    return done, time.perf_counter() - start


def fill(
    graph: AnyStored,
    search: Any,  # noqa: ANN401
    query: Query,
    out: Output,
    *how: object,
) -> tuple[Any, float]:
    """Run a search and fill levels and parents; return what it did, and seconds."""
    done, seconds = run_search(graph, search, query, *how)
    non_isolated = done.levels.size
    out.levels[:non_isolated] = done.levels
    out.levels[non_isolated:] = -1
    if out.parents is not None and done.parents is not None:
        out.parents[:non_isolated] = done.parents
        out.parents[non_isolated:] = NO_HEAD
    return done, seconds


def run_of(engine: str, done: GpuResult, seconds: float) -> Run:
    """Return what was done level by level, as all engines do."""
    finished = np.flatnonzero(done.records["num_levels"])
    moved = moved_by_tier(done.records, done.tiers)
    beside = [done.beside[number] for number in finished]
    records = done.records[finished]
    return Run(engine, 1, done.depth, seconds, records, moved, beside, around=done.around)

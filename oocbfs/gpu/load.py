"""Bring a graph to a device: which device, and what a plan puts where.

A driver may pin less host memory than is free: 0.5 to 1 GB under WSL, or what RLIMIT_MEMLOCK
allows. A graph is then planned again with what it pins: more of it on the device, or on disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from oocbfs.errors import BudgetError
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.pinned import PinError
from oocbfs.gpu.rows import OnDevice
from oocbfs.gpu.staging import DiskTails
from oocbfs.kernels.cuda.source import Kernel, KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.memory import format_size, parse_size
from oocbfs.plan.device import DevicePlan, plan
from oocbfs.plan.shape import Shape
from oocbfs.progress import Phases

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

Work = TypeVar("Work", bound=OnDevice)
# Plans that are tried; what can be pinned is known better each time.
_MOST_PLANS = 4

_log = logging.getLogger(__name__)


class Budget(NamedTuple):
    """What a plan is made from; see ``plan.device.plan``."""

    shape: Shape
    vram_bytes: int | None
    host_bytes: int | None
    resident_tails: str | int | None = None
    with_parents: bool = False

    def plan(self, *, pinned_results: bool = True) -> DevicePlan:
        """Decide what of the graph lives where."""
        return plan(
            self.shape,
            vram_bytes=self.vram_bytes,
            host_bytes=self.host_bytes,
            resident_tails=self.resident_tails,
            with_parents=self.with_parents,
            pinned_results=pinned_results,
        )

    def plan_less(self, host_bytes: int) -> DevicePlan:
        """Decide again, where less can be pinned.

        Results may then come through ordinary memory, and more be resident than was asked for.
        """
        less = self._replace(host_bytes=host_bytes)
        for budget, pinned_results in (
            (less, True),
            (less, False),
            (less._replace(resident_tails=None), True),
        ):
            with suppress(BudgetError):
                return budget.plan(pinned_results=pinned_results)
        return less._replace(resident_tails=None).plan(pinned_results=False)


def make_device(
    engine: str,
    options: KernelOptions,
    kernels: Sequence[Kernel],
    phases: Phases | None = None,
    *,
    counted: bool = False,
) -> Device:
    """Make the device that an engine names, with its kernels compiled.

    The emulator counts every access if that is wanted, which takes it half as long again.
    """
    checks = Checks.COUNTS if counted else Checks.NONE
    device: Device = (
        CudaDevice(options, kernels=kernels, phases=phases)
        if engine == "cuda"
        else EmulatorDevice(options, kernels=kernels, checks=checks)
    )
    device.load_kernels()
    return device


def usable_bytes(device: Device, vram: str | int | None) -> int | None:
    """Return the device memory that a user allows, or else what is free; None is no limit."""
    return device.free_bytes() if vram is None else parse_size(vram)


def load_planned(work: Callable[[DevicePlan], Work], device: Device, budget: Budget) -> Work:
    """Make work as planned, and plan again if the driver pins less; ``note`` then says so."""
    decided, note = budget.plan(), None
    for number in range(_MOST_PLANS):
        try:
            made = work(decided)
        except PinError as error:
            if number == _MOST_PLANS - 1:
                raise
            wanted = decided.pinned_bytes
            decided = _plan_again(device, budget, wanted, error)
            note = (
                f"the driver would not pin {format_size(wanted)} of host memory but "
                f"{format_size(decided.pinned_bytes)}: {format_size(decided.resident_bytes)} of "
                f"the tails are on the GPU, {format_size(decided.disk_bytes)} stay on disk"
            )
            continue
        break
    if note is not None:
        _log.warning("%s", note)
    made.note = note
    return made


def _plan_again(device: Device, budget: Budget, wanted: int, error: PinError) -> DevicePlan:
    """Find out how much can be pinned, and plan with that; if there is no such plan, say both."""
    pinnable = device.pinnable_bytes(wanted)
    try:
        return budget.plan_less(pinnable)
    except BudgetError as none:
        raise PinError(f"{error}; {none}") from none


def disks_of(graph: StoredGraph) -> tuple[DiskTails, DiskTails]:
    """Return where the tails of both directions are on disk."""
    rows = graph.disk_rows
    out, back = (DiskTails(rows.file, side) for side in (rows.out_disk, rows.in_disk))
    return out, back


def load_graph(
    work: Callable[..., Work],
    device: Device,
    graph: StoredGraph,
    budget: Budget,
    phases: Phases | None = None,
    *,
    whole: bool = False,
    **options: Any,
) -> Work:
    """Make work on a graph, with its rows where a plan wants them; shows what is copied.

    Vertices behind the last non-isolated one are left out, unless the graph is wanted whole.
    """
    rows, in_rows = (graph.rows, graph.in_rows) if whole else graph.non_isolated_rows

    def load(decided: DevicePlan) -> Work:
        if decided.disk_bytes:
            options["disks"] = disks_of(graph)
        if decided.order_bytes:
            options["order"] = graph.order
        with (phases or Phases(show=False))("load", decided.copied_bytes, "B") as bar:
            return work(
                device,
                rows,
                in_rows,
                device_ranges=decided.device_ranges,
                host_ranges=decided.host_ranges,
                copied=bar.update,
                **options,
            )

    return load_planned(load, device, budget)

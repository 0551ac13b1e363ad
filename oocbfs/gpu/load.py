"""Bring a graph to a device: which device, and what a plan puts where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.rows import OnDevice
from oocbfs.kernels.cuda.source import Kernel, KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.memory import parse_size
from oocbfs.plan.device import DevicePlan
from oocbfs.progress import Phases

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

Work = TypeVar("Work", bound=OnDevice)


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
    """Give the device memory that a user allows, or else what is free; None is no limit."""
    return device.free_bytes() if vram is None else parse_size(vram)


def load_graph(
    work: Callable[..., Work],
    device: Device,
    graph: StoredGraph,
    decided: DevicePlan,
    phases: Phases | None = None,
    *,
    whole: bool = False,
    **options: Any,  # noqa: ANN401
) -> Work:
    """Make work on a graph, with its rows where a plan wants them; shows what is copied.

    Vertices behind the last one that is linked are left out, unless the graph is wanted whole.
    """
    rows, in_rows = (graph.rows, graph.in_rows) if whole else graph.connected_rows
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

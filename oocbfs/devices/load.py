"""Make several devices and their links, and bring a shard of a graph to one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from oocbfs.devices.cuda_links import cuda_links
from oocbfs.devices.links import EmulatorLinks, Links
from oocbfs.devices.shard import DeviceShard
from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.load import Budget, load_planned, usable_bytes
from oocbfs.kernels.cuda.source import DEVICES_KERNELS, KernelOptions
from oocbfs.kernels.emulator.library import Library
from oocbfs.plan.device import DevicePlan
from oocbfs.plan.search_arrays import exchange_bytes
from oocbfs.plan.shape import Shape, tails_of
from oocbfs.progress import Phases
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.kernels.rows import Rows


def make_devices(
    engine: str, names: Sequence[int], options: KernelOptions, phases: Phases
) -> list[Device]:
    """Make the devices, with their kernels compiled; those of the emulator share one library."""
    devices: list[Device] = []
    library: Library | None = None
    for name in names:
        made = make_shard_device(engine, name, options, phases=phases, library=library)
        library = made.library if isinstance(made, EmulatorDevice) else None
        devices.append(made)
    return devices


def make_shard_device(
    engine: str,
    number: int | None,
    options: KernelOptions,
    *,
    phases: Phases | None = None,
    library: Library | None = None,
) -> Device:
    """Make a device for a shard, with its kernels compiled; that of the emulator has a library."""
    made: Device
    if engine == "cuda":
        made = CudaDevice(options, kernels=DEVICES_KERNELS, phases=phases, device_id=number)
    else:
        made = EmulatorDevice(options, kernels=DEVICES_KERNELS, library=library)
    made.load_kernels()
    return made


def place(
    device: Device,
    sides: Sequence[Rows],
    cut: Cut,
    number: int,
    settings: Settings,
    options: KernelOptions,
) -> DeviceShard:
    """Bring a shard to its device, as planned for a graph of its size beside the bitmaps of all."""
    vram_bytes = usable_bytes(device, settings.vram)
    if vram_bytes is not None:
        vram_bytes -= exchange_bytes(cut)
    shape = Shape(
        num_vertices=cut.rows_of(number),
        shift=sides[0].shift,
        tails=tuple(map(tails_of, sides)),
        on_disk=False,
    )

    def load(decided: DevicePlan) -> DeviceShard:
        return DeviceShard(
            device,
            sides[0],
            sides[-1],
            cut=cut,
            number=number,
            with_parents=options.with_parents,
            device_ranges=decided.device_ranges,
            host_ranges=decided.host_ranges,
        )

    budget = Budget(shape, vram_bytes, None, settings.resident_tails, options.with_parents)
    return load_planned(load, device, budget)


def link(devices: Sequence[Device], names: Sequence[int]) -> Links:
    """Return the links between all pairs of devices."""
    if isinstance(devices[0], CudaDevice):
        return cuda_links(cast(Sequence[CudaDevice], devices), names)
    return EmulatorLinks(names)

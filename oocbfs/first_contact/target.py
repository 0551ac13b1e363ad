"""What is looked at: a GPU, or the emulator that stands for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.kernels.cuda.source import Kernel, KernelOptions
from oocbfs.kernels.emulator.build import Checks

Engine = Literal["cuda", "emulator"]
# Makes a device of some kernels: the current one, or that of a number.
Maker = Callable[[KernelOptions, Sequence[Kernel], int | None], Device]


def _cuda(options: KernelOptions, kernels: Sequence[Kernel], number: int | None) -> Device:
    return CudaDevice(options, kernels=kernels, device_id=number)


def _emulated(options: KernelOptions, kernels: Sequence[Kernel], number: int | None) -> Device:
    """Watch every access: the emulator finds races and stray addresses, which a GPU does not."""
    return EmulatorDevice(options, kernels=kernels, checks=Checks.RACES, seed=1 + (number or 0))


class Target:
    """An engine and its devices, each made once, with its kernels compiled."""

    def __init__(self, engine: Engine, make: Maker | None = None) -> None:
        self.engine = engine
        self._make = make or (_cuda if engine == "cuda" else _emulated)
        self._made: dict[tuple[KernelOptions, tuple[Kernel, ...], int | None], Device] = {}

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.engine == "cuda"

    def device(
        self, options: KernelOptions, kernels: Sequence[Kernel], number: int | None = None
    ) -> Device:
        """Return the device for some kernels."""
        key = (options, tuple(kernels), number)
        if key not in self._made:
            made = self._make(options, kernels, number)
            made.load_kernels()
            self._made[key] = made
        return self._made[key]

    def close(self) -> None:
        """Release what devices keep."""
        while self._made:
            self._made.popitem()[1].close()

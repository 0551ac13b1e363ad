"""The checks of a first contact in the emulator, with the kernels that are tested."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from typing import Any, cast

from oocbfs.first_contact.families import FAMILIES
from oocbfs.first_contact.target import Maker, Target
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    CHECK_KERNELS,
    COMPONENTS_KERNELS,
    MANY_KERNELS,
    Kernel,
    KernelOptions,
    sources,
)
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.emulator.library import Library
from tests.support.gpu.cuda_double import Runtime
from tests.support.gpu.cupy_double import fake_cupy
from tests.support.gpu.emulated import FOLDER
from tests.support.gpu.several_double import Devices

# Others run kernels of the package, wherever those of a test are.
OF_KERNELS = [family for family in FAMILIES if family != "whole calls"]


def emulated(options: KernelOptions, kernels: Sequence[Kernel], number: int | None) -> Device:
    """Make a device as the doctor does, of the kernels in the folder that is tested."""
    named = [kernel for kernel in kernels if isinstance(kernel, str)]
    variants = [kernel for kernel in kernels if not isinstance(kernel, str)]
    library = Library(options, Checks.RACES, FOLDER, sources(named, FOLDER), variants)
    return EmulatorDevice(library=library, seed=1 + (number or 0))


def emulated_target() -> Target:
    """Return the emulator, with the kernels that are tested."""
    return Target("emulator", emulated)


class Libraries:
    """What kernels of graph searches run on in a double: a build with parents, and one without."""

    def __init__(self) -> None:
        kernels = (*BFS_KERNELS, *CHECK_KERNELS, *COMPONENTS_KERNELS, *MANY_KERNELS)
        self.made = {
            wanted: Library(KernelOptions(with_parents=wanted), sources=sources(kernels))
            for wanted in (False, True)
        }

    def map_host(self, address: int, size: int) -> None:
        for library in self.made.values():
            library.map_host(address, size)

    def unmap_host(self, address: int) -> None:
        for library in self.made.values():
            library.unmap_host(address)


def _small(cupy: Any) -> Any:
    """Leave a GPU few multiprocessors: every thread of every block is run by the emulator."""
    cupy.cuda.Device.attributes = {"MultiProcessorCount": 1}
    return cupy


def double_for_searches(runtime: Runtime) -> Any:
    """Return a CuPy whose kernels run in the build that their options ask for."""
    libraries = Libraries()
    runtime.library = cast(Library, libraries)
    cupy = _small(fake_cupy(runtime, []))
    plain = cupy.RawModule

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:
            self._module = plain(code, options, backend)
            self._library = libraries.made["-DWITH_PARENTS=1u" in options]

        def get_function(self, name: str) -> Any:
            function = self._module.get_function(name)

            def launch(*arguments: Any) -> None:
                runtime.library = self._library
                try:
                    function(*arguments)
                finally:
                    runtime.library = cast(Library, libraries)

            launch.kernel = function.kernel  # type: ignore[attr-defined]
            return launch

    cupy.RawModule, cupy.__spec__ = RawModule, ModuleSpec("cupy", None)
    return cupy


def doubled(count: int = 1, **trouble: Any) -> Maker:
    """Return what makes GPUs of the double, one for each batch of kernels."""

    @cache
    def double_of(options: KernelOptions, kernels: tuple[Kernel, ...]) -> Any:
        named = [kernel for kernel in kernels if isinstance(kernel, str)]
        variants = [kernel for kernel in kernels if not isinstance(kernel, str)]
        library = Library(options, sources=sources(named), variants=variants)
        runtimes = [Runtime(offset=0, library=library, **trouble) for _ in range(count)]
        runtime = cast(Runtime, Devices(runtimes)) if options.block_cyclic else runtimes[0]
        return _small(fake_cupy(runtime, []))

    def make(options: KernelOptions, kernels: Sequence[Kernel], number: int | None) -> Device:
        cupy = double_of(options, tuple(kernels))
        return CudaDevice(options, kernels=kernels, cupy=cupy, device_id=number)

    return make

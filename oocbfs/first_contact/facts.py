"""What there is: versions, the GPU and what its driver allows, what each kernel takes of it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any, NamedTuple

from oocbfs.doctor import Finding, examine
from oocbfs.errors import OocbfsError
from oocbfs.first_contact.target import Target
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Resources
from oocbfs.gpu.nvidia import Driver, Gpu, ask_driver, driver_release, is_wsl
from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    BLOCK_THREADS,
    CHECK_KERNELS,
    COMPONENTS_KERNELS,
    DEVICES_KERNELS,
    KERNELS,
    MANY_KERNELS,
    MEASURE_KERNELS,
    SMALL_BLOCK_THREADS,
    KernelOptions,
    source,
)
from oocbfs.memory import format_size, locked_limit
from oocbfs.progress import Phases
from oocbfs.version import __version__

# What kernels are compiled for where there is no GPU, and what a multiprocessor of it has.
ARCHITECTURE = "sm_86"
_REGISTERS, _SHARED_BYTES, _THREADS = 65_536, 100 << 10, 1536
# What the system keeps of the shared memory of each block.
_RESERVED_BYTES = 1 << 10
# Parts of ``oocbfs doctor`` that matter to a GPU.
_PARTS = ("CPU", "RAM", "cpu engine", "CuPy", "NVRTC", "CUDA headers", "C++ compiler")


class KernelFact(NamedTuple):
    """A kernel and what it takes."""

    kernel: str
    resources: Resources


def machine_facts() -> Iterator[Finding]:
    """Yield what is not the GPU's."""
    yield Finding("oocbfs", f"{__version__}, Python {platform.python_version()}")
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    yield Finding("system", f"{system}{', WSL' if is_wsl() else ''}", values={"wsl": is_wsl()})
    for finding in examine():
        if finding.part in _PARTS:
            found = finding.found or "missing"
            is_folder = finding.part in ("CUDA headers", "C++ compiler") and finding.found
            # Names of folders are nobody's business.
            yield Finding(finding.part, "found" if is_folder else found, values=finding.values)
    limit = locked_limit()
    yield Finding("memory lock limit", "none" if limit is None else format_size(limit))


def gpu_facts(device: CudaDevice, driver: Driver) -> Iterator[Finding]:
    """Yield what is known of the GPU that is looked at."""
    yield Finding("driver", f"{driver_release() or 'release unknown'}, for {driver.version}")
    yield Finding("NVRTC in use", _nvrtc_version(device.cupy))
    if driver.problem is not None:
        yield Finding("GPU", f"CuPy finds it, but {driver.problem}")
        return
    gpu = driver.gpus[device.device_id]
    yield Finding(
        "GPU",
        f"{gpu.name}, compute capability {gpu.capability}, {format_size(gpu.vram_bytes)}, "
        f"{format_size(device.free_bytes())} usable, PCIe {gpu.link or 'link unknown'}",
        values={"name": gpu.name, "capability": gpu.capability, "vram_bytes": gpu.vram_bytes},
    )
    yield from (Finding(name, said) for name, said in _limits(gpu).items())


def _limits(gpu: Gpu) -> dict[str, str]:
    return {
        "MIG": "a part of a GPU" if gpu.is_mig else "no",
        "watchdog": "ends launches that take seconds" if gpu.has_watchdog else "none",
        "read-only registration": "yes" if gpu.registers_read_only else "no",
    }


def _nvrtc_version(cupy: Any) -> str:
    major, minor = cupy.cuda.nvrtc.getVersion()
    return f"{major}.{minor}"


def kernel_facts(target: Target, phases: Phases) -> list[KernelFact]:
    """List registers, memory and blocks of each kernel: the driver's, else those of the compiler.

    Empty where there is neither a GPU nor NVRTC.
    """
    if target.is_gpu:
        return list(_from_driver(target, phases))
    return list(_from_compiler(phases)) if _has_nvrtc() else []


def _has_nvrtc() -> bool:
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError):
        return False
    return True


def threads_of(kernel: str) -> int:
    """Return how many threads a block of a kernel has."""
    return SMALL_BLOCK_THREADS if kernel == "small_levels" else BLOCK_THREADS


def _options(kernel: str) -> KernelOptions:
    return KernelOptions(block_cyclic=source(kernel).parent.name == "devices")


def _from_driver(target: Target, phases: Phases) -> Iterator[KernelFact]:
    batches = (
        (KernelOptions(), (*BFS_KERNELS, *CHECK_KERNELS)),
        (KernelOptions(with_parents=False), COMPONENTS_KERNELS),
        (KernelOptions(with_parents=False), MANY_KERNELS),
        (KernelOptions(block_cyclic=True), DEVICES_KERNELS),
        (KernelOptions(), MEASURE_KERNELS),
    )
    with phases("compile", len(KERNELS), "kernel") as bar:
        for options, kernels in batches:
            device = target.device(options, kernels, 0 if options.block_cyclic else None)
            assert isinstance(device, CudaDevice)
            for kernel in kernels:
                if options.block_cyclic == _options(kernel).block_cyclic:
                    yield KernelFact(kernel, device.resources(kernel, threads_of(kernel)))
                    bar.update(1)


def _from_compiler(phases: Phases) -> Iterator[KernelFact]:
    from oocbfs.kernels.cuda.nvrtc import compile_kernel

    def compiled(kernel: str) -> KernelFact:
        try:
            made = compile_kernel(kernel, ARCHITECTURE, _options(kernel))
        except RuntimeError as error:
            raise OocbfsError(str(error)) from error
        blocks = _blocks(made.registers, made.shared_bytes, threads_of(kernel))
        local = made.stack_bytes + made.spill_bytes
        return KernelFact(kernel, Resources(made.registers, made.shared_bytes, local, blocks))

    with phases("compile", len(KERNELS), "kernel") as bar:
        for fact in ordered_map(compiled, KERNELS, available_threads()):
            yield fact
            bar.update(1)


def _blocks(registers: int, shared_bytes: int, threads: int) -> int:
    """Count the blocks that a multiprocessor of the assumed architecture holds."""
    of_a_warp = -(-registers * 32 // 256) * 256
    by_registers = _REGISTERS // of_a_warp // (threads // 32)
    return min(by_registers, _THREADS // threads, _SHARED_BYTES // (shared_bytes + _RESERVED_BYTES))


def driver_of(target: Target) -> Driver | None:
    """Return what the driver says, where there is a GPU to look at."""
    return ask_driver() if target.is_gpu else None

"""Compile kernels with NVRTC, which needs CuPy's binding but neither a driver nor a GPU.

``scripts/kernels`` runs this module: it prints what each kernel needs on each architecture.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from oocbfs.kernels.cuda.source import (
    BLOCK_THREADS,
    BLOCKS_PER_MULTIPROCESSOR,
    FOLDER,
    KERNELS,
    SMALL_BLOCK_THREADS,
    Kernel,
    KernelOptions,
    definitions_of,
    header_name,
    headers,
    name_of,
    source,
)

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")
# Registers that a thread of each kernel may use: the promised number of blocks share the 65,536 of
# a multiprocessor; small_levels has only one block. No kernel may spill.
REGISTERS = dict.fromkeys(KERNELS, 65_536 // (BLOCKS_PER_MULTIPROCESSOR * BLOCK_THREADS)) | {
    "small_levels": 65_536 // SMALL_BLOCK_THREADS,
    "top_down_staged": 65_536 // ((BLOCKS_PER_MULTIPROCESSOR - 1) * BLOCK_THREADS),
}
# Shared memory of a block: what every architecture gives by default.
SHARED_BYTES = 48 << 10

_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class Compiled(NamedTuple):
    """A kernel's machine code for one architecture, and what a thread or block of it needs."""

    kernel: str
    architecture: str
    binary: bytes
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


def compile_kernel(
    kernel: Kernel, architecture: str, options: KernelOptions, folder: Path = FOLDER
) -> Compiled:
    """Compile one kernel for one architecture such as ``sm_86``."""
    from cupy_backends.cuda.libs import nvrtc

    files, name = headers(folder), name_of(kernel)
    program = nvrtc.createProgram(
        source(kernel, folder).read_text(),
        f"{name}.cu",
        [file.read_bytes() for file in files],
        [header_name(file).encode() for file in files],
    )
    try:
        nvrtc.compileProgram(
            program,
            (
                f"--gpu-architecture={architecture}",
                "--std=c++17",
                "--ptxas-options=-v",
                *options.definitions(),
                *definitions_of(kernel),
            ),
        )
        log = nvrtc.getProgramLog(program)
        # The binding drops the last byte.
        binary = nvrtc.getCUBIN(program) + b"\0"
    except nvrtc.NVRTCError as error:
        raise RuntimeError(
            f"{name}.cu for {architecture}: {error}\n{nvrtc.getProgramLog(program)}"
        ) from error
    finally:
        nvrtc.destroyProgram(program)
    return Compiled(name, architecture, binary, *_resources(name, log))


def _resources(kernel: str, log: str) -> tuple[int, int, int, int]:
    """Return registers, shared, stack and spill bytes from ptxas's log."""
    entry, spills, used = _ENTRY.search(log), _SPILLS.search(log), _USED.search(log)
    if not entry or entry[1] != kernel or not spills or not used:
        raise RuntimeError(f"{kernel}: the compiler's log has no resource usage:\n{log}")
    shared = _SHARED.search(log)
    return (
        int(used[1]),
        int(shared[1]) if shared else 0,
        int(spills[1]),
        int(spills[2]) + int(spills[3]),
    )


def _print_table() -> None:
    """Print registers a thread, and what a block shares and a thread spills, as a table."""
    print(f"| kernel | limit | {' | '.join(ARCHITECTURES)} | shared bytes | spilled bytes |")
    print("|---" * (len(ARCHITECTURES) + 4) + "|")
    for kernel in REGISTERS:
        options = KernelOptions(block_cyclic=source(kernel).parent.name == "devices")
        made = [compile_kernel(kernel, name, options) for name in ARCHITECTURES]
        registers = " | ".join(str(one.registers) for one in made)
        shared, spilled = max(m.shared_bytes for m in made), max(m.spill_bytes for m in made)
        print(f"| {kernel} | {REGISTERS[kernel]} | {registers} | {shared:,} | {spilled} |")


if __name__ == "__main__":
    _print_table()

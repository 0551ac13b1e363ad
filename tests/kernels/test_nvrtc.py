"""Every kernel compiles for every architecture through CuPy's NVRTC, within its budget."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest

from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    DEVICES_KERNELS,
    FOLDER,
    KERNELS,
    KernelOptions,
    source,
)
from tests.support.exhaustive import ALL

pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="cupy-cuda12x is not installed")

from oocbfs.kernels.cuda.nvrtc import ARCHITECTURES, REGISTERS, SHARED_BYTES, compile_kernel

OTHER = KernelOptions(with_parents=False, probe_bytes=128)
INCLUDE = re.compile(r'#include "(.+)"')


@cache
def files_of(path: Path) -> frozenset[Path]:
    """Return a source and all that it includes."""
    included = (FOLDER / name for name in INCLUDE.findall(path.read_text()))
    return frozenset({path}.union(*(files_of(file) for file in included)))


def uses_options(kernel: str) -> bool:
    """Return whether the text of a kernel, or of what it includes, mentions an option."""
    text = "".join(path.read_text() for path in files_of(source(kernel)))
    names = "|".join(field.name.upper() for field in fields(KernelOptions))
    return re.search(rf"\b({names})\b", text) is not None


# All variants of these are one binary.
PLAIN = [kernel for kernel in KERNELS if not uses_options(kernel)]


def compared_on(kernel: str) -> str:
    """Choose the architecture on which the variants of a plain kernel are compared."""
    return ARCHITECTURES[PLAIN.index(kernel) % len(ARCHITECTURES)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("kernel", REGISTERS)
def test_kernels_compile_without_spills(kernel: str, architecture: str) -> None:
    """Variants take turns over kernels and architectures; with --all, every one is compiled."""
    variants = [KernelOptions(), OTHER]
    if kernel in PLAIN and architecture != compared_on(kernel):
        variants.pop()
    elif kernel not in BFS_KERNELS and kernel in DEVICES_KERNELS:
        variants = [replace(options, block_cyclic=True) for options in variants]
    elif kernel in DEVICES_KERNELS:
        variants.append(KernelOptions(block_cyclic=True))
    if not ALL and kernel not in PLAIN:
        turn = KERNELS.index(kernel) + ARCHITECTURES.index(architecture)
        variants = [variants[turn % len(variants)]]
    made = [compile_kernel(kernel, architecture, options) for options in variants]
    for compiled in made:
        assert compiled.binary.startswith(b"\x7fELF")
        assert compiled.spill_bytes == 0
        assert compiled.stack_bytes == 0
        assert compiled.registers <= REGISTERS[kernel]
        assert compiled.shared_bytes <= SHARED_BYTES
    if kernel in PLAIN:
        assert len({compiled.binary for compiled in made}) == 1


def test_kernels_with_options() -> None:
    """Those with one binary are compiled once for each architecture, and twice for one of them."""
    assert "components_tails" in PLAIN
    assert "top_down" not in PLAIN  # WITH_PARENTS
    assert "bottom_up_tails" not in PLAIN  # PROBE_BYTES
    assert {compared_on(kernel) for kernel in PLAIN} == set(ARCHITECTURES)


def test_errors_name_file_and_line() -> None:
    class Wrong(KernelOptions):
        def definitions(self) -> tuple[str, ...]:
            return tuple(d for d in super().definitions() if "SEARCH_STRUCT_BYTES" not in d)

    with pytest.raises(RuntimeError, match=r"common\.cuh.*SEARCH_STRUCT_BYTES"):
        compile_kernel("initialise", "sm_80", Wrong())

"""Every kernel of every method compiles for every architecture through CuPy's NVRTC."""

from __future__ import annotations

import pytest

from oocbfs.kernels.cuda.source import KERNELS, Variant
from oocbfs.kernels.methods.axes import MethodOptions
from oocbfs.methods import parse_method
from oocbfs.methods.programs import make_program
from tests.support.exhaustive import ALL
from tests.support.gpu.method_checks import ON_DEVICES, WITH_OPTIONS

pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="cupy-cuda12x is not installed")

from oocbfs.kernels.cuda.nvrtc import ARCHITECTURES, SHARED_BYTES, compile_kernel

Axes = tuple[tuple[str, str], ...]


def axes_of(kernel: Variant) -> Axes:
    """Return what tells a kernel from others of its source: all definitions but its names."""
    names = ("AXIS_ENTRY", "AXIS_SPACE")
    return tuple((name, value) for name, value in kernel.definitions if name not in names)


def different_kernels() -> dict[str, list[Variant]]:
    """Return every kernel once, with the first method that uses it."""
    seen: set[tuple[str, Axes]] = set()
    found: dict[str, list[Variant]] = {}
    for text in [*ON_DEVICES, *WITH_OPTIONS]:
        for with_parents in (True, False) if ALL else (True,):
            program = make_program(parse_method(text), with_parents=with_parents)
            for kernel in program.kernels:
                if (kernel.file, axes_of(kernel)) not in seen:
                    seen.add((kernel.file, axes_of(kernel)))
                    found.setdefault(text, []).append(kernel)
    return found


DIFFERENT = different_kernels()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("method", DIFFERENT)
def test_kernels_compile(method: str, architecture: str) -> None:
    """Each kernel for one architecture in turn; with --all, for every one."""
    first = list(DIFFERENT).index(method) + ARCHITECTURES.index(architecture)
    kernels = DIFFERENT[method] if ALL else DIFFERENT[method][first % 6 :: 6]
    for kernel in kernels:
        compiled = compile_kernel(kernel, architecture, MethodOptions())
        assert compiled.binary.startswith(b"\x7fELF")
        assert compiled.shared_bytes <= SHARED_BYTES
        # Blocks of 1,024 threads leave each of them few registers.
        assert compiled.spill_bytes == 0 or ("AXIS_BLOCK", "1024") in kernel.definitions


def test_six_sources_and_none_of_ours() -> None:
    """Methods stay out of the kernels that plans and the default engine know."""
    sources = ("expand", "contract", "pull", "compact", "prefix", "relax")
    kernels = [kernel for made in DIFFERENT.values() for kernel in made]
    assert {kernel.file for kernel in kernels} == {f"methods/{name}" for name in sources}
    assert not {kernel.name for kernel in kernels} & set(KERNELS)

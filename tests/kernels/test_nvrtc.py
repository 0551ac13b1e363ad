"""Every kernel compiles for every architecture through CuPy's NVRTC, within its budget."""

from __future__ import annotations

import pytest

from oocbfs.kernels.cuda.source import KernelOptions

pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="cupy-cuda12x is not installed")

from oocbfs.kernels.cuda.nvrtc import ARCHITECTURES, REGISTERS, SHARED_BYTES, compile_kernel


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("kernel", REGISTERS)
def test_kernels_compile_without_spills(kernel: str, architecture: str) -> None:
    for options in (KernelOptions(), KernelOptions(with_parents=False, probe_bytes=128)):
        compiled = compile_kernel(kernel, architecture, options)
        assert compiled.binary.startswith(b"\x7fELF")
        assert compiled.spill_bytes == 0
        assert compiled.stack_bytes == 0
        assert compiled.registers <= REGISTERS[kernel]
        assert compiled.shared_bytes <= SHARED_BYTES


def test_errors_name_file_and_line() -> None:
    class Wrong(KernelOptions):
        def definitions(self) -> tuple[str, ...]:
            return super().definitions()[:-1]

    with pytest.raises(RuntimeError, match=r"common\.cuh.*SEARCH_STRUCT_BYTES"):
        compile_kernel("initialise", "sm_80", Wrong())

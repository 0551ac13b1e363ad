"""The cuda engine on a double of CuPy whose launches run in the emulator."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import pytest

from oocbfs.gpu import cuda_device
from oocbfs.kernels.cuda.source import KERNELS, KernelOptions, sources
from oocbfs.kernels.emulator.library import Library
from tests.support.gpu.cuda_double import Runtime
from tests.support.gpu.cupy_double import fake_cupy

USED: list[Runtime] = []
# What the double is called.
NAME = "A double 00"
# What CudaDevice leaves to the driver.
RESERVED_BYTES = 128 << 20


@cache
def library(*, with_parents: bool) -> Library:
    made = Library(KernelOptions(with_parents=with_parents), sources=sources(KERNELS))
    made.configure(1, 2, 1 / 16)
    return made


def use(
    monkeypatch: pytest.MonkeyPatch, runtime: Runtime, *, trusted: bool = True, **trouble: Any
) -> list[Any]:
    """Make the double what ``import cupy`` gives; returns what it launches.

    Without trust, the first search is checked on it.
    """
    launched: list[Any] = []
    runtime.library = library(with_parents=False)
    USED.append(runtime)
    cupy = fake_cupy(runtime, launched, **trouble)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    if trusted:
        monkeypatch.setitem(cuda_device._ANSWERS, NAME, True)
    else:
        monkeypatch.delitem(cuda_device._ANSWERS, NAME, raising=False)
    return launched


def end_processes() -> None:
    """Let go of what is still pinned, as the system does."""
    while USED:
        USED.pop().end_process()

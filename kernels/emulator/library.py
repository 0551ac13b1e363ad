"""The emulator's shared object, called through ctypes."""

from __future__ import annotations

import ctypes
import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oocbfs.errors import OocbfsError
from oocbfs.kernels.cuda.source import FOLDER, KernelOptions, Variant
from oocbfs.kernels.emulator.build import Checks, build
from oocbfs.kernels.threads import renewed_after_fork

# The runtime's state is global, so one launch at a time.
_LOCK = renewed_after_fork(threading.Lock())


class EmulatorError(OocbfsError):
    """A kernel that deadlocked, raced or misused a collective; names the line of its source."""


class Counters(ctypes.Structure):
    """What the runtime counted since the last reset."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("launches", "switches", "collectives")),
        *((name, ctypes.c_uint64) for name in ("barriers", "atomics")),
        *((name, ctypes.c_uint64) for name in ("host_loads", "host_sectors", "host_lines")),
        ("host_requests", ctypes.c_uint64 * 4),
        *((name, ctypes.c_uint64) for name in ("races", "accesses")),
        # What follows is counted by builds with Checks.COUNTS alone.
        *((name, ctypes.c_uint64) for name in ("loads", "load_lanes")),
        *((name, ctypes.c_uint64) for name in ("device_sectors_read", "device_sectors_written")),
        *((name, ctypes.c_double) for name in ("busiest_work", "mean_work")),
    ]


class _Hottest(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        *((name, ctypes.c_uint64) for name in ("word", "atomics")),
    ]


class Library:
    """One compiled variant of the kernels."""

    def __init__(
        self,
        options: KernelOptions,
        checks: Checks = Checks.NONE,
        folder: Path = FOLDER,
        sources: Sequence[Path] = (),
        variants: Sequence[Variant] = (),
    ) -> None:
        self.path = build(options, checks, folder, sources, variants)
        self._library = ctypes.CDLL(str(self.path))
        self._library.emulator_message.restype = ctypes.c_char_p
        self._library.emulator_configure.argtypes = [
            ctypes.c_uint64,
            ctypes.c_uint,
            ctypes.c_double,
        ]
        self.counts_accesses = checks is Checks.COUNTS
        if self.counts_accesses:
            self._library.emulator_atomics.restype = ctypes.c_char_p
            self._library.emulator_hottest_word.restype = _Hottest
        self._library.emulator_map_host.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._library.emulator_allocated.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_char_p,
        ]
        for name in ("emulator_unmap_host", "emulator_freed"):
            getattr(self._library, name).argtypes = [ctypes.c_void_p]

    def configure(self, seed: int, resident_blocks: int, yield_probability: float) -> None:
        """Choose the schedule of the following launches."""
        self._library.emulator_configure(seed, resident_blocks, yield_probability)

    def release(self) -> None:
        """Release what launches keep for the next."""
        with _LOCK:
            self._library.emulator_release()

    def map_host(self, address: int, size: int) -> None:
        """Count the loads from this memory as traffic over the bus."""
        if self._library.emulator_map_host(address, size):
            raise OocbfsError("the emulator counts at most 32 ranges of host memory at a time")

    def unmap_host(self, address: int) -> None:
        """Count no longer."""
        self._library.emulator_unmap_host(address)

    def allocated(self, address: int, size: int, name: str = "") -> None:
        """Announce device memory, and what it is called, to what watches accesses."""
        self._library.emulator_allocated(address, size, name.encode())

    def freed(self, address: int) -> None:
        """Announce to what watches accesses that this memory is gone."""
        self._library.emulator_freed(address)

    def counters(self, *, reset: bool = False) -> Counters:
        """Return what was counted."""
        counters = Counters()
        self._library.emulator_counters(ctypes.byref(counters), int(reset))
        return counters

    def take_atomics(self) -> tuple[dict[str, int], tuple[str, int, int] | None]:
        """Return the atomics since the last call, by array, and the word that most of them went to.

        That are its array, its number in it, and its atomics. Needs ``Checks.COUNTS``.
        """
        count, found = ctypes.c_uint64(), dict[str, int]()
        while (name := self._library.emulator_atomics(len(found), ctypes.byref(count))) is not None:
            found[name.decode()] = count.value
        word = self._library.emulator_hottest_word()
        hottest = (word.name.decode(), word.word, word.atomics) if word.atomics else None
        self._library.emulator_reset_atomics()
        return found, hottest

    def launch(
        self, kernel: str, blocks: int, threads: int, arguments: Sequence[np.ndarray]
    ) -> None:
        """Run a kernel; every argument is a zero-dimensional array of the parameter's width."""
        shape = (ctypes.c_uint * 6)(blocks, 1, 1, threads, 1, 1)
        pointers = (ctypes.c_void_p * len(arguments))(*(a.ctypes.data for a in arguments))
        with _LOCK:
            failed = self._library[f"launch_{kernel}"](shape, pointers)
            text = self._library.emulator_message().decode() if failed else ""
        if failed:
            raise EmulatorError(f"{kernel}: {self._with_lines(text)}")

    def _with_lines(self, text: str) -> str:
        """Turn code offsets into file and line where addr2line is installed."""

        def line_of(match: re.Match[str]) -> str:
            # The offset is a return address: the call lies just before it.
            offset = int(match[1], 16) - 1
            try:
                done = subprocess.run(
                    ["addr2line", "-s", "-e", self.path, hex(offset)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
            except (OSError, subprocess.CalledProcessError):
                return match[0]
            return done.stdout.split(" ")[0].strip()

        return re.sub(r"\+0x([0-9a-f]+)", line_of, text)

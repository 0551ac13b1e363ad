"""Measure what a device gives: the rates by which plans and predictions turn bytes into seconds.

Every figure is the median of some rounds, timed by events of the device; how long the host waits
for a read-back is timed by the host. One round before them is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.first_contact.target import Target
from oocbfs.gpu.device import Argument, Device, Memory, u32, u64
from oocbfs.kernels.cuda.source import CONTROL_WORDS, MEASURE_KERNELS, KernelOptions
from oocbfs.memory import available_bytes
from oocbfs.plan.rates import SECTOR_BYTES, Rates
from oocbfs.progress import Phases

LINE_BYTES = 128
# One lane loads so many bytes.
_LANE_BYTES = 16
_ROUNDS = 7
# Of free memory, on the device and on the host, that is taken for measuring.
_SHARE = 8


@dataclass(frozen=True)
class Amounts:
    """How much is moved in one round; enough on a GPU that launching does not matter."""

    num_bytes: int
    reads: int
    steps: int
    launches: int


# Larger than any cache.
ON_GPU = Amounts(num_bytes=512 << 20, reads=1 << 22, steps=1 << 14, launches=256)
EMULATED = Amounts(num_bytes=64 << 10, reads=256, steps=64, launches=4)


class Figure(NamedTuple):
    """Something measured: seconds for one of a unit, in each round."""

    name: str
    unit: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds for one, in the median of the rounds."""
        return median(self.seconds)

    @property
    def rate(self) -> float:
        """How many in a second."""
        return 1 / max(self.median, 1e-12)


def measure(target: Target, phases: Phases, pinnable_bytes: int | None = None) -> dict[str, Figure]:
    """Measure everything on a device, by name, with no more host memory than can be pinned."""
    device = target.device(KernelOptions(), MEASURE_KERNELS)
    amounts = ON_GPU if target.is_gpu else EMULATED
    if pinnable_bytes is not None:
        amounts = replace(amounts, num_bytes=min(amounts.num_bytes, pinnable_bytes))
    with _Bench.open(device, amounts) as bench:
        tasks = list(bench.tasks())
        with phases("measure", len(tasks), "figure") as bar:
            figures = []
            for task in tasks:
                figures.append(task())
                bar.update(1)
    return {figure.name: figure for figure in figures}


def rates_of(figures: dict[str, Figure]) -> Rates:
    """Return what plans and predictions are made with."""
    return Rates(
        device_bandwidth=figures["device stream"].rate,
        device_sectors=figures["device random sectors"].rate,
        copy_bandwidth=figures["copy to device, pinned"].rate,
        bus_sectors=figures["PCIe random 32 bytes"].rate,
        launch_seconds=figures["launch"].median,
        read_back_seconds=figures["read-back"].median,
        latency_seconds=figures["dependent read"].median,
    )


class _Bench:
    """Memory on both sides of the bus, and what is done to it."""

    def __init__(
        self, device: Device, amounts: Amounts, pinned: NDArray[np.uint8], address: int
    ) -> None:
        self._device, self._amounts = device, amounts
        self._pinned, self._address = pinned, address
        self._memory = device.allocate(pinned.size, np.uint8)
        self._total = device.allocate(1, np.uint64)
        self._control = device.allocate(CONTROL_WORDS, np.uint64)
        device.upload(self._control, np.zeros(CONTROL_WORDS, np.uint64))
        device.upload(self._total, np.zeros(1, np.uint64))

    @classmethod
    @contextmanager
    def open(cls, device: Device, amounts: Amounts) -> Iterator[_Bench]:
        """Take memory, no more than a share of what is free, and give it back."""
        free = [available_bytes(), device.free_bytes() or amounts.num_bytes * _SHARE]
        num_bytes = min(amounts.num_bytes, *(one // _SHARE for one in free))
        with device.allocate_host(num_bytes // LINE_BYTES * LINE_BYTES) as (pinned, address):
            pinned[:] = 1
            yield cls(device, amounts, pinned, address)

    def tasks(self) -> Iterator[Callable[[], Figure]]:
        """Yield what measures one figure each."""
        pageable = np.ones(self._pinned.size, np.uint8)
        yield lambda: self._copy("copy to device, pinned", self._pinned)
        yield lambda: self._copy("copy to device, pageable", pageable)
        yield self._copy_back
        yield self._stream
        yield lambda: self._scattered("device random sectors", SECTOR_BYTES, over_bus=False)
        yield lambda: self._scattered("PCIe random 32 bytes", SECTOR_BYTES, over_bus=True)
        yield lambda: self._scattered("PCIe random 128 bytes", LINE_BYTES, over_bus=True)
        yield self._chase
        yield self._launch
        yield self._read_back

    def _figure(self, name: str, unit: str, count: int, work: Callable[[], object]) -> Figure:
        """Time work by events; it does so many of a unit."""
        device, seconds = self._device, []
        for _ in range(_ROUNDS + 1):
            begin = device.mark()
            work()
            end = device.mark()
            device.download(self._total)
            seconds.append(device.seconds_between(begin, end) / count)
        return Figure(name, unit, tuple(seconds[1:]))

    def _copy(self, name: str, array: NDArray[np.uint8]) -> Figure:
        return self._figure(
            name, "byte", array.size, lambda: self._device.upload(self._memory, array)
        )

    def _copy_back(self) -> Figure:
        return self._figure(
            "copy from device, pageable",
            "byte",
            self._memory.size,
            lambda: self._device.download(self._memory),
        )

    def _run(self, kernel: str, *arguments: Argument) -> None:
        total = u64(self._total.address)
        self._device.launch_threads(kernel, (total, *arguments))

    def _stream(self) -> Figure:
        items = u64(self._memory.size // _LANE_BYTES)
        address = u64(self._memory.address)
        return self._figure(
            "device stream",
            "byte",
            self._memory.size,
            lambda: self._run("measure_stream", address, items),
        )

    def _scattered(self, name: str, unit_bytes: int, *, over_bus: bool) -> Figure:
        reads, lanes = self._amounts.reads, unit_bytes // _LANE_BYTES
        arguments = (
            u64(self._address if over_bus else self._memory.address),
            u64(self._pinned.size // unit_bytes),
            u64(reads),
            u32(lanes),
            u32(over_bus),
        )
        return self._figure(name, "read", reads, lambda: self._run("measure_scattered", *arguments))

    def _chase(self) -> Figure:
        """Follow a ring through all of the memory, so that nearly every step misses the caches."""
        items, steps = self._memory.seen_as(np.uint32), self._amounts.steps
        self._device.upload(items, _ring(items))
        arguments = (u64(self._total.address), u64(items.address), u64(steps))
        return self._figure(
            "dependent read",
            "read",
            steps,
            lambda: self._device.launch("measure_chase", 1, 32, arguments),
        )

    def _launch(self) -> Figure:
        def launch() -> None:
            for _ in range(self._amounts.launches):
                self._device.launch("measure_nothing", 1, 32, ())

        return self._figure("launch", "launch", self._amounts.launches, launch)

    def _read_back(self) -> Figure:
        """Time the host while it waits for what the level loop reads back."""
        seconds = []
        for _ in range(_ROUNDS + 1):
            begin = time.perf_counter()
            for _ in range(self._amounts.launches):
                self._device.download(self._control)
            seconds.append((time.perf_counter() - begin) / self._amounts.launches)
        return Figure("read-back", "read-back", tuple(seconds[1:]))


def _ring(items: Memory) -> NDArray[np.uint32]:
    """Link items that lie a line apart, or more, into one ring of steps that look random."""
    stride = LINE_BYTES // items.dtype.itemsize
    stops = np.random.default_rng(1).permutation(items.size // stride).astype(np.uint32) * stride
    stops = np.roll(stops, -int(np.flatnonzero(stops == 0)[0]))
    ring = np.zeros(items.size, np.uint32)
    ring[stops] = np.roll(stops, -1)
    return ring

"""What the disk gives, cold: large and small reads, in order and not, direct or mapped."""

from __future__ import annotations

import argparse
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from oocbfs.formats.io.direct import page_aligned
from oocbfs.kernels.disk.read import read_at
from tests.benchmarks.common import show
from tests.benchmarks.outofcore import drop_cache

_WAYS = ("direct", "buffered", "mapped, no advice", "mapped, random", "mapped, will need")
_MOST_BYTES = 64 << 20
_SIZES = ((1 << 20, True), (1 << 20, False), (1 << 16, False), (1 << 14, False), (1 << 12, False))


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench disk", description=__doc__)
    parser.add_argument("--file", type=Path, help="a large file (default: one is written)")
    parser.add_argument("--megabytes", type=int, default=1024, help="of the file written")
    parser.add_argument("--reads", type=int, default=4000, help="at most so many of each kind")
    parser.add_argument("--threads", default="1,16,64", help="reads in flight")
    parser.add_argument("--folder", type=Path, help="for the file (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = options.file or _write(Path(folder) / "data", options.megabytes)
        rows = []
        for size, in_order in _SIZES:
            for way in _WAYS:
                rates = [
                    f"{measure(path, way, size, in_order, int(threads), options.reads):,.0f}"
                    for threads in options.threads.split(",")
                ]
                rows.append([f"{size >> 10} KB", "in order" if in_order else "random", way, *rates])
    title = f"MB/s with {options.threads} reads in flight, caches dropped before each"
    show(title, ("reads", "places", "way", *options.threads.split(",")), rows)


def _write(path: Path, megabytes: int) -> Path:
    block = np.random.default_rng(1).bytes(1 << 20)
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return path


def measure(path: Path, way: str, size: int, in_order: bool, threads: int, reads: int) -> float:
    """MB a second of one kind of read."""
    drop_cache(path)
    flags = os.O_DIRECT if way == "direct" else 0
    descriptor = os.open(path, os.O_RDONLY | flags)
    places = np.arange(os.fstat(descriptor).st_size // size) * size
    if not in_order:
        np.random.default_rng(size).shuffle(places)
    places = places[: min(reads, _MOST_BYTES // size)]
    read: Callable[[NDArray[np.int64]], object]
    if way.startswith("mapped"):
        mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        num_bytes = np.frombuffer(mapping, np.uint8)
        if way == "mapped, random":
            mapping.madvise(mmap.MADV_RANDOM)

        def read(mine: NDArray[np.int64]) -> None:
            for place in mine if way == "mapped, will need" else ():
                mapping.madvise(mmap.MADV_WILLNEED, int(place), size)
            _touch(num_bytes, mine, size)

    else:
        if way == "buffered" and not in_order:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)

        def read(mine: NDArray[np.int64]) -> None:
            assert _read(page_aligned(size), descriptor, mine, size)

    read(places[:0])  # compiles
    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        list(pool.map(read, [places[i::threads] for i in range(threads)]))
        seconds = time.perf_counter() - start
    os.close(descriptor)
    return places.size * size / seconds / 1e6


@njit(nogil=True)
def _touch(num_bytes, places, size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    total = 0
    for place in places:
        for page in range(place, place + size, 4096):
            total += num_bytes[page]
    return total


@njit(nogil=True)
def _read(buffer, descriptor, places, size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    count = 0
    for place in places:
        count += read_at(descriptor, buffer, 0, size, place)
    return count == places.size * size

"""Predict what a traversal on a GPU reads from disk and over PCIe, and how long it takes.

Nothing in this module is a measurement of a GPU: see MODEL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import fresh
from oocbfs.errors import FormatError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.bfs import traverse as cpu
from oocbfs.kernels.cuda.source import DISK_BLOCK_BYTES, PARTS, SMALL_BYTES_PER_VERTEX
from oocbfs.kernels.results import prediction as kernels
from oocbfs.plan.cuts import Cuts
from oocbfs.plan.device import DISK_COST, DevicePlan
from oocbfs.plan.limits import StepLimits
from oocbfs.plan.ranges import ByteRange
from oocbfs.plan.search_arrays import block_words

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.kernels.rows import Rows
    from oocbfs.progress import Phases

MODEL = (
    "The levels of sampled sources are found on the CPU. PCIe bytes: a small frontier costs its "
    "rows; a large one costs the least of its rows, of searching the rows whose head missed, and "
    "of both, before and after one of seven cuts, in sectors of 32 bytes outside of the resident "
    "tails. Disk bytes: blocks of 16 KB, each read once in a level, where memory does not hold "
    "the tails; a byte from there costs as much as 8 over PCIe. Seconds: bytes from disk at 2 "
    "GB/s; those over PCIe at the rate at which the link carries sectors (66 % of its rate for "
    "copies), results at the rate for copies, one pass over heads and bitmaps for each large "
    "frontier, 20 µs for each of those and 5 µs for each small one. How many reads a GPU keeps "
    "under way is not modelled."
)

# A read of 32 bytes brings some 20 bytes of headers with it, as one of 256 does (PCI Express
# throughput as explained in Intel's "Throughput for Reads": a completion has 20 bytes around its
# data).
_SECTOR_RATE = (32 / (32 + 20)) / (256 / (256 + 20))
_LARGE_LEVEL_SECONDS = 20e-6
_SMALL_LEVEL_SECONDS = 5e-6
# Of an NVMe disk with many reads in flight; assumed.
_DISK_BANDWIDTH = 2e9


@dataclass(frozen=True)
class KnownGpu:
    """Figures of a GPU: memory, its bandwidth, its PCIe link and what copies over that reach."""

    name: str
    vram_bytes: int
    vram_bandwidth: float
    link: str
    copy_bandwidth: float


# Memory bandwidth: bus width times data rate (RTX 3060 Laptop 192 bit × 14 Gbit/s, RTX 4070 192 ×
# 21, RTX 4090 384 × 21), or as published (A100 80GB; H100 PCIe product brief PB-11133-001). Copies
# from pinned memory: 24.8 GB/s over PCIe 4.0 x16, by nvbandwidth on an A100
# (forums.developer.nvidia.com/t/352186); 55.6 GB/s over PCIe 5.0 x16, in NVIDIA's article on
# nvbandwidth (developer.nvidia.com/blog, ?p=115566). Half of the former is assumed for the 8 lanes
# that most laptops give the GPU, all of it for every 4.0 x16 link.
KNOWN_GPUS = (
    KnownGpu("RTX 3060 Laptop", 6 << 30, 336e9, "PCIe 4.0 x8", 12.4e9),
    KnownGpu("RTX 4070", 12 << 30, 504e9, "PCIe 4.0 x16", 24.8e9),
    KnownGpu("RTX 4090", 24 << 30, 1008e9, "PCIe 4.0 x16", 24.8e9),
    KnownGpu("A100 80GB", 80 << 30, 1935e9, "PCIe 4.0 x16", 24.8e9),
    KnownGpu("H100 PCIe", 80 << 30, 2000e9, "PCIe 5.0 x16", 55.6e9),
)
# What the screen, the driver and other programs leave of it.
USABLE_SHARE = 0.9


@dataclass(frozen=True)
class LevelSample:
    """Levels of stored vertices from one source."""

    levels: NDArray[np.int32]
    sizes: NDArray[np.int64]

    @property
    def num_levels(self) -> int:
        """Count the levels, that of the source included."""
        return self.sizes.size


@dataclass(frozen=True)
class Forecast:
    """What one traversal is expected to cost: bytes over PCIe and from disk, and its levels."""

    slow_bytes: int
    large_levels: int
    small_levels: int
    disk_bytes: int = 0


def sample_levels(
    graph: StoredGraph, count: int, phases: Phases, seed: int = 1
) -> list[LevelSample]:
    """Traverse on the CPU from random vertices that have neighbours."""
    rows, in_rows = graph.rows, graph.in_rows
    candidates = np.flatnonzero(rows.degrees)
    chosen = np.random.default_rng(seed).choice(
        candidates, min(count, candidates.size), replace=False
    )
    samples = []
    with phases("sample", chosen.size, "traversals") as bar:
        for source in chosen:
            levels = fresh(graph.num_vertices, np.int32)
            sources = np.array([source], np.uint32)
            with graph.reading():
                done = cpu.traverse(rows, in_rows, sources, levels, threads=available_threads())
                if done.malformed:
                    raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
            samples.append(LevelSample(levels, np.bincount(levels[levels >= 0])))
            bar.update(1)
    return samples


def predict_bytes(graph: StoredGraph, decided: DevicePlan, sample: LevelSample) -> Forecast:
    """Say what a traversal with this plan would read over PCIe."""
    rows, in_rows = map(_read_only, graph.connected_rows)
    cuts = Cuts(rows, in_rows)
    expanded = np.zeros((sample.num_levels, 2), np.int64)
    waiting, found = (np.zeros((sample.num_levels + 1, PARTS), np.int64) for _ in range(2))
    levels = sample.levels[: rows.heads.size]
    levels.flags.writeable = False
    kernels.count_expanded(
        expanded, levels, rows.bases, rows.starts, rows.shift, *decided.device_ranges[0]
    )
    kernels.count_searched(
        waiting,
        found,
        cuts.vertices,
        levels,
        in_rows.heads,
        in_rows.bases,
        in_rows.starts,
        in_rows.tails,
        in_rows.shift,
        *decided.device_ranges[-1],
    )
    # Level d is found by expanding level d-1, or by searching for d, while all vertices of later
    # levels and all that are never reached search in vain.
    later = np.cumsum(waiting[::-1], axis=0)[::-1]
    searched = np.concatenate([found[1:-1] + later[2:], waiting[-1:]])
    if decided.disk_bytes:
        return _follow_from_disk(
            expanded[:, 0],
            searched.sum(axis=1),
            *predict_blocks(graph, decided.host_ranges, sample),
        )
    cheapest = np.array(
        [cuts.costs(*level).min() for level in zip(searched, expanded, strict=True)], np.int64
    )
    return _follow(sample.sizes, expanded[:, 0], cheapest, rows.heads.size)


def predict_blocks(
    graph: StoredGraph, host_ranges: tuple[ByteRange, ...], sample: LevelSample
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Say what expanding and searching would read from disk, outside of host ranges, by level."""
    rows, in_rows = map(_read_only, graph.connected_rows)
    levels = sample.levels[: rows.heads.size]
    levels.flags.writeable = False
    expanded = np.zeros(sample.num_levels, np.int64)
    kernels.count_expanded_blocks(
        expanded,
        levels,
        rows.bases,
        rows.starts,
        rows.shift,
        *host_ranges[0],
        DISK_BLOCK_BYTES,
    )
    wanted = np.zeros(32 * block_words(in_rows.tails.size), np.int32)
    kernels.find_searched_blocks(
        wanted,
        levels,
        in_rows.heads,
        in_rows.bases,
        in_rows.starts,
        in_rows.shift,
        *host_ranges[-1],
        DISK_BLOCK_BYTES,
    )
    last = np.bincount(np.minimum(wanted, sample.num_levels), minlength=sample.num_levels + 1)
    searched = np.cumsum(last[::-1])[::-1][1:]
    return DISK_BLOCK_BYTES * expanded, DISK_BLOCK_BYTES * searched


def predict_disk_bytes(graph: StoredGraph, sample: LevelSample) -> int:
    """Say what a traversal on the CPU would read with all tails on disk."""
    return int(np.minimum(*predict_blocks(graph, ((0, 0),), sample)).sum())


def _follow_from_disk(
    expanded: NDArray[np.int64],
    searched: NDArray[np.int64],
    expanded_from_disk: NDArray[np.int64],
    searched_from_disk: NDArray[np.int64],
) -> Forecast:
    """Choose what each level reads as the level loop does with tails on disk: none is small."""
    upward = searched + DISK_COST * searched_from_disk <= expanded + DISK_COST * expanded_from_disk
    return Forecast(
        slow_bytes=int(np.where(upward, searched, expanded).sum()),
        large_levels=expanded.size,
        small_levels=0,
        disk_bytes=int(np.where(upward, searched_from_disk, expanded_from_disk).sum()),
    )


def _follow(
    frontiers: NDArray[np.int64],
    expanded: NDArray[np.int64],
    cheapest: NDArray[np.int64],
    num_vertices: int,
) -> Forecast:
    """Choose what each level reads as the level loop does, if it knew what searching will read."""
    limits = StepLimits()
    most = limits.small_bytes + SMALL_BYTES_PER_VERTEX * frontiers
    small = ((frontiers <= limits.small_vertices) & (expanded <= most)).tolist()
    # A heads pass runs before the frontier's size is known, unless its rows are cheap.
    heads_run = (expanded >= limits.heads_bytes * num_vertices).tolist()
    total, num_small, known = 0, 0, True
    for level, cost in enumerate(expanded.tolist()):
        known = small[level] and (known or not heads_run[level])
        num_small += known
        total += int(cheapest[level]) if heads_run[level] and not known else cost
    return Forecast(
        slow_bytes=total, large_levels=frontiers.size - num_small, small_levels=num_small
    )


def predict_seconds(
    gpu: KnownGpu, forecast: Forecast, num_vertices: int, *, with_parents: bool
) -> float:
    """Say how long a traversal would take; MODEL explains."""
    results = (8 if with_parents else 4) * num_vertices
    passes = results + forecast.large_levels * (4 * num_vertices + num_vertices // 4)
    return (
        forecast.disk_bytes / _DISK_BANDWIDTH
        + forecast.slow_bytes / (gpu.copy_bandwidth * _SECTOR_RATE)
        + results / gpu.copy_bandwidth
        + passes / gpu.vram_bandwidth
        + forecast.large_levels * _LARGE_LEVEL_SECONDS
        + forecast.small_levels * _SMALL_LEVEL_SECONDS
    )


def _read_only(rows: Rows) -> Rows:
    """Give the arrays the type that the kernels are compiled for."""

    def freeze(array: NDArray[Any]) -> NDArray[Any]:
        view = np.ascontiguousarray(array).view()
        view.flags.writeable = False
        return view

    return rows._replace(
        heads=freeze(rows.heads),
        bases=freeze(rows.bases),
        starts=freeze(rows.starts),
        tails=freeze(rows.tails),
    )

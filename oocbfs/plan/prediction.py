"""Predict what a search on a GPU reads from disk and over PCIe, and how long it takes.

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
from oocbfs.kernels.bfs import search as cpu
from oocbfs.kernels.cuda.source import DISK_BLOCK_BYTES, NUM_RANGES, SMALL_BYTES_PER_VERTEX
from oocbfs.kernels.results import prediction as kernels
from oocbfs.plan.costs import Costs, costs_of, large_level_seconds, small_level_seconds
from oocbfs.plan.cuts import Cuts
from oocbfs.plan.device import DevicePlan
from oocbfs.plan.limits import limits_of
from oocbfs.plan.ranges import ByteRange
from oocbfs.plan.rates import SECTOR_BYTES, Rates
from oocbfs.plan.search_arrays import block_words

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.kernels.rows import Rows
    from oocbfs.progress import Phases

MODEL = (
    "The levels of sampled sources are found on the CPU. A small frontier is expanded; a large one "
    "costs the least of expanding it, of searching the rows whose head missed, and of both, before "
    "and after one of seven cuts. Sectors of 32 bytes cost by where they lie: over PCIe at the "
    "rate at which the link carries them (66 % of its rate for copies), in device memory at half "
    "of its bandwidth, with a fifth of a sector for each neighbour that is tested. Disk: blocks "
    "of 16 KB, each read once in a level, where memory does not hold the tails, at 2 GB/s. Beside "
    "these a heads pass, three launches (4 µs each) and a "
    "read-back (12 µs) for each large frontier; and 10 µs for each small one. How many reads a GPU "
    "keeps under way is not modelled. All rates are published or assumed. Results: where the "
    "device has the order, stored vertices in order and a sector at random for each vertex; a "
    "byte a level and 4 bytes a parent at the rate for copies; meanwhile all threads of this "
    "machine write "
    "them, at the rate of another one."
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
    """What one search is expected to take: bytes over PCIe and from disk, and its levels.

    ``work_seconds`` are those of all sectors but the disk's, and of heads passes.
    """

    slow_bytes: int
    large_levels: int
    small_levels: int
    work_seconds: float
    disk_bytes: int = 0


def sample_levels(
    graph: StoredGraph, count: int, phases: Phases, seed: int = 1
) -> list[LevelSample]:
    """Search on the CPU from random vertices that have neighbours."""
    rows, in_rows = graph.rows, graph.in_rows
    candidates = np.flatnonzero(rows.degrees)
    chosen = np.random.default_rng(seed).choice(
        candidates, min(count, candidates.size), replace=False
    )
    samples = []
    with phases("sample", chosen.size, "search") as bar:
        for source in chosen:
            levels = fresh(graph.num_vertices, np.int32)
            sources = np.array([source], np.uint32)
            with graph.reading():
                done = cpu.search(rows, in_rows, sources, levels, threads=available_threads())
                if done.malformed:
                    raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
            samples.append(LevelSample(levels, np.bincount(levels[levels >= 0])))
            bar.update(1)
    return samples


def predict(graph: StoredGraph, decided: DevicePlan, sample: LevelSample, rates: Rates) -> Forecast:
    """Predict what a search with this plan would read, on a device with these rates."""
    rows, in_rows = map(_read_only, graph.non_isolated_rows)
    cuts, costs = Cuts(rows, in_rows), costs_of(rates, rows)
    expanded = np.zeros((sample.num_levels, 5), np.int64)
    waiting, found = (np.zeros((sample.num_levels + 1, 2 * NUM_RANGES), np.int64) for _ in range(2))
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
    tail_bytes, expanded = expanded[:, 4], expanded[:, :4]
    heads = costs.bitmaps + costs.head * (rows.heads.size - np.cumsum(sample.sizes))
    later = np.cumsum(waiting[::-1], axis=0)[::-1]
    searched = np.concatenate([found[1:-1] + later[2:], waiting[-1:]]).reshape(-1, 2, NUM_RANGES)
    if decided.disk_bytes:
        from_disk = predict_blocks(graph, decided.host_ranges, sample)
        return _follow_from_disk(costs, heads, expanded, searched.sum(axis=2), *from_disk)
    limits = limits_of(rates)
    most = limits.small_bytes + SMALL_BYTES_PER_VERTEX * sample.sizes
    small = (sample.sizes <= limits.small_vertices) & (tail_bytes <= most)
    return _follow(costs, cuts, heads, small, expanded, searched)


def predict_blocks(
    graph: StoredGraph, host_ranges: tuple[ByteRange, ...], sample: LevelSample
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Predict what expanding and searching read from disk, outside of host ranges, by level."""
    rows, in_rows = map(_read_only, graph.non_isolated_rows)
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
    """Predict what a search on the CPU would read with all tails on disk."""
    return int(np.minimum(*predict_blocks(graph, ((0, 0),), sample)).sum())


def _follow_from_disk(
    costs: Costs,
    heads: NDArray[np.int64],
    expanded: NDArray[np.int64],
    searched: NDArray[np.int64],
    expanded_from_disk: NDArray[np.int64],
    searched_from_disk: NDArray[np.int64],
) -> Forecast:
    """Choose what each level reads as the level loop does with tails on disk: none is small."""
    expand_costs = costs.expand(expanded)[:, 0]
    search_costs = costs.search(*(SECTOR_BYTES * searched.T))
    upward = (
        search_costs + costs.disk_byte * searched_from_disk
        <= expand_costs + costs.disk_byte * expanded_from_disk
    )
    moved = SECTOR_BYTES * np.where(upward, searched[:, 0], expanded[:, 0])
    work = np.where(upward, search_costs, expand_costs).sum() + heads.sum()
    return Forecast(
        slow_bytes=int(moved.sum()),
        large_levels=upward.size,
        small_levels=0,
        work_seconds=costs.seconds(int(work)),
        disk_bytes=int(np.where(upward, searched_from_disk, expanded_from_disk).sum()),
    )


def _follow(
    costs: Costs,
    cuts: Cuts,
    heads: NDArray[np.int64],
    small: NDArray[np.bool_],
    expanded: NDArray[np.int64],
    searched: NDArray[np.int64],
) -> Forecast:
    """Choose what each level reads as the level loop does, if it knew what searching will read."""
    expand_costs = costs.expand(expanded)
    # A heads pass runs before the frontier's size is known, unless its rows are cheap.
    heads_run = expand_costs[:, 0] >= heads
    moved = work = 0.0
    num_small, known = 0, True
    for level, expand_cost in enumerate(expand_costs):
        known = bool(small[level]) and (known or not heads_run[level])
        num_small += known
        if known or not heads_run[level]:
            moved += SECTOR_BYTES * int(expanded[level, 0])
            work += int(expand_cost[0])
            continue
        slow, fast = SECTOR_BYTES * searched[level]
        search_costs = costs.search(slow, fast)
        ranges = cuts.choose(search_costs, expand_cost)
        moved += int(cuts.costs(slow, SECTOR_BYTES * expanded[level, ::2])[ranges])
        work += float(cuts.costs(search_costs, expand_cost)[ranges]) + int(heads[level])
    return Forecast(
        slow_bytes=int(moved),
        large_levels=small.size - num_small,
        small_levels=num_small,
        work_seconds=costs.seconds(int(work)),
    )


def predict_seconds(rates: Rates, forecast: Forecast, num_vertices: int) -> float:
    """Predict how long a search would take without its results; MODEL explains."""
    return (
        forecast.disk_bytes / rates.disk_bandwidth
        + forecast.work_seconds
        + num_vertices / rates.device_bandwidth  # clearing levels
        + forecast.large_levels * large_level_seconds(rates)
        + forecast.small_levels * small_level_seconds(rates)
    )


def _read_only(rows: Rows) -> Rows:
    """Return the arrays as the type that the kernels are compiled for."""

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

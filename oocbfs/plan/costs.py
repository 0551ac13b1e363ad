"""What the steps of a level cost on a device, in one unit: picoseconds.

Kernels count sectors of rows by the memory that they lie in; here these get their prices, from the
rates of the device and from what a sector of the graph holds. Expanding a row tests a bit of the
bitmap for each of its neighbours, wherever the row lies. Searching one ends at its first hit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.rows import Rows
from oocbfs.plan.rates import SECTOR_BYTES, Rates

_PICOSECONDS = 1e12
# Sectors of device memory that are read beside those of rows. For each neighbour that is tested:
# its bit, of a bitmap of which caches hold most. For each sector that is searched: the list of the
# pending and where the row begins, and the bits before the first hit. In a heads pass for each
# vertex that is not visited: its head, where its row begins, and the list that it goes to, which
# lie side by side; beside these a bit of every vertex is read and written. The emulator, which has
# no caches, counts about 0.7, 3 and 1. How much caches hold is assumed, and was chosen among five
# settings by the bytes over PCIe that they led to: tests/benchmarks/README.md, "Resident tails".
_SECTORS_PER_TEST = 0.2
_SECTORS_PER_SEARCH = 1.5
_SECTORS_PER_HEAD = 0.35
_SECTORS_PER_BIT = 2 / (8 * SECTOR_BYTES)
# What a level takes beside its sectors: launches of a large one; and accesses to device memory of a
# small one, each of which waits for the one before.
_LARGE_LEVEL_LAUNCHES = 3
_SMALL_LEVEL_ACCESSES = 16


@dataclass(frozen=True)
class Costs:
    """Prices of one graph on one device: a sector that is expanded or searched, by where it lies.

    ``test`` is a neighbour that is tested, of which a sector has ``tests``; ``head`` is a vertex
    that a heads pass asks, ``bitmaps`` what else it takes, and ``disk_byte`` a byte that comes from
    disk.
    """

    expand_slow: int
    expand_fast: int
    search_slow: int
    search_fast: int
    test: float
    tests: float
    head: int
    bitmaps: int
    disk_byte: float

    def expand(self, sectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Price rows that are expanded, and how much of that a cut can save.

        ``sectors`` are the four sums of the control words, in the last axis.
        """
        slow, fast, skippable_slow, skippable_fast = np.moveaxis(sectors, -1, 0)
        return np.stack(
            [
                slow * self.expand_slow + fast * self.expand_fast,
                skippable_slow * self.expand_slow + skippable_fast * self.expand_fast,
            ],
            axis=-1,
        )

    def heads(self, num_vertices: int) -> int:
        """Price a heads pass that asks so many vertices."""
        return self.bitmaps + num_vertices * self.head

    def search(
        self,
        slow_bytes: NDArray[np.int64],
        fast_bytes: NDArray[np.int64],
        vain_tests: float = 0.0,
    ) -> NDArray[np.int64]:
        """Price bytes that are searched, by the memory in which their rows begin.

        ``vain_tests`` are those of a hit beyond the few that are usual; a sector has no more than
        its neighbours.
        """
        vain = round(self.test * min(vain_tests, self.tests))
        slow, fast = self.search_slow + vain, self.search_fast + vain
        return (slow_bytes * slow + fast_bytes * fast) // SECTOR_BYTES

    def neighbours(self, num_bytes: float) -> float:
        """Return how many neighbours so many bytes of tails hold in the mean."""
        return num_bytes * self.tests / SECTOR_BYTES

    @staticmethod
    def seconds(cost: int) -> float:
        """Return a cost in seconds."""
        return cost / _PICOSECONDS


def large_level_seconds(rates: Rates) -> float:
    """Return what launches and the read-back of a large level take."""
    return _LARGE_LEVEL_LAUNCHES * rates.launch_seconds + rates.read_back_seconds


def small_level_seconds(rates: Rates) -> float:
    """Return what a level takes that one block expands beside others in one launch."""
    return _SMALL_LEVEL_ACCESSES * rates.latency_seconds


def costs_of(rates: Rates, rows: Rows) -> Costs:
    """Price the steps of levels of a graph, by the rates of a device."""
    slow, fast = _PICOSECONDS / rates.bus_sectors, _PICOSECONDS / rates.device_sectors
    in_tails = max(0, rows.num_arcs - rows.heads.size)
    per_sector = SECTOR_BYTES * in_tails / max(1, rows.tails.size)
    test = _SECTORS_PER_TEST * fast
    tested = test * per_sector
    searched = _SECTORS_PER_SEARCH * fast
    return Costs(
        expand_slow=round(slow + tested),
        expand_fast=round(fast + tested),
        search_slow=round(slow + searched),
        search_fast=round(fast + searched),
        test=test,
        tests=per_sector,
        head=round(_SECTORS_PER_HEAD * fast),
        bitmaps=round(_SECTORS_PER_BIT * fast * rows.heads.size),
        disk_byte=_PICOSECONDS / rates.disk_bandwidth,
    )

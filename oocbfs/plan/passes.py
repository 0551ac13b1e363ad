"""What the heads passes of one search teach: what searching will cost, and when to ask again.

Where neighbours lie anywhere, a row meets the frontier by the frontier's share of all rows, and its
head, the likeliest neighbour, sooner. On web graphs neighbours lie close to each other: few heads
hit although the frontier is large, and most of the rows that are left are read in vain, to their
end. How clustered a graph is in that sense shows in the heads that hit, and in how many of the
rows that were left held a neighbour in the frontier after all. Both are counted anyway.

The rows that a pass leaves are taken for two kinds: near the frontier, where they meet it as if
neighbours lay anywhere, and far from it, where they do not at all. If fewer heads hit than the
frontier's share, that many vertices were far: all of their rows will be read. The kernel does not
know that yet when it sums up how far rows will be read, so that the host makes up for it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from oocbfs.plan.costs import Costs
from oocbfs.plan.limits import StepLimits
from oocbfs.plan.rates import SECTOR_BYTES

# Smaller shares of all rows say little about the frontiers to come.
_TELLING_SHARE = 1 / 16


class HeadsPasses:
    """The heads passes of one search, each followed by the level that it belongs to."""

    def __init__(
        self, costs: Costs, limits: StepLimits, tail_bytes: int, num_vertices: int
    ) -> None:
        self._costs, self._limits = costs, limits
        self._tail_bytes, self._row_bytes = tail_bytes, tail_bytes / max(num_vertices, 1)
        # How many times as many neighbours are tested for a hit as if they lay anywhere.
        self._clustering = 1.0
        # Which share of the vertices that a pass leaves is far from the frontier.
        self._far = 0.0
        # Of the last pass: vertices that were asked, and what either direction was to cost.
        self._asked, self._search_cost, self._expand_cost = 1, 0.0, 0.0
        # The share of all rows in its frontier, in sectors and in what these hold, its pending
        # vertices, and the neighbours of each.
        self._share, self._held_share = 0.0, 0.0
        self._pending, self._neighbours = 0, 0.0

    def worth_asking(self, unvisited: int) -> int:
        """Return what expanding a frontier costs at least where heads are asked first.

        That is what a pass costs, and what searching is expected to cost afterwards: as after the
        last pass, by the vertices that are left. Twice the frontier leaves half as many rows, of
        which each is read half as far.
        """
        before = self._search_cost * unvisited / self._asked
        searching = min(before, math.cbrt(before * self._expand_cost**2))
        return self._limits.worth_asking(self._costs.heads(unvisited)) + int(searching)

    @property
    def search_bytes(self) -> int:
        """What rows hold for each hit, times the rows of the frontier: see bottom_up_heads."""
        return int(self._tail_bytes * self._clustering)

    def search_costs(
        self,
        pending_bytes: NDArray[np.int64],
        *,
        pending: int,
        frontier: int,
        frontier_bytes: int,
        expand_cost: int,
        tested: int,
        found: int,
    ) -> NDArray[np.int64]:
        """Price what a pass left, by range: slow and fast bytes that searching is to read.

        The pass tested and found so many heads.
        """
        share = max(frontier_bytes, 1) / max(self._tail_bytes, 1)
        clustering = max(self._clustering, share * tested / max(found, 1))
        # Of short rows, whole sectors are far more than what they hold.
        held_bytes = max(frontier_bytes - (SECTOR_BYTES - 1) * frontier, 1)
        self._held_share = min(1.0, held_bytes / max(self._tail_bytes, 1))
        far = (tested - found / self._held_share) / max(pending, 1)
        far = min(1.0, max(self._far, far))
        tests = max((clustering - 1) / share, far * self._costs.tests)
        slow, fast = pending_bytes
        costs = self._costs.search(slow, fast, vain_tests=tests)
        self._asked, self._share = max(tested, 1), share
        self._search_cost, self._expand_cost = float(costs.sum()), float(expand_cost)
        self._pending = pending
        read: NDArray[np.int64] = pending_bytes.sum(axis=0)
        self._neighbours = self._costs.neighbours(int(read.sum())) / max(pending, 1)
        # Ranges hold as many bytes each; what one leaves is in one memory, but for one range.
        least = far * pending * self._row_bytes / read.size
        longer: NDArray[np.float64] = np.maximum(1, least / np.maximum(read, 1))
        priced: NDArray[np.int64] = (costs * longer).astype(np.int64)
        return priced

    def learn(self, found: int) -> None:
        """Take how many of the vertices that the last pass left were found in its level."""
        if self._pending and self._share >= _TELLING_SHARE:
            left = max(1 - found / self._pending, 1 / self._pending)
            hits = max(-math.log(left), 1 / self._pending)
            self._clustering = max(1.0, self._share * self._neighbours / hits)
            expected = -math.expm1(-self._held_share * self._costs.neighbours(self._row_bytes))
            self._far = max(0.0, 1 - found / self._pending / max(expected, _TELLING_SHARE))
        self._pending = 0

"""What the heads passes of one search teach: what searching will cost, and when to ask again.

Where neighbours lie anywhere, a row meets the frontier by the frontier's share of all rows, and its
head, the likeliest neighbour, sooner. On web graphs neighbours lie close to each other: few heads
hit although the frontier is large, and most of the rows that are left are read in vain, to their
end. How clustered a graph is in that sense shows in the heads that hit, and in how many of the
rows that were left held a neighbour in the frontier after all. Both are counted anyway.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from oocbfs.plan.costs import Costs
from oocbfs.plan.limits import StepLimits

# Smaller shares of all rows say little about the frontiers to come.
_TELLING_SHARE = 1 / 16


class HeadsPasses:
    """The heads passes of one search, each followed by the level that it belongs to."""

    def __init__(self, costs: Costs, limits: StepLimits, tail_bytes: int) -> None:
        self._costs, self._limits = costs, limits
        self._tail_bytes = tail_bytes
        # How many times as many neighbours are tested for a hit as if they lay anywhere.
        self._clustering = 1.0
        # Of the last pass: vertices that were asked, and what either direction was to cost.
        self._asked, self._search_cost, self._expand_cost = 1, 0.0, 0.0
        # The share of all rows in its frontier, its pending vertices, and the neighbours of each.
        self._share, self._pending, self._neighbours = 0.0, 0, 0.0

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
        slow, fast = pending_bytes
        costs = self._costs.search(slow, fast, vain_tests=(clustering - 1) / share)
        self._asked, self._share = max(tested, 1), share
        self._search_cost, self._expand_cost = float(costs.sum()), float(expand_cost)
        self._pending = pending
        self._neighbours = self._costs.neighbours(int(pending_bytes.sum())) / max(pending, 1)
        return costs

    def learn(self, found: int) -> None:
        """Take how many of the vertices that the last pass left were found in its level."""
        if self._pending and self._share >= _TELLING_SHARE:
            left = max(1 - found / self._pending, 1 / self._pending)
            hits = max(-math.log(left), 1 / self._pending)
            self._clustering = max(1.0, self._share * self._neighbours / hits)
        self._pending = 0

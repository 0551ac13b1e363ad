"""Which way a level of a sharded search goes: by edges, or by what devices say it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from oocbfs.cluster.shard import Work
from oocbfs.kernels.bfs.levels import HEAD_COST, ROW_COST, TAIL_COST


class Directions(Protocol):
    """The direction of each level; it learns from the steps that were taken."""

    def prefers_bottom_up(self, frontier: int, edges: int) -> bool:
        """Return whether bottom-up is cheaper for a frontier of this size, with these edges."""

    def went(self, *, bottom_up: bool, edges: int, found: int, work: Sequence[Work]) -> None:
        """Learn from a step: the edges of its frontier, what it found and what it looked at."""


@dataclass
class ByEdges:
    """The direction of a level, by the costs of ``kernels.bfs.levels``, from what is known already.

    On one machine a sample of a bottom-up step tells what the first one would cost. Here that would
    be a message, so the first one is taken when the frontier has an eighth of the edges that are
    left.
    """

    num_vertices: int
    unexplored_edges: int
    num_found: int = 0
    # Edges that another bottom-up step would look at; None before the first one.
    bottom_up_edges: float | None = None

    def prefers_bottom_up(self, frontier: int, edges: int) -> bool:
        """Return whether bottom-up is cheaper for a frontier of this size, with these edges."""
        if self.bottom_up_edges is not None:
            cost = self.bottom_up_edges * TAIL_COST
        else:
            cost = (self.num_vertices - self.num_found) * HEAD_COST
        if edges <= cost / ROW_COST + self.num_vertices // 64:
            return False
        if self.bottom_up_edges is not None or self.unexplored_edges <= edges:
            return True
        return edges * 8 > self.unexplored_edges

    def went(self, *, bottom_up: bool, edges: int, found: int, work: Sequence[Work]) -> None:
        """Learn from a step: the edges of its frontier, what it found and what it looked at."""
        self.num_found += found
        if not bottom_up:
            self.unexplored_edges -= edges
            return
        tested = sum(one.tested for one in work)
        looked = sum(one.edges for one in work)
        self.bottom_up_edges = looked / max(1, tested) * (tested - found)

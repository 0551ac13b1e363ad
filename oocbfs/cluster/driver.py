"""The level loop of a search in parts: choose a direction, take a step, keep results.

The same for every exchange; among peers, which hold their own parts each, all run it alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from oocbfs.cluster.exchange import Exchange, ShardQuery, Steps
from oocbfs.cluster.levels import Watch
from oocbfs.cluster.results import AllResults, Results
from oocbfs.cluster.shard import Work
from oocbfs.kernels.bfs.levels import HEAD_COST, ROW_COST, TAIL_COST
from oocbfs.kernels.bitmaps import DEEP
from oocbfs.results.levels import Beside, LevelLog, LevelTable

# Columns of a record that sum up the work of all shards.
_SUMMED = ("edges", "heads", "tail_bytes", "disk_bytes")


@dataclass
class Directions:
    """The direction of a level, by the costs of ``kernels.bfs.levels``, from what is known already.

    On one machine a sample of a bottom-up step tells what the first one would cost. Here that would
    be a message, so the first one is taken when the frontier has an eighth of the edges that are
    left.
    """

    num_vertices: int
    unexplored_edges: int
    num_found: int = 0
    # Edges that another step up would look at; None before the first one.
    up_edges: float | None = None

    def prefers_up(self, frontier: int, edges: int) -> bool:
        """Return whether bottom-up is cheaper for a frontier of this size, with these edges."""
        if self.up_edges is not None:
            cost = self.up_edges * TAIL_COST
        else:
            cost = (self.num_vertices - self.num_found) * HEAD_COST
        if edges <= cost / ROW_COST + self.num_vertices // 64:
            return False
        if self.up_edges is not None or self.unexplored_edges <= edges:
            return True
        return edges * 8 > self.unexplored_edges

    def went(self, *, up: bool, edges: int, found: int, work: Sequence[Work]) -> None:
        """Learn from a step: the edges of its frontier, what it found and what it looked at."""
        self.num_found += found
        if not up:
            self.unexplored_edges -= edges
            return
        tested = sum(one.tested for one in work)
        looked = sum(one.edges for one in work)
        self.up_edges = looked / max(1, tested) * (tested - found)


@dataclass
class Outcome:
    """What a search did, level by level, and how many vertices each level has."""

    log: LevelLog = field(default_factory=lambda: LevelLog(("disk", "messages")))
    sizes: list[int] = field(default_factory=list)

    @property
    def levels(self) -> LevelTable:
        """What each level did."""
        log, sizes = self.log, np.array(self.sizes)
        return LevelTable(log.records, len(log), sizes, log.tiers, log.beside)


def traverse(
    steps: Steps,
    query: ShardQuery,
    results: Results,
    watch: Watch | None = None,
) -> Outcome:
    """Search level by level; ``watch`` sees every level begin, and may raise."""
    search = _Search(steps, query, results, watch)
    steps.begin(query, results)
    while not steps.lead(search.go_on):
        results.deepen()
    return search.outcome


class Driven(Steps, Exchange):
    """An exchange whose steps this process drives."""

    def search(self, query: ShardQuery, results: AllResults, watch: Watch | None) -> Outcome:
        """Search level by level."""
        return traverse(self, query, results, watch)


class _Search:
    """A search under way: the level, its frontier, and what is known for the next direction."""

    def __init__(
        self,
        steps: Steps,
        query: ShardQuery,
        results: Results,
        watch: Watch | None,
    ) -> None:
        self._steps, self._query, self._results = steps, query, results
        self._watch = watch
        self._size, self._edges, self._level = query.sources.size, query.source_edges, 0
        shape = query.shape
        self._known = Directions(shape.non_isolated, shape.num_edges, num_found=self._size)
        self.outcome = Outcome(sizes=[self._size])

    def go_on(self) -> bool:
        """Run levels to the end, or until they need more room in the results; tells which."""
        steps, query, results = self._steps, self._query, self._results
        target = query.target
        while self._size and self._level != query.max_depth:
            if target is not None and steps.reached(target, results):
                break
            if self._level + 1 >= DEEP and not results.deep_levels.size:
                return False
            if self._watch is not None:
                self._watch.on_level(self._level, self.outcome.sizes)
            self._run_level()
        return True

    def _run_level(self) -> None:
        start = time.perf_counter()
        size, edges = self._size, self._edges
        up = self._query.direction == "bottom-up"
        if self._query.direction == "auto":
            up = self._known.prefers_up(size, edges)
        self._level += 1
        found = self._steps.up(self._level) if up else self._steps.down(self._level)
        self._known.went(up=up, edges=edges, found=found.size, work=found.work)
        seconds = time.perf_counter() - start
        traffic = found.traffic
        by_part = [work.edges for work in found.work]
        beside = Beside(
            exchange={**vars(traffic), "edges_by_part": by_part, "frontier_edges": edges}
        )
        self.outcome.log.add(
            "bottom-up" if up else "top-down",
            size,
            beside,
            **{name: sum(getattr(one, name) for one in found.work) for name in _SUMMED},
            messages_bytes=traffic.sent + traffic.received,
            seconds=seconds,
        )
        if found.size:
            self.outcome.sizes.append(found.size)
        self._size, self._edges = found.size, found.edges

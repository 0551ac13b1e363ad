"""The level loop of a search in parts: choose a direction, take a step, keep results.

The same for every exchange; among peers, which hold their own parts each, all run it alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oocbfs.cluster.exchange import Exchange, Found, Query, Steps, Traffic
from oocbfs.cluster.levels import Watch
from oocbfs.cluster.results import AllResults, Results
from oocbfs.cluster.shard import Work
from oocbfs.kernels.bfs.levels import HEAD_COST, ROW_COST, TAIL_COST
from oocbfs.kernels.bitmaps import DEEP


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
        """Tell whether a frontier with so many vertices and edges is cheaper to find bottom-up."""
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


class LevelRecord(NamedTuple):
    """What expanding one level took: its frontier, all shards' work, and the messages."""

    up: bool
    frontier: int
    frontier_edges: int
    edges: int
    heads: int
    tail_bytes: int
    disk_bytes: int
    seconds: float
    traffic: Traffic
    # Edges that each shard looked at.
    by_part: tuple[int, ...]


@dataclass
class Outcome:
    """What a search did: a record a level, and how many vertices each level has."""

    records: list[LevelRecord] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


def traverse(
    steps: Steps,
    query: Query,
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

    def search(self, query: Query, results: AllResults, watch: Watch | None) -> Outcome:
        """Search level by level."""
        return traverse(self, query, results, watch)


class _Search:
    """A search under way: the level, its frontier, and what is known for the next direction."""

    def __init__(
        self,
        steps: Steps,
        query: Query,
        results: Results,
        watch: Watch | None,
    ) -> None:
        self._steps, self._query, self._results = steps, query, results
        self._watch = watch
        self._size, self._edges, self._level = query.sources.size, query.source_edges, 0
        shape = query.shape
        self._known = Directions(shape.connected, shape.num_edges, num_found=self._size)
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
        self.outcome.records.append(_record(up, size, edges, found, seconds))
        if found.size:
            self.outcome.sizes.append(found.size)
        self._size, self._edges = found.size, found.edges


def _record(up: bool, size: int, edges: int, found: Found, seconds: float) -> LevelRecord:
    work = found.work
    return LevelRecord(
        up=up,
        frontier=size,
        frontier_edges=edges,
        edges=sum(one.edges for one in work),
        heads=sum(one.heads for one in work),
        tail_bytes=sum(one.tail_bytes for one in work),
        disk_bytes=sum(one.disk_bytes for one in work),
        seconds=seconds,
        traffic=found.traffic,
        by_part=tuple(one.edges for one in work),
    )

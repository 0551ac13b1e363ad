"""The level loop of a sharded search: choose a direction, take a step, keep results.

The same for every exchange; among peers, which hold their own shards each, all run it alike.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from oocbfs.cluster.exchange import Exchange, Found, ShardQuery, Steps
from oocbfs.cluster.levels import Watch
from oocbfs.cluster.results import AllResults, Results
from oocbfs.results.levels import Beside, LevelLog, LevelTable

# Columns of a record that sum up the work of all shards.
_SUMMED = ("edges", "heads", "tail_bytes", "disk_bytes", "host_bytes")


@dataclass
class Outcome:
    """What a search did, level by level, and how many vertices each level has."""

    log: LevelLog
    sizes: list[int] = field(default_factory=list)

    @property
    def levels(self) -> LevelTable:
        """What each level did."""
        log, sizes = self.log, np.array(self.sizes)
        return LevelTable(log.records, len(log), sizes, log.tiers, log.beside)


def search(
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
        return search(self, query, results, watch)


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
        self._directions = steps.directions(query)
        self.outcome = Outcome(LevelLog(steps.tiers), [self._size])

    def go_on(self) -> bool:
        """Run levels to the end, or until they need more room in the results; tells which."""
        steps, query, results = self._steps, self._query, self._results
        target = query.target
        while self._size and self._level != query.max_depth:
            if target is not None and steps.reached(target, results):
                break
            if not results.has_room(self._level + 1):
                return False
            if self._watch is not None:
                self._watch.on_level(self._level, self.outcome.sizes)
            self._run_level()
        return True

    def _run_level(self) -> None:
        start = time.perf_counter()
        size, edges = self._size, self._edges
        bottom_up = self._query.direction == "bottom-up"
        if self._query.direction == "auto":
            bottom_up = self._directions.prefers_bottom_up(size, edges)
        self._level += 1
        found = (
            self._steps.bottom_up(self._level) if bottom_up else self._steps.top_down(self._level)
        )
        self._directions.went(bottom_up=bottom_up, edges=edges, found=found.size, work=found.work)
        traffic = found.traffic
        self.outcome.log.add(
            found.direction or ("bottom-up" if bottom_up else "top-down"),
            size,
            found.beside or _messages(found, edges),
            **{name: sum(getattr(one, name) for one in found.work) for name in _SUMMED},
            messages_bytes=traffic.sent + traffic.received,
            seconds=time.perf_counter() - start,
        )
        if found.size:
            self.outcome.sizes.append(found.size)
        self._size, self._edges = found.size, found.edges


def _messages(found: Found, edges: int) -> Beside:
    """Return what was told of a frontier with so many edges."""
    by_shard = [work.edges for work in found.work]
    told = {**vars(found.traffic), "edges_by_part": by_shard, "frontier_edges": edges}
    return Beside(exchange=told)

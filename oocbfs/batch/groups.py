"""One group of 64 sources: what it needs, how it is searched, and what comes of it.

Groups know nothing of each other, so that any process that sees the graph and the folder can
search one: this one, or a worker of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from oocbfs.batch.outputs import NpyLevels, ZarrLevels
from oocbfs.cluster.many import ShardedSearches
from oocbfs.cluster.stored_shards import StoredShards
from oocbfs.formats.io.closing import Closing
from oocbfs.graph.stored import StoredGraph
from oocbfs.results.source import SourceResult
from oocbfs.search.many import Searches, searches_of
from oocbfs.settings import Emit, LevelFiles, ManyEngine, Settings, Strategy


@dataclass(frozen=True)
class Manner:
    """What all groups of a job share: what they write, and how they are searched."""

    output: Path | None
    emit: Emit
    level_files: LevelFiles
    threads: int | None
    strategy: Strategy
    engine: ManyEngine
    vram: str | None
    resident_tails: str | None
    force: bool
    # Said here, because a worker has an environment of its own.
    validate: bool

    def check(self, graph: StoredGraph | StoredShards) -> None:
        """Refuse what a graph cannot do, or not within its budget."""
        searches_of(graph, self.emit, self.strategy, self._settings(graph))

    def searches(self, graph: StoredGraph | StoredShards) -> Searches | ShardedSearches:
        """Return what searches a graph, by itself or in shards."""
        return searches_of(graph, self.emit, self.strategy, self._settings(graph))()

    def _settings(self, graph: StoredGraph | StoredShards) -> Settings:
        names = ("threads", "engine", "vram", "resident_tails", "validate", "force")
        asked: dict[str, Any] = {name: getattr(self, name) for name in names}
        return Settings(memory=graph.budget_bytes, **asked)


@dataclass(frozen=True)
class SourceGroup:
    """Sources that are committed together, the place of the first among all, and their targets."""

    number: int
    first: int
    sources: list[int]
    targets: list[list[int]] | None


@dataclass
class GroupDone:
    """A row for each source, and how they were searched; see ``JobOutcome``."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    strategies: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    width: int = 0
    disk_bytes: int = 0
    fallback: str | None = None


# Searches groups, in any order.
Search = Callable[[Sequence[SourceGroup]], Iterator[tuple[SourceGroup, GroupDone]]]


class GroupRunner(Closing):
    """Searches groups of one job on an open graph, and writes the levels of their sources."""

    def __init__(self, graph: StoredGraph | StoredShards, manner: Manner) -> None:
        self._graph, self._manner = graph, manner
        self._searches = manner.searches(graph)

    @cached_property
    def _levels(self) -> NpyLevels | ZarrLevels | None:
        """Where levels go; nothing is there before the first group."""
        manner = self._manner
        if manner.emit != "levels":
            return None
        assert manner.output is not None
        return (NpyLevels if manner.level_files == "npy" else ZarrLevels)(manner.output)

    def close(self) -> None:
        """Release what a device holds; the graph stays open."""
        self._searches.__exit__(None, None, None)

    def run(
        self, group: SourceGroup, advance: Callable[[int], object] = lambda done: None
    ) -> GroupDone:
        """Search a group; its levels are on disk afterwards."""
        done = GroupDone()
        done.rows += self.rows(group, done, advance)
        return done

    def rows(
        self, group: SourceGroup, done: GroupDone, advance: Callable[[int], object]
    ) -> Iterator[dict[str, Any]]:
        """Search a group and yield a row for each source; ``done`` is counted meanwhile."""
        work = self._searches
        before = work.disk_bytes
        targets = None
        if group.targets is not None:
            targets = [self._graph.stored(ids) for ids in group.targets]
        for number, result in enumerate(work.run(group.sources, targets), group.first):
            if self._levels is not None:
                self._levels.write(number, result)
            done.strategies[result.strategy] = done.strategies.get(result.strategy, 0) + 1
            advance(1)
            yield _row(result)
        if self._levels is not None:
            self._levels.flush(group.first, group.first + len(group.sources))
        done.reason, done.width, done.fallback = work.reason, work.width, work.fallback
        done.disk_bytes = work.disk_bytes - before


def _row(result: SourceResult) -> dict[str, Any]:
    if result.distances is None:
        return result.row()
    return {"source": result.source, "distances": result.distances.tolist()}

"""What a batch is asked for, what is known before it starts, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oocbfs.results.source import SourceResult
from oocbfs.search.many import WIDTH, Traversals
from oocbfs.settings import Emit, From, LevelFiles, ManyEngine, Strategy, Table


@dataclass(frozen=True)
class Job:
    """One graph, one set of sources, one folder; sources are given in exactly one of four ways.

    Without a folder, the table goes to standard output, and there is nothing to resume.
    """

    graph: Path
    output: Path | None
    sources: Path | None = None
    random: int | None = None
    all_hubs: int | None = None
    pairs: Path | None = None
    seed: int = 1
    from_: From = "all"
    emit: Emit = "summary"
    table: Table = "csv"
    levels: LevelFiles = "npy"
    threads: int | None = None
    memory: str | None = None
    strategy: Strategy = "auto"
    engine: ManyEngine = "auto"


@dataclass(frozen=True)
class PreparedJob:
    """A job whose inputs were read and checked."""

    job: Job
    sources: list[Any]
    pairs: list[tuple[Any, Any]]
    manifest: dict[str, Any]
    about: dict[str, str]

    @property
    def folder(self) -> Path:
        """The folder of a job that has one."""
        assert self.job.output is not None
        return self.job.output

    @property
    def num_groups(self) -> int:
        """Groups of sources; each is committed as a whole."""
        return -(-len(self.sources) // WIDTH)


@dataclass
class JobOutcome:
    """What a job did: number of sources, those done before, and how they were traversed.

    ``disk_bytes`` were read of tails on disk; ``fallback`` is why the GPU was not used.
    """

    num_sources: int
    resumed: int
    strategies: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    width: int = WIDTH
    disk_bytes: int = 0
    fallback: str | None = None

    def count(self, result: SourceResult) -> None:
        """Count one more source."""
        self.strategies[result.strategy] = self.strategies.get(result.strategy, 0) + 1

    def note(self, work: Traversals) -> None:
        """Take over how the work was done."""
        self.reason, self.width, self.disk_bytes = work.reason, work.width, work.disk_bytes
        self.fallback = work.fallback

"""What a batch is asked for, what is known before it starts, and what it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oocbfs.batch.groups import GroupDone, Manner, SourceGroup
from oocbfs.cluster.manifest import is_sharded
from oocbfs.search.many import WIDTH
from oocbfs.settings import Emit, From, LevelFiles, ManyEngine, Strategy, Table, is_verifying


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
    level_files: LevelFiles = "npy"
    threads: int | None = None
    memory: str | None = None
    strategy: Strategy = "auto"
    engine: ManyEngine = "auto"
    vram: str | None = None
    resident_tails: str | None = None
    cluster: str | None = None
    force: bool = False

    @property
    def is_in_parts(self) -> bool:
        """Whether the graph is a folder of parts."""
        return is_sharded(self.graph)

    @property
    def manner(self) -> Manner:
        """What all groups share."""
        return Manner(
            output=self.output,
            emit=self.emit,
            level_files=self.level_files,
            threads=self.threads,
            strategy=self.strategy,
            engine=self.engine,
            vram=self.vram,
            resident_tails=self.resident_tails,
            force=self.force,
            validate=is_verifying(),
        )


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

    @property
    def writes_zarr(self) -> bool:
        """Whether levels go into one array."""
        return self.job.emit == "levels" and self.job.level_files == "zarr"

    def groups(self) -> Iterator[SourceGroup]:
        """Yield the groups in the order of their sources."""
        wanted = self.targets()
        for number in range(self.num_groups):
            first = number * WIDTH
            sources = self.sources[first : first + WIDTH]
            targets = [wanted[source] for source in sources] if wanted else None
            yield SourceGroup(number, first, sources, targets)

    def targets(self) -> dict[int, list[int]]:
        """Give the targets of each source, if pairs are wanted."""
        wanted: dict[int, list[int]] = {}
        for source, target in self.pairs:
            wanted.setdefault(source, []).append(target)
        return wanted


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
    seconds: float = 0.0

    def add(self, done: GroupDone) -> None:
        """Count what is done, and take over how."""
        for name, count in done.strategies.items():
            self.strategies[name] = self.strategies.get(name, 0) + count
        self.reason, self.width, self.fallback = done.reason, done.width, done.fallback
        self.disk_bytes += done.disk_bytes

"""What is known of a batch before it starts, and what it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oocbfs.batch.groups import GroupDone, SourceGroup
from oocbfs.batch.request import Job
from oocbfs.search.many import WIDTH


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
        """Return the targets of each source, if pairs are wanted."""
        wanted: dict[int, list[int]] = {}
        for source, target in self.pairs:
            wanted.setdefault(source, []).append(target)
        return wanted


@dataclass
class JobOutcome:
    """What a job did: number of sources, those done before, and how they were searched.

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

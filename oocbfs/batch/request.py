"""What a batch is asked for: the options of the verb, and the keys of job files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from oocbfs.memory import read_size
from oocbfs.options import metadata_of, option, read_path, read_place
from oocbfs.settings import (
    Emit,
    From,
    LevelFiles,
    ManyEngine,
    Settings,
    Strategy,
    Table,
    is_verifying,
)

# The command line explains this without loading what searches.
if TYPE_CHECKING:
    from oocbfs.batch.groups import Manner

_COUNTS = range(1, 1 << 63)


@dataclass(frozen=True)
class Job:
    """One graph, one set of sources, one folder; sources are given in exactly one of four ways.

    Without a folder, the table goes to standard output, and there is nothing to resume.
    """

    graph: Path = field(
        metadata=option("a graph, or a sharded graph", unit="GRAPH.ocg|DIR", read=read_path)
    )
    output: Path | None = field(
        metadata=option(
            "the folder to write to; - prints the table instead", unit="DIR", read=read_path
        )
    )
    sources: Path | None = field(
        default=None, metadata=option("a file of ids, one per line", unit="FILE", read=read_path)
    )
    random: int | None = field(
        default=None, metadata=option("N vertices that have an edge", values=_COUNTS)
    )
    all_hubs: int | None = field(
        default=None,
        metadata=option(
            "the N vertices with the most neighbours; out-neighbours if directed", values=_COUNTS
        ),
    )
    pairs: Path | None = field(
        default=None,
        metadata=option("a file of pairs, for emit pairs", unit="PAIRS.csv", read=read_path),
    )
    seed: int = field(default=1, metadata=option("seed of --random", values=range(1 << 64)))
    from_: From = field(
        default="all",
        metadata=option(
            "largest: --random takes only vertices of the largest component", values=get_args(From)
        ),
    )
    emit: Emit = field(
        default="summary",
        metadata=option(
            "summary: a row of figures for each source; levels: every distance too;"
            " pairs PAIRS.csv: the distances of these pairs only",
            values=get_args(Emit),
        ),
    )
    table: Table = field(
        default="csv",
        metadata=option("form of the table of sources or pairs", values=get_args(Table)),
    )
    level_files: LevelFiles = field(
        default="npy",
        metadata=option("a file for each source, or one array", values=get_args(LevelFiles)),
    )
    threads: int | None = field(default=None, metadata=metadata_of(Settings, "threads"))
    memory: str | None = field(
        default=None,
        metadata=option(
            "limit for the process, such as 4G", otherwise="none", unit="SIZE", read=read_size
        ),
    )
    strategy: Strategy = field(
        default="auto",
        metadata=option("64 sources in one pass, or each alone", values=get_args(Strategy)),
    )
    engine: ManyEngine = field(
        default="auto",
        metadata=option(
            "where 64 sources are searched at a time; see oocbfs bfs", values=get_args(ManyEngine)
        ),
    )
    vram: str | None = field(default=None, metadata=metadata_of(Settings, "vram"))
    resident_tails: str | None = field(
        default=None, metadata=metadata_of(Settings, "resident_tails")
    )
    cluster: str | None = field(
        default=None,
        metadata=option(
            "run groups on workers: tcp://HOST:PORT or the file of a scheduler "
            "(Dask), local:4, or mpi",
            otherwise="in this process",
            unit="WHERE",
            read=read_place,
        ),
    )
    force: bool = field(default=False, metadata=metadata_of(Settings, "force"))

    @property
    def is_sharded(self) -> bool:
        """Whether the graph is a folder of shards."""
        from oocbfs.cluster.manifest import is_sharded

        return is_sharded(self.graph)

    @property
    def manner(self) -> Manner:
        """What all groups share."""
        from oocbfs.batch.groups import Manner

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

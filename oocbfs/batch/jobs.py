"""Batches: many sources of one graph into one folder, resumable after each group of sources.

The folder holds the manifest, a record for each finished group in ``groups``, and the outputs. A
group is committed when its record gets its name, after all that it wrote was flushed to disk. When
all groups are, the tables are put together and the records removed. Nothing in the folder depends
on when or how often the job was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oocbfs import __version__
from oocbfs.batch.groups import GroupDone, GroupRunner, Manner, SourceGroup
from oocbfs.batch.outputs import (
    ZarrLevels,
    import_zarr,
    read_pairs,
    read_sources,
    sync,
    write_pairs,
    write_summary,
)
from oocbfs.batch.records import GROUPS, MANIFEST, read_checked, record_of, write_checked
from oocbfs.batch.sources import choose_hubs, choose_random
from oocbfs.batch.workers import SharedGraph, on_workers
from oocbfs.errors import OutputError, QueryError
from oocbfs.gpu.cuda_device import load_cupy
from oocbfs.kernels.emulator.build import find_compiler
from oocbfs.search.graph import Graph
from oocbfs.search.graph import open as open_graph
from oocbfs.search.many import WIDTH
from oocbfs.settings import (
    Emit,
    From,
    LevelFiles,
    ManyEngine,
    Strategy,
    Table,
    check_choice,
)
from oocbfs.workers.dask_address import check_address


@dataclass(frozen=True)
class Job:
    """One graph, one set of sources, one folder; sources are given in exactly one of four ways."""

    graph: Path
    output: Path
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
    cluster: str | None = None

    @property
    def manner(self) -> Manner:
        """What all groups share."""
        return Manner(
            output=self.output,
            emit=self.emit,
            levels=self.levels,
            threads=self.threads,
            strategy=self.strategy,
            engine=self.engine,
        )


@dataclass(frozen=True)
class PreparedJob:
    """A job whose inputs were read and checked."""

    job: Job
    sources: list[int]
    pairs: list[tuple[int, int]]
    manifest: dict[str, Any]

    @property
    def num_groups(self) -> int:
        """Groups of sources; each is committed as a whole."""
        return -(-len(self.sources) // WIDTH)

    @property
    def writes_zarr(self) -> bool:
        """Whether levels go into one array."""
        return self.job.emit == "levels" and self.job.levels == "zarr"

    def groups(self) -> Iterator[SourceGroup]:
        """Yield the groups in the order of their sources."""
        wanted: dict[int, list[int]] = {}
        for source, target in self.pairs:
            wanted.setdefault(source, []).append(target)
        for number in range(self.num_groups):
            first = number * WIDTH
            sources = self.sources[first : first + WIDTH]
            targets = [wanted[source] for source in sources] if self.pairs else None
            yield SourceGroup(number, first, sources, targets)


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

    def add(self, done: GroupDone) -> None:
        """Count a group that is done."""
        for name, count in done.strategies.items():
            self.strategies[name] = self.strategies.get(name, 0) + count
        self.reason, self.width, self.fallback = done.reason, done.width, done.fallback
        self.disk_bytes += done.disk_bytes


def prepare(job: Job, *, resume: bool) -> PreparedJob:
    """Read what a job needs and refuse what cannot work, before traversing or writing anything."""
    for name, value, choices in (
        ("emit", job.emit, Emit),
        ("strategy", job.strategy, Strategy),
        ("engine", job.engine, ManyEngine),
        ("from", job.from_, From),
        ("table", job.table, Table),
        ("levels", job.levels, LevelFiles),
    ):
        check_choice(name, value, choices)
    kinds = [job.sources, job.random, job.all_hubs, job.pairs]
    if sum(kind is not None for kind in kinds) != 1:
        raise QueryError("a batch takes one of sources, random, all-hubs and pairs")
    if (job.emit == "pairs") != (job.pairs is not None):
        raise QueryError("emit pairs needs a file of pairs, and a file of pairs needs emit pairs")
    if job.from_ == "giant" and job.random is None:
        raise QueryError("from giant takes only random sources")
    if job.emit == "levels" and job.levels == "zarr":
        import_zarr()
    if job.cluster is not None:
        check_address(job.cluster)
    elif job.engine == "cuda":
        load_cupy()
    elif job.engine == "emulator":
        find_compiler()
    pairs = [] if job.pairs is None else read_pairs(job.pairs)
    with open_graph(job.graph, memory=job.memory) as graph, graph.reading():
        sources = _sources(graph, job, pairs)
        graph.positions(sources)
        graph.positions([target for _, target in pairs])
        graph.release()  # pages read to choose sources are not memory of the program
        if job.cluster is None:
            job.manner.divide(graph)
        manifest = _manifest(graph, job, sources, pairs)
    _check_folder(job.output, manifest, resume=resume)
    return PreparedJob(job=job, sources=sources, pairs=pairs, manifest=manifest)


def _sources(graph: Graph, job: Job, pairs: list[tuple[int, int]]) -> list[int]:
    """Choose the sources, as ids."""
    if job.sources is not None:
        return read_sources(job.sources)
    if job.pairs is not None:
        return list(dict.fromkeys(source for source, _ in pairs))
    if job.all_hubs is not None:
        chosen = choose_hubs(graph.degrees, job.all_hubs)
    else:
        assert job.random is not None
        wanted = (graph.degrees, job.random, job.seed)
        if job.from_ == "giant":
            found = graph.components(threads=job.threads)
            chosen = choose_random(*wanted, found.in_giant)
        else:
            chosen = choose_random(*wanted)
    if chosen.size == 0:
        raise QueryError(f"{graph.path}: has no vertex to start from")
    return [int(vertex) for vertex in graph.ids_of(chosen)]


def _manifest(
    graph: Graph, job: Job, sources: list[int], pairs: list[tuple[int, int]]
) -> dict[str, Any]:
    """List all that determines the bytes of the outputs."""
    listed = json.dumps([sources, pairs]).encode()
    return {
        "oocbfs": __version__,
        "graph_checksum": graph.checksum,
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "from": job.from_,
        "sources": len(sources),
        "sources_sha256": hashlib.sha256(listed).hexdigest(),
        "emit": job.emit,
        "table": job.table,
        "levels": job.levels,
        "sources_per_group": WIDTH,
    }


def _check_folder(folder: Path, manifest: dict[str, Any], *, resume: bool) -> None:
    """Refuse a folder that holds anything but this job."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is not a folder; name another")
    if not folder.parent.is_dir():
        raise OutputError(f"{folder}: there is no folder {folder.parent}; create it first")
    path = folder / MANIFEST
    if not path.exists():
        # A job that was killed before its manifest was complete leaves only a temporary file.
        if folder.exists() and any(
            not name.startswith(f".{MANIFEST}.") for name in os.listdir(folder)
        ):
            raise OutputError(f"{folder}: is not empty and holds no batch; name another folder")
        return
    if not resume:
        raise OutputError(f"{folder}: holds a batch already; use --resume, or name another folder")
    stored = read_checked(path, "start again in another folder")
    for name, value in manifest.items():
        if stored.get(name) != value:
            raise OutputError(
                f"{folder}: was begun with another {name.replace('_', ' ')} "
                f"({stored.get(name)}, now {value}); start again in another folder"
            )


def run(
    prepared: PreparedJob, *, advance: Callable[[int], object] = lambda done: None
) -> JobOutcome:
    """Do what is left of a job; ``advance`` is called with the number of sources just done."""
    folder = prepared.job.output
    outcome = JobOutcome(num_sources=len(prepared.sources), resumed=0)
    if _is_complete(prepared):
        outcome.resumed = len(prepared.sources)
        advance(outcome.resumed)
    else:
        # What cannot work is refused before anything is written.
        with _traversing(prepared, advance) as traverse:
            _begin(prepared)
            left = []
            for group in prepared.groups():
                if record_of(folder, group.number).exists():
                    outcome.resumed += len(group.sources)
                    advance(len(group.sources))
                else:
                    left.append(group)
            for group, done in traverse(left):
                write_checked(record_of(folder, group.number), {"rows": done.rows})
                outcome.add(done)
        if prepared.writes_zarr:
            ZarrLevels.clean(folder)
        _write_tables(prepared)
    if (folder / GROUPS).exists():
        shutil.rmtree(folder / GROUPS)
    sync(folder)
    return outcome


def _begin(prepared: PreparedJob) -> None:
    """Make what is there before the first group is."""
    folder = prepared.job.output
    try:
        folder.mkdir(exist_ok=True)
        # The manifest comes first: a folder with other files and no manifest is not a batch's.
        if not (folder / MANIFEST).exists():
            write_checked(folder / MANIFEST, prepared.manifest)
        (folder / GROUPS).mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created: {error.strerror}") from error
    if prepared.writes_zarr:
        ZarrLevels.make(folder, len(prepared.sources), prepared.manifest["vertices"])


Traverse = Callable[[Sequence[SourceGroup]], Iterator[tuple[SourceGroup, GroupDone]]]


@contextmanager
def _traversing(prepared: PreparedJob, advance: Callable[[int], object]) -> Generator[Traverse]:
    """Give what traverses groups: this process, or the workers of a cluster, in any order."""
    job = prepared.job
    if job.cluster is not None:
        shared = SharedGraph(job.graph, prepared.manifest["graph_checksum"], job.memory)
        with on_workers(job.cluster, shared, job.manner, advance) as traverse:
            yield traverse
        return
    with open_graph(job.graph, memory=job.memory) as graph:

        def here(groups: Sequence[SourceGroup]) -> Iterator[tuple[SourceGroup, GroupDone]]:
            with GroupRunner(graph, job.manner) as runner:
                for group in groups:
                    yield group, runner.run(group, advance)

        yield here


def _is_complete(prepared: PreparedJob) -> bool:
    """Tell whether the tables are there, which are written last."""
    return _table(prepared).exists()


def _table(prepared: PreparedJob) -> Path:
    name = "pairs.csv" if prepared.job.emit == "pairs" else f"summary.{prepared.job.table}"
    return prepared.job.output / name


def _write_tables(prepared: PreparedJob) -> None:
    """Put the records of all groups together."""

    def rows() -> Iterator[dict[str, Any]]:
        for group in range(prepared.num_groups):
            path = record_of(prepared.job.output, group)
            yield from read_checked(path, "delete it and resume again")["rows"]

    if prepared.job.emit == "pairs":
        found = {row["source"]: iter(row["distances"]) for row in rows()}
        write_pairs(
            _table(prepared), prepared.pairs, (next(found[source]) for source, _ in prepared.pairs)
        )
    else:
        write_summary(_table(prepared), rows())

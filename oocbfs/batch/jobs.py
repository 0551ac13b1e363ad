"""Batches: many sources of one graph into one folder, resumable after each group of sources.

The folder holds the manifest, a record for each finished group in ``groups``, and the outputs. A
group is committed when its record gets its name, after all that it wrote was flushed to disk. When
all groups are, the tables are put together and the records removed. Nothing in the folder depends
on when or how often the job was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oocbfs.batch.groups import GroupDone, GroupRunner, Search, SourceGroup
from oocbfs.batch.job import JobOutcome, PreparedJob
from oocbfs.batch.outputs import ZarrLevels, import_zarr, sync
from oocbfs.batch.ranks import on_ranks
from oocbfs.batch.records import (
    GROUPS,
    MANIFEST,
    check_folder,
    read_checked,
    record_of,
    write_checked,
)
from oocbfs.batch.request import Job
from oocbfs.batch.sources import choose_hubs, choose_random
from oocbfs.batch.tables import Row, pair_types, write_table
from oocbfs.batch.workers import SharedGraph, on_workers
from oocbfs.errors import OutputError, QueryError
from oocbfs.formats.output.atomic import explained
from oocbfs.formats.output.packing import STANDARD_OUTPUT
from oocbfs.formats.output.parquet import import_arrow
from oocbfs.formats.readers.id_lines import read_pairs, read_sources
from oocbfs.gpu.cuda_device import load_cupy
from oocbfs.graph.any_stored import AnyStored
from oocbfs.kernels.emulator.build import find_compiler
from oocbfs.results.source import column_types
from oocbfs.results.tables import about
from oocbfs.search.graph import Graph, open_file
from oocbfs.search.many import WIDTH
from oocbfs.search.sharded import ShardedGraph, open_sharded
from oocbfs.settings import (
    Emit,
    From,
    LevelFiles,
    ManyEngine,
    Strategy,
    Table,
    check_choice,
    several,
)
from oocbfs.version import __version__
from oocbfs.workers.dask_address import check_address
from oocbfs.workers.mpi_ranks import first_rank

_log = logging.getLogger(__name__)
# The cluster whose workers are the ranks of the job that this process is in.
MPI = "mpi"


def prepare(job: Job, *, resume: bool) -> PreparedJob:
    """Read what a job needs and refuse what cannot work, before searching or writing anything."""
    for name, value, choices in (
        ("emit", job.emit, Emit),
        ("strategy", job.strategy, Strategy),
        ("engine", job.engine, ManyEngine),
        ("from", job.from_, From),
        ("table", job.table, Table),
        ("level_files", job.level_files, LevelFiles),
    ):
        check_choice(name, value, choices)
    kinds = [job.sources, job.random, job.all_hubs, job.pairs]
    if sum(kind is not None for kind in kinds) != 1:
        raise QueryError("a batch takes one of sources, random, all-hubs and pairs")
    if (job.emit == "pairs") != (job.pairs is not None):
        raise QueryError("emit pairs needs a file of pairs, and a file of pairs needs emit pairs")
    if job.from_ == "largest" and job.random is None:
        raise QueryError("from largest takes only random sources")
    if job.emit == "levels" and job.level_files == "zarr":
        import_zarr()
    if job.table == "parquet":
        import_arrow()
    if job.output is None:
        _check_printed(job, resume=resume)
    if job.cluster == MPI:
        first_rank()
    elif job.cluster is not None and not job.is_sharded:
        check_address(job.cluster)
    elif job.engine == "cuda":
        load_cupy()
    elif job.engine == "emulator":
        find_compiler()
    with _open_graph(job) as opened, opened._stored.reading():
        graph = opened._stored
        named = graph.names is not None
        pairs = [] if job.pairs is None else read_pairs(job.pairs, named=named)
        sources = _sources(opened, job, pairs)
        graph.positions(sources)
        graph.positions([target for _, target in pairs])
        graph.release()  # pages read to choose sources are not memory of the program
        if job.cluster is None or job.is_sharded:
            job.manner.check(graph)
        manifest = _manifest(graph, job, sources, pairs)
        said = about(graph, emit=job.emit, sources=len(sources))
    if job.output is not None:
        check_folder(job.output, manifest, resume=resume)
    return PreparedJob(job=job, sources=sources, pairs=pairs, manifest=manifest, about=said)


def _open_graph(job: Job) -> Graph | ShardedGraph:
    """Open a graph, in one file or in shards; a cluster searches the latter together."""
    if job.is_sharded:
        return open_sharded(job.graph, memory=job.memory, cluster=job.cluster)
    return open_file(job.graph, memory=job.memory)


def _check_printed(job: Job, *, resume: bool) -> None:
    """Refuse what standard output cannot take."""
    if resume:
        raise QueryError("what is printed cannot be resumed: name a folder, or leave --resume out")
    if job.emit == "levels":
        raise QueryError("levels are written to a folder: name one instead of -")
    if job.cluster is not None:
        raise QueryError("a cluster needs a folder, not standard output: name one instead of -")
    if job.table == "parquet":
        raise QueryError("parquet needs a folder, not standard output: choose csv, tsv or jsonl")


def _sources(opened: Graph | ShardedGraph, job: Job, pairs: list[tuple[Any, Any]]) -> list[Any]:
    """Choose the sources, as ids or names."""
    graph = opened._stored
    if job.sources is not None:
        return read_sources(job.sources, named=graph.names is not None)
    if job.pairs is not None:
        return list(dict.fromkeys(source for source, _ in pairs))
    if job.all_hubs is not None:
        chosen = choose_hubs(graph.stored_degrees, job.all_hubs)
    else:
        assert job.random is not None
        wanted = (graph.stored_degrees, job.random, job.seed)
        if job.from_ == "largest":
            found = opened.components(threads=job.threads)
            chosen = choose_random(*wanted, found.in_largest)
        else:
            chosen = choose_random(*wanted)
    if chosen.size == 0:
        raise QueryError(f"{graph.path}: has no vertex with an edge to start from")
    if chosen.size < (job.random or 0):
        _log.info("%s: takes all, %s with edges", graph.path, several(chosen.size, "vertex"))
    sources: list[Any] = graph.given(graph.ids_of(chosen)).tolist()
    return sources


def _manifest(
    graph: AnyStored, job: Job, sources: list[Any], pairs: list[tuple[Any, Any]]
) -> dict[str, Any]:
    """List all that determines the bytes of the outputs."""
    listed = json.dumps([sources, pairs]).encode()
    return {
        "oocbfs": __version__,
        "graph_checksum": graph.checksum,
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "arcs": graph.num_arcs,
        "from": job.from_,
        "sources": len(sources),
        "sources_sha256": hashlib.sha256(listed).hexdigest(),
        "emit": job.emit,
        "table": job.table,
        "levels": job.level_files,
        "sources_per_group": WIDTH,
    }


def run(
    prepared: PreparedJob, *, advance: Callable[[int], object] = lambda done: None
) -> JobOutcome:
    """Do what is left of a job; ``advance`` is called with the number of sources just done."""
    start = time.perf_counter()
    outcome = JobOutcome(num_sources=len(prepared.sources), resumed=0)
    if prepared.job.output is None:
        _print_table(prepared, outcome, advance)
    else:
        _fill_folder(prepared, outcome, advance)
    outcome.seconds = time.perf_counter() - start
    return outcome


def _fill_folder(
    prepared: PreparedJob, outcome: JobOutcome, advance: Callable[[int], object]
) -> None:
    """Do the groups that have no record yet, then put the tables together."""
    folder = prepared.folder
    if _is_complete(prepared):
        outcome.resumed = len(prepared.sources)
        advance(outcome.resumed)
    else:
        # What cannot work is refused before anything is written.
        with _searching(prepared, advance) as search:
            _begin(prepared)
            left = []
            for group in prepared.groups():
                if record_of(folder, group.number).exists():
                    outcome.resumed += len(group.sources)
                    advance(len(group.sources))
                else:
                    left.append(group)
            for group, done in search(left):
                write_checked(record_of(folder, group.number), {"rows": done.rows})
                outcome.add(done)
                _log.debug("%s: group %d of %d", folder, group.number + 1, prepared.num_groups)
        if prepared.writes_zarr:
            ZarrLevels.clean(folder)
        _write_tables(prepared)
    with explained(folder):
        if (folder / GROUPS).exists():
            shutil.rmtree(folder / GROUPS)
        sync(folder)


def _begin(prepared: PreparedJob) -> None:
    """Make what is there before the first group is."""
    folder = prepared.folder
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


@contextmanager
def _searching(prepared: PreparedJob, advance: Callable[[int], object]) -> Generator[Search]:
    """Yield what searches groups: this process, or the workers of a cluster, in any order."""
    job = prepared.job
    if job.cluster is not None and not job.is_sharded:
        shared = SharedGraph(job.graph, prepared.manifest["graph_checksum"], job.memory)
        on_cluster = on_ranks if job.cluster == MPI else on_workers
        with on_cluster(job.cluster, shared, job.manner, advance) as search:
            yield search
        return
    with _open_graph(job) as graph, GroupRunner(graph._stored, job.manner) as runner:

        def here(groups: Sequence[SourceGroup]) -> Iterator[tuple[SourceGroup, GroupDone]]:
            for group in groups:
                yield group, runner.run(group, advance)

        yield here


def _is_complete(prepared: PreparedJob) -> bool:
    """Return whether the tables are there, which are written last."""
    return _table(prepared).exists()


def _table(prepared: PreparedJob) -> Path:
    name = "pairs" if prepared.job.emit == "pairs" else "summary"
    return prepared.folder / f"{name}.{prepared.job.table}"


def _print_table(
    prepared: PreparedJob, outcome: JobOutcome, advance: Callable[[int], object]
) -> None:
    """Search, and print rows as they are found."""
    job = prepared.job

    def rows() -> Iterator[Row]:
        with _open_graph(job) as graph, GroupRunner(graph._stored, job.manner) as runner:
            for group in prepared.groups():
                done = GroupDone()
                yield from runner.rows(group, done, advance)
                outcome.add(done)

    _write(prepared, STANDARD_OUTPUT, rows())


def _write_tables(prepared: PreparedJob) -> None:
    """Put the records of all groups together."""

    def rows() -> Iterator[dict[str, Any]]:
        for group in range(prepared.num_groups):
            path = record_of(prepared.folder, group)
            yield from read_checked(path, "delete it and resume again")["rows"]

    _write(prepared, _table(prepared), rows())


def _write(prepared: PreparedJob, path: str | Path, rows: Iterator[Row]) -> None:
    """Write a table of sources, or of pairs in the order in which they were given."""
    largest = max(max(ids) for ids in (*prepared.pairs, prepared.sources))
    types = pair_types(largest) if prepared.pairs else column_types(largest)
    if prepared.pairs:
        found = {row["source"]: iter(row["distances"]) for row in rows}
        rows = (
            {"source": source, "target": target, "distance": next(found[source])}
            for source, target in prepared.pairs
        )
    write_table(path, prepared.job.table, types, rows, prepared.about)

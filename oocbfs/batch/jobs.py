"""Batches: many sources of one graph into one folder, resumable after each group of sources.

The folder holds the manifest, a record for each finished group in ``groups``, and the outputs. A
group is committed when its record gets its name, after all that it wrote was flushed to disk. When
all groups are, the tables are put together and the records removed. Nothing in the folder depends
on when or how often the job was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oocbfs.batch.job import Job, JobOutcome, PreparedJob
from oocbfs.batch.outputs import (
    NpyLevels,
    ZarrLevels,
    import_zarr,
    read_pairs,
    read_sources,
    sync,
)
from oocbfs.batch.records import MANIFEST, check_folder, read_checked, write_checked
from oocbfs.batch.sources import choose_hubs, choose_random
from oocbfs.batch.tables import Row, pair_types, write_table
from oocbfs.errors import OutputError, QueryError
from oocbfs.formats.output.packing import STANDARD_OUTPUT
from oocbfs.formats.output.parquet import import_arrow
from oocbfs.gpu.cuda_device import load_cupy
from oocbfs.kernels.emulator.build import find_compiler
from oocbfs.plan.many import ManyDivision
from oocbfs.results.source import SourceResult, column_types
from oocbfs.results.tables import about
from oocbfs.search.graph import Graph
from oocbfs.search.graph import open as open_graph
from oocbfs.search.many import WIDTH, Traversals, divide
from oocbfs.settings import (
    Emit,
    From,
    LevelFiles,
    ManyEngine,
    Settings,
    Strategy,
    Table,
    check_choice,
)
from oocbfs.version import __version__

_GROUPS = "groups"


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
    if job.table == "parquet":
        import_arrow()
    if job.output is None:
        _check_printed(job, resume=resume)
    if job.engine == "cuda":
        load_cupy()
    elif job.engine == "emulator":
        find_compiler()
    with open_graph(job.graph, memory=job.memory) as graph, graph.reading():
        named = graph.names is not None
        pairs = [] if job.pairs is None else read_pairs(job.pairs, named=named)
        sources = _sources(graph, job, pairs)
        graph.positions(sources)
        graph.positions([target for _, target in pairs])
        graph.release()  # pages read to choose sources are not memory of the program
        _divide(graph, job)
        manifest = _manifest(graph, job, sources, pairs)
        said = about(graph, emit=job.emit, sources=len(sources))
    if job.output is not None:
        check_folder(job.output, manifest, resume=resume)
    return PreparedJob(job=job, sources=sources, pairs=pairs, manifest=manifest, about=said)


def _check_printed(job: Job, *, resume: bool) -> None:
    """Refuse what standard output cannot take."""
    if resume:
        raise QueryError("what is printed cannot be resumed: name a folder, or leave --resume out")
    if job.emit == "levels":
        raise QueryError("levels are written to a folder: name one instead of -")
    if job.table == "parquet":
        raise QueryError("parquet needs a folder, not standard output: choose csv, tsv or jsonl")


def _divide(graph: Graph, job: Job) -> ManyDivision:
    settings = Settings(threads=job.threads, engine=job.engine, memory=graph.budget_bytes)
    return divide(graph, job.emit, job.strategy, settings)


def _sources(graph: Graph, job: Job, pairs: list[tuple[Any, Any]]) -> list[Any]:
    """Choose the sources, as ids or names."""
    if job.sources is not None:
        return read_sources(job.sources, named=graph.names is not None)
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
    sources: list[Any] = graph.given(graph.ids_of(chosen)).tolist()
    return sources


def _manifest(
    graph: Graph, job: Job, sources: list[Any], pairs: list[tuple[Any, Any]]
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


def run(
    prepared: PreparedJob, *, advance: Callable[[int], object] = lambda done: None
) -> JobOutcome:
    """Do what is left of a job; ``advance`` is called with the number of sources just done."""
    job = prepared.job
    outcome = JobOutcome(num_sources=len(prepared.sources), resumed=0)
    if job.output is None:
        _print_table(prepared, outcome, advance)
        return outcome
    folder = prepared.folder
    try:
        folder.mkdir(exist_ok=True)
        # The manifest comes first: a folder with other files and no manifest is not a batch's.
        if not (folder / MANIFEST).exists():
            write_checked(folder / MANIFEST, prepared.manifest)
        (folder / _GROUPS).mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created: {error.strerror}") from error
    if _is_complete(prepared):
        outcome.resumed = len(prepared.sources)
        advance(outcome.resumed)
    else:
        with (
            open_graph(job.graph, memory=job.memory) as graph,
            Traversals(graph, job.emit, _divide(graph, job)) as work,
        ):
            _run_groups(graph, prepared, work, outcome, advance)
        _write_tables(prepared)
    shutil.rmtree(folder / _GROUPS)
    sync(folder)
    return outcome


def _is_complete(prepared: PreparedJob) -> bool:
    """Tell whether the tables are there, which are written last."""
    return _table(prepared).exists()


def _table(prepared: PreparedJob) -> Path:
    name = "pairs" if prepared.job.emit == "pairs" else "summary"
    return prepared.folder / f"{name}.{prepared.job.table}"


def _run_groups(
    graph: Graph,
    prepared: PreparedJob,
    work: Traversals,
    outcome: JobOutcome,
    advance: Callable[[int], object],
) -> None:
    """Traverse the groups that have no record yet."""
    job = prepared.job
    levels: NpyLevels | ZarrLevels | None = None
    if job.emit == "levels" and job.levels == "npy":
        levels = NpyLevels(prepared.folder)
    elif job.emit == "levels":
        levels = ZarrLevels(prepared.folder, len(prepared.sources), graph.num_vertices)
    search = _searcher(graph, prepared, work)
    for group in range(prepared.num_groups):
        first = group * WIDTH
        sources = prepared.sources[first : first + WIDTH]
        if _record(prepared, group).exists():
            outcome.resumed += len(sources)
            advance(len(sources))
            continue
        rows = []
        for number, result in enumerate(search(sources), first):
            if levels is not None:
                levels.write(number, result)
            rows.append(_row(result))
            outcome.count(result)
            advance(1)
        if levels is not None:
            levels.flush(first, first + len(sources))
        write_checked(_record(prepared, group), {"rows": rows})
    outcome.note(work)


def _searcher(
    graph: Graph, prepared: PreparedJob, work: Traversals
) -> Callable[[list[Any]], Iterator[SourceResult]]:
    """Give the function that traverses from some sources, to their targets if pairs are wanted."""
    wanted: dict[Any, list[Any]] = {}
    for source, target in prepared.pairs:
        wanted.setdefault(source, []).append(target)

    def search(sources: list[Any]) -> Iterator[SourceResult]:
        targets = [graph.stored(wanted[s]) for s in sources] if wanted else None
        return work.run(sources, targets)

    return search


def _print_table(
    prepared: PreparedJob, outcome: JobOutcome, advance: Callable[[int], object]
) -> None:
    """Traverse, and print rows as they are found."""
    job = prepared.job

    def rows() -> Iterator[Row]:
        with (
            open_graph(job.graph, memory=job.memory) as graph,
            Traversals(graph, job.emit, _divide(graph, job)) as work,
        ):
            for result in _searcher(graph, prepared, work)(prepared.sources):
                outcome.count(result)
                advance(1)
                yield _row(result)
            outcome.note(work)

    _write(prepared, STANDARD_OUTPUT, rows())


def _row(result: SourceResult) -> dict[str, Any]:
    if result.distances is None:
        return result.row()
    return {"source": result.source, "distances": result.distances.tolist()}


def _record(prepared: PreparedJob, group: int) -> Path:
    return prepared.folder / _GROUPS / f"{group:06d}.json"


def _write_tables(prepared: PreparedJob) -> None:
    """Put the records of all groups together."""

    def rows() -> Iterator[dict[str, Any]]:
        for group in range(prepared.num_groups):
            yield from read_checked(_record(prepared, group), "delete it and resume again")["rows"]

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

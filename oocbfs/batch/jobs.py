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
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oocbfs import __version__
from oocbfs.batch.outputs import (
    NpyLevels,
    ZarrLevels,
    import_zarr,
    read_pairs,
    read_sources,
    summary_row,
    sync,
    write_pairs,
    write_summary,
)
from oocbfs.batch.sources import choose_hubs, choose_random
from oocbfs.errors import FormatError, OutputError, QueryError
from oocbfs.formats.output.atomic import atomic_output
from oocbfs.gpu.cuda_device import load_cupy
from oocbfs.kernels.emulator.build import find_compiler
from oocbfs.plan.many import ManyDivision
from oocbfs.results.source import SourceResult
from oocbfs.search.graph import Graph
from oocbfs.search.graph import open_file as open_graph
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

MANIFEST = "manifest.json"
_GROUPS = "groups"


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
    if job.engine == "cuda":
        load_cupy()
    elif job.engine == "emulator":
        find_compiler()
    pairs = [] if job.pairs is None else read_pairs(job.pairs)
    with open_graph(job.graph, memory=job.memory) as graph, graph.reading():
        sources = _sources(graph, job, pairs)
        graph.positions(sources)
        graph.positions([target for _, target in pairs])
        graph.release()  # pages read to choose sources are not memory of the program
        _divide(graph, job)
        manifest = _manifest(graph, job, sources, pairs)
    _check_folder(job.output, manifest, resume=resume)
    return PreparedJob(job=job, sources=sources, pairs=pairs, manifest=manifest)


def _divide(graph: Graph, job: Job) -> ManyDivision:
    settings = Settings(threads=job.threads, engine=job.engine, memory=graph.budget_bytes)
    return divide(graph, job.emit, job.strategy, settings)


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
    stored = _read_checked(path, "start again in another folder")
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
    job = prepared.job
    folder = job.output
    outcome = JobOutcome(num_sources=len(prepared.sources), resumed=0)
    try:
        folder.mkdir(exist_ok=True)
        # The manifest comes first: a folder with other files and no manifest is not a batch's.
        if not (folder / MANIFEST).exists():
            _write_checked(folder / MANIFEST, prepared.manifest)
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
    name = "pairs.csv" if prepared.job.emit == "pairs" else f"summary.{prepared.job.table}"
    return prepared.job.output / name


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
        levels = NpyLevels(job.output)
    elif job.emit == "levels":
        levels = ZarrLevels(job.output, len(prepared.sources), graph.num_vertices)
    wanted: dict[int, list[int]] = {}
    for source, target in prepared.pairs:
        wanted.setdefault(source, []).append(target)
    for group in range(prepared.num_groups):
        first = group * WIDTH
        sources = prepared.sources[first : first + WIDTH]
        if _record(prepared, group).exists():
            outcome.resumed += len(sources)
            advance(len(sources))
            continue
        targets = [graph.stored(wanted[s]) for s in sources] if prepared.pairs else None
        rows = []
        for number, result in enumerate(work.run(sources, targets), first):
            if levels is not None:
                levels.write(number, result)
            rows.append(_row(result))
            outcome.strategies[result.strategy] = outcome.strategies.get(result.strategy, 0) + 1
            advance(1)
        if levels is not None:
            levels.flush(first, first + len(sources))
        _write_checked(_record(prepared, group), {"rows": rows})
    outcome.reason, outcome.width, outcome.disk_bytes = work.reason, work.width, work.disk_bytes
    outcome.fallback = work.fallback


def _row(result: SourceResult) -> dict[str, Any]:
    if result.distances is None:
        return summary_row(result)
    return {"source": result.source, "distances": result.distances.tolist()}


def _record(prepared: PreparedJob, group: int) -> Path:
    return prepared.job.output / _GROUPS / f"{group:06d}.json"


def _write_tables(prepared: PreparedJob) -> None:
    """Put the records of all groups together."""

    def rows() -> Iterator[dict[str, Any]]:
        for group in range(prepared.num_groups):
            yield from _read_checked(_record(prepared, group), "delete it and resume again")["rows"]

    if prepared.job.emit == "pairs":
        found = {row["source"]: iter(row["distances"]) for row in rows()}
        write_pairs(
            _table(prepared), prepared.pairs, (next(found[source]) for source, _ in prepared.pairs)
        )
    else:
        write_summary(_table(prepared), rows())


def _write_checked(path: Path, values: dict[str, Any]) -> None:
    """Write an object with a checksum of itself."""
    text = json.dumps(values, sort_keys=True)
    with atomic_output(path, force=True) as file:
        file.write(json.dumps({"checksum": zlib.crc32(text.encode()), **values}, indent=1).encode())


def _read_checked(path: Path, advice: str) -> dict[str, Any]:
    """Read an object and check its checksum."""
    try:
        values = json.loads(path.read_bytes())
        checksum = values.pop("checksum")
        if checksum != zlib.crc32(json.dumps(values, sort_keys=True).encode()):
            raise ValueError
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise FormatError(f"{path}: is damaged; {advice}") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}; {advice}") from error
    checked: dict[str, Any] = values
    return checked

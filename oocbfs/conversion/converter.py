"""Convert an edge list, arrays or a sparse matrix into one compressed file."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from oocbfs import memory as memory_
from oocbfs.conversion.disk import Disk
from oocbfs.conversion.ids import IdMap, IdRange
from oocbfs.conversion.inputs import Inputs, Reading, sort_out, wanted_vertices
from oocbfs.conversion.names import numbering
from oocbfs.conversion.pipeline import Conversion
from oocbfs.conversion.plan import make_plan
from oocbfs.conversion.reconcile import check_declared, reconcile_direction, reconcile_ids
from oocbfs.conversion.removal import Removal, Removed
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.sample import Sample, make_sample
from oocbfs.errors import InputError, QueryError
from oocbfs.formats.container.framing import Framing, frame_file
from oocbfs.formats.container.reader import Container, bits_per_arc
from oocbfs.formats.container.writer import ContainerWriter
from oocbfs.formats.edges import Declared, EdgeStream
from oocbfs.formats.io.closing import release
from oocbfs.formats.io.folders import find_files
from oocbfs.formats.io.ordered import available_threads
from oocbfs.formats.io.temporary import explained_writes, unnamed_file
from oocbfs.formats.output.atomic import atomic_output, check_outputs
from oocbfs.formats.tables.columns import TableOptions, TextIds, make_options
from oocbfs.progress import Phases
from oocbfs.settings import (
    CodecName,
    IdNames,
    KeptOrderName,
    OrderName,
    check_choice,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """What a conversion did."""

    output: str
    vertices: int
    # An undirected edge counts once, and is two arcs.
    edges: int
    arcs: int
    directed: bool
    directed_why: str
    columns: str
    # Which part of the inputs was taken; empty if all of them were.
    sample: str
    vertices_in_input: int
    edges_read: int
    duplicates: int
    loops: int
    removed_edges: int
    removed_vertices: int
    missing_edges: int
    missing_vertices: int
    order: str
    order_why: str
    codec: str
    codec_why: str
    ids: str
    first_id: int
    max_degree: int
    bits_per_arc: float
    file_bytes: int
    spilled_bytes: int
    # What was expected on disk at a time, the graph file and all; None if nothing was.
    disk_at_most_bytes: int | None
    peak_bytes: int
    threads: int
    seconds: float
    seconds_by_phase: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Target:
    """The file to write, and how; see ``convert``."""

    output: str | os.PathLike[str]
    tmp: str | os.PathLike[str] | None
    codec: CodecName
    force: bool
    in_place: bool

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.output)

    @property
    def folder(self) -> Path:
        """Where temporary data go."""
        return self._output_folder if self.tmp is None else Path(self.tmp)

    @property
    def _output_folder(self) -> Path:
        return Path(os.path.realpath(self.path)).parent

    @property
    def copies_beside(self) -> int:
        """How often the graph is where temporary data are: as it is, and in frames."""
        beside = os.stat(self.folder).st_dev == os.stat(self._output_folder).st_dev
        return int(beside) * (1 if self.codec == "raw" else 2)


@dataclass(frozen=True)
class _Asked:
    """What is asked for besides inputs and ids; see ``convert``."""

    target: _Target
    remove: Any
    remove_vertices: Any
    format: str | None
    table: TableOptions
    sample: Sample | None
    allow_empty: bool
    directed: bool | None
    order: KeptOrderName
    budget_bytes: int
    threads: int
    progress: bool

    def check(self, given: Inputs, gone: Inputs) -> None:
        """Check that inputs have what is asked for, and that none of them is written over."""
        if self.table.where is not None and not (given.files or given.objects):
            raise QueryError("--where is about rows of tables: name one")
        if self.order == "keep" and not given.graphs:
            raise QueryError("order keep is that of a graph: name one among the inputs")
        if self.sample is not None and (self.order == "keep" or self.target.in_place):
            raise QueryError("--sample makes another graph, in another file and order")
        files = given.paths + gone.paths
        vertices = self.remove_vertices
        of_vertices = [vertices] if isinstance(vertices, (str, os.PathLike)) else []
        kept = files[len(given.graphs) :] if self.target.in_place else files
        outputs = {"the graph": self.target.output}
        check_outputs(outputs, inputs=[*kept, *of_vertices], force=self.target.force)
        if files:
            from oocbfs.formats.readers import open as readers

            readers.load(files)


def convert(
    inputs: Any,
    output: str | os.PathLike[str],
    *,
    directed: bool | None = None,
    order: KeptOrderName = "auto",
    ids: IdNames = "auto",
    memory: str | int | None = None,
    threads: int | None = None,
    format: str | None = None,
    columns: str | Sequence[str | int] | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    where: str | None = None,
    sample: str | float | None = None,
    sample_vertices: str | float | None = None,
    seed: int = 1,
    allow_empty: bool = False,
    remove: Any = None,
    remove_vertices: Any = None,
    codec: CodecName = "auto",
    tmp: str | os.PathLike[str] | None = None,
    force: bool = False,
    in_place: bool = False,
    progress: bool = False,
) -> Report:
    """Write a graph as one compressed ``.ocg`` file, in bounded memory.

    Parameters
    ----------
    inputs
        A path or several, of files or folders, ``"-"`` for standard input; a table: a data frame
        of pandas, polars or dask, a LazyFrame, a relation of DuckDB, anything with
        ``__arrow_c_stream__``; a pair of integer arrays, an array of shape (m, 2) or (2, m), a
        SciPy sparse matrix; a graph of networkx or igraph; or any `EdgeStream`. Of names, also
        pairs of strings. Graphs, open ones or the names of their files, are merged without being
        sorted again; several inputs of any kind are a list.
    output
        The file to write; it appears when it is whole.
    directed
        Keep directions and store the transpose, or make every edge go both ways. None takes what
        the input says, or undirected if it does not say.
    order
        How vertices are stored; ``"auto"`` chooses from the data. ``"keep"`` stores those of the
        first graph among the inputs as they are there, and others behind them; the report says
        whether another order would pay.
    ids
        ``"dense"`` makes every id from 0 to the largest a vertex, ``"compact"`` those that occur;
        ``"auto"`` is dense where the largest is below 4 × the number that occur. With ``"names"``
        ids are strings, or numbers of any size, which the graph keeps; vertices are in the order of
        their names. ``"auto"`` takes names where the columns hold text.
    memory
        Bound for the whole process, such as ``"4G"``; None is half of what is available.
    format
        One of ``oocbfs.formats.readers.table.NAMES``; None recognises files by their content.
    columns
        Which two columns of a table hold the ends of edges: ``"src,dst"``, or two names or numbers,
        which count from 1. None takes the usual names, or the only two.
    delimiter, header
        What ends a field of a text, and whether the first line has the names; None looks.
    where
        Which rows of tables are edges: ``"type = 'friend' and since >= '2025-06-01'"``. Row groups
        of Parquet in which none can be are not read.
    sample, sample_vertices
        Which share of the edges, such as ``"1%"``, and of the vertices with the edges among them,
        graphs among the inputs as all others. The same ``seed`` chooses the same ids and edges,
        wherever they are read from; an edge is chosen in all its copies and both directions.
    remove
        Edges to leave out, wherever they come from: inputs of the same kinds. Those that are not
        there are counted.
    remove_vertices
        Vertices to leave out with all their edges: ids or names, or the name of a file of them, one
        in each line.
    allow_empty
        Take files without edges and vertices; by default they are refused.
    codec
        ``"zstd"`` compresses the file in frames that unpack by themselves, ``"raw"`` lets it map
        into memory as it is; ``"auto"`` compresses what a sample shows to become much smaller.
    tmp
        Folder for temporary data; None is the output's.
    in_place
        Let the output be a graph among the inputs; see `update`, which looks after others.
    """
    check_choice("ids", ids, IdNames)
    given = sort_out(inputs)
    check_choice("order", order, KeptOrderName)
    check_choice("codec", codec, CodecName)
    half = memory_.available_bytes() // 2
    asked = _Asked(
        _Target(output, tmp, codec, force=force, in_place=in_place),
        remove,
        remove_vertices,
        format,
        make_options(columns, delimiter, header, where),
        make_sample(sample, sample_vertices, seed),
        allow_empty=allow_empty,
        directed=directed,
        order=order,
        budget_bytes=half if memory is None else memory_.parse_size(memory),
        threads=available_threads(threads),
        progress=progress,
    )
    try:
        return _convert(given, ids, asked)
    except TextIds as error:
        again = _can_be_read_again(given, error)
        if ids != "auto" or again is None:
            raise
    _log.info("ids are text, and taken as names, as --ids names does")
    return _convert(again, "names", asked)


def _convert(given: Inputs, ids: IdNames, asked: _Asked) -> Report:
    """Convert with one kind of ids; see ``convert``."""
    start = time.perf_counter()
    gone = Inputs() if asked.remove is None else sort_out(asked.remove)
    asked.check(given, gone)
    target, folder = asked.target, asked.target.folder
    with ExitStack() as stack:
        graphs = given.open_graphs(stack, asked.budget_bytes)
        gone_graphs = gone.open_graphs(stack, asked.budget_bytes)
        ids = reconcile_ids(ids, [*graphs, *gone_graphs])
        fixed = reconcile_direction(asked.directed, [*graphs, *gone_graphs])
        if ids == "names":
            numbering.load()
        plan = make_plan(asked.budget_bytes, asked.threads)
        threads = plan.threads
        _log.debug("%s of memory, %d threads", memory_.format_size(asked.budget_bytes), threads)
        limits = plan.limits(os.fspath(folder))
        reading = Reading(asked.format, asked.table, threads, limits, ids == "names")
        sample = asked.sample
        stream = (
            given.stream(reading) if sample is None else sample.of(given.stream(reading, graphs))
        )
        final = stack.enter_context(atomic_output(target.path, force=target.force))
        phases = Phases(show=asked.progress)
        phases.seconds["load"] = time.perf_counter() - start
        disk = Disk(folder)
        phases.note = disk.note
        resources = Resources(disk, plan, phases)
        removal = None
        if asked.remove is not None or asked.remove_vertices is not None:
            removal = stack.enter_context(Removal(resources))
        outputs = target.copies_beside
        runs = graphs if sample is None else []
        conversion = stack.enter_context(Conversion(resources, runs, removal, outputs))
        if ids == "names":
            stream = conversion.number_names(stream)
        conversion.read(stream, asked.directed if fixed is None else fixed)
        if removal is not None:
            every = replace(reading, table=replace(asked.table, where=None))
            removed = gone.stream(every, graphs=gone_graphs)
            removed = removed if sample is None else sample.of(removed)
            vertices = wanted_vertices(asked.remove_vertices, named=ids == "names")
            try:
                conversion.read_removal(removed, vertices)
            except TextIds as error:  # the edges are read already, with numbers
                raise InputError(str(error)) from error
        declared = stream.declared
        found_any = conversion.counts.edges_read or graphs or _has_vertices(declared)
        if given.of_files and not (asked.allow_empty or found_any):
            raise InputError("no edges in it: --allow-empty takes it as it is", path=stream.name)
        conversion.name_vertices(declared, ids)
        if fixed is not None:
            known = (graphs or gone_graphs)[0]
            check_declared(known, declared, stream.name, asked.directed)
            directed, directed_why = fixed, f"{known.path} is"
        else:
            directed, directed_why = _direction(asked.directed, declared)
        conversion.sort(asked.order, directed=directed)
        choice = conversion.choose_order(asked.order, target.codec)
        _log.debug("order %s: %s", choice.order.name.lower(), choice.why)
        container = ContainerWriter(final)
        fields = conversion.write(container)
        file_bytes = container.finish(**fields)
        memory_.give_back()
        framing = Framing(file_bytes, "raw", "as asked for")
        if target.codec != "raw":
            with phases("compress", file_bytes, "B") as bar:
                framing = frame_file(final, target.codec, threads, bar.update)
        file_bytes = framing.file_bytes
        with Container(target.path, final.fileno()):
            pass
    counts = conversion.counts
    done = Removed() if removal is None else removal.done
    seconds = time.perf_counter() - start
    # Most of it brings the file to disk.
    phases.seconds["finish"] = seconds - sum(phases.seconds.values())
    return Report(
        output=str(target.path),
        vertices=fields["num_vertices"],
        edges=fields["num_arcs"] // (1 if directed else 2),
        arcs=fields["num_arcs"],
        directed=directed,
        directed_why=directed_why,
        columns=declared.columns,
        sample="" if sample is None else str(sample),
        vertices_in_input=counts.vertices_seen,
        edges_read=counts.edges_read,
        duplicates=counts.duplicates,
        loops=counts.loops,
        removed_edges=done.edges,
        removed_vertices=done.vertices,
        missing_edges=done.missing_edges,
        missing_vertices=done.missing_vertices,
        order=choice.order.name.lower(),
        order_why=choice.why,
        codec=framing.codec,
        codec_why=framing.why,
        ids=_kind_of_ids(conversion.ids, ids),
        first_id=conversion.ids.first_id,
        max_degree=fields["max_degree"],
        bits_per_arc=bits_per_arc(file_bytes, fields["num_arcs"], directed=directed),
        file_bytes=file_bytes,
        spilled_bytes=counts.spilled_bytes,
        disk_at_most_bytes=disk.at_most_bytes,
        peak_bytes=memory_.peak_bytes(),
        threads=threads,
        seconds=seconds,
        seconds_by_phase=phases.seconds,
    )


def convert_unnamed(
    edges: EdgeStream,
    folder: str,
    *,
    ids: IdNames = "dense",
    order: OrderName = "auto",
    threads: int | None = None,
) -> BinaryIO:
    """Write the graph of a stream, whose ids are numbers, to a file without a name.

    It is gone when it is closed, or with the process, however that ends.
    """
    plan = make_plan(memory_.available_bytes() // 2, available_threads(threads))
    file = unnamed_file(folder)
    try:
        with (
            explained_writes(folder),
            Conversion(Resources(Disk(folder), plan, Phases(show=False))) as conversion,
        ):
            conversion.read(edges)
            conversion.name_vertices(edges.declared, ids)
            conversion.sort(order, directed=_direction(None, edges.declared)[0])
            conversion.choose_order(order, "raw")
            container = ContainerWriter(file)
            container.finish(**conversion.write(container))
            file.flush()
    except BaseException:
        release(file)
        raise
    return file


def _kind_of_ids(named: IdMap, ids: str) -> str:
    """Return what vertices are called by, as ``Graph.info`` does."""
    if ids == "names":
        return "names"
    return "consecutive" if isinstance(named, IdRange) else "listed"


def _direction(asked: bool | None, declared: Declared) -> tuple[bool, str]:
    """Decide whether a graph is directed; also says why."""
    if asked is not None:
        return asked, "as asked for"
    if declared.dispute:
        raise InputError(declared.dispute)
    if declared.directed is None:
        return False, "the input does not say"
    return declared.directed, declared.directed_why or "the input says so"


def _has_vertices(declared: Declared) -> bool:
    return bool(declared.num_vertices) or bool(
        declared.vertex_ids is not None and declared.vertex_ids.size
    )


def _can_be_read_again(given: Inputs, error: TextIds) -> Inputs | None:
    """Return inputs that are there still when they were looked at, or None: pipes are not."""
    if error.stream is not None:
        return Inputs(objects=[error.stream]) if len(given.all) == 1 else None
    is_there = all(os.path.isfile(file.path) for file in find_files(given.files))
    return given if is_there else None

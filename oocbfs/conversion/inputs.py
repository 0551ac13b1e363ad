"""What a conversion is given: graph files, other files, and what programs hold, in any mix."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from oocbfs.conversion.objects import from_memory, is_alone, names_from_memory
from oocbfs.errors import InputError, QueryError
from oocbfs.formats.container.layout import MAGIC
from oocbfs.formats.edges import Declared, Edges, NamedEdges
from oocbfs.formats.io.folders import find_files
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.readers.merge import Merged
from oocbfs.formats.tables.columns import TableOptions
from oocbfs.graph.any_stored import AnyStored
from oocbfs.graph.open_graph import OpenGraph
from oocbfs.graph.stored import StoredGraph, open_stored

_MANIFEST = "manifest.json"
_PIECE_NAMES = 1 << 14


@dataclass(frozen=True)
class Reading:
    """How inputs are read: what the user says about them, and what reading may take."""

    format: str | None
    table: TableOptions
    threads: int
    limits: InputLimits
    named: bool


@dataclass
class Inputs:
    """Inputs by kind: what is sorted already, what is read from files, and what is in memory."""

    graphs: list[str | AnyStored] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        """Names of all files that are read, graphs among them, but no standard input."""
        graphs = [one if isinstance(one, str) else one.path for one in self.graphs]
        return graphs + [one.path for one in find_files(self.files) if one.path != "-"]

    @property
    def all(self) -> list[Any]:
        """All inputs in one list."""
        graphs = [one if isinstance(one, str) else one.graph for one in self.graphs]
        return [*graphs, *self.files, *self.objects]

    @property
    def of_files(self) -> bool:
        """Whether something is read from files."""
        return bool(self.graphs or self.files)

    def open_graphs(self, stack: ExitStack, memory: int) -> list[StoredGraph]:
        """Open the graph files, each once, until the stack is closed."""
        opened: list[StoredGraph] = []
        for one in self.graphs:
            stored = (
                stack.enter_context(open_stored(one, memory=memory))
                if isinstance(one, str)
                else one
            )
            if not isinstance(stored, StoredGraph):
                raise _sharded(stored.path)
            if any(os.path.realpath(stored.path) == os.path.realpath(g.path) for g in opened):
                raise InputError("is named twice", path=stored.path)
            opened.append(stored)
        return opened

    def stream(self, reading: Reading, graphs: Sequence[StoredGraph] = ()) -> Any:
        """Make one stream of edges, of names or numbers: of all but graphs, or of these too."""
        method = "named_batches" if reading.named else "batches"
        streams: list[Any] = [GraphEdges(graph) for graph in graphs]
        if self.files:
            from oocbfs.formats.readers.open import open_edges

            streams.append(
                open_edges(
                    self.files,
                    format=reading.format,
                    threads=reading.threads,
                    limits=reading.limits,
                    table=reading.table,
                )
            )
        for one in self.objects:
            if hasattr(one, method):
                streams.append(one)
            else:
                make = names_from_memory if reading.named else from_memory
                streams.append(make(one, reading.table))
        return streams[0] if len(streams) == 1 else Several(streams)


def sort_out(inputs: Any) -> Inputs:
    """Sort inputs out: there is one, or a list of them if at least one in it is no edge."""
    if isinstance(inputs, Sequence) and not isinstance(inputs, str) and not len(inputs):
        raise QueryError("nothing to convert: name at least one input")
    several = (isinstance(inputs, (list, tuple)) and any(map(is_alone, inputs))) or _are_paths(
        inputs
    )
    found = Inputs()
    for one in inputs if several else [inputs]:
        if isinstance(one, OpenGraph):
            found.graphs.append(one._stored)
        elif not isinstance(one, (str, os.PathLike)):
            found.objects.append(one)
        elif is_graph_file(path := os.fspath(one)):
            found.graphs.append(path)
        else:
            found.files.append(path)
    return found


def is_graph_file(path: str) -> bool:
    """Return whether a path leads to a graph of ours; a sharded one is refused."""
    if path == "-" or not os.path.exists(path):
        return False
    if os.path.isdir(path):
        if os.path.isfile(os.path.join(path, _MANIFEST)):
            raise _sharded(path)
        return False
    if not os.path.isfile(path):
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # which comes again when the input is opened
        return False


def _sharded(path: str) -> InputError:
    return InputError("is a sharded graph: 'oocbfs export' writes its edges", path=path)


def _are_paths(inputs: Any) -> bool:
    return (
        isinstance(inputs, Sequence)
        and not isinstance(inputs, str)
        and all(isinstance(one, (str, os.PathLike)) for one in inputs)
    )


class GraphEdges:
    """The edges of a graph as a stream, where they are not merged as they are stored."""

    unit = "edge"

    def __init__(self, stored: StoredGraph) -> None:
        self._stored = stored
        self.name, self.total, self.done = stored.path, stored.num_edges, 0
        self.declared = Declared()

    def batches(self) -> Iterator[Edges]:
        """Yield the edges as they are stored."""
        for edges in self._stored.id_edges():
            self.done += edges.sources.size
            yield edges

    def named_batches(self) -> Iterator[NamedEdges]:
        """Yield the edges as they are stored, where ids are names."""
        names = self._stored.names
        assert names is not None
        for edges in self.batches():
            for first in range(0, edges.sources.size, _PIECE_NAMES):
                part = slice(first, first + _PIECE_NAMES)
                ends = np.stack((edges.sources[part], edges.targets[part]), axis=1)
                column = names.take(ends.reshape(-1))
                starts = column.bounds[:-1].astype(np.uint32)
                lengths = np.diff(column.bounds).astype(np.uint16)
                yield NamedEdges(column.text, starts, lengths)


def wanted_vertices(vertices: Any, *, named: bool) -> list[Any]:
    """Return ids or names, of which a file has one in each line."""
    if vertices is None:
        return []
    if isinstance(vertices, (str, os.PathLike)):
        from oocbfs.formats.readers.id_lines import read_sources

        return read_sources(Path(vertices), named=named)
    return vertices.tolist() if hasattr(vertices, "tolist") else list(vertices)


class Several:
    """The edges of several streams, one after the other."""

    unit = "edge"
    total: int | None = None

    def __init__(self, streams: list[Any]) -> None:
        self._streams = streams
        names = [stream.name for stream in streams]
        self.name = f"{names[0]} and {len(names) - 1} more" if names else "nothing"
        self.declared = Declared()
        self.done = 0

    def batches(self) -> Iterator[Edges]:
        """Yield the edges in order."""
        return self._read("batches")

    def named_batches(self) -> Iterator[Any]:
        """Yield the edges in order, where ids are names."""
        return self._read("named_batches")

    def _read(self, method: str) -> Iterator[Any]:
        merged = Merged(self.declared)
        for stream in self._streams:
            declared = merged.begin(stream.name)
            for edges in getattr(stream, method)():
                if isinstance(edges, Edges):
                    merged.see(edges)
                    self.done += edges.sources.size
                else:
                    self.done += edges.num_edges
                yield edges
            for one in fields(Declared):
                setattr(declared, one.name, getattr(stream.declared, one.name))
        if self._streams:
            merged.finish()

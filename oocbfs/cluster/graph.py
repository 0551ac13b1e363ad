"""A graph in parts that is open: the same questions as to a graph in one file, in input ids."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultPool
from oocbfs.cluster.connect import connect
from oocbfs.cluster.exchange import Shape
from oocbfs.cluster.manifest import Manifest
from oocbfs.cluster.shard import ShardRef
from oocbfs.errors import QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.ordered import available_threads
from oocbfs.graph.any_graph import AnyGraph
from oocbfs.memory import parse_size
from oocbfs.settings import Direction, Settings
from oocbfs.version import __version__

if TYPE_CHECKING:
    from oocbfs.cluster.exchange import Exchange
    from oocbfs.formats.container.reader import Container
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult

# Where parts are searched in any process: in the mapped file, or with tails on disk.
_ENGINES = ("auto", "cpu", "disk")


class ShardedGraph(AnyGraph, Closing):
    """A graph in parts, opened by ``oocbfs.open``; ``cluster`` says where its parts are searched.

    None is this process, ``"local:4"`` processes of this machine.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        memory: str | int | None = None,
        cluster: str | None = None,
    ) -> None:
        self.manifest = Manifest.read(folder)
        super().__init__(self.manifest.open(None), None if memory is None else parse_size(memory))
        self.cluster = cluster
        self.num_edges = self.manifest.num_edges
        self.directed = self.manifest.directed
        self._parts: dict[int, Container] = {}
        self._exchange: tuple[tuple[Any, ...], Exchange] | None = None

    def bfs(
        self,
        source: int | Iterable[int] | Literal["giant"],
        *,
        parents: bool = False,
        threads: int | None = None,
        direction: Direction = "auto",
        max_depth: int | None = None,
        target: int | None = None,
        validate: bool = False,
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
        force: bool = False,
        **others: Any,  # noqa: ANN401
    ) -> BfsResult:
        """Find the distance of every vertex from a source, or from the nearest of several.

        Parameters
        ----------
        threads
            How many cores each process uses; None is all, divided among processes of one machine.
        memory
            Bound for this process, as ``"4G"``, and for each worker; by default that of ``open``.
        force
            Search graphs, too, that have so many levels that messages would take longer than
            the search.
        others
            What ``Graph.bfs`` takes besides is refused, unless it is the default.
        source, parents, direction, max_depth, target, validate, progress, tmp
            As for ``Graph.bfs``.

        Raises
        ------
        QueryError
            If an id does not name a vertex, the result does not pass validation, or the graph is
            too deep.
        FormatError
            If a part is missing, damaged, or of another graph; names it.
        ClusterError
            If a part's worker is lost again and again; names the part.
        BudgetError
            If ``memory`` is too small; says how much is needed.
        """
        from oocbfs.cluster.search import bfs

        settings = self._settings(
            memory,
            others,
            threads=threads,
            direction=direction,
            max_depth=max_depth,
            target=target,
            validate=validate,
            progress=progress,
            tmp=tmp,
        )
        if isinstance(source, str) and source == "giant":
            found = self.components(threads=threads, memory=memory, tmp=tmp)
            if found.giant is None:
                raise QueryError(f"{self.path}: has no vertex to start from")
            source = found.giant.label
        with self.reading():
            return bfs(self, self.as_ids(source), parents=parents, settings=settings, force=force)

    def components(
        self,
        *,
        threads: int | None = None,
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
        **others: Any,  # noqa: ANN401
    ) -> ComponentsResult:
        """Find the connected components; of a directed graph the weakly connected ones.

        Each process needs 4 bytes for each vertex of the graph. See ``bfs``, and
        ``Graph.components``.
        """
        from oocbfs.cluster.components import components

        settings = self._settings(memory, others, threads=threads, progress=progress, tmp=tmp)
        with self.reading():
            return components(self, settings)

    def _settings(
        self,
        memory: str | int | None,
        others: dict[str, Any],
        **known: Any,  # noqa: ANN401
    ) -> Settings:
        """Put settings together; refuse those that graphs in parts do not have."""
        settings = Settings(
            memory=self.budget_bytes if memory is None else parse_size(memory), **known, **others
        )
        default = Settings()
        for name in ("engine", "vram", "resident_tails", "method"):
            if name == "engine" and settings.engine in _ENGINES:
                continue
            if getattr(settings, name) != getattr(default, name):
                option = name.replace("_", "-")
                raise QueryError(f"{self.path}: a graph in parts knows no --{option}: leave it out")
        return settings

    @property
    def path(self) -> str:
        """Name of the folder."""
        return str(self.manifest.folder)

    @property
    def checksum(self) -> int:
        """Checksum of the graph that was cut: tells graphs apart."""
        return self.manifest.graph_checksum

    @property
    def spill_folder(self) -> Path | None:
        """Folder for results that have no room in memory; None is the system's."""
        return self.manifest.folder if os.access(self.manifest.folder, os.W_OK) else None

    @cached_property
    def result_pool(self) -> ResultPool:
        """Memory of earlier results, for the next ones."""
        return ResultPool()

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each stored vertex; out-neighbours if the graph is directed."""
        degrees: NDArray[np.uint32] = self._container.section(Kind.DEGREES)
        return degrees

    @cached_property
    def shape(self) -> Shape:
        """What drives a search."""
        manifest = self.manifest
        return Shape(manifest.cut, manifest.num_edges, manifest.connected, manifest.useful)

    @property
    def graph_bytes(self) -> int:
        """Bytes of heads and tails of out-neighbours, of all parts."""
        parts = (self.part(number) for number in range(self.shape.cut.parts))
        kinds = (Kind.HEADS, Kind.TAILS)
        return sum(int(part.sections[kind]["raw_bytes"]) for part in parts for kind in kinds)

    @property
    def tail_bytes(self) -> int:
        """Bytes of the tails, of both directions and all parts."""
        return sum(self.part(n).raw_bytes(Kind.TAILS) for n in range(self.shape.cut.parts))

    def part(self, number: int) -> Container:
        """Open the file of a part; kept until ``close``."""
        if number not in self._parts:
            self._parts[number] = self.manifest.open(number)
        return self._parts[number]

    def refs(self, settings: Settings) -> list[ShardRef]:
        """Say where each shard is, and how to open it."""
        return [
            ShardRef(
                path=os.path.abspath(self.manifest.path_of(part)),
                part=part,
                parts=len(self.manifest.parts),
                num_vertices=self.num_vertices,
                checksum=file.checksum,
                version=__version__,
                engine=settings.engine,
                threads=available_threads(settings.threads),
                memory=settings.memory,
            )
            for part, file in enumerate(self.manifest.parts)
        ]

    def exchange(self, settings: Settings) -> Exchange:
        """Reach the shards, by an exchange that is kept for the next search of the same kind."""
        key = (settings.engine, settings.threads, settings.memory)
        if self._exchange is None or self._exchange[0] != key:
            self._disconnect()
            for number in range(self.shape.cut.parts):
                self.part(number)  # all of them are there, and are what the manifest says
            self._exchange = key, connect(self.cluster, self.refs(settings), self.degrees)
        return self._exchange[1]

    def degree(self, vertex: int) -> int:
        """Count the neighbours of a vertex; out-neighbours if the graph is directed."""
        with self.reading():
            return int(self.degrees[self.stored_one(vertex)])

    def neighbor_ids(self, vertex: int, *, inward: bool) -> Ids:
        """Ids of the neighbours of an id, also where users know vertices by names."""
        from oocbfs.graph.rows import load_rows, neighbours

        cut = self.shape.cut
        stored = self.stored(np.array([vertex], np.uint64))
        container = self.part(int(cut.part_of(stored)[0]))
        with self.reading(), container.file.reading():
            rows = load_rows(container, transposed=inward and self.directed)
            found = self.ids_of(neighbours(rows, int(cut.row_of(stored)[0])))
        found.sort()
        return found

    def stored_edges(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield all edges as stored vertices, a bounded number at a time; undirected ones twice."""
        from oocbfs.graph.rows import decode_edges, load_rows

        for number in range(self.shape.cut.parts):
            container = self.part(number)
            with container.file.reading():
                rows = load_rows(container)
                for sources, targets in decode_edges(rows, None, once=False):
                    yield self.shape.cut.vertex_of(number, sources), targets.astype(np.int64)

    def edges(self) -> Iterator[Edges]:
        """Yield all edges in input ids; undirected ones once, smaller position first."""
        return self.each(self._named_edges())

    def _named_edges(self) -> Iterator[Edges]:
        for stored in self.stored_edges():
            natural = stored if self.order is None else [self.order[side] for side in stored]
            sources, targets = (side.astype(np.uint64) for side in natural)
            if not self.directed:
                once = sources < targets
                sources, targets = sources[once], targets[once]
            yield Edges(self._natural_ids(sources), self._natural_ids(targets))

    def info(self) -> dict[str, Any]:
        """Say what the folder says about itself, without reading the graph."""
        header, manifest = self._container.header, self.manifest
        containers = [self.part(number) for number in range(self.shape.cut.parts)]
        sides = 2 if self.directed else 1
        packed = sum(part.raw_bytes(Kind.HEADS, Kind.TAILS) for part in containers)
        return {
            "path": self.path,
            "vertices": self.num_vertices,
            "edges": self.num_edges,
            "directed": self.directed,
            "order": self._container.order.name.lower(),
            "ids": self._ids_kind(),
            "first_id": self._container.first_id,
            "max_degree": int(header["max_degree"]),
            "bits_per_edge": 8 * packed / (sides * self.num_edges) if self.num_edges else 0.0,
            "file_bytes": manifest.file_bytes,
            "unpacked_bytes": 0,
            "format_version": int(header["version"]),
            "vertices_in_input": int(header["input_vertices"]),
            "edges_read": int(header["input_edges"]),
            "duplicates": int(header["input_duplicates"]),
            "loops": int(header["input_loops"]),
            "parts": [
                {
                    "name": file.name,
                    "vertices": part.num_vertices,
                    "edges": file.edges,
                    "bytes": file.bytes,
                }
                for file, part in zip(manifest.parts, containers, strict=True)
            ],
            "sections": [],
        }

    def _disconnect(self) -> None:
        if self._exchange is not None:
            self._exchange[1].close()
            self._exchange = None

    def close(self) -> None:
        """Let go of the shards and of the files."""
        self._disconnect()
        while self._parts:
            self._parts.popitem()[1].close()
        self._container.close()

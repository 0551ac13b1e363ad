"""Open a graph and ask it about its vertices, in the ids of the input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container.layout import VERSION, Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.edges import Edges, Ids
from oocbfs.graph.rows import decode_edges, load_rows, neighbours
from oocbfs.graph.sizes import Sizes
from oocbfs.graph.vertices import Vertices
from oocbfs.kernels.rows import Rows
from oocbfs.lazy import lazy
from oocbfs.memory import parse_size
from oocbfs.settings import Direction, Emit, Engine, ManyEngine, Strategy

if TYPE_CHECKING:
    from oocbfs.gpu.engine import KeptSearch
    from oocbfs.graph.disk_rows import DiskRows
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult
    from oocbfs.results.source import SourceResult


class Graph(Vertices):
    """A graph in an ``.ocg`` file, opened by ``oocbfs.open``."""

    def __init__(self, container: Container, memory: str | int | None = None) -> None:
        super().__init__(container, None if memory is None else parse_size(memory))
        # Not a method, which would keep a graph alive that everybody dropped.
        container.before_unpacking = partial(_allow_unpacking, self.path, self.budget_bytes)
        self.num_edges = container.num_edges
        self.directed = container.directed

    def expect_unpacking(self) -> None:
        """Refuse a compressed graph that has no room, before results take theirs."""
        self._container.expect_unpacking()

    @property
    def checksum(self) -> int:
        """Checksum of the header, which holds those of all other parts: tells graphs apart."""
        return int(self._container.header["checksum"])

    @lazy
    def rows(self) -> Rows:
        """Neighbours of each stored vertex; out-neighbours if the graph is directed."""
        return load_rows(self._container)

    @lazy
    def in_rows(self) -> Rows:
        """In-neighbours of each stored vertex; the same as ``rows`` if the graph is undirected."""
        return load_rows(self._container, transposed=True) if self.directed else self.rows

    @lazy
    def disk_rows(self) -> DiskRows:
        """Heads and starts in memory of their own, and the way to the tails on disk."""
        from oocbfs.graph.disk_rows import DiskRows

        return DiskRows(self._container)

    @lazy
    def kept_search(self) -> KeptSearch:
        """The graph as the last traversal on a device left it there."""
        from oocbfs.gpu.engine import KeptSearch

        return KeptSearch()

    @property
    def has_disk_rows(self) -> bool:
        """Whether ``disk_rows`` are in memory already."""
        return "disk_rows" in self.__dict__ and self.disk_rows.is_loaded

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each stored vertex; of out-neighbours if the graph is directed."""
        self._container.expect(Kind.DEGREES)
        degrees: NDArray[np.uint32] = self._container.section(Kind.DEGREES)
        return degrees

    @cached_property
    def sizes(self) -> Sizes:
        """How much memory which parts take."""
        return Sizes.of(self._container)

    def degree(self, vertex: int) -> int:
        """Count the neighbours of a vertex; out-neighbours if the graph is directed."""
        with self.reading():
            return int(self.rows.degrees[self.stored_one(vertex)])

    def neighbors(self, vertex: int) -> Ids:
        """Ids of a vertex's neighbours, ascending; out-neighbours if the graph is directed."""
        return self._neighbors(vertex, inward=False)

    def in_neighbors(self, vertex: int) -> Ids:
        """Ids of a vertex's in-neighbours, ascending; its neighbours if the graph is undirected."""
        return self._neighbors(vertex, inward=True)

    def _neighbors(self, vertex: int, *, inward: bool) -> Ids:
        with self.reading():
            rows = self.in_rows if inward else self.rows
            found = self.ids_of(neighbours(rows, self.stored_one(vertex)))
        found.sort()
        return found

    def bfs(
        self,
        source: int | Iterable[int],
        *,
        parents: bool = False,
        threads: int | None = None,
        direction: Direction = "auto",
        alpha: float = 15.0,
        beta: float = 2.0,
        max_depth: int | None = None,
        target: int | None = None,
        validate: bool = False,
        engine: Engine = "auto",
        vram: str | int | None = None,
        resident_tails: str | int | None = None,
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
    ) -> BfsResult:
        """Find the distance of every vertex from a source, or from the nearest of several.

        Several threads may traverse one open graph at a time.

        Parameters
        ----------
        source
            An id or several.
        parents
            Keep a parent for each vertex too.
        threads
            How many cores to use; None is all.
        direction
            Choose the direction of each level by the edges it costs, or force one.
        alpha, beta
            A level becomes bottom-up when its frontier has more edges than the unexplored ones / alpha,
            and stays so while it has more than 1 / beta of those that bottom-up would examine.
        max_depth
            Stop after so many levels.
        target
            Stop when this id is reached.
        validate
            Check the result by the rules of Graph500.
        engine
            ``"cpu"`` is all cores on the mapped file; ``"disk"`` is all cores with the tails read from
            disk as they are needed; ``"emulator"`` runs the CUDA kernels on the CPU and counts the
            bytes they would move over PCIe; ``"cuda"`` runs them on a GPU. ``"auto"`` is the GPU where
            CuPy finds one that can take the graph, else the CPU; ``stats.fallback`` says why. With
            ``memory`` it is the CPU, or the disk where the file is larger. What a traversal brings to a
            device stays there for the next with the same options, until ``close`` or ``release_device``.
        vram
            Device memory to use, such as ``"5G"``; None is what is free. The emulator has no limit, and
            keeps no tails in device memory unless it is given one.
        resident_tails
            How much of the tails to keep in device memory, such as ``"25%"`` or ``"512M"``; None is as
            much as fits.
        progress
            Show bars while the graph is brought to the GPU, on a terminal only.
        memory
            Bound for the whole process on the CPU, as ``"4G"``; by default that of ``open``.
        tmp
            Folder for results that have no room in memory; by default that of the graph.

        Raises
        ------
        QueryError
            If an id does not name a vertex, or the result does not pass validation.
        FormatError
            If the graph is damaged, or cannot be read any more.
        BudgetError
            If device or host memory, or ``memory``, is too small; says how much is needed.
        """
        from oocbfs.search.bfs import Settings, bfs

        settings = Settings(
            threads,
            direction,
            alpha,
            beta,
            max_depth,
            target,
            validate,
            engine,
            vram,
            resident_tails,
            progress,
            self.budget_bytes if memory is None else parse_size(memory),
            tmp,
        )
        return bfs(self, source, parents=parents, settings=settings)

    def bfs_many(
        self,
        sources: Iterable[int],
        *,
        emit: Emit = "summary",
        targets: Iterable[Iterable[int]] | None = None,
        threads: int | None = None,
        memory: str | int | None = None,
        strategy: Strategy = "auto",
        engine: ManyEngine = "auto",
    ) -> Iterator[SourceResult]:
        """Find the distances from each of many sources; yields one result a source, in their order.

        Parameters
        ----------
        sources
            Ids, as many as you like; 64 are traversed at a time.
        emit
            ``"summary"`` counts the vertices of each level; ``"levels"`` gives every vertex's level
            too; ``"pairs"`` gives the distances of the targets.
        targets
            With ``"pairs"``, the ids whose distances are wanted, one list for each source.
        threads
            How many cores to use; None is all.
        memory
            Bound for the whole process, as ``"4G"``; by default that of ``open``. With less than the
            file's size, tails stay on disk, and 64, 32, 16 or 8 sources share what is read.
        strategy
            ``"together"`` shares one pass over the graph between 64 sources, ``"one-per-core"`` runs
            each by itself, or one after the other from disk; ``"auto"`` takes the latter for few sources
            and for long thin graphs.
        engine
            Where 64 sources are traversed together, as for ``bfs``.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        BudgetError
            If the memory is not enough.
        FormatError
            If the graph is damaged.
        """
        from oocbfs.search.many import bfs_many

        return bfs_many(
            self,
            sources,
            emit=emit,
            targets=targets,
            threads=threads,
            memory=memory,
            strategy=strategy,
            engine=engine,
        )

    def components(
        self,
        *,
        threads: int | None = None,
        engine: Engine = "auto",
        vram: str | int | None = None,
        resident_tails: str | int | None = None,
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
    ) -> ComponentsResult:
        """Find the connected components; of a directed graph the weakly connected ones.

        Parameters
        ----------
        threads
            How many cores to use; None is all.
        engine, vram, resident_tails, progress, memory, tmp
            As for ``bfs``.

        Raises
        ------
        FormatError
            If the graph is damaged, or cannot be read any more.
        BudgetError
            If device or host memory, or ``memory``, is too small; says how much is needed.
        """
        from oocbfs.search.components import Settings, components

        settings = Settings(
            threads,
            engine,
            vram,
            resident_tails,
            progress,
            self.budget_bytes if memory is None else parse_size(memory),
            tmp,
        )
        return components(self, settings)

    def to_scipy(self) -> Any:  # noqa: ANN401
        """Give a small graph as a SciPy sparse array of ones, rows and columns by ascending id."""
        from scipy.sparse import csr_array

        with self.reading():
            parts = list(decode_edges(self.rows, self.order, once=False))
        ends = [
            np.concatenate([np.empty(0, np.uint64), *side]) for side in zip(*parts, strict=True)
        ]
        sources, targets = ends or (np.empty(0, np.uint64), np.empty(0, np.uint64))
        shape = (self.num_vertices, self.num_vertices)
        ones = np.ones(sources.size, np.int8)
        return csr_array((ones, (sources.astype(np.int64), targets.astype(np.int64))), shape=shape)

    def edges(self) -> Iterator[Edges]:
        """Yield all edges in input ids, those of an undirected graph once, smaller position first."""
        return self.each(self._decode_edges())

    def _decode_edges(self) -> Iterator[Edges]:
        for sources, targets in decode_edges(self.rows, self.order, once=not self.directed):
            yield Edges(self._natural_ids(sources), self._natural_ids(targets))

    def release(self) -> None:
        """Let go of mapped pages, so that they count as memory of this process no more."""
        self._container.release()

    def release_device(self) -> None:
        """Give back what a GPU holds of the graph between two traversals, and what is pinned for it."""
        if "kept_search" in self.__dict__:
            self.kept_search.close()

    def info(self) -> dict[str, Any]:
        """Say what the file says about itself, without reading the graph."""
        header = self._container.header
        return {
            "path": self.path,
            "vertices": self.num_vertices,
            "edges": self.num_edges,
            "directed": self.directed,
            "order": self._container.order.name.lower(),
            "ids": "listed" if Kind.IDS in self._container.sections else "consecutive",
            "first_id": self._container.first_id,
            "max_degree": int(header["max_degree"]),
            "bits_per_edge": self._container.bits_per_edge,
            "file_bytes": int(header["file_bytes"]),
            "unpacked_bytes": self.sizes.unpacked_bytes,
            "format_version": VERSION,
            "vertices_in_input": int(header["input_vertices"]),
            "edges_read": int(header["input_edges"]),
            "duplicates": int(header["input_duplicates"]),
            "loops": int(header["input_loops"]),
            "sections": [
                {
                    "name": kind.name.lower(),
                    "encoding": ("raw", "zstd")[int(record["encoding"])],
                    "bytes": int(record["raw_bytes"]),
                    "stored_bytes": int(record["stored_bytes"]),
                }
                for kind, record in self._container.sections.items()
            ],
        }

    def close(self) -> None:
        """Drop the mapping; arrays that were given out stay valid.

        Traversals that other threads are in the middle of come to their end first: this does not wait for
        them, the last of them closes the file. Whoever asks for something after this is refused.
        """
        self._container.file.close(self._drop)

    def _drop(self) -> None:
        self.release_device()
        for name in ("rows", "in_rows", "order", "ranks"):
            self.__dict__.pop(name, None)
        if "disk_rows" in self.__dict__:
            self.__dict__.pop("disk_rows").close()
        self._container.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _allow_unpacking(path: str, budget_bytes: int | None, unpacked_bytes: int) -> None:
    from oocbfs.plan.host import allow_unpacking

    allow_unpacking(path, unpacked_bytes, budget_bytes)


def open(path: str | os.PathLike[str], *, memory: str | int | None = None) -> Graph:
    """Open a graph file for reading.

    Parameters
    ----------
    path
        The file.
    memory
        Bound for the process while it traverses, as ``"4G"``; see ``Graph.bfs``.

    Raises
    ------
    FormatError
        If the file is not a graph, is damaged, or comes from another version.
    """
    return Graph(Container(path), memory)

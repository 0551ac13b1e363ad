"""What stands behind a graph of networkx: an ``.ocg`` file, and neighbours in their order.

An opened file lists neighbours by ascending id. A graph that was converted keeps the order of
networkx, which no file holds, as arrays beside it; the file itself is made when an engine first
needs it.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import fresh
from oocbfs.conversion.converter import convert_unnamed
from oocbfs.formats.container.reader import Container
from oocbfs.formats.edges import Declared, Edges
from oocbfs.graph.stored import StoredGraph
from oocbfs.kernels.ordered.adjacency import Adjacency
from oocbfs.kernels.rows import freeze
from oocbfs.networkx.names import Node, NodeNames, Objects, name_ids, name_nodes
from oocbfs.search.graph import Graph

_BATCH_EDGES = 1 << 18
# Starting threads, comparing orders and waiting for a disk take longer than converting so few.
_FEW_EDGES = 1 << 16
_MEMORY = "/dev/shm"
_PATH = "networkx.ocg"
_NO_ORDER = np.empty(0, np.uint32)


class Backing(ABC):
    """What the functions need of a graph; vertices are positions."""

    names: NodeNames
    num_edges: int
    # Whether it was a file from the beginning, whose neighbours are in the order of its ids.
    is_file = False

    def __init__(self) -> None:
        self._rows: dict[bool, Adjacency] = {}

    @cached_property
    def engine(self) -> Graph:
        """The graph whose searches run on all cores."""
        return self._open()

    @abstractmethod
    def _open(self) -> Graph: ...

    @cached_property
    def reversed_engine(self) -> Graph:
        """``engine`` with every edge turned around."""
        return self.engine.reversed()

    def rows(self, *, inward: bool = False) -> Adjacency:
        """Return neighbours in their order; out-neighbours or in-neighbours if directed."""
        if inward not in self._rows:
            self._rows[inward] = self._load(inward=inward)
        return self._rows[inward]

    @abstractmethod
    def _load(self, *, inward: bool) -> Adjacency: ...

    def row_scratch(self) -> NDArray[np.uint32]:
        """Allocate room for the longest row of a file."""
        return fresh(1, np.uint32)

    def reading(self) -> AbstractContextManager[None]:
        """Keep the file open while rows of it are read."""
        return nullcontext()

    def release(self) -> None:  # noqa: B027
        """Let go of what was read, if memory is bounded."""

    @abstractmethod
    def neighbours(self, position: int, *, inward: bool) -> list[Any]:
        """Return the neighbours of a vertex in their order, as nodes."""

    def edge_counts(self, position: int, *, inward: bool) -> list[int] | None:
        """Return the number of parallel edges to each neighbour; None if there are no such."""
        return None

    def close(self) -> None:
        """Close the files that were opened."""
        for name in ("engine", "reversed_engine"):
            if name in vars(self):
                vars(self)[name].close()


class OpenedBacking(Backing):
    """A graph in an ``.ocg`` file."""

    is_file = True

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._graph = graph
        # Asked for at once, so that ``close`` closes it.
        self._stored = self.engine._stored
        self.names = name_ids(self._stored)
        self.num_edges = graph.num_edges

    def _open(self) -> Graph:
        return self._graph

    def _load(self, *, inward: bool) -> Adjacency:
        rows = self._stored.in_rows if inward else self._stored.rows
        order = self._stored.order
        return Adjacency(
            heads=freeze(rows.heads, np.uint32),
            bases=freeze(rows.bases, np.uint64),
            starts=freeze(rows.starts, np.uint32),
            tails=freeze(rows.tails, np.uint8),
            shift=rows.shift,
            order=freeze(_NO_ORDER if order is None else order, np.uint32),
            stored_at=freeze(_NO_ORDER if order is None else self._stored.stored_at, np.uint32),
        )

    def row_scratch(self) -> NDArray[np.uint32]:
        """Allocate room for the longest row of a file."""
        return fresh(self._stored.rows.max_degree + 1, np.uint32)

    def reading(self) -> AbstractContextManager[None]:
        """Keep the file open while rows of it are read."""
        return self._stored.reading()

    def release(self) -> None:
        """Let go of what was read, if memory is bounded."""
        if self._stored.budget_bytes is not None:
            self._stored.release()

    def neighbours(self, position: int, *, inward: bool) -> list[Any]:
        """Return the neighbours of a vertex in their order, as nodes."""
        node = self.names.nodes(np.array([position]))[0]
        ids = self.engine.in_neighbors(node) if inward else self.engine.neighbors(node)
        return list(ids.tolist())


class ConvertedBacking(Backing):
    """A graph of networkx, as arrays."""

    def __init__(self, graph: Any) -> None:
        super().__init__()
        nodes: list[Node] = list(graph)
        self.names = name_nodes(nodes)
        self.directed: bool = graph.is_directed()
        self.num_edges: int = graph.number_of_edges()
        # Both by whether they are inward, as rows are.
        self._counts: dict[bool, NDArray[np.int64] | None] = {}
        self._rows[False], self._counts[False] = self._list_rows(graph, graph._adj, nodes)
        self._rows[True], self._counts[True] = self._rows[False], self._counts[False]
        if self.directed:
            self._rows[True], self._counts[True] = self._list_rows(graph, graph._pred, nodes)

    def _load(self, *, inward: bool) -> Adjacency:
        return self._rows[inward]

    def _list_rows(
        self,
        graph: Any,
        rows: Mapping[Node, Mapping[Node, Any]],
        nodes: list[Node],
    ) -> tuple[Adjacency, NDArray[np.int64] | None]:
        """List the neighbours of all nodes and, in a multigraph, how many edges lead to each."""
        in_order = [rows[node] for node in nodes]
        # Views of multigraphs count neighbours that they do not list.
        listed = in_order if isinstance(rows, dict) else [list(row) for row in in_order]
        firsts = np.zeros(len(nodes) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, listed), np.int64, len(nodes)), out=firsts[1:])
        count = int(firsts[-1])
        found: Iterable[Any] = chain.from_iterable(listed)
        if isinstance(self.names, Objects):
            positions = self.names.positions(iter(found), count)
        else:
            positions = np.fromiter(found, np.int64, count)
        counts = None
        if graph.is_multigraph():
            pairs = zip(in_order, listed, strict=True)
            keys = (len(row[other]) for row, others in pairs for other in others)
            counts = np.fromiter(keys, np.int64, count)
        return Adjacency(firsts, positions.astype(np.uint32)), counts

    def _open(self) -> Graph:
        edges = ListedEdges(self.rows(), directed=self.directed)
        if self.rows().neighbours.size >= _FEW_EDGES:
            with convert_unnamed(edges, tempfile.gettempdir()) as file:
                return Graph(StoredGraph(Container(_PATH, file.fileno())))
        place = _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
        with convert_unnamed(edges, place, order="natural", threads=1) as file:
            # Programs have more small graphs than the system would open files.
            return Graph(StoredGraph(Container(_PATH, _in_memory(file))))

    def neighbours(self, position: int, *, inward: bool) -> list[Any]:
        """Return the neighbours of a vertex in their order, as nodes."""
        adjacency = self.rows(inward=inward)
        return self.names.nodes(adjacency.neighbours[_row(adjacency, position)])

    def edge_counts(self, position: int, *, inward: bool) -> list[int] | None:
        """Return the number of parallel edges to each neighbour; None if there are no such."""
        counts = self._counts[inward]
        row = _row(self.rows(inward=inward), position)
        return None if counts is None else counts[row].tolist()


def _in_memory(file: BinaryIO) -> NDArray[np.uint8]:
    """Read a file into whole pages, as if it were mapped."""
    size = os.fstat(file.fileno()).st_size
    pages = mmap.mmap(-1, size)
    file.seek(0)
    file.readinto(pages)  # type: ignore[attr-defined]
    data = np.frombuffer(pages, np.uint8)
    data.flags.writeable = False
    return data


def _row(adjacency: Adjacency, position: int) -> slice:
    return slice(*adjacency.firsts[position : position + 2].tolist())


class ListedEdges:
    """An edge stream over listed rows; an undirected edge is given once."""

    name = "networkx"
    unit = "edge"

    def __init__(self, rows: Adjacency, *, directed: bool) -> None:
        self._rows = rows
        self.declared = Declared(directed=directed, num_vertices=rows.firsts.size - 1)
        self.total: int | None = rows.neighbours.size
        self.done = 0

    def batches(self) -> Iterator[Edges]:
        """Yield the edges, row by row."""
        firsts, neighbours = self._rows.firsts, self._rows.neighbours
        for first in range(0, neighbours.size, _BATCH_EDGES):
            targets = neighbours[first : first + _BATCH_EDGES].astype(np.uint64)
            places = np.arange(first, first + targets.size)
            sources = np.searchsorted(firsts, places, "right").astype(np.uint64) - np.uint64(1)
            if not self.declared.directed:
                once = sources <= targets
                sources, targets = sources[once], targets[once]
            self.done = first + places.size
            yield Edges(sources, targets)

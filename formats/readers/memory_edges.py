"""Edges that are in memory already: arrays, sparse matrices, graphs of networkx and igraph."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.readers.expect import Expected
from oocbfs.formats.tables.columns import TextIds

_BATCH_EDGES = 1 << 18


class MemoryEdges:
    """An edge stream over two integer arrays, an (m, 2) or (2, m) array, or a sparse matrix."""

    name = "memory"
    unit = "edge"

    def __init__(self, edges: Any) -> None:
        self.declared = Declared()
        if hasattr(edges, "tocoo"):
            matrix = edges.tocoo()
            rows, columns = matrix.shape
            if rows != columns:
                raise InputError(f"a matrix of {rows} × {columns} is not square: not a graph")
            self._sources, self._targets = matrix.row, matrix.col
            self.declared.num_vertices = rows
        elif isinstance(edges, tuple) and len(edges) == 2:
            self._sources, self._targets = map(np.asarray, edges)
        else:
            array = np.asarray(edges)
            if array.ndim != 2 or 2 not in array.shape:
                raise InputError(
                    f"an array of shape {array.shape} is not a list of edges: give (m, 2) or "
                    "(2, m), a pair of arrays, a sparse matrix, a table or a graph"
                )
            # Of two by two, each row is an edge.
            self._sources, self._targets = array.T if array.shape[1] == 2 else array
        for ends in (self._sources, self._targets):
            if ends.ndim != 1 or ends.size != self._sources.size:
                raise InputError("sources and targets must be two flat arrays of the same length")
            if ends.dtype.kind not in "iu" and ends.size:
                if ends.dtype.kind in "OTU":
                    found = f"vertex ids must be integers, not {ends.dtype}"
                    raise TextIds(f"{found}; for names, use --ids names")
                raise InputError(f"vertex ids must be integers, not {ends.dtype}")
            if ends.dtype.kind == "i" and ends.size and ends.min() < 0:
                raise InputError(f"vertex ids cannot be negative: {ends.min()}")
        self.total: int | None = self._sources.size
        self.done = 0

    def expect(self) -> Expected:
        """Return how many edges there are, and the bits of their ids."""
        largest = max(int(ends.max(initial=0)) for ends in (self._sources, self._targets))
        return Expected(self._sources.size, max(1, largest.bit_length()))

    def batches(self) -> Iterator[Edges]:
        """Yield the edges in order."""
        for first in range(0, self._sources.size, _BATCH_EDGES):
            part = slice(first, first + _BATCH_EDGES)
            yield Edges(_as_ids(self._sources[part]), _as_ids(self._targets[part]))
            self.done = min(first + _BATCH_EDGES, self._sources.size)


def _as_ids(values: NDArray[Any]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(values, dtype=np.uint64)


class NetworkxEdges:
    """The edges of a networkx graph whose nodes are whole numbers; its nodes are the vertices."""

    name = "networkx graph"
    unit = "edge"

    def __init__(self, graph: Any) -> None:
        nodes = list(graph)
        for node in nodes:
            if not isinstance(node, (int, np.integer)) or not 0 <= node < 2**64:
                raise (TextIds if isinstance(node, str) else InputError)(
                    f"node {str(node)[:40]!r}: vertex ids are whole numbers, such as those of "
                    "networkx.convert_node_labels_to_integers",
                    path=self.name,
                )
        self._graph = graph
        self.declared = Declared(
            directed=graph.is_directed(),
            directed_why=f"a networkx {type(graph).__name__} is",
            vertex_ids=np.unique(np.array(nodes, np.uint64)),
        )
        self.total: int | None = graph.number_of_edges()
        self.done = 0

    def batches(self) -> Iterator[Edges]:
        """Yield the edges in networkx's order."""
        ends = chain.from_iterable(self._graph.edges())
        while (batch := np.fromiter(islice(ends, 2 * _BATCH_EDGES), np.uint64)).size:
            yield Edges(batch[::2].copy(), batch[1::2].copy())
            self.done += batch.size // 2


class IgraphEdges:
    """The edges of an igraph graph, row by row; its vertices are 0 … n-1."""

    name = "igraph graph"
    unit = "edge"

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        directed = graph.is_directed()
        self.declared = Declared(
            directed=directed,
            directed_why="the igraph graph is",
            num_vertices=graph.vcount(),
        )
        self.total: int | None = graph.ecount()
        self.done = 0

    def batches(self) -> Iterator[Edges]:
        """Yield the edges by their sources; of an undirected graph each once."""
        num_vertices, first = self.declared.num_vertices or 0, 0
        while first < num_vertices:
            rows: list[list[int]] = []
            size = 0
            while first + len(rows) < num_vertices and size < _BATCH_EDGES:
                rows.append(self._graph.neighbors(first + len(rows), mode="out"))
                size += len(rows[-1])
            lengths = [len(row) for row in rows]
            sources = np.repeat(np.arange(first, first + len(rows), dtype=np.uint64), lengths)
            targets = np.fromiter(chain.from_iterable(rows), np.uint64, size)
            first += len(rows)
            if not self.declared.directed:
                # Both ends list an edge, and the one end of a loop lists it twice.
                kept = sources < targets
                kept[np.flatnonzero(sources == targets)[::2]] = True
                sources, targets = sources[kept], targets[kept]
            yield Edges(sources, targets)
            self.done += sources.size

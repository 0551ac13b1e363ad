"""Open a graph and ask it about its vertices, in the ids of the input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container import Container
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.layout import VERSION, Kind, Order
from oocbfs.rows import Rows, decode_edges, load_rows

# Below this many ids, scanning the order for each is cheaper than inverting it.
_FEW = 4


class Graph:
    """A graph in an ``.ocg`` file, opened by ``oocbfs.open``.

    *Stored* vertices are numbered by their row in the file; *ids* are those of the input.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self.num_vertices = container.num_vertices
        self.num_edges = container.num_edges
        self.directed = container.directed

    @property
    def path(self) -> str:
        """Name of the file."""
        return str(self._container.path)

    @cached_property
    def rows(self) -> Rows:
        """Neighbours of each stored vertex; out-neighbours if the graph is directed."""
        return load_rows(self._container)

    @cached_property
    def in_rows(self) -> Rows:
        """In-neighbours of each stored vertex; the same as ``rows`` if the graph is undirected."""
        return load_rows(self._container, transposed=True) if self.directed else self.rows

    @cached_property
    def _order(self) -> NDArray[np.uint32] | None:
        """Natural position of each stored vertex; None if they are the same."""
        if self._container.order is Order.NATURAL:
            return None
        order: NDArray[np.uint32] = self._container.section(Kind.ORDER)
        if int(order.max(initial=0)) >= max(1, self.num_vertices):
            raise FormatError(f"{self.path}: the vertex order is damaged: run 'oocbfs verify'")
        return order

    @cached_property
    def _ranks(self) -> NDArray[np.uint32]:
        """Stored vertex at each natural position."""
        assert self._order is not None
        ranks = np.zeros(self.num_vertices, np.uint32)
        ranks[self._order] = np.arange(self.num_vertices, dtype=np.uint32)
        return ranks

    @property
    def _listed_ids(self) -> Ids | None:
        """Ids in ascending order; None if they are consecutive."""
        if Kind.IDS not in self._container.sections:
            return None
        ids: Ids = self._container.section(Kind.IDS)
        return ids

    def ids_of(self, stored: NDArray[Any]) -> Ids:
        """Ids of stored vertices."""
        natural = stored if self._order is None else self._order[stored]
        if self._listed_ids is None:
            return natural.astype(np.uint64) + np.uint64(self._container.first_id)
        listed: Ids = self._listed_ids[natural]
        return listed

    def stored(self, ids: Any) -> NDArray[np.int64]:  # noqa: ANN401
        """Find the stored vertices that ids name.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        """
        wanted = [int(i) for i in np.atleast_1d(ids)]
        natural = np.array([self._natural(i) for i in wanted], np.int64)
        if self._order is None:
            return natural
        if natural.size <= _FEW and "_ranks" not in self.__dict__:
            places = [np.flatnonzero(self._order == position) for position in natural]
            if any(place.size != 1 for place in places):
                raise FormatError(f"{self.path}: the vertex order is damaged: run 'oocbfs verify'")
            return np.concatenate([np.empty(0, np.int64), *places])
        return self._ranks[natural].astype(np.int64)

    def _natural(self, vertex_id: int) -> int:
        listed = self._listed_ids
        if listed is None:
            natural = vertex_id - self._container.first_id
            if 0 <= natural < self.num_vertices:
                return natural
        elif 0 <= vertex_id < 2**64:
            natural = int(np.searchsorted(listed, np.uint64(vertex_id)))
            if natural < listed.size and int(listed[natural]) == vertex_id:
                return natural
        raise QueryError(f"{self.path}: has no vertex {vertex_id}; {self._describe_ids()}")

    def _describe_ids(self) -> str:
        if self.num_vertices == 0:
            return "it has none at all"
        listed = self._listed_ids
        if listed is not None:
            return f"its {self.num_vertices:,} ids lie between {listed[0]} and {listed[-1]}"
        first = self._container.first_id
        return f"its ids are {first} to {first + self.num_vertices - 1}"

    def degree(self, vertex: int) -> int:
        """Count the neighbours of a vertex; out-neighbours if the graph is directed."""
        return int(self.rows.degrees[self.stored(vertex)[0]])

    def neighbors(self, vertex: int) -> Ids:
        """Ids of a vertex's neighbours, ascending; out-neighbours if the graph is directed."""
        found = self.ids_of(self.rows.neighbours(int(self.stored(vertex)[0])))
        found.sort()
        return found

    def edges(self) -> Iterator[Edges]:
        """Yield all edges in input ids, those of an undirected graph once, smaller position first."""
        for sources, targets in decode_edges(self.rows, self._order, once=not self.directed):
            yield Edges(self._natural_ids(sources), self._natural_ids(targets))

    def _natural_ids(self, natural: NDArray[np.uint64]) -> Ids:
        if self._listed_ids is not None:
            return self._listed_ids[natural]
        return natural + np.uint64(self._container.first_id)

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
        """Drop the mapping; arrays that were given out stay valid."""
        for name in ("rows", "in_rows", "_order", "_ranks"):
            self.__dict__.pop(name, None)
        self._container.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open(path: str | os.PathLike[str]) -> Graph:
    """Open a graph file for reading.

    Raises
    ------
    FormatError
        If the file is not a graph, is damaged, or comes from another version.
    """
    return Graph(Container(path))

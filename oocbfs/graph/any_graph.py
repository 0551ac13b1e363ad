"""What every open graph can be asked, in one file or in parts; results hold on to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container.layout import Kind
from oocbfs.formats.edges import Edges, Ids
from oocbfs.graph.vertices import Vertex, Vertices

if TYPE_CHECKING:
    from oocbfs.kernels.rows import Rows


class AnyGraph(Vertices, ABC):
    """A graph whose vertices have names, degrees and neighbours."""

    # Neighbours in all rows; those of in-neighbours, which a directed graph has too, not counted.
    num_arcs: int
    directed: bool
    # Files that its rows are in.
    num_parts = 1

    @property
    def num_edges(self) -> int:
        """Number of edges, an undirected one counted once; no graph stores loops."""
        return self.num_arcs if self.directed else self.num_arcs // 2

    @property
    @abstractmethod
    def checksum(self) -> int:
        """Checksum of a header that holds those of all other parts: tells graphs apart."""

    @property
    @abstractmethod
    def stored_degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each stored vertex; out-neighbours if the graph is directed."""

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each vertex, in the order of ``ids()``; outward if directed."""
        degrees = np.empty(self.num_vertices, np.uint32)
        with self.reading():
            degrees[slice(None) if self.order is None else self.order] = self.stored_degrees
        return degrees

    @abstractmethod
    def degree(self, vertex: int) -> int:
        """Count the neighbours of a vertex; out-neighbours if the graph is directed."""

    @abstractmethod
    def rows_by_part(self) -> Iterator[tuple[Rows, int]]:
        """Yield the rows of each file, and the number of its part: 0 of a graph in one file."""

    def release(self) -> None:
        """Let go of mapped pages, so that they count as memory of this process no more."""
        self._container.release()

    def neighbors(self, vertex: Vertex) -> NDArray[Any]:
        """Ids of a vertex's neighbours, ascending; out-neighbours if the graph is directed."""
        return self.given(self.neighbor_ids(self.one(vertex), inward=False))

    def in_neighbors(self, vertex: Vertex) -> NDArray[Any]:
        """Ids of a vertex's in-neighbours, ascending; its neighbours if the graph is undirected."""
        return self.given(self.neighbor_ids(self.one(vertex), inward=True))

    @abstractmethod
    def neighbor_ids(self, vertex: int, *, inward: bool) -> Ids:
        """Ids of the neighbours of an id, also where users know vertices by names."""

    def edges(self) -> Iterator[Edges]:
        """Yield all edges in ids of the input, or in names; undirected ones once."""
        if self.names is None:
            return self.id_edges()
        return self.each(self._named(self.id_edges()))

    def _named(self, batches: Iterator[Edges]) -> Iterator[Edges]:
        return (Edges(self.given(one.sources), self.given(one.targets)) for one in batches)

    @abstractmethod
    def id_edges(self) -> Iterator[Edges]:
        """Yield all edges as ids, also where users know vertices by names.

        Undirected ones come once, smaller position first.
        """

    def _ids_kind(self) -> str:
        """Say what vertices are called by."""
        if self.names is not None:
            return "names"
        return "listed" if Kind.IDS in self._container.sections else "consecutive"

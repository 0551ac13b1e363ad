"""What an open graph can be asked about its vertices and edges, in one file or in shards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Edges
from oocbfs.formats.io.closing import Closing
from oocbfs.graph.names import Names
from oocbfs.graph.vertices import Vertex, are_several
from oocbfs.settings import file_name

# Storage knows what users see of it, and is known by that.
if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored


class OpenGraph(Closing, ABC):
    """What users see of a graph, but for its searches; see ``oocbfs.AnyGraph``.

    Vertices are called by the ids of the input, or by their names where they have names. What is
    in memory, and how it is laid out there, is no part of this.
    """

    def __init__(self, stored: AnyStored) -> None:
        self._stored = stored
        stored.show_as(self)

    @abstractmethod
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the path: whoever unpickles it opens the graph again."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def path(self) -> str:
        """Name of the file, or of the folder of a sharded graph."""
        return self._stored.path

    @property
    def title(self) -> str:
        """What the file holds, in one line."""
        kind = "directed" if self.directed else "undirected"
        return (
            f"{file_name(self.path)}: {self.num_vertices:,} vertices, {self.num_edges:,} "
            f"edges, {kind}, {self._stored.order_name} order"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}>"

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self._stored.directed

    @property
    def num_vertices(self) -> int:
        """Number of vertices, those without an edge included."""
        return self._stored.num_vertices

    @property
    def num_edges(self) -> int:
        """Number of edges, an undirected one counted once; no graph stores loops."""
        return self._stored.num_edges

    @property
    def num_arcs(self) -> int:
        """Number of neighbours in all rows: directed edges, and undirected ones twice."""
        return self._stored.num_arcs

    @property
    def names(self) -> Names | None:
        """Names in ascending order, with which results are aligned; None if ids are numbers."""
        return self._stored.names

    def ids(self) -> NDArray[Any]:
        """Return all ids, or names, in ascending order, with which results are aligned."""
        return self._stored.ids()

    def positions(self, ids: Any) -> NDArray[np.int64]:
        """Return the positions of some ids, which index every result.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        """
        return self._stored.positions(ids)

    @overload
    def degree(self, vertex: Vertex) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def degree(self, vertex: Iterable[Vertex]) -> NDArray[np.uint32]: ...
    def degree(self, vertex: Vertex | Iterable[Vertex]) -> int | NDArray[np.uint32]:
        """Return how many neighbours a vertex has, or each of several; outward if directed."""
        found = self._stored.degrees_of(vertex)
        return found if are_several(vertex) else int(found[0])

    def __len__(self) -> int:
        return self.num_vertices

    def __contains__(self, vertex: object) -> bool:
        return vertex in self._stored

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each vertex, in the order of ``ids()``; outward if directed."""
        return self._stored.degrees

    def degree_histogram(self, *, inward: bool = False) -> dict[int, int]:
        """Return how many vertices there are of each degree, degrees ascending; out-degrees first.

        With ``inward``, the in-degrees of a directed graph.
        """
        return self._stored.degree_histogram(inward=inward)

    def neighbors(self, vertex: Vertex) -> NDArray[Any]:
        """Return the ids of a vertex's neighbours, ascending; of out-neighbours if directed."""
        return self._stored.neighbors(vertex)

    def in_neighbors(self, vertex: Vertex) -> NDArray[Any]:
        """Return the ids of a vertex's in-neighbours, ascending; its neighbours if undirected."""
        return self._stored.in_neighbors(vertex)

    def edges(self) -> Iterator[Edges]:
        """Yield all edges in ids of the input, or in names; undirected ones once."""
        return self._stored.edges()

    def to_scipy(self) -> Any:
        """Return a small graph as a SciPy sparse array of ones, in the order of ``ids()``."""
        return self._stored.to_scipy()

    def info(self) -> dict[str, Any]:
        """Return what the file says about itself, without reading the graph."""
        return self._stored.info()

    @abstractmethod
    def reversed(self) -> OpenGraph:
        """Open the same graph with every edge turned around; it is closed by itself."""

    @abstractmethod
    def release_device(self) -> None:
        """Release what a GPU holds of the graph, and what is pinned for it."""

    def close(self) -> None:
        """Drop the mapping; arrays that were given out stay valid.

        This does not wait for searches of other threads: the last of them closes the file.
        What is asked for after this is refused.
        """
        self._stored.close()

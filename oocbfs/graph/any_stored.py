"""What is stored of an open graph, in one file or in shards; results hold on to it."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultPool
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.io.closing import Closing
from oocbfs.graph.kept import KeptSearch
from oocbfs.graph.sizes import Sizes
from oocbfs.graph.vertices import Vertex, Vertices
from oocbfs.lazy import lazy

if TYPE_CHECKING:
    from oocbfs.graph.open_graph import OpenGraph
    from oocbfs.kernels.rows import Rows


# Degrees that are looked at at a time.
_PIECE = 1 << 16


class AnyStored(Vertices, Closing, ABC):
    """The storage behind a graph: its vertices, rows and degrees.

    Users see an ``OpenGraph``, which has no state of its own.
    """

    # Neighbours in all rows; those of in-neighbours, which a directed graph has too, not counted.
    num_arcs: int
    directed: bool
    # Files that its rows are in, and whether these are shards, and who searches them.
    num_shards = 1
    is_sharded = False
    cluster: str | None = None
    _shown: weakref.ref[OpenGraph]
    _show: Callable[[Any], OpenGraph]

    def __copy__(self) -> Self:
        """Return the same: an open graph never changes."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what users see, which is opened again by whoever unpickles it."""
        return attrgetter("_stored"), (self.graph,)

    def check_same(self, checksum: int) -> Self:
        """Refuse another graph than the one that was pickled."""
        if self.checksum != checksum:
            self.close()
            raise FormatError(f"{self.path}: is another graph than the one that was pickled")
        return self

    def show_as(self, graph: OpenGraph) -> None:
        """Remember what users see, but do not keep it: who drops a graph wants it closed."""
        self._shown, self._show = weakref.ref(graph), type(graph)

    @property
    def graph(self) -> OpenGraph:
        """What users see: the graph that was opened, or another one if they dropped it."""
        shown = self._shown()
        return self._show(self) if shown is None else shown

    @property
    def num_edges(self) -> int:
        """Number of edges, an undirected one counted once; no graph stores loops."""
        return self.num_arcs if self.directed else self.num_arcs // 2

    @property
    @abstractmethod
    def checksum(self) -> int:
        """Checksum of a header that holds those of all sections: tells graphs apart."""

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

    def degree_histogram(self, *, inward: bool = False) -> dict[int, int]:
        """Count the vertices of each degree, degrees ascending; out-degrees if directed."""
        found: Counter[int] = Counter()
        with self.reading():
            for degrees in self._degree_sections(inward=inward and self.directed):
                for first in range(0, degrees.size, _PIECE):
                    values, counts = np.unique(degrees[first : first + _PIECE], return_counts=True)
                    found.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        return dict(sorted(found.items()))

    @abstractmethod
    def _degree_sections(self, *, inward: bool) -> Iterator[NDArray[np.uint32]]:
        """Yield all degrees, in any order."""

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """Return what the file says about itself, without reading the graph."""

    def _info(self, *, bits_per_arc: float, file_bytes: int, unpacked_bytes: int) -> dict[str, Any]:
        """Return what a graph in one file and in shards say alike."""
        header = self._container.header
        return {
            "path": self.path,
            "vertices": self.num_vertices,
            "edges": self.num_edges,
            "arcs": self.num_arcs,
            "directed": self.directed,
            "order": self.order_name,
            "ids": self._ids_kind(),
            "first_id": self._container.first_id,
            "max_degree": int(header["max_degree"]),
            "bits_per_arc": bits_per_arc,
            "file_bytes": file_bytes,
            "unpacked_bytes": unpacked_bytes,
            "format_version": self._container.version,
            "vertices_in_input": int(header["input_vertices"]),
            "edges_read": int(header["input_edges"]),
            "duplicates": int(header["input_duplicates"]),
            "loops": int(header["input_loops"]),
        }

    def degrees_of(self, vertices: Any) -> NDArray[np.uint32]:
        """Count the neighbours of some vertices; out-neighbours if the graph is directed."""
        with self.reading():
            found: NDArray[np.uint32] = self.stored_degrees[self.stored(vertices)]
            return found

    @abstractmethod
    def rows_by_shard(self) -> Iterator[tuple[Rows, int]]:
        """Yield the rows of each file, and the number of its shard: 0 of a graph in one file."""

    def expect_unpacking(self) -> None:
        """Refuse a compressed graph that has no room, before results take theirs."""
        self._container.expect_unpacking()

    @cached_property
    def result_pool(self) -> ResultPool:
        """Memory of earlier results, for the next ones."""
        return ResultPool()

    @cached_property
    def kept_questions(self) -> tuple[Any, ...]:
        """What was decided for questions about a few vertices, latest first; see ``point.ask``."""
        return ()

    @lazy
    def kept_search(self) -> KeptSearch:
        """The graph as the last search on a device left it there."""
        return KeptSearch()

    def release_device(self) -> None:
        """Release what a GPU holds of the graph, and what is pinned for it."""
        if "kept_search" in self.__dict__:
            self.kept_search.close()

    @property
    @abstractmethod
    def sizes(self) -> Sizes:
        """How much memory which parts take."""

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

    def to_scipy(self) -> Any:
        """Return a small graph as a sparse array of SciPy, rows and columns by ascending id."""
        from scipy.sparse import csr_array

        with self.reading():
            batches = list(self._natural_arcs())
        none = np.empty(0, np.uint64)
        sources, targets = (
            np.concatenate([none, *(batch[side] for batch in batches)]).astype(np.int64)
            for side in (0, 1)
        )
        ones = np.ones(sources.size, np.int8)
        return csr_array((ones, (sources, targets)), shape=(self.num_vertices, self.num_vertices))

    @abstractmethod
    def _natural_arcs(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
        """Yield all arcs as natural positions, a bounded number at a time."""

    @abstractmethod
    def id_edges(self) -> Iterator[Edges]:
        """Yield all edges as ids, also where users know vertices by names.

        Undirected ones come once, smaller position first.
        """

    def _ids_kind(self) -> str:
        """Return what vertices are called by."""
        if self.names is not None:
            return "names"
        return "listed" if Kind.IDS in self._container.sections else "consecutive"

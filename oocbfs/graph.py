"""Open a graph and ask it about its vertices, in the ids of the input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container import Container
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.layout import VERSION, Kind, Order
from oocbfs.kernels.bfs_rows import Rows
from oocbfs.rows import decode_edges, load_rows, neighbours

if TYPE_CHECKING:
    from oocbfs.result import BfsResult

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
    def order(self) -> NDArray[np.uint32] | None:
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
        assert self.order is not None
        ranks = np.zeros(self.num_vertices, np.uint32)
        ranks[self.order] = np.arange(self.num_vertices, dtype=np.uint32)
        return ranks

    @property
    def first_id(self) -> int:
        """Smallest id, where ids are consecutive."""
        return self._container.first_id

    @property
    def largest_id(self) -> int:
        """Largest id of a graph that has vertices."""
        if self.listed_ids is not None:
            return int(self.listed_ids[-1])
        return self.first_id + self.num_vertices - 1

    @property
    def listed_ids(self) -> Ids | None:
        """Ids in ascending order; None if they are consecutive."""
        if Kind.IDS not in self._container.sections:
            return None
        ids: Ids = self._container.section(Kind.IDS)
        return ids

    def ids_of(self, stored: NDArray[Any]) -> Ids:
        """Ids of stored vertices."""
        natural = stored if self.order is None else self.order[stored]
        if self.listed_ids is None:
            return natural.astype(np.uint64) + np.uint64(self.first_id)
        listed: Ids = self.listed_ids[natural]
        return listed

    def ids(self) -> Ids:
        """All ids in ascending order, with which results are aligned."""
        if self.listed_ids is not None:
            return self.listed_ids
        return np.arange(self.num_vertices, dtype=np.uint64) + np.uint64(self.first_id)

    def positions(self, ids: Any) -> NDArray[np.int64]:  # noqa: ANN401
        """Find the natural positions of ids, which are their places in every result.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        """
        wanted = ids if isinstance(ids, np.ndarray) else self._as_array(ids)
        if self.num_vertices == 0:
            known = np.zeros(wanted.size, np.bool_)
        elif self.listed_ids is None:
            known = (wanted >= self.first_id) & (wanted <= self.largest_id)
            found: NDArray[Any] = wanted.astype(np.uint64) - np.uint64(self.first_id)
        else:
            found = np.searchsorted(self.listed_ids, wanted.astype(np.uint64))
            known = self.listed_ids[np.minimum(found, self.num_vertices - 1)] == wanted
        if not known.all():
            raise self._unknown(wanted[np.flatnonzero(~known)[0]])
        return found.astype(np.int64)

    def _as_array(self, ids: Any) -> Ids:  # noqa: ANN401
        """Make an array of one id or several."""
        listed = [index(i) for i in (ids if isinstance(ids, Iterable) else (ids,))]
        for vertex in listed:
            if not 0 <= vertex < 2**64:
                raise self._unknown(vertex)
        return np.array(listed, np.uint64)

    def _unknown(self, vertex: int) -> QueryError:
        return QueryError(f"{self.path}: has no vertex {vertex}; {self._describe_ids()}")

    def position(self, vertex: int) -> int:
        """Find the natural position of one id."""
        return int(self.positions(vertex)[0])

    def stored(self, ids: Any) -> NDArray[np.int64]:  # noqa: ANN401
        """Find the stored vertices that ids name.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        """
        natural = self.positions(ids)
        if self.order is None:
            return natural
        if natural.size <= _FEW and "_ranks" not in self.__dict__:
            places = [np.flatnonzero(self.order == position) for position in natural]
            if any(place.size != 1 for place in places):
                raise FormatError(f"{self.path}: the vertex order is damaged: run 'oocbfs verify'")
            return np.concatenate(places)
        return self._ranks[natural].astype(np.int64)

    def _describe_ids(self) -> str:
        if self.num_vertices == 0:
            return "it has none at all"
        listed = self.listed_ids
        if listed is not None:
            return f"its {self.num_vertices:,} ids lie between {listed[0]} and {listed[-1]}"
        return f"its ids are {self.first_id} to {self.largest_id}"

    def degree(self, vertex: int) -> int:
        """Count the neighbours of a vertex; out-neighbours if the graph is directed."""
        return int(self.rows.degrees[self.stored(vertex)[0]])

    def neighbors(self, vertex: int) -> Ids:
        """Ids of a vertex's neighbours, ascending; out-neighbours if the graph is directed."""
        return self._neighbors(self.rows, vertex)

    def in_neighbors(self, vertex: int) -> Ids:
        """Ids of a vertex's in-neighbours, ascending; its neighbours if the graph is undirected."""
        return self._neighbors(self.in_rows, vertex)

    def _neighbors(self, rows: Rows, vertex: int) -> Ids:
        found = self.ids_of(neighbours(rows, int(self.stored(vertex)[0])))
        found.sort()
        return found

    def bfs(
        self,
        source: int | Iterable[int],
        *,
        parents: bool = False,
        threads: int | None = None,
        direction: Literal["auto", "top-down", "bottom-up"] = "auto",
        alpha: float = 15.0,
        beta: float = 2.0,
        max_depth: int | None = None,
        target: int | None = None,
        validate: bool = False,
        engine: Literal["auto", "cpu", "cuda", "emulator"] = "auto",
        vram: str | int | None = None,
        resident_tails: str | int | None = None,
        progress: bool = False,
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
            ``"cpu"`` is all cores; ``"emulator"`` runs the CUDA kernels on the CPU and counts the
            bytes they would move over PCIe; ``"cuda"`` runs them on a GPU. ``"auto"`` is the GPU where
            CuPy finds one that can take the graph, else the CPU; ``stats.fallback`` says why.
        vram
            Device memory to use, such as ``"5G"``; None is what is free. The emulator has no limit, and
            keeps no tails in device memory unless it is given one.
        resident_tails
            How much of the tails to keep in device memory, such as ``"25%"`` or ``"512M"``; None is as
            much as fits.
        progress
            Show bars while the graph is brought to the GPU, on a terminal only.

        Raises
        ------
        QueryError
            If an id does not name a vertex, or the result does not pass validation.
        FormatError
            If the graph is damaged.
        BudgetError
            If device or host memory is too small for the engine asked for.
        """
        from oocbfs.bfs import Settings, bfs

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
        )
        return bfs(self, source, parents=parents, settings=settings)

    def to_scipy(self) -> Any:  # noqa: ANN401
        """Give a small graph as a SciPy sparse array of ones, rows and columns by ascending id."""
        from scipy.sparse import csr_array

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
        for sources, targets in decode_edges(self.rows, self.order, once=not self.directed):
            yield Edges(self._natural_ids(sources), self._natural_ids(targets))

    def _natural_ids(self, natural: NDArray[np.uint64]) -> Ids:
        if self.listed_ids is not None:
            return self.listed_ids[natural]
        return natural + np.uint64(self.first_id)

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
        for name in ("rows", "in_rows", "order", "_ranks"):
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

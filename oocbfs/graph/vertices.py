"""The vertices of a graph and their names: stored, natural position, and id of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from operator import index
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError, shown
from oocbfs.formats.container.layout import Kind, Order
from oocbfs.formats.container.reader import Container
from oocbfs.formats.edges import Ids
from oocbfs.formats.names import NameColumn
from oocbfs.graph.names import Names
from oocbfs.lazy import lazy
from oocbfs.options import is_whole

Item = TypeVar("Item")
# How users call a vertex.
Vertex = int | str
# So few ids are sought one by one.
_FEW = 4
_PIECE = 1 << 18


class Vertices:
    """What a container's vertices are called.

    *Stored* vertices are numbered by their row in the file; *ids* are those of the input, and the
    *natural position* of a vertex is the position of its id among all ids. Where vertices have
    *names*, these are in ascending order, and ids are positions, 0 … n-1, which users never see:
    they give names and get names. With a budget, nothing is kept in memory that is as large as the
    graph.
    """

    def __init__(self, container: Container, budget_bytes: int | None) -> None:
        self._container = container
        self.budget_bytes = budget_bytes
        self.num_vertices = container.num_vertices

    @property
    def path(self) -> str:
        """Name of the file."""
        return str(self._container.path)

    def reading(self) -> AbstractContextManager[None]:
        """Keep the file open while it is read; refuse what was read from a file that changed."""
        return self._container.file.reading()

    def each(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield items that are made by reading, each checked before it is handed out."""
        return self._container.file.each(items)

    @property
    def is_reordered(self) -> bool:
        """Whether stored vertices have another order than ids."""
        return self._container.order is not Order.NATURAL

    @property
    def order_name(self) -> str:
        """How stored vertices are arranged."""
        return self._container.order.name.lower()

    @property
    def is_by_degree(self) -> bool:
        """Whether vertices with many edges come first."""
        return self._container.order in (Order.DEGREE, Order.DBG)

    @lazy
    def order(self) -> NDArray[np.uint32] | None:
        """Natural position of each stored vertex; None if they are the same."""
        from oocbfs.graph.rows import is_permutation

        if self._container.order is Order.NATURAL:
            return None
        self._container.expect(Kind.ORDER)
        order: NDArray[np.uint32] = self._container.section(Kind.ORDER)
        if not is_permutation(order):
            raise FormatError(f"{self.path}: the vertex order is damaged: run 'oocbfs verify'")
        return order

    @lazy
    def stored_at(self) -> NDArray[np.uint32]:
        """Stored vertex at each natural position."""
        assert self.order is not None
        stored_at = np.empty(self.num_vertices, np.uint32)
        for first in range(0, stored_at.size, _PIECE):
            piece = self.order[first : first + _PIECE]
            stored_at[piece] = np.arange(first, first + piece.size, dtype=np.uint32)
        return stored_at

    @cached_property
    def names(self) -> Names | None:
        """Names in ascending order, with which results are aligned; None if ids are numbers."""
        return Names(self._container) if Kind.NAMES in self._container.sections else None

    @cached_property
    def first_id(self) -> int:
        """Smallest id, where ids are consecutive."""
        return self._container.first_id

    @property
    def largest_id(self) -> int:
        """Largest id of a graph that has vertices."""
        return int(self.ids_at(self.num_vertices - 1, self.num_vertices)[0])

    @cached_property
    def _lists_ids(self) -> bool:
        return Kind.IDS in self._container.sections

    @cached_property
    def _are_consecutive(self) -> bool:
        return self.names is None and not self._lists_ids

    @property
    def listed_ids(self) -> Ids | None:
        """Ids in ascending order; None if they are consecutive, also of a closed graph."""
        return self._id_section if self._lists_ids else None

    @lazy
    def _id_section(self) -> Ids:
        ids: Ids = self._container.section(Kind.IDS)
        return ids

    def check_ids(self) -> None:
        """Raise a FormatError if listed ids do not ascend: then some are not found."""
        listed = self.listed_ids
        if listed is None:
            return
        pieces = (listed[first : first + _PIECE + 1] for first in range(0, listed.size, _PIECE))
        with self.reading():
            if all((piece[1:] > piece[:-1]).all() for piece in pieces):
                return
            raise FormatError(f"{self.path}: its ids are damaged: run 'oocbfs verify'")

    def ids_of(self, stored: NDArray[Any]) -> Ids:
        """Ids of stored vertices."""
        with self.reading():
            natural = stored if self.order is None else self.order[stored]
            return self._natural_ids(natural.astype(np.uint64))

    def ids(self) -> NDArray[Any]:
        """All ids, or names, in ascending order, with which results are aligned."""
        if self.names is not None:
            return np.asarray(self.names.column(0, self.num_vertices))
        return self.ids_at(0, self.num_vertices)

    def given(self, ids: Ids) -> NDArray[Any]:
        """Return ids as a user knows them: the names that they stand for, if there are names."""
        return ids if self.names is None else np.asarray(self.names.take(ids))

    def given_one(self, vertex: int) -> Any:
        """Return one id as a user knows it."""
        return int(vertex) if self.names is None else self.names[int(vertex)]

    def ids_at_positions(self, positions: NDArray[np.int64]) -> Ids:
        """Ids at any natural positions."""
        with self.reading():
            return self._natural_ids(positions.astype(np.uint64))

    def id_column(self, first: int, stop: int) -> NDArray[Any] | NameColumn:
        """Ids or names at natural positions first … stop-1, as tables show them."""
        if self.names is not None:
            return self.names.column(first, stop)
        return self.as_column(self.ids_at(first, stop))

    def as_column(self, ids: NDArray[Any]) -> NDArray[Any] | NameColumn:
        """Return ids as tables show them: signed where all fit, as most programs expect.

        Where vertices have names, these; one below 0 has none.
        """
        if self.names is not None:
            return self.names.take(ids)
        if ids.dtype == np.uint64 and self.num_vertices and self.largest_id < 2**63:
            return ids.astype(np.int64)
        return ids

    def ids_at(self, first: int, stop: int) -> Ids:
        """Ids at natural positions first … stop-1."""
        listed = self.listed_ids
        if listed is not None:
            with self.reading():
                return listed[first:stop].copy()
        ids = np.arange(first, stop, dtype=np.uint64)
        ids += np.uint64(self.first_id)
        return ids

    def positions(self, ids: Any) -> NDArray[np.int64]:
        """Find the natural positions of ids, which index every result.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        """
        wanted = self.as_ids(ids)
        if self.listed_ids is None and wanted.size == 1:
            # What follows gives the same, and takes longer.
            position = int(wanted[0]) - self.first_id
            if 0 <= position < self.num_vertices:
                return np.array([position])
        found = self.find_positions(wanted)
        if (found < 0).any():
            raise self.unknown(int(wanted[np.flatnonzero(found < 0)[0]]))
        return found

    def find_positions(self, wanted: Ids) -> NDArray[np.int64]:
        """Find the natural positions of ids; -1 where an id names no vertex."""
        found, known = self._seek(wanted)
        if not known.all():
            self.check_ids()
        return np.where(known, found, -1)

    def _seek(self, wanted: Ids) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return natural positions, and which of the ids are those of vertices."""
        listed = self.listed_ids
        if listed is None:
            # Below the first, it wraps around.
            found: NDArray[Any] = wanted - np.uint64(self.first_id)
            known = found < self.num_vertices
        else:
            with self.reading():
                found = np.searchsorted(listed, wanted)
                known = found < listed.size
                known[known] = listed[found[known]] == wanted[known]
        return found.astype(np.int64), known

    def __contains__(self, vertex: object) -> bool:
        with self.reading():
            if self.names is not None:
                return vertex in self.names
            if not is_whole(vertex) or not 0 <= index(vertex) < 2**64:  # type: ignore[arg-type]
                return False
            return bool(self._seek(np.array([vertex], np.uint64))[1][0])

    def as_ids(self, ids: Any) -> Ids:
        """Make an array of one id or several; where there are names, of names.

        Whole numbers in an array are positions then, as in results.

        Raises
        ------
        QueryError
            If there is something among them that is no id.
        """
        # One id, as most callers give it; what follows gives the same, and takes longer.
        if type(ids) is int and self.names is None and 0 <= ids < 2**64:
            return np.array([ids], np.uint64)
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
            if ids.ndim == 1 and ids.dtype == np.uint64:
                return ids
            if ids.ndim > 1:
                raise QueryError(f"ids come in one row, not as {shown(ids)}")
            wanted = ids.reshape(-1)
            if wanted.size and (least := int(wanted.min())) < 0:
                raise self.unknown(least)
            return wanted.astype(np.uint64)
        listed = list(ids) if are_several(ids) else [ids]
        if self.names is not None:
            return self._find(self.names, listed)
        if set(map(type, listed)) != {int} or min(listed) < 0 or max(listed) >= 2**64:
            listed = [self._as_id(i) for i in listed]
        return np.array(listed, np.uint64)

    def _find(self, names: Names, wanted: list[Any]) -> Ids:
        """Find names; refuse what is none, or not that of a vertex."""
        for name in wanted:
            if not isinstance(name, str):
                raise QueryError(
                    f"{shown(name)} is not a name: the vertices of {self.path} have names, which "
                    "are text"
                )
        found = names.find(wanted)
        if (found < 0).any():
            unknown = wanted[int(np.flatnonzero(found < 0)[0])]
            raise QueryError(
                f"{self.path}: has no vertex named {shown(unknown)}; {self._describe_ids()}"
            )
        return found.astype(np.uint64)

    def _as_id(self, vertex: Any) -> int:
        """Take one id."""
        if self.names is not None:
            return int(self._find(self.names, [vertex])[0])
        if not is_whole(vertex):
            raise QueryError(
                f"{self.path}: {shown(vertex)} is not an id: its vertices have whole numbers"
            )
        if not 0 <= index(vertex) < 2**64:
            raise self.unknown(index(vertex))
        return index(vertex)

    def one(self, vertex: Any) -> int:
        """Take one id, or name, where several would be a mistake; returns the id.

        Raises
        ------
        QueryError
            If it is not one id.
        """
        # As most callers give it; what follows gives the same, and takes longer.
        if type(vertex) is int and self.names is None and 0 <= vertex < 2**64:
            return vertex
        if are_several(vertex):
            raise QueryError(
                f"one id is wanted, not {shown(vertex)}: ask for one at a time, "
                "or take the positions of several in a result from graph.positions(ids)"
            )
        return self._as_id(vertex)

    def unknown(self, vertex: int) -> QueryError:
        """Return why an id is refused that names no vertex."""
        return QueryError(f"{self.path}: has no vertex {vertex}; {self._describe_ids()}")

    def position(self, vertex: Vertex) -> int:
        """Find the natural position of one id, or name."""
        with self.reading():
            return self.position_of(vertex)

    def position_of(self, vertex: Vertex) -> int:
        """Do the same inside ``reading()``."""
        if type(vertex) is int and self._are_consecutive:
            # What follows gives the same, and takes longer.
            position = vertex - self.first_id
            if 0 <= position < self.num_vertices:
                return position
        wanted, listed = self.one(vertex), self.listed_ids
        if listed is None:
            position = wanted - self.first_id
            is_known = 0 <= position < self.num_vertices
        else:
            position = int(listed.searchsorted(np.uint64(wanted)))
            is_known = position < listed.size and int(listed[position]) == wanted
        if not is_known:
            self.check_ids()
            raise self.unknown(wanted)
        return position

    def stored(self, ids: Any) -> NDArray[np.int64]:
        """Find the stored vertices that ids name; refuse ids that name none."""
        natural = self.positions(ids)
        if natural.size == 0 or not self.is_reordered:
            return natural
        stored_at: NDArray[np.uint32] | None = self.__dict__.get("stored_at")
        if stored_at is not None:  # which are in memory, and gone when the file is closed
            return stored_at[natural].astype(np.int64)
        with self.reading():
            if self.budget_bytes is not None:
                assert self.order is not None
                return self._search_order(self.order, natural)
            return self.stored_at[natural].astype(np.int64)

    def as_one(self, vertex: Any) -> Ids:
        """Make an array of one id or name; see ``one``."""
        return np.array([self.one(vertex)], np.uint64)

    def stored_one(self, vertex: Vertex) -> int:
        """Find the stored vertex that one id names."""
        return int(self.stored(self.as_one(vertex))[0])

    def _search_order(
        self, order: NDArray[np.uint32], natural: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Find stored vertices by one pass over the order, a bounded piece at a time."""
        wanted, inverse = np.unique(natural, return_inverse=True)
        stored = np.zeros(wanted.size, np.int64)
        num_found = 0
        for first in range(0, order.size, _PIECE):
            piece = order[first : first + _PIECE]
            if wanted.size <= _FEW:
                hits = np.concatenate([np.flatnonzero(piece == position) for position in wanted])
            else:
                hits = np.flatnonzero(np.isin(piece, wanted))
            stored[np.searchsorted(wanted, piece[hits])] = hits + first
            num_found += hits.size
        if num_found != wanted.size:
            raise FormatError(f"{self.path}: the vertex order is damaged: run 'oocbfs verify'")
        found: NDArray[np.int64] = stored[inverse]
        return found

    def _describe_ids(self) -> str:
        if self.num_vertices == 0:
            return "it has none at all"
        if self.names is not None:
            between = f"{shown(self.names[0])} and {shown(self.names[-1])}"
            return f"its {self.num_vertices:,} names lie between {between}"
        if self.listed_ids is not None:
            between = f"{self.ids_at(0, 1)[0]} and {self.largest_id}"
            return f"its {self.num_vertices:,} ids lie between {between}"
        return f"its ids are {self.first_id} to {self.largest_id}"

    def _natural_ids(self, natural: NDArray[np.uint64]) -> Ids:
        listed = self.listed_ids
        return natural + np.uint64(self.first_id) if listed is None else listed[natural]


def are_several(ids: Any) -> bool:
    """Return whether these are ids, not one id; text is neither, though it can be taken apart."""
    if isinstance(ids, np.ndarray):
        return ids.ndim > 0
    return isinstance(ids, Iterable) and not isinstance(ids, (str, bytes, bytearray))

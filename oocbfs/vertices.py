"""The vertices of a graph and their names: stored, by natural position, and by the ids of the input."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container import Container
from oocbfs.formats.edges import Ids
from oocbfs.formats.layout import Kind, Order
from oocbfs.rows import is_permutation

# Below this many ids, scanning the order for each is cheaper than inverting it.
_FEW = 4
_PIECE = 1 << 18


class Vertices:
    """What a container's vertices are called.

    *Stored* vertices are numbered by their row in the file; *ids* are those of the input, and the
    *natural position* of a vertex is the rank of its id. With a budget, nothing is kept in memory
    that is as large as the graph.
    """

    def __init__(self, container: Container, budget_bytes: int | None) -> None:
        self._container = container
        self.budget_bytes = budget_bytes
        self.num_vertices = container.num_vertices

    @property
    def path(self) -> str:
        """Name of the file."""
        return str(self._container.path)

    def check_intact(self) -> None:
        """Raise a FormatError if something that was read may not have been in the file any more."""
        self._container.check_intact()

    @property
    def is_reordered(self) -> bool:
        """Whether stored vertices have another order than ids."""
        return self._container.order is not Order.NATURAL

    @cached_property
    def order(self) -> NDArray[np.uint32] | None:
        """Natural position of each stored vertex; None if they are the same."""
        if self._container.order is Order.NATURAL:
            return None
        self._container.expect(Kind.ORDER)
        order: NDArray[np.uint32] = self._container.section(Kind.ORDER)
        whole = is_permutation(order)
        self.check_intact()
        if not whole:
            raise FormatError(f"{self.path}: the vertex order is damaged: run 'oocbfs verify'")
        return order

    @cached_property
    def ranks(self) -> NDArray[np.uint32]:
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

    def check_ids(self) -> None:
        """Raise a FormatError if listed ids do not ascend: then some are not found."""
        listed = self.listed_ids
        if listed is None:
            return
        pieces = (listed[first : first + _PIECE + 1] for first in range(0, listed.size, _PIECE))
        ascend = all((piece[1:] > piece[:-1]).all() for piece in pieces)
        self.check_intact()
        if not ascend:
            raise FormatError(f"{self.path}: its ids are damaged: run 'oocbfs verify'")

    def ids_of(self, stored: NDArray[Any]) -> Ids:
        """Ids of stored vertices."""
        natural = stored if self.order is None else self.order[stored]
        if self.listed_ids is None:
            return natural.astype(np.uint64) + np.uint64(self.first_id)
        listed: Ids = self.listed_ids[natural]
        return listed

    def ids(self) -> Ids:
        """All ids in ascending order, with which results are aligned."""
        return self.ids_at(0, self.num_vertices)

    def ids_at(self, first: int, stop: int) -> Ids:
        """Ids at natural positions first … stop-1."""
        if self.listed_ids is not None:
            return self.listed_ids[first:stop]
        ids = np.arange(first, stop, dtype=np.uint64)
        ids += np.uint64(self.first_id)
        return ids

    def positions(self, ids: Any) -> NDArray[np.int64]:  # noqa: ANN401
        """Find the natural positions of ids, which are their places in every result.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        """
        wanted = ids if isinstance(ids, np.ndarray) else self._as_array(ids)
        found: NDArray[Any] = wanted
        if self.num_vertices == 0:
            known = np.zeros(wanted.size, np.bool_)
        elif self.listed_ids is None:
            known = (wanted >= self.first_id) & (wanted <= self.largest_id)
            found = wanted.astype(np.uint64) - np.uint64(self.first_id)
        else:
            found = np.searchsorted(self.listed_ids, wanted.astype(np.uint64))
            known = self.listed_ids[np.minimum(found, self.num_vertices - 1)] == wanted
        if not known.all():
            self.check_ids()
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
        if self.order is None or natural.size == 0:
            return natural
        if "ranks" not in self.__dict__ and (natural.size <= _FEW or self.budget_bytes is not None):
            return self._search_order(self.order, natural)
        return self.ranks[natural].astype(np.int64)

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
        self.check_intact()
        if num_found != wanted.size:
            raise FormatError(f"{self.path}: the vertex order is damaged: run 'oocbfs verify'")
        found: NDArray[np.int64] = stored[inverse]
        return found

    def _describe_ids(self) -> str:
        if self.num_vertices == 0:
            return "it has none at all"
        listed = self.listed_ids
        if listed is not None:
            return f"its {self.num_vertices:,} ids lie between {listed[0]} and {listed[-1]}"
        return f"its ids are {self.first_id} to {self.largest_id}"

    def _natural_ids(self, natural: NDArray[np.uint64]) -> Ids:
        if self.listed_ids is not None:
            return self.listed_ids[natural]
        return natural + np.uint64(self.first_id)

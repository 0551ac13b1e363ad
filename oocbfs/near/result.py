"""Neighbourhoods as they are handed out: a row for each vertex that is near a seed."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.graph.vertices import are_several
from oocbfs.near.search import Found, NearSearch
from oocbfs.results import tables
from oocbfs.results.bfs import listed
from oocbfs.results.call import OfGraph
from oocbfs.settings import Settings, file_name, several

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.vertices import Vertex


class Near(NamedTuple):
    """Who is near one seed, or near any of several: the nearest first, and the seeds themselves.

    ``cut`` says that the limit has cut something off. Parents are None unless they were wanted; a
    seed is its own.
    """

    seeds: list[Any]
    ids: NDArray[Any]
    distances: NDArray[np.int32]
    parents: NDArray[Any] | None
    cut: bool


class Neighborhood(tables.Table, OfGraph):
    """Who is within some steps of seeds, found again whenever it is asked for.

    Iterating gives a ``Near`` for each seed, or one for all of them together. As a table it has a
    row for each vertex near a seed; nothing but some rows at a time is in memory, unless the table
    itself is. With a limit, there is a column ``cut``.
    """

    def __init__(
        self,
        graph: AnyStored,
        seeds: Vertex | Iterable[Vertex],
        settings: Settings,
        *,
        depth: int,
        limit: int | None = None,
        union: bool = False,
        parents: bool = False,
    ) -> None:
        self._stored, self.union = graph, union
        self._search = NearSearch(graph, settings, depth=depth, limit=limit, parents=parents)
        self._seeds = graph.as_ids(seeds if are_several(seeds) else [seeds])
        if self._seeds.size == 0:
            raise QueryError("there are no seeds: name at least one vertex")
        graph.positions(self._seeds)  # all of them are there
        self.depth, self.limit = depth, limit
        self._cut: list[Any] | None = None

    @property
    def num_seeds(self) -> int:
        """Number of seeds."""
        return self._seeds.size

    @property
    def seeds(self) -> list[Any]:
        """The seeds, as they were given."""
        return list(self._stored.given(self._seeds).tolist())

    @property
    def cut(self) -> list[Any]:
        """Seeds whose neighbourhood the limit has cut off; all of them if they are together."""
        if self._cut is None:
            for _ in self._found():
                pass
        return list(self._cut or [])

    @property
    def title(self) -> str:
        """What is asked for, in one line."""
        limit = "" if self.limit is None else f", at most {self.limit:,} vertices"
        return (
            f"{file_name(self._stored.path)}: within {several(self.depth, 'step')} of "
            f"{listed(self.seeds)}{limit}"
        )

    def __repr__(self) -> str:
        return f"<Neighborhood: {self.title}>"

    def __iter__(self) -> Iterator[Near]:
        for seeds, found in self._found():
            begin = 0
            for place, end in enumerate(found.ends.tolist()):
                part = slice(begin, end)
                yield Near(
                    self._given(seeds if self.union else seeds[place : place + 1]).tolist(),
                    self._given(found.ids[part]),
                    found.levels[part],
                    None if found.parents is None else self._given(found.parents[part]),
                    bool(found.cut[place]),
                )
                begin = end

    def about(self) -> dict[str, str]:
        """Return what the table is about."""
        found: dict[str, object] = {"depth": self.depth, "seeds": int(self._seeds.size)}
        if self.limit is not None:
            found["limit"] = self.limit
        return tables.about(self._stored, **found, union=self.union)

    def _given(self, ids: Ids) -> NDArray[Any]:
        return self._stored.given(ids)

    def _found(self) -> Generator[tuple[Ids, Found]]:
        """Yield what is found, some seeds at a time; afterwards it is known what was cut off."""
        cut: list[Any] = []
        first = 0
        search = self._search.together if self.union else self._search.apart
        with closing(search(self._seeds)) as parts:
            for found in parts:
                stop = self._seeds.size if self.union else first + found.ends.size
                seeds = self._seeds[first:stop]
                first = stop
                if found.cut.any():
                    cut += self._given(seeds if self.union else seeds[found.cut]).tolist()
                yield seeds, found
        self._cut = cut

    def _types(self) -> tables.Types:
        return {name: column.dtype for name, column in self._rows(self._seeds[:0], _NONE).items()}

    def _batches(self, *, reached_only: bool = False) -> Iterator[tables.Columns]:
        for seeds, found in self._found():
            yield self._rows(seeds, found)

    def _rows(self, seeds: Ids, found: Found) -> tables.Columns:
        """Return what was found as columns."""
        sizes = np.diff(found.ends, prepend=0)
        column = self._stored.as_column
        columns: tables.Columns = {}
        if not self.union:
            columns["seed"] = column(np.repeat(seeds, sizes))
        columns |= {"id": column(found.ids), "distance": found.levels}
        if self._search.with_parents:
            columns["parent"] = column(found.ids[:0] if found.parents is None else found.parents)
        if self.limit is not None:
            columns["cut"] = np.repeat(found.cut, sizes)
        return columns


_NONE = Found(
    np.empty(0, np.int64),
    np.empty(0, np.bool_),
    np.empty(0, np.uint64),
    np.empty(0, np.int32),
    np.empty(0, np.uint64),
)

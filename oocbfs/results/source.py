"""Distances from one source of many, and the results of all of them as they come."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.results import tables
from oocbfs.results.call import LevelResult, OfGraph
from oocbfs.settings import Emit, file_name

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.vertices import Vertex

Levels = NDArray[np.int8] | NDArray[np.int16] | NDArray[np.int32]
# Sources that are searched before their rows go into a table.
_AT_A_TIME = 64
# What is said of each source, and the types of tables; a list holds others.
COLUMNS: dict[str, Any] = {
    "source": np.int64,
    "reached": np.int64,
    "depth": np.int64,
    "eccentricity": np.int64,
    "closeness": np.float64,
    "harmonic": np.float64,
    "level_sizes": [np.int64],
}


def largest_called(graph: AnyStored) -> int | str:
    """Return what ``column_types`` wants to know of a graph: its largest id, or a name."""
    if graph.names is not None:
        return ""
    return graph.largest_id if graph.num_vertices else 0


def column_types(largest_id: int | str) -> dict[str, Any]:
    """Return the types of columns, with a type for sources that holds the largest id or name."""
    if isinstance(largest_id, str):
        return COLUMNS | {"source": object}
    return COLUMNS | {"source": np.int64 if largest_id < 2**63 else np.uint64}


@dataclass(frozen=True, repr=False, eq=False)
class SourceResult(LevelResult, tables.Tabular):
    """Distances from one source.

    ``levels`` are aligned with the ids in ascending order, -1 where not reached, in the smallest
    type that holds them; ``distances`` belong to the targets that were asked for. Each is None
    unless it was asked for. No array is used again for another result: keep what you like. The
    levels of up to 64 results lie in one block of memory, though, which stays as long as one of
    them is kept: keep a copy of ``levels`` if you want few of many.
    """

    source: Any
    _stored: AnyStored
    level_sizes: NDArray[np.int64]
    strategy: str
    levels: Levels | None = field(default=None)
    distances: NDArray[np.int32] | None = field(default=None)

    @property
    def num_vertices(self) -> int:
        """Number of vertices of the graph."""
        return self._stored.num_vertices

    @property
    def eccentricity(self) -> int:
        """Largest distance to a vertex that can be reached, which is the depth."""
        return self.depth

    @cached_property
    def closeness(self) -> float:
        """Vertices reached per step, times the share of all vertices that was reached.

        The formula of Wasserman and Faust, by distances *from* the source; 0 if it reaches nothing.
        """
        total = int((np.arange(self.level_sizes.size) * self.level_sizes).sum())
        others = self.reached - 1
        return others / total * (others / (self.num_vertices - 1)) if total else 0.0

    @cached_property
    def harmonic(self) -> float:
        """Sum of 1 / distance over all other vertices reached."""
        return float((self.level_sizes[1:] / np.arange(1, self.level_sizes.size)).sum())

    def row(self) -> dict[str, Any]:
        """Return the figures of the source under the names of COLUMNS, as plain numbers."""
        values = {name: getattr(self, name) for name in COLUMNS}
        return {**values, "level_sizes": self.level_sizes.tolist()}

    def about(self) -> dict[str, str]:
        """Return what the table of this source is about."""
        found = {"sources": [self.source], "reached": self.reached, "depth": self.depth}
        return tables.about(self._stored, **found)

    @property
    def _values(self) -> Levels:
        if self.levels is None:
            raise QueryError('there are no levels to show: ask for them with emit="levels"')
        return self.levels

    def _columns_between(self, first: int, stop: int) -> tables.Columns:
        levels = self._values[first:stop]
        return {"id": self._stored.id_column(first, stop), "level": levels}

    def _reached_between(self, first: int, stop: int) -> NDArray[np.bool_]:
        return self._values[first:stop] >= 0

    def _draw(self, path: str | os.PathLike[str] | None, *, force: bool) -> Any:
        from oocbfs.results.plots import plot_sources

        return plot_sources(self._stored, [self], path, force=force)

    @property
    def title(self) -> str:
        """What was searched from where, and what was found, in one line."""
        return (
            f"{file_name(self._stored.path)} from {self.source}: {self.reached:,} of "
            f"{self.num_vertices:,} vertices, depth {self.depth:,}"
        )

    def _repr_html_(self) -> str:
        from oocbfs.results.notebook import sources_html

        return sources_html(self._stored, [self])


class SourceResults(OfGraph, tables.Table, Iterator[SourceResult]):
    """Results of many sources, each searched when it is asked for; all at once as a table.

    A table, or a picture, takes those that were not taken before: it can be made once.
    """

    def __init__(
        self,
        graph: AnyStored,
        results: Generator[SourceResult],
        emit: Emit,
        count_disk_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        self._stored = graph
        self._results = results
        self._emit = emit
        self._count_disk_bytes = count_disk_bytes

    @property
    def disk_bytes(self) -> int:
        """Bytes of tails read from disk so far."""
        return self._count_disk_bytes()

    def __next__(self) -> SourceResult:
        return next(self._results)

    def close(self) -> None:
        """Stop searching, and give back what a device holds."""
        self._results.close()

    def __repr__(self) -> str:
        return f"<SourceResults of {file_name(self._stored.path)}, searched as they are taken>"

    def about(self) -> dict[str, str]:
        """Return what the table is about."""
        return tables.about(self._stored)

    def _types(self) -> tables.Types:
        types = column_types(largest_called(self._stored))
        return types | {"distances": [np.int32]} if self._emit == "pairs" else types

    def _batches(self, *, reached_only: bool = False) -> Iterator[tables.Columns]:
        while rows := list(islice(self, _AT_A_TIME)):
            yield self._rows(rows)

    def _rows(self, results: list[SourceResult]) -> dict[str, Any]:
        """Return the figures of some sources as columns."""
        rows = [result.row() for result in results]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in COLUMNS}
        if self._emit == "pairs":
            lists = [result.distances for result in results]
            columns["distances"] = [[] if one is None else one.tolist() for one in lists]
        return columns

    def plot(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> Any:
        """Draw how many vertices are how far from each source; see ``BfsResult.plot``."""
        from oocbfs.results.plots import plot_sources

        return plot_sources(self._stored, list(self), path, force=force)


def smallest(levels: NDArray[np.int32], depth: int) -> Levels:
    """Return levels in the smallest type that holds the depth."""
    if depth <= np.iinfo(np.int8).max:
        return levels.astype(np.int8)
    if depth <= np.iinfo(np.int16).max:
        return levels.astype(np.int16)
    return levels


def asked_for(
    graph: AnyStored,
    sources: Iterable[Vertex],
    emit: Emit,
    targets: Iterable[Iterable[Vertex]] | None,
) -> tuple[list[Vertex], list[NDArray[np.int64]] | None]:
    """List sources, and stored targets of each; unknown ids are refused before any search.

    Raises
    ------
    QueryError
        Also if there are targets where none are wanted, or not as many lists as sources.
    """
    listed: list[Vertex] = graph.given(graph.as_ids(sources)).tolist()
    if (emit == "pairs") != (targets is not None):
        raise QueryError("pairs need targets for each source, and nothing else takes them")
    graph.stored(listed)
    stored = None if targets is None else [graph.stored(ids) for ids in targets]
    if stored is not None and len(stored) != len(listed):
        raise QueryError(f"{len(listed)} sources need as many lists of targets, not {len(stored)}")
    return listed, stored

"""What a search found, in input ids."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Ids
from oocbfs.graph.vertices import Vertex, are_several
from oocbfs.results import paths, tables
from oocbfs.results.call import CallStats, LevelResult
from oocbfs.results.counts import Counts, sum_counts
from oocbfs.results.levels import Level
from oocbfs.settings import file_name

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored


@dataclass(frozen=True)
class Stats(CallStats):
    """How a search went.

    ``engine_reason`` also says what of a plan for a GPU did not hold. ``counts`` are what a device
    counted, also outside of levels.
    """

    edges_traversed: int
    levels: Sequence[Level] = field(repr=False)
    graph_bytes: int = 0
    method: str = "auto"
    around: Counts | None = field(default=None, repr=False)

    @property
    def counts(self) -> Counts | None:
        """What a device counted in the whole search; None where nothing is counted."""
        levels = [level.counts for level in self.levels if level.counts is not None]
        around = [] if self.around is None else [self.around]
        return sum_counts(around + levels) if levels else None

    @property
    def link_bytes(self) -> dict[str, int]:
        """Bytes that devices sent each other, by link; empty on one device."""
        total = Counter[str]()
        for level in self.levels:
            total.update(level.link_bytes)
        return dict(total)

    @property
    def edges_per_second(self) -> float:
        """Edges of the reached part, undirected ones counted once, for each second of the call."""
        return self.edges_traversed / self.seconds if self.seconds else 0.0

    @property
    def nanoseconds_per_edge(self) -> dict[str, float]:
        """How long an edge took that was examined, by direction, where edges are counted."""
        sums: dict[str, tuple[int, float]] = {}
        for level in self.levels:
            if level.edges_examined:
                edges, seconds = sums.get(level.direction, (0, 0.0))
                sums[level.direction] = edges + level.edges_examined, seconds + level.seconds
        return {name: 1e9 * seconds / edges for name, (edges, seconds) in sums.items()}


@dataclass(frozen=True, repr=False, eq=False)
class BfsResult(LevelResult, tables.Tabular):
    """Levels from the nearest source.

    Arrays are aligned with the ids in ascending order: position i is id i where ids are 0 … n-1.
    """

    _stored: AnyStored = field(repr=False)
    sources: list[Any]
    levels: NDArray[np.int32]
    level_sizes: NDArray[np.int64]
    stats: Stats
    _parents: NDArray[np.int64] | None = field(repr=False)
    # The same search once more, with parents.
    _again: Callable[[], BfsResult] = field(repr=False)

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """Id of each vertex's parent, -1 if it was not reached; sources are their own.

        Where vertices have names, it is the position of the parent's name in ``graph.names``.

        Where the search was not asked for parents, this searches once more.
        """
        return self._again().parents if self._parents is None else self._parents

    @property
    def has_parents(self) -> bool:
        """Whether parents were asked for."""
        return self._parents is not None

    def levels_between(self, first: int, stop: int) -> NDArray[np.int32]:
        """Levels at positions first … stop-1."""
        return self.levels[first:stop]

    def parents_between(self, first: int, stop: int) -> NDArray[np.int64]:
        """Parents at positions first … stop-1, as ids."""
        return self.parents[first:stop]

    @overload
    def level_of(self, vertex: Vertex) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def level_of(self, vertex: Iterable[Vertex]) -> NDArray[np.int32]: ...
    def level_of(self, vertex: Vertex | Iterable[Vertex]) -> int | NDArray[np.int32]:
        """Distance of a vertex from the nearest source, or of each of several; -1: not reached."""
        found = self._levels_of(self._stored.as_ids(vertex))
        return found if are_several(vertex) else int(found[0])

    def _levels_of(self, ids: Ids) -> NDArray[np.int32]:
        """Levels of some ids."""
        found: NDArray[np.int32] = self.levels[self._stored.positions(ids)]
        return found

    def _parents_of(self, ids: Ids) -> Ids:
        """Parents of some ids that were reached; the search was asked for them."""
        assert self._parents is not None
        found: NDArray[np.int64] = self._parents[self._stored.positions(ids)]
        return found.astype(np.uint64)

    def path_to(self, vertex: Vertex) -> list[Any]:
        """Ids, or names, on a shortest path from a source to a vertex, both included.

        Of a search with parents it goes from parent to parent. That works when the graph is closed,
        too, unless ids or names have to be looked up in its file. Without parents, it reads rows.

        Raises
        ------
        QueryError
            If the vertex was not reached, or the graph is closed and needed.
        """
        return paths.path_to(self, vertex)

    def paths_to(self, vertices: Iterable[Vertex]) -> list[list[Any]]:
        """Return ``path_to`` of each of several vertices; an empty list where none is reached."""
        return paths.paths_to(self, vertices)

    def about(self) -> dict[str, str]:
        """Return what the table of this search is about."""
        found = {"sources": self.sources, "reached": self.reached, "depth": self.depth}
        return tables.about(self._stored, **found, engine=self.stats.engine)

    def _columns_between(self, first: int, stop: int) -> tables.Columns:
        ids = self._stored.id_column(first, stop)
        columns: tables.Columns = {"id": ids, "level": self.levels_between(first, stop)}
        if self.has_parents:
            columns["parent"] = self._stored.as_column(self.parents_between(first, stop))
        return columns

    def _reached_between(self, first: int, stop: int) -> NDArray[np.bool_]:
        return self.levels_between(first, stop) >= 0

    @property
    def _values(self) -> NDArray[np.int32]:
        return self.levels

    def _draw(self, path: str | os.PathLike[str] | None, *, force: bool) -> Any:
        from oocbfs.results.plots import plot_levels

        return plot_levels(self, path, force=force)

    @property
    def title(self) -> str:
        """What was searched from where, how, and what was found, in one line."""
        stats = self.stats
        ways = "" if stats.method == "auto" else f", method {stats.method}"
        return (
            f"{file_name(self._stored.path)} from {listed(self.sources)}: {self.reached:,} of "
            f"{self._stored.num_vertices:,} vertices, depth {self.depth:,}, "
            f"{stats.seconds * 1e3:,.1f} ms on the {stats.engine} engine{ways}"
        )

    def _repr_html_(self) -> str:
        from oocbfs.results.notebook import bfs_html

        return bfs_html(self)

    def to_dask(self, chunk: int = 1 << 22) -> Any:
        """Return the levels as a Dask array, aligned as ``levels``, in chunks of some vertices."""
        return tables.to_dask(self.levels, chunk)

    def summary(self) -> dict[str, Any]:
        """Return the figures of the search, for JSON."""
        counts = self.stats.counts
        return {
            "graph": self._stored.path,
            "vertices": self._stored.num_vertices,
            "edges": self._stored.num_edges,
            "arcs": self._stored.num_arcs,
            "source": self.sources[0] if len(self.sources) == 1 else self.sources,
            "reached": self.reached,
            "depth": self.depth,
            "level_sizes": self.level_sizes.tolist(),
            "seconds": self.stats.seconds,
            "compile_seconds": self.stats.compile_seconds,
            "load_seconds": self.stats.load_seconds,
            "search_seconds": self.stats.search_seconds,
            "to_ids_seconds": self.stats.to_ids_seconds,
            "edges_traversed": self.stats.edges_traversed,
            "edges_per_second": self.stats.edges_per_second,
            "nanoseconds_per_edge": self.stats.nanoseconds_per_edge,
            "engine": self.stats.engine,
            "method": self.stats.method,
            "threads": self.stats.threads,
            "fallback": self.stats.fallback,
            "engine_reason": self.stats.engine_reason,
            "slow_bytes": self.stats.slow_bytes,
            "slow_bytes_by_tier": self.stats.slow_bytes_by_tier,
            "link_bytes": self.stats.link_bytes,
            "graph_bytes": self.stats.graph_bytes,
            "counts": None if counts is None else counts.summary(),
            "levels": [level.summary() for level in self.stats.levels],
        }


def listed(ids: list[Any]) -> str:
    """Name a few of many sources."""
    shown = ", ".join(map(str, ids[:3]))
    return shown if len(ids) <= 3 else f"{shown} or {len(ids) - 3} more sources"

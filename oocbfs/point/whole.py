"""Pairs that take a search of the whole graph: what is left over, and all of a sharded graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Ids
from oocbfs.kernels.array_types import I32Array, I64Array, U32Array
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.vertices import Vertex
    from oocbfs.results.bfs import BfsResult

# Fewer sources are searched one after the other.
_ALONE = 8


class WholeSearch:
    """Answers pairs of stored vertices by searches of the whole graph.

    ``ids_of`` gives the ids of stored vertices.
    """

    def __init__(
        self,
        graph: AnyStored,
        settings: Settings,
        ids_of: Callable[[NDArray[np.uint32]], Ids],
    ) -> None:
        if settings.engine == "point":
            settings = replace(settings, engine="auto")
        self._graph, self._settings, self._ids_of = graph, settings, ids_of

    def fill(
        self, sources: U32Array, targets: U32Array, distances: I32Array, wanted: I64Array
    ) -> None:
        """Fill the distances of some pairs, those of one source together."""
        if wanted.size == 0:
            return
        wanted = wanted[np.argsort(sources[wanted], kind="stable")]
        firsts = np.flatnonzero(np.diff(sources[wanted].astype(np.int64), prepend=-1))
        groups = np.split(wanted, firsts[1:])
        if len(groups) < _ALONE:
            for group in groups:
                self._fill_from(int(sources[group[0]]), targets[group], distances, group)
            return
        graph, depth = self._graph, self._settings.max_depth
        # Sources of a graph in one file are on disk if the budget says so.
        on_disk = self._settings.engine == "disk" and not graph.is_sharded
        engine = "auto" if on_disk else self._settings.engine
        found = self._shown._bfs_until_found(
            [self._given(int(sources[group[0]])) for group in groups],
            [self._given_all(targets[group]) for group in groups],
            replace(self._settings, max_depth=None, engine=engine),
        )
        for group, result in zip(groups, found, strict=True):
            assert result.distances is not None
            distances[group] = result.distances
        if depth is not None:
            distances[wanted[distances[wanted] > depth]] = -1

    def _fill_from(
        self,
        source: int,
        targets: NDArray[np.uint32],
        distances: NDArray[np.int32],
        group: NDArray[np.int64],
    ) -> None:
        """Fill the distances from one source."""
        result = self._search(source, int(targets[0]) if targets.size == 1 else None)
        distances[group] = self._levels(result, targets)

    def path(self, source: int, target: int) -> NDArray[np.uint32]:
        """Return a shortest path; an empty one if there is none."""
        result = self._search(source, target)
        known = self._given(target)
        if result.level_of(known) < 0:
            return np.empty(0, np.uint32)
        return self._graph.stored(self._graph.as_ids(result.path_to(known))).astype(np.uint32)

    def levels_up_to(
        self, source: int, target: int
    ) -> tuple[int, Callable[[NDArray[np.uint32]], NDArray[np.int32]]]:
        """Return a distance, and what gives the levels of vertices that are not farther."""
        result = self._search(source, target)
        distance = int(self._levels(result, np.array([target], np.uint32))[0])
        return distance, lambda vertices: self._levels(result, vertices)

    def _levels(self, result: BfsResult, vertices: NDArray[np.uint32]) -> NDArray[np.int32]:
        found: NDArray[np.int32] = result.levels[self._graph.positions(self._ids_of(vertices))]
        return found

    def _search(self, source: int, target: int | None) -> BfsResult:
        """Search the whole graph."""
        settings = self._settings
        if target is not None:
            settings = replace(settings, target=self._given(target))
        result: BfsResult = self._shown.bfs(self._given(source), options=settings)
        return result

    @property
    def _shown(self) -> Any:
        """The graph that users see, which knows how all of it is searched."""
        return self._graph.graph

    def _given(self, stored: int) -> Vertex:
        """Return a stored vertex as users call it."""
        vertex: Vertex = self._given_all(np.array([stored], np.uint32))[0]
        return vertex

    def _given_all(self, stored: NDArray[np.uint32]) -> list[Any]:
        return list(self._graph.given(self._ids_of(stored)).tolist())

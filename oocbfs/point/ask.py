"""What users ask about two vertices: ids become stored vertices, and answers ids again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.point.paths import ShortestPaths, find_all
from oocbfs.point.search import Found, PairSearch
from oocbfs.point.whole import WholeSearch
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.graph.vertices import Vertex

# Questions to one graph that are kept with what was decided for them, and for how many calls: a
# file that was cold may be warm later.
_MOST_KEPT = 4
_CALLS = 256


class PartsSearch:
    """Searches pairs of a sharded graph, each by a search of the whole graph."""

    from_disk = False
    edges = rows = disk_bytes = num_shared = 0

    def __init__(self, graph: AnyStored, settings: Settings) -> None:
        self.num_pairs = self.num_gone_over = 0
        self.whole = WholeSearch(graph, settings, graph.ids_of)

    def one(self, source: int, target: int) -> int:
        """Return the distance of one pair."""
        one, other = (np.array([vertex], np.uint32) for vertex in (source, target))
        return int(self.find(one, other).distances[0])

    def path(self, source: int, target: int) -> NDArray[np.uint32]:
        """Return a shortest path of one pair; an empty one if there is none."""
        self.num_pairs += 1
        self.num_gone_over += 1
        return self.whole.path(source, target)

    def find(
        self, sources: NDArray[np.uint32], targets: NDArray[np.uint32], *, paths: bool = False
    ) -> Found:
        """Return the distances of pairs, and a shortest path of each if they are wanted."""
        self.num_pairs += sources.size
        self.num_gone_over += sources.size
        distances = np.zeros(sources.size, np.int32)
        if not paths:
            self.whole.fill(sources, targets, distances, np.arange(sources.size))
            return Found(distances)
        found = [self.whole.path(*map(int, pair)) for pair in zip(sources, targets, strict=True)]
        sizes = np.array([path.size for path in found], np.int64)
        vertices = np.concatenate([np.empty(0, np.uint32), *found])
        return Found((sizes - 1).astype(np.int32), np.cumsum(sizes), vertices)


class Asking:
    """Puts questions about a few vertices to one graph."""

    def __init__(self, graph: AnyStored, settings: Settings) -> None:
        self.graph, self.settings = graph, settings
        self.calls_left = _CALLS
        # The same may be entered again and again.
        self._reading = graph.reading()
        with self._reading:
            self.search: PairSearch | PartsSearch = (
                PartsSearch(graph, settings)
                if graph.is_sharded
                else PairSearch(cast("StoredGraph", graph), settings)
            )

    def stored(self, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the stored vertices at some positions."""
        if self.graph.is_sharded:
            return self.graph.stored(self.graph.ids_at_positions(positions)).astype(np.uint32)
        lookup = cast("StoredGraph", self.graph).lookup
        return lookup.stored(positions, from_disk=self.search.from_disk).astype(np.uint32)

    def ids_of(self, stored: NDArray[np.uint32]) -> NDArray[Any]:
        """Return stored vertices as users call them."""
        graph = self.graph
        if graph.is_sharded:
            return graph.given(graph.ids_of(stored))
        return graph.given(cast("StoredGraph", graph).lookup.ids_of(stored))

    def distance(self, source: Vertex, target: Vertex) -> int:
        """Return the number of steps from one vertex to another; -1 if there is no path."""
        with self._reading:
            return self.search.one(*self.both(source, target))

    def shortest_path(self, source: Vertex, target: Vertex) -> list[Any] | None:
        """Return the ids on a shortest path, both ends included; None if there is no path."""
        with self._reading:
            found = self.search.path(*self.both(source, target))
            path: list[Any] = self.ids_of(found).tolist() if found.size else []
        return path or None

    def all_shortest_paths(self, source: Vertex, target: Vertex) -> ShortestPaths:
        """Return all shortest paths, as a graph of levels."""
        graph, search = self.graph, self.search
        if isinstance(search, PartsSearch):
            raise QueryError(
                f"{graph.path}: is sharded, and of shards one path is found, not all: ask the "
                "graph that they were cut from"
            )
        with self._reading:
            levels, steps = find_all(search, *self.both(source, target))
            named = [self.ids_of(level) for level in levels]
        return ShortestPaths(graph, source, target, named, steps)

    def both(self, source: Vertex, target: Vertex) -> list[int]:
        """Return two stored vertices."""
        graph = self.graph
        one, other = graph.position_of(source), graph.position_of(target)
        if not graph.is_sharded:
            lookup = cast("StoredGraph", graph).lookup
            if (known := lookup.known_pair(one, other)) is not None:
                return known
        found: list[int] = self.stored(np.array([one, other])).tolist()
        return found


def asking(graph: AnyStored, settings: Settings) -> Asking:
    """Return what was asked with the same settings before, or a new one."""
    kept: tuple[Asking, ...] = graph.kept_questions
    for known in kept:
        # Settings of the same values are nearly always one object.
        is_same = known.settings is settings or known.settings == settings
        if is_same and known.calls_left > 0:
            known.calls_left -= 1
            return known
    new = Asking(graph, settings)
    # Other threads go through those that there were.
    graph.kept_questions = (new, *kept[: _MOST_KEPT - 1])
    return new

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
        with graph.reading():
            self.search: PairSearch | PartsSearch = (
                PartsSearch(graph, settings)
                if graph.is_sharded
                else PairSearch(cast("StoredGraph", graph), settings)
            )

    def is_for(self, settings: Settings) -> bool:
        """Return whether this is kept for questions with these settings."""
        # Settings of the same values are nearly always one object.
        is_same = settings is self.settings or settings == self.settings
        return is_same and self.calls_left > 0

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

    def both(self, source: Vertex, target: Vertex) -> list[int]:
        """Return two stored vertices."""
        graph = self.graph
        one = graph.position_of(graph.one(source))
        other = graph.position_of(graph.one(target))
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
        if known.is_for(settings):
            known.calls_left -= 1
            return known
    new = Asking(graph, settings)
    # Other threads go through those that there were.
    graph.kept_questions = (new, *kept[: _MOST_KEPT - 1])
    return new


def distance(graph: AnyStored, source: Vertex, target: Vertex, settings: Settings) -> int:
    """Return the number of steps from one vertex to another; -1 if there is no path."""
    asked = asking(graph, settings)
    with graph.reading():
        return asked.search.one(*asked.both(source, target))


def shortest_path(
    graph: AnyStored, source: Vertex, target: Vertex, settings: Settings
) -> list[Any] | None:
    """Return the ids on a shortest path, both ends included; None if there is no path."""
    asked = asking(graph, settings)
    with graph.reading():
        ends = np.array(asked.both(source, target), np.uint32)
        found = asked.search.find(ends[:1], ends[1:], paths=True)
        if found.distances[0] < 0:
            return None
        path: list[Any] = asked.ids_of(found.vertices).tolist()
    return path


def all_shortest_paths(
    graph: AnyStored, source: Vertex, target: Vertex, settings: Settings
) -> ShortestPaths:
    """Return all shortest paths, as a graph of levels."""
    if graph.is_sharded:
        raise QueryError(
            f"{graph.path}: is sharded, and of shards one path is found, not all: ask the "
            "graph that they were cut from"
        )
    asked = asking(graph, settings)
    with graph.reading():
        ends = asked.both(source, target)
        levels, steps = find_all(cast("PairSearch", asked.search), *ends)
        named = [asked.ids_of(level) for level in levels]
    return ShortestPaths(graph, source, target, named, steps)

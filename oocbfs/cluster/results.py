"""Levels and parents of a sharded search, as they are found: of some shards, or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays, ResultPool
from oocbfs.cluster.shard import Bitmap, VertexArray
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.bitmaps import DEEP, UNREACHED
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.shards.merge import mark_levels
from oocbfs.kernels.shards.to_ids import levels_to_ids
from oocbfs.results import to_ids
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.stored_shards import StoredShards

_NONE = np.empty(0, np.uint32)


class Results:
    """Levels of so many words of 64 vertices, and parents if these are wanted.

    Levels are bytes as in ``kernels.bfs.state``, and whole numbers only where they must be.
    """

    def __init__(self, levels: NDArray[np.uint8], parents: VertexArray = _NONE) -> None:
        self.levels, self.parents = levels, parents
        self.deep_levels = np.empty(0, np.int32)

    def has_room(self, level: int) -> bool:
        """Return whether a level can be kept; if not, ``deepen`` makes room."""
        return level < DEEP or bool(self.deep_levels.size)

    def deepen(self) -> None:
        """Make room for levels of more than a byte."""
        self.deep_levels = np.empty(self.levels.size, np.int32)

    def clear(self) -> None:
        """Begin: nothing has a level."""
        self.levels[:] = UNREACHED
        self.parents[:] = NO_HEAD

    def start(self, places: VertexArray, sources: VertexArray) -> None:
        """Set the level of sources, which have their places here, to 0."""
        self.levels[places] = 0
        if self.parents.size:
            self.parents[places] = sources

    def reached(self, vertex: int) -> bool:
        """Return whether a vertex has a level."""
        # One without edges may have no place.
        return vertex < self.levels.size and bool(self.levels[vertex] != UNREACHED)

    def add(self, level: int, words: Bitmap, pairs: list[tuple[VertexArray, VertexArray]]) -> None:
        """Keep the level of what is in a full bitmap, and parents."""
        mark_levels(self.levels, self.deep_levels, words[:-1], level)
        if self.parents.size:
            for vertices, parents in pairs:
                self.parents[vertices] = parents


class AllResults(Results):
    """Levels and parents of all shards, by stored vertex; only the first ``most`` can have any.

    What a search takes from a ``pool`` goes back there.
    """

    def __init__(
        self,
        cut: Cut,
        arrays: ResultArrays,
        *,
        parents: bool = False,
        most: int | None = None,
        pool: ResultPool | None = None,
    ) -> None:
        room = np.asarray(arrays.allocate(cut.num_vertices, np.uint32)) if parents else _NONE
        self._arrays, self._num_vertices = arrays, cut.num_vertices
        self._most = cut.num_vertices if most is None else most
        # One more word, which stands for all that have no level for sure.
        size = 64 * Cut(self._most, 1).num_words + 64
        super().__init__(pool.allocate(size, np.uint8) if pool else np.empty(size, np.uint8), room)

    def deepen(self) -> None:
        """Make room for levels of more than a byte, within the budget."""
        self.deep_levels = np.asarray(self._arrays.allocate(self._most, np.int32))

    def fill(
        self,
        out: NDArray[np.int32],
        degrees: NDArray[np.uint32],
        num_arcs: int,
        sizes: list[int],
        stored_at: VertexArray | None = None,
        threads: int = 1,
    ) -> int:
        """Write levels as they are stored or, with the vertices at positions, by position.

        ``sizes`` are those of the levels. Returns the sum of the degrees of what was reached.
        """
        levels = (np.asarray(out), self.levels, self.deep_levels)
        return levels_to_ids(*levels, stored_at, degrees[: self._most], num_arcs, sizes, threads)

    def levels_of(self, vertices: VertexArray) -> NDArray[np.int32]:
        """Return the levels of some stored vertices, -1 of those that were not reached."""
        # The last byte stands for all that have none.
        places = np.minimum(vertices, np.uint32(self.levels.size - 1))
        found = self.levels[places].astype(np.int32)
        if self.deep_levels.size:
            deep = found == DEEP
            found[deep] = self.deep_levels[places[deep]]
        found[self.levels[places] == UNREACHED] = -1
        return found


def fill_levels(
    graph: StoredShards,
    results: AllResults,
    sizes: list[int],
    room: NDArray[np.int32],
    arrays: ResultArrays,
    settings: Settings,
) -> tuple[NDArray[np.int32], int]:
    """Bring all levels into the order of the ids; return them, and the arcs of what was reached.

    ``sizes`` are those of the levels; ``room`` is for as many levels as there are vertices.
    """
    threads = available_threads(settings.threads)
    # A budget has no room for an order of all vertices.
    stored_at = graph.stored_at if settings.memory is None and graph.order is not None else None
    arcs = results.fill(room, graph.stored_degrees, graph.num_arcs, sizes, stored_at, threads)
    if settings.memory is not None and graph.order is not None:
        room = to_ids.levels_to_ids(graph, room, arrays, threads)
    return room, arcs

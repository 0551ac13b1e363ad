"""What an open graph can be asked about what is near: neighbourhoods and subgraphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from oocbfs.graph.open_graph import OpenGraph
from oocbfs.graph.vertices import Vertex, are_several
from oocbfs.settings import Settings

# Results hold on to graphs, and graphs make results.
if TYPE_CHECKING:
    from oocbfs.near.result import Neighborhood
    from oocbfs.near.subgraph import Subgraph


class NearGraph(OpenGraph):
    """The questions to a graph whose answers are near some of its vertices."""

    @abstractmethod
    def _settings(
        self,
        options: Settings | None,
        memory: str | int | None,
        **given: Any,  # noqa: ANN401
    ) -> Settings:
        """Put settings together."""

    @overload
    def has_edge(  # type: ignore[overload-overlap]
        self, source: Vertex, target: Vertex
    ) -> bool: ...
    @overload
    def has_edge(
        self, source: Vertex | Iterable[Vertex], target: Vertex | Iterable[Vertex]
    ) -> NDArray[np.bool_]: ...
    def has_edge(
        self, source: Vertex | Iterable[Vertex], target: Vertex | Iterable[Vertex]
    ) -> bool | NDArray[np.bool_]:
        """Return whether an edge leads from one vertex to another.

        Of several, whether there is one between each pair; of one and several, with each of them.
        """
        from oocbfs.near.edges import has_edges

        found = has_edges(self._stored, source, target, self._settings(None, None))
        return found if are_several(source) or are_several(target) else bool(found[0])

    def neighborhood(
        self,
        seeds: Vertex | Iterable[Vertex],
        depth: int,
        *,
        limit: int | None = None,
        union: bool = False,
        parents: bool = False,
        memory: str | int | None = None,
        threads: int | None = None,
        options: Settings | None = None,
    ) -> Neighborhood:
        """Find who is within some steps of seeds: of each by itself, or of any of them.

        Memory and reads are in proportion to what is touched, and seeds are searched on all cores.
        Iterating gives what is near one seed after the other; ``to_parquet``, and whatever reads
        Arrow streams, take all as one table that need not fit in memory.

        Parameters
        ----------
        seeds
            Ids, or names where the graph has names; one or several.
        depth
            So many steps, along the edges where they have a direction; at least one.
        limit
            At most so many vertices near a seed, itself included: the nearest, and of those that
            are equally near some. ``cut`` tells where that has cut something off.
        union
            Find who is near any of the seeds, each vertex once, with the distance from the nearest.
        parents
            Give the vertex before each on a shortest path, too.
        memory, threads, options
            As for ``bfs``. Rows are read from disk one by one where ``memory`` has no room for the
            file, with ``engine="disk"`` in the options, and from a large file that is not in memory
            yet.

        Raises
        ------
        QueryError
            If an id does not name a vertex, there are no seeds, or the depth is 0.
        FormatError
            If the graph is damaged, or cannot be read any more.
        """
        settings = self._settings(options, memory, threads=threads)
        from oocbfs.near.result import Neighborhood

        return Neighborhood(
            self._stored,
            seeds,
            settings,
            depth=depth,
            limit=limit,
            union=union,
            parents=parents,
        )

    def subgraph(
        self,
        vertices: Iterable[Vertex],
        *,
        memory: str | int | None = None,
        threads: int | None = None,
        options: Settings | None = None,
    ) -> Subgraph:
        """Return the subgraph that some vertices induce: they, and all edges between them.

        ``to_networkx``, ``to_igraph``, ``to_scipy``, ``to_arrow`` and others hand it to other
        programs; ``save`` writes it as a graph file. Ids and names stay what they are. Rows are
        read when edges are asked for, which are then handed on some at a time.

        Parameters
        ----------
        vertices
            Ids, or names where the graph has names; each counts once.
        memory, threads, options
            As for ``neighborhood``.

        Raises
        ------
        QueryError
            If an id does not name a vertex, or there are none.
        """
        settings = self._settings(options, memory, threads=threads)
        from oocbfs.near.subgraph import subgraph

        return subgraph(self._stored, vertices, settings)

    def ego(
        self,
        vertex: Vertex | Iterable[Vertex],
        depth: int = 1,
        *,
        limit: int | None = None,
        memory: str | int | None = None,
        threads: int | None = None,
        options: Settings | None = None,
    ) -> Subgraph:
        """Return the subgraph of all that is within some steps of a vertex, or of any of several.

        Parameters
        ----------
        vertex, depth, limit, memory, threads, options
            As for ``neighborhood``; ``cut`` of what is returned says whether the limit has cut
            something off.
        """
        settings = self._settings(options, memory, threads=threads)
        from oocbfs.near.subgraph import ego

        return ego(self._stored, vertex, depth, limit, settings)

"""What an open graph can be asked about what is near: neighbourhoods and subgraphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from oocbfs.graph.open_graph import OpenGraph
from oocbfs.graph.vertices import Vertex, are_several
from oocbfs.search.keywords import SharedKeywords, spelled_out
from oocbfs.settings import Settings

# Results hold on to graphs, and graphs make results.
if TYPE_CHECKING:
    from oocbfs.near.result import Neighborhood
    from oocbfs.near.subgraph import Subgraph


class NearGraph(OpenGraph):
    """The questions to a graph whose answers are near some of its vertices."""

    @abstractmethod
    def _settings_of(self, kind: type, how: Mapping[str, Any]) -> Settings:
        """Put settings together from keywords of a kind; without any, those of ``open``."""

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
        from oocbfs.near.edges import has_edge, has_edges

        settings = self._settings_of(SharedKeywords, {})
        if are_several(source) or are_several(target):
            return has_edges(self._stored, source, target, settings)
        return has_edge(self._stored, source, target, settings)

    @spelled_out(SharedKeywords)
    def neighborhood(
        self,
        seeds: Vertex | Iterable[Vertex],
        depth: int,
        *,
        limit: int | None = None,
        union: bool = False,
        parents: bool = False,
        **how: Unpack[SharedKeywords],
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
        **how
            ``threads`` is as for ``bfs``, ``memory`` and ``options`` as for ``distance``.

        Raises
        ------
        QueryError
            If an id does not name a vertex, there are no seeds, or the depth is 0.
        FormatError
            If the graph is damaged, or cannot be read any more.
        """
        settings = self._settings_of(SharedKeywords, how)
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

    @spelled_out(SharedKeywords)
    def subgraph(self, vertices: Iterable[Vertex], **how: Unpack[SharedKeywords]) -> Subgraph:
        """Return the subgraph that some vertices induce: they, and all edges between them.

        ``to_networkx``, ``to_igraph``, ``to_scipy``, ``to_arrow`` and others hand it to other
        programs; ``save`` writes it as a graph file. Ids and names stay what they are. Rows are
        read when edges are asked for, which are then handed on some at a time.

        Parameters
        ----------
        vertices
            Ids, or names where the graph has names; each counts once.
        **how
            As for ``neighborhood``.

        Raises
        ------
        QueryError
            If an id does not name a vertex, or there are none.
        """
        from oocbfs.near.subgraph import subgraph

        return subgraph(self._stored, vertices, self._settings_of(SharedKeywords, how))

    @spelled_out(SharedKeywords)
    def ego(
        self,
        vertex: Vertex | Iterable[Vertex],
        depth: int = 1,
        *,
        limit: int | None = None,
        **how: Unpack[SharedKeywords],
    ) -> Subgraph:
        """Return the subgraph of all that is within some steps of a vertex, or of any of several.

        Parameters
        ----------
        vertex, depth, limit, **how
            As for ``neighborhood``; ``cut`` of what is returned says whether the limit has cut
            something off.
        """
        from oocbfs.near.subgraph import ego

        settings = self._settings_of(SharedKeywords, how)
        return ego(self._stored, vertex, depth, limit, settings)

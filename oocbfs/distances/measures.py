"""What a graph is asked about all of its distances; ``AnyGraph`` has these methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError, shown
from oocbfs.graph.open_graph import OpenGraph
from oocbfs.graph.vertices import Vertex
from oocbfs.settings import ManyEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oocbfs.distances.central import By, Central
    from oocbfs.distances.distribution import DistanceDistribution
    from oocbfs.distances.eccentricity import Eccentricities
    from oocbfs.distances.estimates import Estimate
    from oocbfs.distances.intervals import Figure
    from oocbfs.distances.searches import Searches
    from oocbfs.distances.sources import Sources
    from oocbfs.kernels.compiling import Code
    from oocbfs.plan.host import MemoryPlan
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult
    from oocbfs.results.source import SourceResults


class Measures(OpenGraph):
    """Diameter, radius, distances and centralities of a graph, or of a component of it.

    ``component`` is ``"largest"``, ``"all"`` or a vertex, whose component is meant; of a directed
    graph components are the strongly connected ones. With ``"all"``, pairs that do not reach each
    other are left out, and counted apart where pairs are counted. ``engine``, ``memory`` and
    ``threads`` are those of ``bfs_many``.
    """

    @abstractmethod
    def reversed(self) -> Measures:
        """Open the same graph with every edge turned around."""

    @abstractmethod
    def bfs(self, *arguments: Any, **settings: Any) -> BfsResult:
        """Find the distances from one source."""

    @abstractmethod
    def bfs_many(self, *arguments: Any, **settings: Any) -> SourceResults:
        """Find the distances from each of many sources."""

    @abstractmethod
    def _plan_distances(
        self,
        codes: Iterable[Code],
        num_sources: int = 0,
        **how: Any,
    ) -> MemoryPlan:
        """Decide what may be taken beside searches; refuse a budget that is too small."""

    @abstractmethod
    def components(self, *arguments: Any, **settings: Any) -> ComponentsResult:
        """Find the components."""

    def diameter(self, *, component: Vertex = "largest", **how: Any) -> int:
        """Return the largest distance between two vertices, exactly, from few searches."""
        return self._bounded({"diameter"}, component, how).extremes().diameter[0]

    def radius(self, *, component: Vertex = "largest", **how: Any) -> int:
        """Return the smallest eccentricity."""
        return self._bounded({"radius"}, component, how).extremes().radius[1]

    def center(self, *, component: Vertex = "largest", **how: Any) -> NDArray[Any]:
        """Return the vertices of the smallest eccentricity, in ascending order."""
        found = self._bounded({"center"}, component, how)
        return self._called(found.positions_at(found.extremes().radius[1]))

    def eccentricity(self, vertex: Vertex, *, component: Vertex | None = None, **how: Any) -> int:
        """Return the largest distance from a vertex to one of its component, or of another scope.

        Without ``component`` that is its own; with ``"all"`` whatever it reaches.
        """
        with self._searches(vertex if component is None else component, how) as searches:
            position = self._positions([vertex], searches)
            return next(iter(searches.sizes(position))).depth

    def eccentricities(self, *, component: Vertex = "largest", **how: Any) -> NDArray[np.int32]:
        """Return all eccentricities in the order of ``ids()``, -1 outside the component."""
        return self._bounded({"eccentricities"}, component, how).eccentricities()

    def distance_distribution(
        self,
        samples: int | None = 256,
        *,
        seed: int = 1,
        confidence: float = 0.95,
        component: Vertex = "largest",
        **how: Any,
    ) -> DistanceDistribution:
        """Count the pairs at each distance: from so many random sources, or with None from all.

        What is sampled comes with an interval that holds with the confidence.
        """
        from oocbfs.distances.distribution import distribution_of, most_distant

        check_confidence(confidence)
        with self._searches(component, how) as searches:
            found = self._sources(searches, samples, seed)
            most = most_distant(searches, found)
        return distribution_of(self._stored, found, confidence, most)

    def average_distance(self, samples: int | None = 256, **more: Any) -> Figure:
        """Return the mean distance of reachable pairs; see ``distance_distribution``."""
        return self.distance_distribution(samples, **more).average

    def effective_diameter(
        self, share: float = 0.9, samples: int | None = 256, **more: Any
    ) -> Figure:
        """Return within which distance this share of the reachable pairs is."""
        if not 0 < share <= 1:
            raise QueryError(f"share cannot be {shown(share)}: it is above 0 and at most 1")
        return self.distance_distribution(samples, **more).effective_diameter(share)

    def closeness(
        self,
        vertices: Iterable[Vertex],
        *,
        wf_improved: bool = True,
        inward: bool = True,
        component: Vertex = "all",
        **how: Any,
    ) -> NDArray[np.float64]:
        """Return the closeness of vertices, exactly, as networkx defines it.

        With ``wf_improved`` it is scaled by the share of vertices that are reached (Wasserman and
        Faust). Of a directed graph, distances are those *to* a vertex, or with ``inward=False``
        from it.
        """
        return self._central(vertices, inward, component, how).closeness(wf_improved=wf_improved)

    def harmonic(
        self,
        vertices: Iterable[Vertex],
        *,
        inward: bool = True,
        component: Vertex = "all",
        **how: Any,
    ) -> NDArray[np.float64]:
        """Return the sums of 1 / distance of vertices, exactly; see ``closeness``."""
        return self._central(vertices, inward, component, how).harmonic

    def estimated_centralities(
        self,
        samples: int = 256,
        *,
        seed: int = 1,
        confidence: float = 0.95,
        inward: bool = True,
        component: Vertex = "largest",
        **how: Any,
    ) -> dict[str, Estimate]:
        """Estimate closeness and harmonic centrality of all vertices of a component from a sample.

        In the order of ``ids()``, with bounds that hold for all of them at once. Closeness is left
        out with ``component="all"``, unless all reach each other.
        """
        from oocbfs.distances.distribution import most_distant
        from oocbfs.distances.estimates import Estimates
        from oocbfs.distances.sources import Sources, choose

        check_confidence(confidence)
        check_count("samples", samples)
        # Searches *from* the sources tell of distances *to* all others.
        with self._searches(component, how, inward=not inward) as searches:
            estimates = Estimates(searches.scope, searches.threads)
            chosen = choose(searches.scope, samples, seed)
            sources = Sources(searches, chosen, estimates)
            sources.run()
            most = most_distant(searches, sources)
        found = {"harmonic": estimates.harmonic(chosen.size, confidence)}
        closeness = estimates.closeness(chosen.size, confidence, most)
        return found if closeness is None else {"closeness": closeness, **found}

    def top_central(
        self,
        count: int,
        by: By = "harmonic",
        *,
        inward: bool = True,
        component: Vertex = "largest",
        **how: Any,
    ) -> list[Central]:
        """Return the most central vertices, exactly: those with bounds below are never searched.

        Of vertices that are equally central, any may come.
        """
        from oocbfs.distances.central import Top

        check_count("count", count)
        if by not in ("closeness", "harmonic"):
            raise QueryError(f"by cannot be {shown(by)}: it is one of closeness, harmonic")
        with self._searches(component, how, inward=inward) as searches:
            found = Top(searches, count, by)
            found.run()
        return self._named(found.top())

    def _named(self, top: list[tuple[int, float]]) -> list[Central]:
        from oocbfs.distances.central import Central

        called = self._called(np.array([position for position, _ in top], np.int64)).tolist()
        return [Central(vertex, value) for vertex, (_, value) in zip(called, top, strict=True)]

    def _bounded(self, wanted: set[str], component: Vertex, how: dict[str, Any]) -> Eccentricities:
        """Search until what is wanted is certain."""
        from oocbfs.distances.eccentricity import Eccentricities

        with self._searches(component, how) as searches:
            if not searches.scope.num_vertices:
                raise QueryError(f"{self.path}: has no vertex, and so no distances")
            found = Eccentricities(searches, wanted)
            found.run()
        return found

    def _central(
        self, vertices: Iterable[Vertex], inward: bool, component: Vertex, how: dict[str, Any]
    ) -> Sources:
        from oocbfs.distances.sources import Sources

        with self._searches(component, how, inward=inward) as searches:
            found = Sources(searches, self._positions(vertices, searches))
            found.run()
        return found

    def _sources(self, searches: Searches, samples: int | None, seed: int) -> Sources:
        from oocbfs.distances.sources import Sources, choose

        if samples is not None:
            check_count("samples", samples)
        count = searches.scope.num_vertices if samples is None else samples
        found = Sources(searches, choose(searches.scope, count, seed))
        found.run()
        return found

    @contextmanager
    def _searches(
        self, component: Vertex, how: dict[str, Any], *, inward: bool = False
    ) -> Iterator[Searches]:
        """Find the vertices that are meant, and open what searches them."""
        from oocbfs.distances.scope import scope_of
        from oocbfs.distances.searches import Searches

        settings = settings_for(**how)
        scope = scope_of(self, component, **settings)
        with Searches(self, scope, inward=inward, **settings) as searches:
            yield searches

    def _positions(self, vertices: Iterable[Vertex], searches: Searches) -> NDArray[np.int64]:
        """Return the positions of vertices; refuse those outside the component."""
        stored = self._stored
        positions: NDArray[np.int64] = stored.positions(vertices)
        inside = searches.scope.inside
        if inside is not None and not inside[positions].all():
            outside = self._called(positions[~inside[positions]][:1]).tolist()[0]
            raise QueryError(f"{shown(outside)} is not in {searches.scope.text}")
        return positions

    def _called(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return what vertices are called."""
        from oocbfs.distances.searches import ids_at

        called: NDArray[Any] = self._stored.given(ids_at(self, positions))
        return called


def settings_for(
    engine: ManyEngine = "auto", memory: str | int | None = None, threads: int | None = None
) -> dict[str, Any]:
    """Return how searches run, as keywords."""
    return {"engine": engine, "memory": memory, "threads": threads}


def check_count(name: str, value: object) -> None:
    """Refuse what is no number above 0."""
    from oocbfs.settings import check_whole

    check_whole(name, value, range(1, 1 << 63))


def check_confidence(confidence: object) -> None:
    """Refuse what is no share between 0 and 1."""
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise QueryError(f"confidence cannot be {shown(confidence)}: it is between 0 and 1")

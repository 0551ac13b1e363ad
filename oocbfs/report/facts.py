"""What a report says: figures of a graph, its components, and searches from a few sources."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.batch.sources import choose_hubs, choose_random
from oocbfs.progress import Phases
from oocbfs.results.bfs import BfsResult
from oocbfs.results.components import Component, ComponentsResult
from oocbfs.results.panels import SizeClass
from oocbfs.search.graph import Graph
from oocbfs.settings import file_name

if TYPE_CHECKING:
    from oocbfs.distances.distribution import DistanceDistribution

# Components, and vertices of most neighbours, that are named.
_LARGEST = 8
# Sources of the distribution of distances.
_SAMPLES = 256


@dataclass(frozen=True)
class Search:
    """A search, and why it began where it did."""

    source: Any
    why: str
    level_sizes: list[int]
    reached: int
    depth: int
    seconds: float
    load_seconds: float
    engine: str
    threads: int
    slow_bytes: int | None

    @classmethod
    def of(cls, result: BfsResult, why: str) -> Search:
        """Keep the figures of a search; what is as large as the graph is not kept."""
        return cls(
            source=result.sources[0],
            why=why,
            level_sizes=result.level_sizes.tolist(),
            reached=result.reached,
            depth=result.depth,
            seconds=result.stats.seconds,
            load_seconds=result.stats.load_seconds,
            engine=result.stats.engine,
            threads=result.stats.threads,
            slow_bytes=result.stats.slow_bytes,
        )


@dataclass(frozen=True)
class Hub:
    """A vertex of many neighbours, and how central it is: its mean distance to what it reaches."""

    vertex: Any
    degree: int
    reached: int
    average: float
    harmonic: float


@dataclass(frozen=True)
class Facts:
    """All that is shown; ``components`` and ``plan`` are what these verbs print with ``--json``."""

    info: dict[str, Any]
    degrees: dict[str, dict[int, int]]
    components: dict[str, Any]
    sizes: list[SizeClass]
    largest: list[Component]
    searches: list[Search]
    hubs: list[Hub]
    distances: DistanceDistribution | None
    plan: dict[str, Any] | None
    commands: list[str]

    def max_degree(self, name: str) -> int:
        """Return the largest of the degrees that are called so."""
        return max(self.degrees[name], default=0)

    def summary(self) -> dict[str, Any]:
        """Return all figures, for JSON."""
        most = {f"max_{name.replace('-', '_')}": self.max_degree(name) for name in self.degrees}
        return {
            **self.info,
            **most,
            "degrees": {name: list(found.items()) for name, found in self.degrees.items()},
            "components": self.components,
            "searches": [vars(search) for search in self.searches],
            "hubs": [vars(hub) for hub in self.hubs],
            "distances": None if self.distances is None else self.distances.summary(),
            "plan": self.plan,
            "commands": self.commands,
        }


def gather(
    graph: Graph,
    *,
    num_sources: int,
    seed: int,
    plan: dict[str, Any] | None,
    command: str,
    **settings: Any,
) -> Facts:
    """Search the graph; ``settings`` are those of ``Graph.bfs`` that ``components`` takes, too."""
    names = ("out-degree", "in-degree") if graph.directed else ("degree",)
    degrees = {name: graph.degree_histogram(inward=name == "in-degree") for name in names}
    found = graph.components(**settings)
    chosen = _choose_sources(graph, found, num_sources, seed)
    components, sizes = found.summary(), found.size_classes()
    largest = found.largest(_LARGEST)
    del found  # which is as large as the graph
    searches = []
    with Phases()("searches", len(chosen), "search") as bar:
        for source, why in chosen.items():
            searches.append(Search.of(graph.bfs(source, **settings), why))
            bar.update(1)
    hubs, distances = [], None
    if graph.num_vertices:
        threads = settings.get("threads")
        hubs = _hubs(graph, threads)
        distances = graph.distance_distribution(_SAMPLES, seed=seed, threads=threads)
    name = shlex.quote(file_name(graph.path))
    commands = [
        command,
        f"oocbfs info {name}",
        f"oocbfs components {name}",
        f"oocbfs distances {name} --exact none --seed {seed}",
        *(f"oocbfs bfs {name} --source {shlex.quote(str(s.source))}" for s in searches),
    ]
    if plan is not None:
        commands.append(f"oocbfs plan {name} --samples {plan['samples']}")
    return Facts(
        graph.info(),
        degrees,
        components,
        sizes,
        largest,
        searches,
        hubs,
        distances,
        plan,
        commands,
    )


def _hubs(graph: Graph, threads: int | None) -> list[Hub]:
    """Search from the vertices of most neighbours."""
    stored = graph._stored
    with stored.reading():
        chosen = choose_hubs(stored.stored_degrees, min(_LARGEST, graph.num_vertices))
        degrees = stored.stored_degrees[chosen].tolist()
        ids = stored.ids_of(chosen)
    hubs = []
    for degree, found in zip(degrees, graph.bfs_many(ids, threads=threads), strict=True):
        total = int(found.level_sizes @ np.arange(found.level_sizes.size))
        average = total / max(1, found.reached - 1)
        hubs.append(Hub(found.source, degree, found.reached, average, found.harmonic))
    return hubs


def _choose_sources(graph: Graph, found: ComponentsResult, count: int, seed: int) -> dict[Any, str]:
    """Take the first of the largest component, the one of most neighbours, and random ones."""
    chosen: dict[Any, str] = {}
    if found.largest_component is None:
        return chosen
    chosen[found.largest_component.label] = "smallest id of the largest component"
    stored = graph._stored
    with stored.reading():
        (hub,) = stored.given(stored.ids_of(choose_hubs(stored.stored_degrees, 1))).tolist()
        # Two of them may be among those that were chosen already.
        drawn = choose_random(stored.stored_degrees, count, seed, found.in_largest)
        others = stored.given(stored.ids_of(drawn)).tolist()
    chosen.setdefault(hub, "most out-neighbours" if graph.directed else "most neighbours")
    for other in others:
        chosen.setdefault(other, "random, of the largest component")
    return dict(list(chosen.items())[:count])

"""What an ablation runs, and what is known of its graph before any method runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.batch.sources import choose_random
from oocbfs.errors import QueryError
from oocbfs.graph.rows import decode_edges
from oocbfs.graph.stored import open_stored
from oocbfs.kernels.emulator.build import find_compiler
from oocbfs.search import graph as graphs
from oocbfs.settings import Schedule


class Trial(NamedTuple):
    """One method from one source, in every schedule."""

    method: str
    source: int


class Frontiers(NamedTuple):
    """What every method has to do from a source, by level: Merrill's logical frontiers.

    Vertices of the level, edges that leave it, and the vertices that these lead to, each once.
    """

    vertices: NDArray[np.int64]
    edges: NDArray[np.int64]
    distinct: NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """A graph file, methods, the levels that each source must find, and seeds of schedules."""

    path: str
    num_vertices: int
    num_edges: int
    num_arcs: int
    graph_bytes: int
    methods: list[str]
    expected: dict[int, NDArray[np.int32]]
    # Edges that leave what each source reaches: what a search top-down looks at.
    reached_edges: dict[int, int]
    schedules: list[Schedule]

    @property
    def trials(self) -> list[Trial]:
        """Every method from every source."""
        return [Trial(method, source) for method in self.methods for source in self.expected]

    @property
    def num_runs(self) -> int:
        """Searches of each method."""
        return len(self.expected) * len(self.schedules)


def schedule(seed: int) -> Schedule:
    """Return the schedule of a seed; what threads find twice depends on how many run at a time."""
    return replace(Schedule(), seed=seed, resident_blocks=1 + seed % Schedule().blocks)


def prepare(
    path: str, methods: Sequence[str], *, num_sources: int, num_seeds: int, threads: int | None
) -> Plan:
    """Choose sources of the largest component, and find their levels on the CPU."""
    find_compiler()
    with graphs.open_file(path) as graph, graph._stored.reading():
        stored = graph._stored
        whole = graph.components(engine="cpu", threads=threads)
        chosen = choose_random(stored.stored_degrees, num_sources, 1, whole.in_largest)
        if not chosen.size:
            raise QueryError(f"{path}: has no vertex to start from")
        found = {
            source: graph.bfs(source, engine="cpu", threads=threads)
            for source in stored.given(stored.ids_of(chosen)).tolist()
        }
        both_ways = 1 if graph.directed else 2
        return Plan(
            path=path,
            num_vertices=graph.num_vertices,
            num_edges=graph.num_edges,
            num_arcs=graph.num_arcs,
            graph_bytes=stored.sizes.graph_bytes,
            methods=list(methods),
            expected={source: result.levels for source, result in found.items()},
            reached_edges={
                source: both_ways * result.stats.edges_traversed for source, result in found.items()
            },
            schedules=[schedule(seed) for seed in range(1, num_seeds + 1)],
        )


def logical_frontiers(plan: Plan, source: int) -> Frontiers:
    """Count the frontiers of a search from one of the sources."""
    levels = plan.expected[source]
    depth = int(levels.max()) + 1
    edges = np.zeros(depth, np.int64)
    # A vertex may be reached from several levels, from each of which it counts.
    seen = np.empty(0, np.int64)
    with open_stored(plan.path) as graph, graph.reading():
        for sources, targets in decode_edges(graph.rows, graph.order, once=False):
            level = levels[sources].astype(np.int64)
            reached = level >= 0
            edges += np.bincount(level[reached], minlength=depth)
            keys = level[reached] * levels.size + targets[reached].astype(np.int64)
            seen = np.union1d(seen, keys)
    return Frontiers(
        vertices=np.bincount(levels[levels >= 0], minlength=depth),
        edges=edges,
        distinct=np.bincount(seen // levels.size, minlength=depth),
    )

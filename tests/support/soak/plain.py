"""A small graph with its answers, by a few plain lines: what the program's are compared with."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

KINDS = "random", "path", "star", "pieces"


@dataclass(frozen=True)
class PlainGraph:
    """Edges between ids, which are numbers or names."""

    edges: list[tuple[Any, Any]]
    directed: bool

    @cached_property
    def after(self) -> dict[Any, set[Any]]:
        """Neighbours of each vertex; out-neighbours if the graph is directed."""
        found: dict[Any, set[Any]] = {vertex: set() for edge in self.edges for vertex in edge}
        for u, v in self.edges:
            if u != v:
                found[u].add(v)
                if not self.directed:
                    found[v].add(u)
        return found

    def levels(self, sources: Iterable[Any]) -> dict[Any, int]:
        """Distance of each vertex that can be reached from the nearest source."""
        return _search(self.after, sources)

    @cached_property
    def labels(self) -> dict[Any, Any]:
        """The smallest id of each vertex's component, whatever the direction of edges."""
        both = PlainGraph(self.edges, directed=False).after
        labels: dict[Any, Any] = {}
        for vertex in sorted(both):
            if vertex not in labels:
                labels |= dict.fromkeys(_search(both, [vertex]), vertex)
        return labels

    @cached_property
    def distinct(self) -> set[tuple[Any, Any]]:
        """Edges without loops, once, undirected ones with the smaller end first."""
        arcs = {(u, v) for u, ends in self.after.items() for v in ends}
        return arcs if self.directed else {(u, v) for u, v in arcs if u < v}

    def write(self, path: Path) -> None:
        """Write the edges as text."""
        path.write_text("".join(f"{u}\t{v}\n" for u, v in self.edges))


def _search(after: dict[Any, set[Any]], sources: Iterable[Any]) -> dict[Any, int]:
    levels = dict.fromkeys(sources, 0)
    queue = deque(levels)
    while queue:
        vertex = queue.popleft()
        for other in after[vertex]:
            if other not in levels:
                levels[other] = levels[vertex] + 1
                queue.append(other)
    return levels


def draw_graph(rng: random.Random, ids: str) -> PlainGraph:
    """Draw a graph whose ids are ``dense``, ``compact`` or ``names``."""
    size = int(2 ** rng.uniform(1, 12))
    pairs = _pairs(rng, rng.choice(KINDS), size)
    if ids == "names":
        called: Any = [f"{rng.choice('aäzβ')}{rng.randrange(10**9)}-{i}" for i in range(size)]
    elif ids == "compact":
        called = rng.sample(range(10**12), size)
    else:
        first = rng.choice([0, 0, 1, 1000])
        called = range(first, first + size)
    return PlainGraph([(called[u], called[v]) for u, v in pairs], rng.random() < 0.4)


def _pairs(rng: random.Random, kind: str, size: int) -> list[tuple[int, int]]:
    if kind == "path":
        return [(u, u + 1) for u in range(size - 1)]
    if kind == "star":
        hub = rng.randrange(size)
        return [(hub, v) for v in range(size) if v != hub]
    if kind == "pieces":
        return [(v - v % 5, v) for v in range(size)]
    count = size * rng.choice([1, 4, 16])
    return [(rng.randrange(size), rng.randrange(size)) for _ in range(count)]

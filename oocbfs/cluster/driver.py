"""The level loop of a search in parts: choose a direction, let the exchange run it, keep results.

The same for every exchange; under one where every process holds its own part, all run it alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.direction import Directions
from oocbfs.cluster.exchange import Exchange, Found, Step, Traffic
from oocbfs.cluster.shard import Bitmap, VertexArray, full_bitmap
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.shards.merge import mark_levels, set_bits


@dataclass(frozen=True)
class Shape:
    """What the manifest tells of a graph, by which a search is driven.

    Vertices from ``connected`` on have no edges; those from ``useful`` on never lead to another
    vertex, because their only edge is the one by which they were found.
    """

    cut: Cut
    num_edges: int
    connected: int
    useful: int


class Results(Protocol):
    """Where levels and parents of held parts go."""

    def add(self, level: int, found: Found) -> None:
        """Keep the level of what was found, and its parents."""

    def reached(self, vertex: int) -> bool:
        """Tell whether a vertex has a level; under MPI every process must say the same."""


class AllResults:
    """Levels and parents of all parts, by stored vertex."""

    def __init__(self, levels: NDArray[np.int32], parents: VertexArray | None) -> None:
        self.levels, self.parents = levels, parents
        levels[:] = -1
        if parents is not None:
            parents[:] = NO_HEAD

    def start(self, sources: VertexArray) -> None:
        """Give the sources level 0."""
        self.levels[sources] = 0
        if self.parents is not None:
            self.parents[sources] = sources

    def add(self, level: int, found: Found) -> None:
        """Keep the level of what was found, and its parents."""
        mark_levels(self.levels, found.words[:-1], level)
        if self.parents is not None:
            for vertices, parents in found.parents:
                self.parents[vertices] = parents

    def reached(self, vertex: int) -> bool:
        """Tell whether a vertex has a level."""
        return bool(self.levels[vertex] >= 0)


class LevelRecord(NamedTuple):
    """What expanding one level took: its frontier, all shards' work, and the messages."""

    up: bool
    frontier: int
    frontier_edges: int
    edges: int
    heads: int
    tail_bytes: int
    disk_bytes: int
    seconds: float
    traffic: Traffic
    # Edges that each shard looked at.
    by_part: tuple[int, ...]


@dataclass
class Outcome:
    """What a search did: a record a level, and how many vertices each level has."""

    records: list[LevelRecord] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


def traverse(
    exchange: Exchange,
    shape: Shape,
    sources: VertexArray,
    source_edges: int,
    results: Results,
    *,
    parents: bool = False,
    direction: str = "auto",
    max_depth: int | None = None,
    target: int | None = None,
    on_level: Callable[[int, Outcome], object] = lambda level, outcome: None,
) -> Outcome:
    """Search level by level from distinct sources, which ``results`` know already.

    ``source_edges`` are the (out-)degrees of the sources, summed up. ``on_level`` is called before
    every level, and may raise.
    """
    cut = shape.cut
    visited = _beyond(cut, shape.connected)
    frontier = full_bitmap(cut)
    set_bits(frontier, sources)
    visited |= frontier
    useless = _beyond(cut, shape.useful)
    size, edges, level = sources.size, source_edges, 0
    known = Directions(shape.connected, shape.num_edges, num_found=size)
    outcome = Outcome(sizes=[size])
    while size and level != max_depth and not (target is not None and results.reached(target)):
        on_level(level, outcome)
        start = time.perf_counter()
        up = direction == "bottom-up"
        if direction == "auto":
            up = known.prefers_up(size, edges)
        level += 1
        step = Step(level, frontier, visited, parents)
        found = exchange.up(step) if up else exchange.down(step)
        visited |= found.words
        results.add(level, found)
        known.went(up=up, edges=edges, found=found.size, work=found.work)
        outcome.records.append(_record(up, size, edges, found, time.perf_counter() - start))
        if found.size:
            outcome.sizes.append(found.size)
        frontier, size, edges = found.words, found.size, found.edges
        frontier &= ~useless
    return outcome


def _beyond(cut: Cut, first: int) -> Bitmap:
    """Make a full bitmap of all vertices from ``first`` on, and of the bits that are none."""
    words = full_bitmap(cut)
    words[-(-first // 64) : -1] = ~np.uint64(0)
    if first % 64:
        words[first // 64] = ~np.uint64(0) << np.uint64(first % 64)
    return words


def _record(up: bool, size: int, edges: int, found: Found, seconds: float) -> LevelRecord:
    work = found.work
    return LevelRecord(
        up=up,
        frontier=size,
        frontier_edges=edges,
        edges=sum(one.edges for one in work),
        heads=sum(one.heads for one in work),
        tail_bytes=sum(one.tail_bytes for one in work),
        disk_bytes=sum(one.disk_bytes for one in work),
        seconds=seconds,
        traffic=found.traffic,
        by_part=tuple(one.edges for one in work),
    )

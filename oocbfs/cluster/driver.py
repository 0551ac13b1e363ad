"""The level loop of a search in parts: choose a direction, let the exchange run it, keep results.

The same for every exchange; under one where every process holds its own part, all run it alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays
from oocbfs.cluster.exchange import Exchange, Found, Step, Traffic
from oocbfs.cluster.shard import Bitmap, VertexArray, Work, full_bitmap
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.kernels.bfs.levels import HEAD_COST, ROW_COST, TAIL_COST
from oocbfs.kernels.bfs.state import DEEP, UNREACHED
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.shards import merge as kernels
from oocbfs.kernels.shards.messages import count_bits

_NO_RANKS = np.empty(0, np.uint32)


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
    """Levels and parents of all parts, by stored vertex.

    Levels are bytes as in ``kernels.bfs.state``, and whole numbers only where they must be.
    """

    def __init__(self, cut: Cut, parents: VertexArray | None, arrays: ResultArrays) -> None:
        self.parents = parents
        self._arrays, self._num_vertices = arrays, cut.num_vertices
        self._levels = np.full(64 * cut.num_words, UNREACHED, np.uint8)
        self._deep_levels = np.empty(0, np.int32)
        self._num_reached = 0
        if parents is not None:
            parents[:] = NO_HEAD

    def start(self, sources: VertexArray) -> None:
        """Give the sources level 0."""
        self._levels[sources] = 0
        self._num_reached = sources.size
        if self.parents is not None:
            self.parents[sources] = sources

    def add(self, level: int, found: Found) -> None:
        """Keep the level of what was found, and its parents."""
        if level >= DEEP and not self._deep_levels.size:
            allocated = self._arrays.allocate(self._num_vertices, np.int32)
            self._deep_levels = np.asarray(allocated)
        kernels.mark_levels(self._levels, self._deep_levels, found.words[:-1], level)
        self._num_reached += found.size
        if self.parents is not None:
            for vertices, parents in found.parents:
                self.parents[vertices] = parents

    def reached(self, vertex: int) -> bool:
        """Tell whether a vertex has a level."""
        return bool(self._levels[vertex] != UNREACHED)

    def fill(
        self, out: NDArray[np.int32], ranks: VertexArray | None = None, threads: int = 1
    ) -> NDArray[np.int32]:
        """Write levels as they are stored or, with the vertices at positions, by position."""
        levels = (np.asarray(out), self._levels, self._deep_levels)
        over_ranges(
            kernels.name_levels, out.size, threads, *levels, _NO_RANKS if ranks is None else ranks
        )
        return out

    def count_edges(self, degrees: NDArray[np.uint32], num_edges: int, threads: int) -> int:
        """Sum the degrees of what was reached, by those of the others if they are fewer."""
        others = 2 * self._num_reached > self._num_vertices
        num_words = self._levels.size // 64
        sums = over_ranges(kernels.sum_degrees, num_words, threads, self._levels, degrees, others)
        return num_edges - sum(sums) if others else sum(sums)


@dataclass
class Directions:
    """The direction of a level, by the costs of ``kernels.bfs.levels``, from what is known already.

    On one machine a sample of a bottom-up step tells what the first one would cost. Here that would
    be a message, so the first one is taken when the frontier has an eighth of the edges that are
    left.
    """

    num_vertices: int
    unexplored_edges: int
    num_found: int = 0
    # Edges that another step up would look at; None before the first one.
    up_edges: float | None = None

    def prefers_up(self, frontier: int, edges: int) -> bool:
        """Tell whether a frontier with so many vertices and edges is cheaper to find bottom-up."""
        if self.up_edges is not None:
            cost = self.up_edges * TAIL_COST
        else:
            cost = (self.num_vertices - self.num_found) * HEAD_COST
        if edges <= cost / ROW_COST + self.num_vertices // 64:
            return False
        if self.up_edges is not None or self.unexplored_edges <= edges:
            return True
        return edges * 8 > self.unexplored_edges

    def went(self, *, up: bool, edges: int, found: int, work: Sequence[Work]) -> None:
        """Learn from a step: the edges of its frontier, what it found and what it looked at."""
        self.num_found += found
        if not up:
            self.unexplored_edges -= edges
            return
        tested = sum(one.tested for one in work)
        looked = sum(one.edges for one in work)
        self.up_edges = looked / max(1, tested) * (tested - found)


class LevelRecord(NamedTuple):
    """What expanding one level took: its frontier, all shards' work, and the messages.

    ``sent_frontier`` counts the vertices of the frontier that may lead on: no others are sent.
    """

    up: bool
    frontier: int
    frontier_edges: int
    sent_frontier: int
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
    kernels.set_bits(frontier, sources)
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
        seconds = time.perf_counter() - start
        outcome.records.append(_record(step, up, size, edges, found, seconds))
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


def _record(
    step: Step, up: bool, size: int, edges: int, found: Found, seconds: float
) -> LevelRecord:
    work = found.work
    return LevelRecord(
        up=up,
        frontier=size,
        frontier_edges=edges,
        sent_frontier=int(count_bits(step.frontier)),
        edges=sum(one.edges for one in work),
        heads=sum(one.heads for one in work),
        tail_bytes=sum(one.tail_bytes for one in work),
        disk_bytes=sum(one.disk_bytes for one in work),
        seconds=seconds,
        traffic=found.traffic,
        by_part=tuple(one.edges for one in work),
    )

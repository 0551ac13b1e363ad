"""One shard of a graph that can be searched: what every engine for it answers.

A *full* bitmap has a bit for each stored vertex of the whole graph, and one word of zeros more; an
*own* bitmap has the words of one shard. Vertices are stored vertices of the whole graph. A shard
keeps nothing from one call to the next but its rows and scratch; what it returns is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.rows import Rows

Bitmap = NDArray[np.uint64]
VertexArray = NDArray[np.uint32]


class Work(NamedTuple):
    """What a step on a shard looked at, and how long it took there."""

    edges: int = 0
    heads: int = 0
    tested: int = 0
    tail_bytes: int = 0
    disk_bytes: int = 0
    host_bytes: int = 0
    seconds: float = 0.0


def sum_work(work: Iterable[Work]) -> Work:
    """Sum up what steps on one shard looked at."""
    return Work(*map(sum, zip(*work, strict=True)))


class BottomUp(NamedTuple):
    """Own vertices that were not visited and have an in-neighbour in the frontier.

    ``parents`` has one such neighbour for each of them, in their order, if it was asked for.
    """

    found: Bitmap
    parents: VertexArray | None
    work: Work


class TopDown(NamedTuple):
    """Neighbours of an own frontier, in whatever shard, visited or not: a list or a full bitmap.

    A list ascends and names no vertex twice; ``parents`` are beside a list only, if they were asked
    for: who gets a bitmap and wants parents asks the owners by a bottom-up step.
    """

    ids: VertexArray | None
    words: Bitmap | None
    parents: VertexArray | None
    work: Work


class Forest(NamedTuple):
    """Trees that join vertices of all shards: vertices, and the root of each, which is smaller."""

    vertices: VertexArray
    roots: VertexArray
    work: Work


class Shard(Protocol):
    """A shard of a graph on some engine; one call at a time."""

    cut: Cut
    number: int
    path: str
    # Whether all its rows are in memory, so that steps on several shards can be taken together.
    in_memory: bool

    def reading(self) -> AbstractContextManager[object]:
        """Read its file, which may be cut short meanwhile."""

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """Out- and in-rows; the same object if the graph is undirected."""

    def bottom_up(self, frontier: Bitmap, visited: Bitmap, *, parents: bool) -> BottomUp:
        """Find own vertices that are not visited and have an in-neighbour in a full frontier."""

    def top_down(self, frontier: Bitmap, *, parents: bool) -> TopDown:
        """Find the neighbours of an own frontier."""

    def heads(self) -> tuple[VertexArray, ...]:
        """Return the head of each row; those of the in-rows, too, if the graph is directed."""

    def forest(self, largest: Bitmap) -> Forest:
        """Join own vertices outside a full bitmap with all their neighbours."""

    def close(self) -> None:
        """Release everything."""


@dataclass(frozen=True)
class ShardRef:
    """Where a shard is and how to open it, for any process that can read its file.

    ``memory`` is the budget of the process, which holds ``held`` of them. ``checksum`` is that of
    the header of its file, which covers all of it: another file in its place is refused.
    """

    path: str
    number: int
    num_shards: int
    num_vertices: int
    checksum: int
    version: str
    engine: str = "auto"
    threads: int = 1
    memory: int | None = None
    held: int = 1
    # What devices may take, each of which has one shard.
    vram: str | int | None = None
    resident_tails: str | int | None = None


def full_bitmap(cut: Cut) -> Bitmap:
    """Make an empty full bitmap."""
    return np.zeros(cut.num_words + 1, np.uint64)


def bits_from(cut: Cut, first: int) -> Bitmap:
    """Make a full bitmap of all vertices from ``first`` on, and of the bits that are none."""
    words = full_bitmap(cut)
    words[-(-first // 64) : -1] = ~np.uint64(0)
    if first % 64:
        words[first // 64] = ~np.uint64(0) << np.uint64(first % 64)
    return words


def clear_from(words: Bitmap, first: int) -> Bitmap:
    """Clear the bits of a bitmap from ``first`` on, in place."""
    words[-(-first // 64) :] = 0
    if first % 64:
        words[first // 64] &= ~(~np.uint64(0) << np.uint64(first % 64))
    return words

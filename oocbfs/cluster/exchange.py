"""How shards hear of the frontier and how what they find is merged.

The driver (``cluster.driver``) knows only ``Steps``. A *coordinator* (``cluster.coordinator``)
holds frontier, visited and levels of all shards; shards answer tasks that hold all they need, so
that a task can be repeated anywhere. *Peers* each hold what belongs to their own shards
(``cluster.holder``), and all of them drive the same search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np

from oocbfs.cluster.directions import ByEdges, Directions
from oocbfs.cluster.shard import Bitmap, Forest, VertexArray, Work
from oocbfs.formats.container.cut import Cut
from oocbfs.query import Query
from oocbfs.results.levels import Beside

if TYPE_CHECKING:
    from oocbfs.cluster.driver import Outcome
    from oocbfs.cluster.levels import Watch
    from oocbfs.cluster.results import AllResults, Results

Result = TypeVar("Result")


@dataclass(frozen=True)
class Shape:
    """What the manifest tells of a graph, by which a search is driven.

    Vertices from ``non_isolated`` on have no edges; those from ``useful`` on never lead to another
    vertex, because their only edge is the one by which they were found.
    """

    cut: Cut
    num_arcs: int
    non_isolated: int
    useful: int

    def ask(self, query: Query, degrees: VertexArray) -> ShardQuery:
        """Return a query as shards take it."""
        query = query._replace(sources=np.unique(query.sources))
        return ShardQuery(query, self, int(degrees[query.sources].sum(dtype=np.int64)))


class ShardQuery(NamedTuple):
    """A query from distinct sources, whose (out-)degrees are ``source_edges`` in sum."""

    asked: Query
    shape: Shape
    source_edges: int


@dataclass
class Traffic:
    """Bytes of messages of one level as counted, and what they would take as plain bitmaps.

    ``frontier`` are those of the frontier alone, which are among those that were sent, and
    ``vertices`` how many vertices of it were sent: those that may lead on. ``named`` counts, for
    each of several peers, the vertices of others that it found, and told them.
    """

    sent: int = 0
    received: int = 0
    plain: int = 0
    messages: int = 0
    frontier: int = 0
    vertices: int = 0
    named: tuple[int, ...] = ()

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Found(NamedTuple):
    """What a step found, in all shards.

    ``size`` and ``edges`` count vertices and their (out-)edges; many edges are estimated. ``work``
    has an entry for each shard. ``direction`` is how the step went, where it was not as it was
    asked for, and ``beside`` what is known of it besides messages.
    """

    size: int
    edges: int
    work: Sequence[Work]
    traffic: Traffic
    direction: str | None = None
    beside: Beside | None = None


class Steps(ABC):
    """Steps of a search, on the shards of all processes; what the driver takes."""

    # Where bytes come from that are counted.
    tiers: tuple[str, ...] = ("disk", "messages")

    def __init__(self, cut: Cut) -> None:
        self.cut = cut

    def directions(self, query: ShardQuery) -> Directions:
        """Return what decides on the direction of each level."""
        shape = query.shape
        return ByEdges(shape.non_isolated, shape.num_arcs, num_found=query.asked.sources.size)

    @abstractmethod
    def begin(self, query: ShardQuery, results: Results) -> None:
        """Begin a search; ``results`` get levels, and parents if they have room for them."""

    def lead(self, levels: Callable[[], Result]) -> Result:
        """Call what takes steps: once for most searches, and again where results have grown."""
        return levels()

    @abstractmethod
    def bottom_up(self, level: int) -> Found:
        """Let all vertices that are not visited look for the frontier."""

    @abstractmethod
    def top_down(self, level: int) -> Found:
        """Let the frontier look for all vertices that are not visited."""

    def reached(self, vertex: int, results: Results) -> bool:
        """Return whether a vertex has a level; all peers say the same."""
        return results.reached(vertex)


class Exchange(ABC):
    """The shards of a graph, wherever they are; what a sharded graph asks."""

    # What stats call it.
    name: str
    # What a level costs besides computing.
    level_seconds: float = 0.0

    @abstractmethod
    def search(self, query: ShardQuery, results: AllResults, watch: Watch | None) -> Outcome:
        """Search level by level; ``watch`` sees every level begin, and may raise."""

    @abstractmethod
    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Return each shard and the heads of its rows; of the in-rows, too, as another entry."""

    @abstractmethod
    def forests(self, largest: Bitmap) -> Iterable[Forest]:
        """Let every shard join its vertices outside the largest component with their neighbours."""

    def close(self) -> None:  # noqa: B027
        """Release everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

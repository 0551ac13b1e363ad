"""What every reader, generator and source in memory gives to the converter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]


@dataclass(frozen=True)
class Edges:
    """A batch of edges in input ids; ``sources`` and ``targets`` have the same length.

    What a graph with names gives to users has names in them.

    They may be views of what others hold, so nobody writes into them.
    """

    sources: Ids
    targets: Ids


@dataclass(frozen=True)
class NamedEdges:
    """A batch of edges between names: those of edge i are the names 2i and 2i + 1 of the text.

    Name k is the UTF-8 in ``text[starts[k] : starts[k] + lengths[k]]``.
    """

    text: NDArray[np.uint8]
    starts: NDArray[np.uint32]
    lengths: NDArray[np.uint16]

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.starts.size // 2

    def slice(self, first: int, stop: int) -> NamedEdges:
        """Return the edges first … stop-1."""
        return NamedEdges(
            self.text, self.starts[2 * first : 2 * stop], self.lengths[2 * first : 2 * stop]
        )


@dataclass
class Declared:
    """What an input says about itself besides its edges.

    ``directed`` is None if the format does not say. The vertices are declared as a range
    (``first_id``, ``num_vertices``), as a sorted list without duplicates (``vertex_ids``), or not.

    ``is_open`` tells that inputs which follow may still say whether the graph is directed.

    For the report only: ``directed_why`` tells where the direction is from, ``columns`` which of
    more than two columns were taken, and ``dispute`` why inputs that contradict each other have no
    common direction.
    """

    directed: bool | None = None
    first_id: int = 0
    num_vertices: int | None = None
    vertex_ids: Ids | None = None
    is_open: bool = field(default=False, compare=False)
    directed_why: str = field(default="", compare=False)
    columns: str = field(default="", compare=False)
    dispute: str = field(default="", compare=False)


class EdgeStream(Protocol):
    """A source of edges that is read once, from beginning to end.

    ``declared`` is complete only when ``batches`` is exhausted; with the first batch it says
    whether the graph is directed, unless it is open. Progress is counted in ``unit``:
    ``total`` is None if it is unknown, ``done`` may be read at any time.
    """

    name: str
    declared: Declared
    unit: str
    total: int | None
    done: int

    def batches(self) -> Iterator[Edges]:
        """Yield the edges in input order, at most a few hundred thousand in each batch."""
        ...


class NamedEdgeStream(Protocol):
    """A source of edges between names, otherwise like an ``EdgeStream``."""

    name: str
    declared: Declared
    unit: str
    total: int | None
    done: int

    def named_batches(self) -> Iterator[NamedEdges]:
        """Yield the edges in input order, at most a few hundred thousand in each batch."""
        ...

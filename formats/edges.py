"""What every reader, generator and in-memory source hands to the converter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]


@dataclass(frozen=True)
class Edges:
    """A batch of edges in input ids; ``sources`` and ``targets`` have the same length."""

    sources: Ids
    targets: Ids


@dataclass
class Declared:
    """What an input says about itself besides its edges.

    ``directed`` is None where the format does not say. The vertex set is declared either as a range
    (``first_id``, ``num_vertices``) or as a list (``vertex_ids``, sorted and distinct), or not at all.
    """

    directed: bool | None = None
    first_id: int = 0
    num_vertices: int | None = None
    vertex_ids: Ids | None = None


class EdgeStream(Protocol):
    """A source of edges that is read once, from front to back.

    ``declared`` is complete only when ``batches`` is exhausted. Progress is counted in whatever unit
    fits the source: ``total`` is None where it is unknown, ``done`` may be read at any time.
    """

    name: str
    declared: Declared
    unit: str
    total: int | None
    done: int

    def batches(self) -> Iterator[Edges]:
        """Yield the edges in input order, at most a few hundred thousand in each batch."""
        ...

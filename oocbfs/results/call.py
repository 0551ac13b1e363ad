"""What all results have in common: the graph, what was reached, and how the call went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.open_graph import OpenGraph


class OfGraph:
    """Base of what was found in a graph."""

    _stored: AnyStored

    @property
    def graph(self) -> OpenGraph:
        """The graph that this was found in."""
        return self._stored.graph


class LevelResult(OfGraph):
    """Base of what a search reached, level by level."""

    level_sizes: NDArray[np.int64]

    @property
    def reached(self) -> int:
        """Number of vertices reached, the sources included."""
        return int(self.level_sizes.sum())

    @property
    def depth(self) -> int:
        """Level of the farthest vertex reached."""
        return len(self.level_sizes) - 1


@dataclass(frozen=True)
class CallStats:
    """How a call went; ``seconds`` is the whole of it, but for compiling.

    Its parts are ``load_seconds`` (what there was to load first), ``search_seconds`` (searching)
    and ``to_ids_seconds`` (to ids). Kernels are compiled once on a machine: ``compile_seconds`` are
    what that took besides. ``fallback`` says why the GPU was not used, where one was expected, and
    ``engine_reason`` why ``auto`` read from disk.
    """

    engine: str
    threads: int
    seconds: float
    load_seconds: float
    search_seconds: float
    to_ids_seconds: float
    slow_bytes_by_tier: dict[str, int] = field(default_factory=dict, kw_only=True)
    fallback: str | None = field(default=None, kw_only=True)
    engine_reason: str | None = field(default=None, kw_only=True)
    compile_seconds: float = field(default=0.0, kw_only=True)

    @property
    def slow_bytes(self) -> int | None:
        """Bytes that came from disk or host memory; None where they are not counted."""
        return sum(self.slow_bytes_by_tier.values()) if self.slow_bytes_by_tier else None

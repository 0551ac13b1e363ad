"""Results of searches that stay as they were found, until somebody wants all numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.results.bfs import BfsResult, Stats

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored


class LaterResult(BfsResult):
    """Base of results whose ``levels`` and ``parents`` of all are made once they are asked for."""

    _found: Any

    def __init__(
        self,
        stored: AnyStored,
        sources: list[Any],
        found: object,
        level_sizes: NDArray[np.int64],
        stats: Stats,
        again: Callable[[], BfsResult],
    ) -> None:
        values = {"_stored": stored, "sources": sources, "level_sizes": level_sizes, "stats": stats}
        for name, value in {**values, "_found": found, "_again": again}.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a result whose levels are gathered: what was found stays where it is."""
        values = (self._stored, self.sources, self.levels, self.level_sizes, self.stats)
        return BfsResult, (*values, self._parents, self._again)

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """Level of each vertex, aligned with the ids in ascending order."""
        return self.levels_between(0, self._stored.num_vertices)

    @property
    @abstractmethod
    def has_parents(self) -> bool:
        """Whether parents were asked for."""

    @property
    def _parents(self) -> NDArray[np.int64] | None:
        return self.parents if self.has_parents else None

    @abstractmethod
    def levels_between(self, first: int, stop: int) -> NDArray[np.int32]:
        """Levels at positions first … stop-1."""

"""What is asked of an engine, where its results go, and what it did; see ``engines.base``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays
from oocbfs.plan.host import MemoryPlan
from oocbfs.results.counts import Counts
from oocbfs.results.levels import Beside
from oocbfs.settings import Direction


class Query(NamedTuple):
    """What is asked, in stored vertices; ``parents`` says whether these are wanted, too."""

    sources: NDArray[np.uint32]
    parents: bool = False
    direction: Direction = "auto"
    max_depth: int | None = None
    target: int | None = None


@dataclass
class Output:
    """Where levels and parents of stored vertices go, each allocated when it is first used.

    An engine may bring them into the order of ids itself, and returns them as ``ById``.
    """

    num_vertices: int
    memory_plan: MemoryPlan
    threads: int
    with_parents: bool

    @property
    def arrays(self) -> ResultArrays:
        """Memory for results, or mapped files."""
        return self.memory_plan.arrays

    @cached_property
    def room(self) -> NDArray[np.int32]:
        """The array of the levels, as it was allocated: in memory, or in a mapped file."""
        return self.arrays.allocate(self.num_vertices, np.int32)

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """The same as a plain array; kernels know no other."""
        return np.asarray(self.room)

    @cached_property
    def parents(self) -> NDArray[np.uint32] | None:
        """The array for parents, if they are wanted."""
        if not self.with_parents:
            return None
        return np.asarray(self.arrays.allocate(self.num_vertices, np.uint32))


class Reached(NamedTuple):
    """How many vertices each level has, and how many arcs they have in all."""

    sizes: NDArray[np.int64]
    arcs: int


class ById(NamedTuple):
    """Results in the order of ids, what was reached, and how long it took to bring them there.

    Shards may leave levels and parents where they are; ``levels`` is None then.
    """

    levels: NDArray[np.int32] | None
    parents: NDArray[np.int64] | None
    reached: Reached
    seconds: float


class Run(NamedTuple):
    """What an engine did, besides filling levels and parents; ``seconds`` are its own.

    ``depth`` is how many levels were expanded; ``records`` are rows of ``LEVEL_RECORD``, with what
    some engines know ``beside`` them. ``reached`` is for engines that know it, but leave it to
    others to bring results into the order of ids.
    """

    engine: str
    threads: int
    depth: int
    seconds: float
    records: NDArray[np.void]
    slow_bytes_by_tier: dict[str, int]
    beside: Sequence[Beside] = ()
    by_id: ById | None = None
    reached: Reached | None = None
    # What a device counted before the first level and after the last.
    around: Counts | None = None
    # What is not as it was planned.
    note: str | None = None
    # What shards found, where nobody gathered it.
    kept: Any = None

"""Edges as they were read, in input ids, waiting until all ids are known."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Edges
from oocbfs.spill import BlockLog

_LOW32 = np.uint64(0xFFFFFFFF)


class EdgeLog:
    """Batches of edges, 8 bytes each where both ids are below 2^32 and 16 where not."""

    def __init__(self, folder: str | os.PathLike[str], budget_bytes: int) -> None:
        self._log = BlockLog(folder, budget_bytes)
        self._wide: list[bool] = []
        self.num_edges = 0

    def append(self, edges: Edges) -> None:
        """Add a batch."""
        wide = bool(edges.sources.size) and bool(
            (edges.sources.max() > _LOW32) or (edges.targets.max() > _LOW32)
        )
        self._wide.append(wide)
        self._log.append(
            np.concatenate((edges.sources, edges.targets))
            if wide
            else edges.sources << np.uint64(32) | edges.targets
        )
        self.num_edges += edges.sources.size

    def __len__(self) -> int:
        return len(self._wide)

    def take(self, index: int, *, keep: bool = False) -> Edges:
        """Read a batch, and unless it is to be kept, release its memory."""
        block: NDArray[np.uint64] = self._log.take(index, keep=keep)
        if self._wide[index]:
            half = block.size // 2
            return Edges(block[:half], block[half:])
        return Edges(block >> np.uint64(32), block & _LOW32)

    def sample(self, num_edges: int) -> Edges:
        """Read about so many edges, spread evenly over the batches in at most 64 of them."""
        indices = range(0, len(self), max(1, len(self) // 64))
        per_batch = max(1, num_edges // max(1, len(indices)))
        batches = [self.take(index, keep=True) for index in indices]
        strides = [max(1, batch.sources.size // per_batch) for batch in batches]
        empty = np.empty(0, np.uint64)
        return Edges(
            np.concatenate(
                [empty, *(b.sources[::s] for b, s in zip(batches, strides, strict=True))]
            ),
            np.concatenate(
                [empty, *(b.targets[::s] for b, s in zip(batches, strides, strict=True))]
            ),
        )

    @property
    def resident_bytes(self) -> int:
        """Bytes held in memory."""
        return self._log.resident_bytes

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._log.spilled_bytes

    def close(self) -> None:
        """Give memory and disk space back."""
        self._log.close()

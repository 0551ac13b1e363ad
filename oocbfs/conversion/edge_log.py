"""Edges as they were read, in input ids, waiting until all ids are known."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.spill import BlockLog
from oocbfs.formats.edges import Edges, Ids
from oocbfs.kernels.convert import ids as kernels

_LOW32 = np.uint64(0xFFFFFFFF)
# Edges in a batch: larger pieces of input are cut, smaller ones put together.
_BATCH_EDGES = 1 << 18


class EdgeLog:
    """Batches of edges, 8 bytes each where both ids are below 2^32 and 16 where not."""

    def __init__(self, folder: str | os.PathLike[str], budget_bytes: int) -> None:
        self._log = BlockLog(folder, budget_bytes)
        self._wide: list[bool] = []
        # The batch that is being put together: one row of both ends, or a row for each end.
        self._pieces: list[NDArray[np.uint64]] = []
        self._size = 0
        self.num_edges = 0

    def append(self, edges: Edges) -> None:
        """Add edges."""
        for first in range(0, edges.sources.size, _BATCH_EDGES):
            chunk = slice(first, first + _BATCH_EDGES)
            piece = _packed(edges.sources[chunk], edges.targets[chunk])
            full = self._size + piece.shape[1] > _BATCH_EDGES
            if full or (self._pieces and self._pieces[0].shape[0] != piece.shape[0]):
                self.finish()
            self._pieces.append(piece)
            self._size += piece.shape[1]
        self.num_edges += edges.sources.size

    def finish(self) -> None:
        """Close the last batch, so that all can be taken."""
        if self._pieces:
            self._wide.append(self._pieces[0].shape[0] == 2)
            alone = len(self._pieces) == 1
            whole = self._pieces[0] if alone else np.concatenate(self._pieces, axis=1)
            self._log.append(whole.reshape(-1))
            self._pieces, self._size = [], 0

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
        """Read about ``num_edges`` edges, spread evenly over at most 64 of the batches."""
        indices = range(0, len(self), max(1, len(self) // 64))
        per_batch = max(1, num_edges // max(1, len(indices)))
        sources, targets = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for index in indices:
            batch = self.take(index, keep=True)
            stride = max(1, batch.sources.size // per_batch)
            # Copies, because a view keeps the whole batch in memory.
            sources.append(batch.sources[::stride].copy())
            targets.append(batch.targets[::stride].copy())
        return Edges(np.concatenate(sources), np.concatenate(targets))

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._log.spilled_bytes

    def close(self) -> None:
        """Release memory and disk space."""
        self._log.close()


def _packed(sources: Ids, targets: Ids) -> NDArray[np.uint64]:
    """Both ends of each edge in one row where they fit, and in two where not."""
    packed = np.empty((1, sources.size), np.uint64)
    if kernels.pack_ids(packed[0], sources, targets):
        return packed
    return np.stack((sources, targets))

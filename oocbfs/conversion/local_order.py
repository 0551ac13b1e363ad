"""The local order of a graph's vertices, made in bounded memory.

The neighbours of all vertices wait, sorted, in a temporary file that is mapped. Clusters grow along
it, and its pages are given back from time to time.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.spill import SpillFile
from oocbfs.kernels.convert import cluster

# Vertices in a cluster; 256 to 4,096 make no difference to a search.
_CLUSTER = 512
# Rows after which pages are given back; the kernel maps up to 16 pages around one.
_ROWS_PER_RELEASE = 1024


class LocalOrder:
    """Takes the arcs of a graph, both ways, sorted, and orders its vertices."""

    def __init__(self, folder: str | os.PathLike[str], num_vertices: int, column_bits: int) -> None:
        self._neighbours = SpillFile(folder)
        self._ends = np.zeros(num_vertices, np.uint64)
        self._column_bits = column_bits

    def close(self) -> None:
        """Release the disk space."""
        self._neighbours.close()

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._neighbours.size

    def add(self, arcs: NDArray[np.uint64]) -> None:
        """Append arcs that follow the ones before."""
        neighbours = np.empty(arcs.size, np.uint32)
        cluster.split_arcs(neighbours, self._ends, arcs, self._column_bits)
        self._neighbours.append(neighbours)

    def stored_at(self) -> NDArray[np.uint32]:
        """Position of each vertex in the local order."""
        np.cumsum(self._ends, out=self._ends)
        stored_at = np.full(self._ends.size, cluster.NOWHERE, np.uint32)
        placed = np.empty_like(stored_at)
        progress = np.zeros(cluster.PROGRESS_WORDS, np.int64)
        with self._neighbours.mapped(np.uint32) as (neighbours, release):
            while progress[cluster.COUNT] < stored_at.size:
                cluster.grow(
                    stored_at, placed, progress, neighbours, self._ends, _CLUSTER, _ROWS_PER_RELEASE
                )
                release()
        return stored_at

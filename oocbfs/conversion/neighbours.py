"""The neighbours of all vertices, both ways, for orders that need the edges.

They wait, row by row, in a temporary file, however large the graph is.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oocbfs.conversion.spill import SpillFile
from oocbfs.kernels.convert import cluster


class Neighbours:
    """Takes the arcs of a graph, both ways, sorted; ``lengths`` are then those of the rows."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        num_vertices: int,
        column_bits: int,
        lengths: DTypeLike,
    ) -> None:
        self._file = SpillFile(folder)
        self.lengths: NDArray[Any] = np.zeros(num_vertices, lengths)
        self._column_bits = column_bits

    def close(self) -> None:
        """Release the disk space."""
        self._file.close()

    @property
    def num_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._file.size

    def add(self, arcs: NDArray[np.uint64]) -> None:
        """Append arcs that follow the ones before."""
        neighbours = np.empty(arcs.size, np.uint32)
        cluster.split_arcs(neighbours, self.lengths, arcs, self._column_bits)
        self._file.append(neighbours)

    def read(self, first: int, stop: int) -> NDArray[np.uint32]:
        """Return some of them, counted over all rows."""
        neighbours = np.empty(stop - first, np.uint32)
        self._file.read_into(neighbours, 4 * first)
        return neighbours

    def mapped(self) -> AbstractContextManager[tuple[NDArray[np.uint32], Any]]:
        """Map all of them; also gives a function that releases their pages."""
        return self._file.mapped(np.uint32)

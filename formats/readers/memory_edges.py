"""Edges that are in memory already: numpy arrays and SciPy sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges

_BATCH_EDGES = 1 << 18


class MemoryEdges:
    """An edge stream over a pair of integer arrays, an (m, 2) array or a SciPy sparse matrix."""

    name = "memory"
    unit = "edge"

    def __init__(self, edges: Any) -> None:  # noqa: ANN401
        self.declared = Declared()
        if hasattr(edges, "tocoo"):
            matrix = edges.tocoo()
            rows, columns = matrix.shape
            if rows != columns:
                raise InputError(f"a matrix of {rows} × {columns} is not square: not a graph")
            self._sources, self._targets = matrix.row, matrix.col
            self.declared.num_vertices = rows
        elif isinstance(edges, tuple) and len(edges) == 2:
            self._sources, self._targets = map(np.asarray, edges)
        else:
            array = np.asarray(edges)
            if array.ndim != 2 or array.shape[1] != 2:
                raise InputError(
                    f"an array of shape {array.shape} is not a list of edges: give (m, 2), a pair "
                    "of arrays, or a sparse matrix"
                )
            self._sources, self._targets = array[:, 0], array[:, 1]
        for ends in (self._sources, self._targets):
            if ends.ndim != 1 or ends.size != self._sources.size:
                raise InputError("sources and targets must be two flat arrays of the same length")
            if ends.dtype.kind not in "iu" and ends.size:
                raise InputError(f"vertex ids must be integers, not {ends.dtype}")
            if ends.dtype.kind == "i" and ends.size and ends.min() < 0:
                raise InputError(f"vertex ids cannot be negative: {ends.min()}")
        self.total: int | None = self._sources.size
        self.done = 0

    def batches(self) -> Iterator[Edges]:
        """Yield the edges in order."""
        for first in range(0, self._sources.size, _BATCH_EDGES):
            part = slice(first, first + _BATCH_EDGES)
            yield Edges(_as_ids(self._sources[part]), _as_ids(self._targets[part]))
            self.done = min(first + _BATCH_EDGES, self._sources.size)


def _as_ids(values: NDArray[Any]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(values, dtype=np.uint64)

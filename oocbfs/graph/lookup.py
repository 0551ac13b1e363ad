"""From ids to stored vertices and back for a few vertices, without arrays as large as the graph.

A file tells the position of each stored vertex, not the other way. Who asks for a few vertices gets
them by a pass over that order; who goes on asking gets it turned around, if there is memory: when
as much was spent on passes as that takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Encoding, Kind
from oocbfs.formats.edges import Ids

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# Turning an order around takes as long as so many passes over it: 21 ms and 1.4 ms for 4 million.
_PASSES = 15
_PIECE_BYTES = 4 << 20
_NO_BITS = np.empty(0, np.uint64)
# Orders of fewer vertices are turned around at once.
_SMALL = 1 << 16


class Lookup:
    """Finds vertices of one graph; whoever asks reads the file inside ``graph.reading()``."""

    def __init__(self, graph: StoredGraph) -> None:
        self._graph = graph
        self._is_reordered = graph.is_reordered
        self._num_passes = 0

    def known_pair(self, one: int, other: int) -> list[int] | None:
        """Return the stored vertices at two natural positions, if that takes no search.

        What ``stored`` does gives the same, and takes longer.
        """
        if not self._is_reordered:
            return [one, other]
        stored_at: NDArray[np.uint32] | None = self._graph.__dict__.get("stored_at")
        return None if stored_at is None else [int(stored_at[one]), int(stored_at[other])]

    def stored(self, positions: NDArray[np.int64], *, from_disk: bool = False) -> NDArray[np.int64]:
        """Return the stored vertices at natural positions.

        ``from_disk`` reads the order and maps nothing.
        """
        graph = self._graph
        if not self._is_reordered or positions.size == 0:
            return positions
        stored_at: NDArray[np.uint32] | None = graph.__dict__.get("stored_at")
        if stored_at is None and self._may_turn(from_disk):
            stored_at = graph.stored_at
        if stored_at is not None:
            return stored_at[positions].astype(np.int64)
        self._num_passes += 1
        return self._pass(positions, from_disk)

    def _may_turn(self, from_disk: bool) -> bool:
        """Return whether the order should be turned around, which stays in memory."""
        graph = self._graph
        if self._num_passes < _PASSES and graph.num_vertices > _SMALL:
            return False
        if graph.budget_bytes is None:
            return not from_disk or 8 * graph.num_vertices <= memory.available_bytes()
        # The order itself is mapped meanwhile.
        return memory.used_bytes() + 16 * graph.num_vertices <= graph.budget_bytes

    def _pass(self, positions: NDArray[np.int64], from_disk: bool) -> NDArray[np.int64]:
        """Find vertices by one pass over the order."""
        from oocbfs.kernels.point.lookup import find_positions

        wanted, inverse = np.unique(positions, return_inverse=True)
        bits = _NO_BITS
        if wanted.size > 2:
            bits = np.zeros((int(wanted[-1]) >> 6) + 1, np.uint64)
            masks = np.uint64(1) << (wanted & 63).astype(np.uint64)
            np.bitwise_or.at(bits, wanted >> 6, masks)
        stored = np.zeros(wanted.size, np.int64)
        num_found, first = 0, 0
        for piece in self._pieces(from_disk):
            num_found += find_positions(stored, piece, first, wanted, bits)
            first += piece.size
        if num_found != wanted.size:
            raise self._damaged()
        found: NDArray[np.int64] = stored[inverse]
        return found

    def _pieces(self, from_disk: bool) -> Iterator[NDArray[np.uint32]]:
        """Yield the order, all of it or a piece at a time."""
        container = self._graph._container
        record = container.sections[Kind.ORDER]
        if not from_disk or int(record["encoding"]) != Encoding.RAW:
            yield container.section(Kind.ORDER)
            return
        begin, size = int(record["offset"]), int(record["raw_bytes"])
        buffer = np.empty(min(_PIECE_BYTES, size), np.uint8)
        for offset in range(0, size, _PIECE_BYTES):
            piece = buffer[: min(_PIECE_BYTES, size - offset)]
            done = 0
            while done < piece.size:
                descriptor = container.file.descriptor
                count = os.preadv(descriptor, [piece[done:].data], begin + offset + done)
                if count == 0:
                    raise self._damaged()
                done += count
            yield piece.view(np.uint32)

    def positions_of(self, stored: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the natural positions of stored vertices."""
        graph = self._graph
        if not self._is_reordered:
            return stored.astype(np.int64)
        natural = graph._container.section(Kind.ORDER)[stored]
        if natural.size and int(natural.max()) >= graph.num_vertices:
            raise self._damaged()
        found: NDArray[np.int64] = natural.astype(np.int64)
        return found

    def ids_of(self, stored: NDArray[np.uint32]) -> Ids:
        """Return the ids of stored vertices; where vertices have names, their positions."""
        return self._graph.ids_at_positions(self.positions_of(stored))

    def _damaged(self) -> FormatError:
        return FormatError(f"{self._graph.path}: the vertex order is damaged: run 'oocbfs verify'")

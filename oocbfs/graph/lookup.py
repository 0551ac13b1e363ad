"""From ids to stored vertices and back for a few vertices, without arrays as large as the graph.

A file tells the position of each stored vertex, not the other way. Who asks for a few vertices gets
them by a pass over that order; who goes on asking gets it turned around, if there is memory: when
as much was spent on passes as that takes. If there is less, 256 equal *parts* of the order have
numbers, and a byte for each position says in which of them it is: a pass goes over that part alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Encoding, Kind
from oocbfs.formats.edges import Ids
from oocbfs.kernels.constants import FRAME_BYTES
from oocbfs.kernels.threads import renewed_after_fork

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# Turning an order around takes as long as so many passes over it: 21 ms and 1.4 ms for 4 million.
# One that is in frames is unpacked in each pass, which takes as long.
_PASSES, _FRAMED_PASSES = 15, 2
# To find the part of each position takes as long as so many.
_PASSES_FOR_PARTS = 8
_NUM_PARTS = 1 << 8
# Of what a budget leaves, parts take at most this share.
_PARTS_SHARE = 3 / 4
_NO_BITS = np.empty(0, np.uint64)
# Orders of fewer vertices are turned around at once.
_SMALL = 1 << 16


class Lookup:
    """Finds vertices of one graph; whoever asks reads the file inside ``graph.reading()``."""

    def __init__(self, graph: StoredGraph) -> None:
        self._graph = graph
        self._is_reordered = graph.is_reordered
        self._num_passes = 0
        self._part_size = max(1, 1 << ((graph.num_vertices - 1) // _NUM_PARTS).bit_length())
        self._most_passes = _PASSES
        if self._is_reordered and graph._container.is_framed(Kind.ORDER):
            self._part_size = max(self._part_size, FRAME_BYTES // 4)
            self._most_passes = _FRAMED_PASSES
        self._most_for_parts = min(self._most_passes, _PASSES_FOR_PARTS)
        self._part_of: NDArray[np.uint8] | None = None
        self._numbering = renewed_after_fork(threading.Lock())

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
        if self._part_of is None and self._may_number():
            self._number_parts(from_disk)
        return self._pass(positions, from_disk)

    def parts_bytes(self, free_bytes: int) -> int:
        """Return how much of the memory that a budget leaves is kept free for parts."""
        num_bytes = self._graph.num_vertices
        is_wanted = self._is_reordered and self._part_of is None and num_bytes > _SMALL
        return num_bytes if is_wanted and num_bytes <= free_bytes * _PARTS_SHARE else 0

    def _may_number(self) -> bool:
        """Return whether it is time to find the part of each position, and there is room."""
        budget_bytes = self._graph.budget_bytes
        if self._num_passes < self._most_for_parts or budget_bytes is None:
            return False
        return self.parts_bytes(budget_bytes - memory.used_bytes()) > 0

    def _number_parts(self, from_disk: bool) -> None:
        """Find the part of each position, unless another thread does."""
        if not self._numbering.acquire(blocking=False):
            return
        try:
            part_of = np.empty(self._graph.num_vertices, np.uint8)
            for number, part in self._parts(range(_NUM_PARTS), from_disk):
                self._check(part)
                part_of[part] = number
            self._part_of = part_of
        finally:
            self._numbering.release()

    def _may_turn(self, from_disk: bool) -> bool:
        """Return whether the order should be turned around, which stays in memory."""
        graph = self._graph
        if self._num_passes < self._most_passes and graph.num_vertices > _SMALL:
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
        part_of, num_found = self._part_of, 0
        numbers = range(_NUM_PARTS) if part_of is None else np.unique(part_of[wanted]).tolist()
        for number, part in self._parts(numbers, from_disk):
            num_found += find_positions(stored, part, number * self._part_size, wanted, bits)
        if num_found != wanted.size:
            raise self._damaged()
        found: NDArray[np.int64] = stored[inverse]
        return found

    def _parts(
        self, numbers: Iterable[int], from_disk: bool
    ) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """Yield some parts of the order, each with its number; empty ones are left out."""
        container, size = self._graph._container, self._part_size
        record = container.sections[Kind.ORDER]
        # What is in frames is unpacked part by part; an archive has no other way than all at once.
        is_read = from_disk and int(record["encoding"]) == Encoding.RAW
        buffer = np.empty(size if is_read else 0, np.uint32)
        for number in numbers:
            first, stop = number * size, min((number + 1) * size, self._graph.num_vertices)
            if first >= stop:
                continue
            if is_read:
                self._read(buffer[: stop - first], int(record["offset"]) + 4 * first)
                yield number, buffer[: stop - first]
            else:
                yield number, container.part(Kind.ORDER, first, stop)

    def _read(self, part: NDArray[np.uint32], offset: int) -> None:
        """Read a part of the order from the file."""
        content, done = part.view(np.uint8), 0
        while done < content.size:
            descriptor = self._graph._container.file.descriptor
            count = os.preadv(descriptor, [content[done:].data], offset + done)
            if count == 0:
                raise self._damaged()
            done += count

    def _check(self, positions: NDArray[np.uint32]) -> None:
        """Refuse positions of no vertex."""
        if positions.size and int(positions.max()) >= self._graph.num_vertices:
            raise self._damaged()

    def positions_of(self, stored: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the natural positions of stored vertices."""
        graph = self._graph
        if not self._is_reordered:
            return stored.astype(np.int64)
        natural = graph._container.items(Kind.ORDER, stored)
        self._check(natural)
        found: NDArray[np.int64] = natural.astype(np.int64)
        return found

    def ids_of(self, stored: NDArray[np.uint32]) -> Ids:
        """Return the ids of stored vertices; where vertices have names, their positions."""
        return self._graph.ids_at_positions(self.positions_of(stored))

    def _damaged(self) -> FormatError:
        return FormatError(f"{self._graph.path}: the vertex order is damaged: run 'oocbfs verify'")

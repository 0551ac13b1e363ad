"""From ids to stored vertices and back for a few vertices, without arrays as large as the graph.

A file tells the position of each stored vertex, not the other way. Who asks for a few vertices gets
them by a pass over that order; who goes on asking gets it turned around, if there is memory: when
as much was spent on passes as that takes. If a budget has no room for it, it is turned around in a
file without a name, of which the entries of a few vertices are read.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.errors import FormatError, OutputError
from oocbfs.formats.container.layout import Encoding, Kind
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.closing import release
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.formats.io.temporary import unnamed_beside
from oocbfs.kernels.threads import renewed_after_fork

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
# Turning an order around takes as long as so many passes over it: 21 ms and 1.4 ms for 4 million.
# One that is in frames is unpacked in each pass, which takes as long.
_PASSES, _FRAMED_PASSES = 15, 2
# A pass reads the order in pieces of so many vertices.
_PIECE = 1 << 18
# It is turned around in a file a window of positions at a time, each by another pass: a window
# takes at most this share of what a budget leaves, and there are no more windows than are worth it.
_WINDOW_SHARE = 1 / 4
_MOST_WINDOWS = 32
# More vertices than these are found faster by a pass.
_FEW = 1 << 10
_ENTRY_BYTES = 4
_NO_BITS = np.empty(0, np.uint64)
_NO_VERTEX = 0xFFFFFFFF
# Orders of fewer vertices are turned around at once.
_SMALL = 1 << 16


class Lookup:
    """Finds vertices of one graph; whoever asks reads the file inside ``graph.reading()``."""

    def __init__(self, graph: StoredGraph) -> None:
        self._graph = graph
        self._is_reordered = graph.is_reordered
        self._num_passes = 0
        is_framed = self._is_reordered and graph._container.is_framed(Kind.ORDER)
        self._most_passes = _FRAMED_PASSES if is_framed else _PASSES
        self._turned: memoryview | None = None
        # The stored vertex at each position, in a file; None if there is none, or it has no room.
        self._turned_file: BinaryIO | None = None
        self._can_turn_in_file = True
        self._turning = renewed_after_fork(threading.Lock())

    def known_pair(self, one: int, other: int) -> list[int] | None:
        """Return the stored vertices at two natural positions, if that takes no search.

        What ``stored`` does gives the same, and takes longer.
        """
        if not self._is_reordered:
            return [one, other]
        if self._turned is None:
            if "stored_at" not in self._graph.__dict__:
                return None
            # Python reads single numbers of it fastest.
            self._turned = memoryview(self._graph.stored_at)
        return [self._turned[one], self._turned[other]]

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
        if positions.size <= _FEW and self._is_in_file(from_disk):
            return self._read_turned(positions)
        self._num_passes += 1
        return self._pass(positions, from_disk)

    def window_bytes(self, free_bytes: int) -> int:
        """Return how much of the memory that a budget leaves is kept free for a window."""
        num_bytes = _ENTRY_BYTES * self._graph.num_vertices
        if not self._is_reordered or num_bytes <= _ENTRY_BYTES * _SMALL:
            return 0
        return min(num_bytes, int(max(0, free_bytes) * _WINDOW_SHARE))

    def _is_in_file(self, from_disk: bool) -> bool:
        """Return whether the order is turned around in a file; see to that when it is time."""
        budget_bytes, is_time = self._graph.budget_bytes, self._num_passes >= self._most_passes
        if budget_bytes is None or not is_time or not self._can_turn_in_file:
            return False
        if self._turned_file is None and self._turning.acquire(blocking=False):
            try:
                free_bytes = budget_bytes - memory.used_bytes()
                self._turn_in_file(self.window_bytes(free_bytes) // _ENTRY_BYTES, from_disk)
            finally:
                self._turning.release()
        return self._turned_file is not None

    def _turn_in_file(self, window: int, from_disk: bool) -> None:
        """Write the stored vertex at each position, if windows of so many are worth it."""
        from oocbfs.kernels.point.lookup import turn_around

        num_vertices = self._graph.num_vertices
        self._can_turn_in_file = window * _MOST_WINDOWS >= num_vertices
        if not self._can_turn_in_file:
            return
        path = self._graph._container.path
        try:
            file = unnamed_beside(path, _ENTRY_BYTES * num_vertices, "allow more memory")
        except OutputError as error:
            _log.debug("each search for a vertex goes over the order: %s", error)
            self._can_turn_in_file = False
            return
        # Closed with this, and if anything fails.
        close = finalize(self, release, file)
        try:
            for low in range(0, num_vertices, window):
                stored = np.full(min(window, num_vertices - low), _NO_VERTEX, np.uint32)
                self._over_order(partial(turn_around, stored, low), from_disk)
                if (stored == _NO_VERTEX).any():
                    raise self._damaged()
                file.write(stored.data)
            file.flush()
        except BaseException:
            close()
            raise
        self._turned_file = file

    def _read_turned(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Read the stored vertices at a few positions."""
        assert self._turned_file is not None
        descriptor = self._turned_file.fileno()
        places = (_ENTRY_BYTES * positions).tolist()
        content = b"".join(os.pread(descriptor, _ENTRY_BYTES, place) for place in places)
        return np.frombuffer(content, np.uint32).astype(np.int64)

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

        def find(first: int, piece: NDArray[np.uint32]) -> int:
            found: int = find_positions(stored, piece, first, wanted, bits)
            return found

        if sum(self._over_order(find, from_disk)) != wanted.size:
            raise self._damaged()
        return stored[inverse]

    def _over_order(
        self, call: Callable[[int, NDArray[np.uint32]], Result], from_disk: bool
    ) -> list[Result]:
        """Call this with each piece of the order and its first vertex, on all cores."""
        container, num_vertices = self._graph._container, self._graph.num_vertices
        record = container.sections[Kind.ORDER]
        # Frames are unpacked piece by piece; an archive has no other way than all at once.
        is_read = from_disk and int(record["encoding"]) == Encoding.RAW
        offset = int(record["offset"])

        def work(first: int) -> Result:
            stop = min(first + _PIECE, num_vertices)
            if not is_read:
                return call(first, container.part(Kind.ORDER, first, stop))
            begin, size = offset + _ENTRY_BYTES * first, _ENTRY_BYTES * (stop - first)
            return call(first, container.file.read(begin, size).view(np.uint32))

        return list(ordered_map(work, range(0, num_vertices, _PIECE), available_threads()))

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

"""One table of names: numbers them as they come, and writes them out sorted when it is full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.spill import SpillFile
from oocbfs.formats.edges import NamedEdges
from oocbfs.kernels.names import sort as sort_kernels
from oocbfs.kernels.names import table as kernels
from oocbfs.kernels.names.words import MAX_NAME_BYTES

_FIRST_SLOTS = 1 << 12
# Of the slots, at most so many parts of 8 are taken.
_FULL, _EIGHTHS = 5, 8
_SLOT_BYTES = 8
# For each name while it is sorted: where it is, eight of its bytes, its position.
_SORT_BYTES = 8 + 8 + 4
_WRITE_BYTES = 1 << 18
# A number has 32 bits, in which it comes times the number of tables.
_MOST_NAMES = 1 << 31


@dataclass(frozen=True)
class Run:
    """The names of a table, sorted, in a spill file.

    Records begin at ``start``; the positions of the numbers at ``positions_start`` of the other
    file.
    """

    num_names: int
    start: int
    num_bytes: int
    longest: int
    positions_start: int


class NameTable:
    """The names of one partition of all hashes; ``budget_bytes`` are for it, and for sorting it."""

    def __init__(self, budget_bytes: int, seed: np.uint64, partition: int, partitions: int) -> None:
        self._budget_bytes = budget_bytes
        self._seed, self._partition, self._partitions = (
            seed,
            np.uint64(partition),
            np.uint64(partitions),
        )
        self._most_names = _MOST_NAMES // partitions
        # Pages are taken as they are filled. There is always room for the two names of an edge.
        most_bytes = min(max(budget_bytes, 4 * MAX_NAME_BYTES), 1 << kernels.OFFSET_BITS)
        self._arena = np.empty(most_bytes + kernels.ARENA_SLACK, np.uint8)
        self._begin()

    def _begin(self) -> None:
        self._slots = np.zeros(_FIRST_SLOTS, np.uint64)
        self._state = np.zeros(kernels.STATE_SIZE, np.int64)

    @property
    def num_names(self) -> int:
        """Names in the table."""
        return int(self._state[kernels.COUNT])

    def has_room(self, num_names: int, num_bytes: int) -> bool:
        """Return whether so many names of so many bytes fit, even if all are new."""
        count = self.num_names + num_names
        filled = int(self._state[kernels.FILLED]) + num_bytes + kernels.RECORD_BYTES * num_names
        beside = max(_SLOT_BYTES * self._slots_for(count), _SORT_BYTES * count + _WRITE_BYTES)
        return filled + beside <= self._budget_bytes and count <= self._most_names

    def _slots_for(self, num_names: int) -> int:
        slots: int = self._slots.size
        while num_names * _EIGHTHS > slots * _FULL:
            slots *= 2
        return slots

    def number(
        self, numbers: NDArray[np.uint32], hashes: NDArray[np.uint64], edges: NamedEdges
    ) -> None:
        """Assign numbers to the names of this partition; there must be room."""
        num_slots = self._slots_for(self.num_names + edges.starts.size)
        if num_slots > self._slots.size:
            del self._slots  # its memory is for the larger one
            self._slots = np.zeros(num_slots, np.uint64)
            filled = int(self._state[kernels.FILLED])
            kernels.fill_slots(self._slots, self._arena, filled, self._seed)
        kernels.number_names(
            numbers,
            hashes,
            edges.text,
            edges.starts,
            edges.lengths,
            self._slots,
            self._arena,
            self._state,
            self._partition,
            self._partitions,
        )

    def write_run(self, records: SpillFile, positions_file: SpillFile) -> Run:
        """Sort the names, write them and their positions, and begin anew."""
        del self._slots
        count, filled = self.num_names, int(self._state[kernels.FILLED])
        offsets, keys = np.empty(count, np.uint64), np.empty(count, np.uint64)
        sort_kernels.list_names(offsets, self._arena, filled)
        sort_kernels.sort_names(offsets, keys, self._arena)
        del keys
        positions = np.empty(count, np.uint32)
        out = np.empty(_WRITE_BYTES + MAX_NAME_BYTES, np.uint8)
        start = records.reserve(filled - (kernels.RECORD_BYTES - 2) * count)
        place, number = start, 0
        while number < count:
            size, number = sort_kernels.put_records(out, positions, offsets, self._arena, number)
            records.write_at(out[:size], place)
            place += size
        positions_start = positions_file.append(positions)
        run = Run(count, start, place - start, int(self._state[kernels.LONGEST]), positions_start)
        self._begin()
        return run

"""Merge the runs of all tables into the list of distinct names, as a container stores it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.names.table import Run
from oocbfs.conversion.spill import SpillFile
from oocbfs.kernels.names import merge as kernels
from oocbfs.kernels.names.words import MAX_NAME_BYTES

_NAME_BYTES = 1 << 20
_BLOCKS = 1 << 16
# Bytes of records and of numbers that a run has in memory.
_LEAST_BYTES, _MOST_BYTES = 1 << 12, 1 << 20


def least_bytes(runs: list[Run]) -> int:
    """Return what a merge needs: a buffer of each run must hold its longest name."""
    fixed = _NAME_BYTES + kernels.MOST_ENTRY_BYTES + 8 * _BLOCKS + MAX_NAME_BYTES
    return fixed + len(runs) * (2 * _LEAST_BYTES + 2 + _longest(runs))


def _longest(runs: list[Run]) -> int:
    return max((run.longest for run in runs), default=0)


class Merge:
    """A merge of runs; notes the vertex of each name of each run in a spill file.

    ``vertices_starts`` are the places in that file, one for each run.
    """

    def __init__(
        self, runs: list[Run], records: SpillFile, vertices: SpillFile, budget_bytes: int
    ) -> None:
        self._runs, self._records, self._vertices = runs, records, vertices
        self.vertices_starts = [vertices.reserve(4 * run.num_names) for run in runs]
        count = max(1, len(runs))
        share = (budget_bytes - least_bytes(runs)) // (2 * count)
        self._room = min(_MOST_BYTES, max(_LEAST_BYTES, share)) + 2 + _longest(runs)
        self._most_noted = min(_MOST_BYTES, max(_LEAST_BYTES, share)) // 4
        self._buffer = np.empty(count * self._room, np.uint8)
        self._begins = np.arange(count, dtype=np.int64) * self._room
        self._ends = self._begins.copy()
        self._read = [0] * count
        self._left = np.array([run.num_names for run in runs], np.int64)
        self._numbers = np.empty(count * self._most_noted, np.uint32)
        self._noted = np.zeros(count, np.int64)
        self._written = [0] * count
        self._state = np.zeros(kernels.STATE_SIZE, np.int64)

    @property
    def num_names(self) -> int:
        """Distinct names so far."""
        return int(self._state[kernels.NAMES])

    def run(self, names: SpillFile, starts: SpillFile, advance: Callable[[int], object]) -> None:
        """Write the names, and where each block of them begins and the last one ends."""
        out = np.empty(_NAME_BYTES + kernels.MOST_ENTRY_BYTES, np.uint8)
        blocks = np.empty(_BLOCKS, np.uint64)
        last = np.empty(MAX_NAME_BYTES, np.uint8)
        state = self._state
        heap = self._make_heap()
        while True:
            reason = kernels.merge_runs(
                heap,
                state,
                self._buffer,
                self._begins,
                self._ends,
                self._left,
                self._numbers,
                self._noted,
                self._most_noted,
                out,
                blocks,
                last,
            )
            which = int(state[kernels.WHICH])
            if reason == kernels.NEEDS_RECORDS:
                self._fill(which)
            elif reason == kernels.NEEDS_NUMBERS:
                advance(self._flush(which))
            else:
                written = int(state[kernels.WRITTEN])
                names.append(out[:written])
                starts.append(blocks[: int(state[kernels.BLOCKS])])
                state[kernels.BEFORE] += written
                state[kernels.WRITTEN] = state[kernels.BLOCKS] = 0
                if reason == kernels.DONE:
                    break
        starts.append(state[kernels.BEFORE : kernels.BEFORE + 1].astype(np.uint64))
        for number in range(len(self._runs)):
            advance(self._flush(number))

    def _make_heap(self) -> NDArray[np.int64]:
        heap = np.array([r for r, run in enumerate(self._runs) if run.num_names], np.int64)
        for number in heap:
            self._fill(int(number))
        self._state[kernels.RUNS] = heap.size
        for place in range(heap.size // 2 - 1, -1, -1):
            kernels.sift_down(heap, place, heap.size, self._buffer, self._begins)
        return heap

    def _fill(self, number: int) -> None:
        """Read the next records of a run, after what is left of those before."""
        begin, end = int(self._begins[number]), int(self._ends[number])
        first = number * self._room
        rest = end - begin
        self._buffer[first : first + rest] = self._buffer[begin:end].copy()
        run = self._runs[number]
        more = min(self._room - rest, run.num_bytes - self._read[number])
        room = self._buffer[first + rest : first + rest + more]
        self._records.read_into(room, run.start + self._read[number])
        self._read[number] += more
        self._begins[number], self._ends[number] = first, first + rest + more

    def _flush(self, number: int) -> int:
        """Write the vertices that were noted for a run; returns how many."""
        count = int(self._noted[number])
        first = number * self._most_noted
        place = self.vertices_starts[number] + 4 * self._written[number]
        self._vertices.write_at(self._numbers[first : first + count], place)
        self._written[number] += count
        self._noted[number] = 0
        return count

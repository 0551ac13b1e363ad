"""Breadth-first search with the tails on disk: the driver's part, one level after the other.

A wide level begins with the heads pass, unless the frontier's rows are cheap to read: it needs no disk and
leaves few vertices pending. What these or the frontier cost to read is known by then, in pages and in
reads, and the cheaper is read. Small frontiers run many levels in one call (see disk_thin).
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.disk.step import run_step
from oocbfs.formats.io.direct import page_aligned
from oocbfs.graph.disk_rows import DiskRows
from oocbfs.kernels.bfs import traverse as cpu
from oocbfs.kernels.bfs.traverse import AUTO, BOTTOM_UP, MAX_RECORDS
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.disk import bfs as kernels
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import PAGE_BYTES, Disk
from oocbfs.kernels.disk.small_level import (
    BLOCK_BYTES,
    FILL,
    PAUSED,
    QUEUE_SIZE,
    SMALL_BYTES,
    SMALL_VERTICES,
)
from oocbfs.kernels.disk.state import CONTROL_WORDS, State
from oocbfs.kernels.rows import BATCH, one_row, read_only
from oocbfs.plan.disk import BUFFER_BYTES, READERS

# A read costs as much as so many bytes more of one that is under way.
READ_BYTES = 16 << 10
# From so many bytes a vertex on, reading the frontier's rows costs more than the heads pass.
_HEADS_WORTH = 1.0
_NO_PARENTS = np.empty(0, np.uint32)

RECORD = np.dtype([*cpu.RECORD.descr[:-1], ("disk_bytes", "i8"), *cpu.RECORD.descr[-1:]])
_FIELDS = RECORD.names or ()


class Traversal(NamedTuple):
    """What a traversal did: one record a level, and the number of levels."""

    records: NDArray[np.void]
    depth: int


def traverse(
    rows: DiskRows,
    sources: NDArray[np.int64],
    levels: NDArray[np.int32],
    parents: NDArray[np.uint32] | None,
    *,
    cache_bytes: int,
    threads: int,
    direction: int = AUTO,
    max_depth: int = -1,
    target: int = -1,
) -> Traversal:
    """Fill levels (and parents) of stored vertices; see ``kernels.bfs.traverse``."""
    search = _Search(rows, levels, parents, cache_bytes, threads, direction, max_depth, target)
    with ThreadPoolExecutor(max(READERS, threads)) as search.pool:
        return search.run(np.unique(sources))


class _Search:
    """One traversal."""

    pool: ThreadPoolExecutor

    def __init__(
        self,
        rows: DiskRows,
        levels: NDArray[np.int32],
        parents: NDArray[np.uint32] | None,
        cache_bytes: int,
        threads: int,
        direction: int,
        max_depth: int,
        target: int,
    ) -> None:
        self._rows = rows
        self._num_vertices = levels.size
        self._threads = threads
        self._direction = direction
        self._max_depth, self._target = max_depth, target
        num_blocks = rows.out_disk.tail_bytes // BLOCK_BYTES + 1
        slots = max(2, min(cache_bytes // BLOCK_BYTES, num_blocks))
        # A level may take half of the cache, or all of it if it holds everything.
        limit = slots if slots >= num_blocks else slots // 2
        workers = max(READERS, threads)
        self._state = State(
            levels,
            _NO_PARENTS if parents is None else parents,
            np.zeros((4, (levels.size + 63) // 64 + 1), np.uint64),
            page_aligned(workers * BUFFER_BYTES).reshape(workers, BUFFER_BYTES),
            np.empty((workers, 2 * BATCH), np.uint32),
            np.empty((2, QUEUE_SIZE), np.uint32),
            page_aligned(slots * BLOCK_BYTES + PAGE_BYTES),
            np.full(slots, -1, np.int64),
            np.zeros(slots, np.int32),
            np.empty(min(limit, QUEUE_SIZE), np.int64),
            np.empty(SMALL_BYTES + PAGE_BYTES, np.uint8),
            np.zeros((MAX_RECORDS, len(_FIELDS)), np.int64),
            np.zeros(CONTROL_WORDS, np.int64),
        )
        self._control = self._state.control

    def run(self, sources: NDArray[np.int64]) -> Traversal:
        """Run level after level until a frontier is empty."""
        control = self._control
        self._start(sources)
        thin = self._direction != BOTTOM_UP and sources.size <= QUEUE_SIZE
        while control[words.FRONTIER] and not self._is_over():
            if thin:
                thin = self._run_thin()
            else:
                self._run_wide()
                thin = self._direction != BOTTOM_UP and self._is_small()
                if thin:
                    self._run_step(kernels.TO_QUEUE)
        depth = int(control[words.DEPTH])
        records = np.empty(min(depth, MAX_RECORDS), RECORD)
        for i, name in enumerate(_FIELDS):
            records[name] = self._state.records[: records.size, i]
        records["seconds"] *= 1e-9
        return Traversal(records, depth)

    def _start(self, sources: NDArray[np.int64]) -> None:
        """Visit the sources; they lie in the bitmap of the frontier, and in the queue if they are few."""
        state, control = self._state, self._control
        bits = np.left_shift(np.uint64(1), (sources & 63).astype(np.uint64))
        front, visited = state.bitmaps[0], state.bitmaps[2]
        np.bitwise_or.at(front, sources >> 6, bits)
        visited[:] = front
        if self._num_vertices & 63:
            visited[self._num_vertices >> 6] |= np.uint64(
                (1 << 64) - (1 << (self._num_vertices & 63))
            )
        control[[words.FRONT, words.NEXT, words.VISITED, words.PENDING]] = 0, 1, 2, 3
        control[words.FRONTIER] = sources.size
        state.levels[:] = -1
        state.levels[sources] = 0
        if state.parents.size:
            state.parents[:] = NO_HEAD
            state.parents[sources] = sources
        few = sources[:QUEUE_SIZE]
        state.queue[0, : few.size] = few
        rows = self._rows.out_rows
        begins, ends = (
            rows.bases[places >> rows.shift] + rows.starts[places]
            for places in (sources, sources + 1)
        )
        control[words.ROW_BYTES] = int((ends - begins).sum())

    def _is_over(self) -> bool:
        if self._target >= 0 and self._state.levels[self._target] >= 0:
            return True
        return bool(self._control[words.DEPTH] == self._max_depth)

    def _is_small(self) -> bool:
        control = self._control
        return bool(
            control[words.FRONTIER] <= SMALL_VERTICES and control[words.ROW_BYTES] <= SMALL_BYTES
        )

    def _run_thin(self) -> bool:
        """Run small levels; tell whether the frontier still is in the queue."""
        todo = self._run_step(kernels.THIN)
        if todo == FILL:
            start = time.perf_counter_ns()
            self._run_step(kernels.FILL_CACHE, READERS)
            self._record()[-1] += time.perf_counter_ns() - start
        return todo in (FILL, PAUSED)

    def _record(self) -> NDArray[np.int64]:
        """Give the record of the level that is being run."""
        record: NDArray[np.int64] = self._state.records[
            min(int(self._control[words.DEPTH]), MAX_RECORDS - 1)
        ]
        return record

    def _run_wide(self) -> None:
        """Run one level, frontier and next frontier in their bitmaps."""
        control = self._control
        start = time.perf_counter_ns()
        # A small frontier is here only if the cache cannot hold its rows: then the kernel's has to.
        again = self._direction != BOTTOM_UP and self._is_small()
        frontier = int(control[words.FRONTIER])
        control[words.LEVEL] = control[words.DEPTH] + 1
        down = _cost(control, words.FRONT_PAGES, words.FRONT_READS)
        control[words.FOUND : words.FAILED] = 0
        control[words.FRONT_PAGES : words.PENDING_READS + 1] = 0
        upward = self._direction == BOTTOM_UP
        if upward or (
            self._direction == AUTO and not again and down > _HEADS_WORTH * self._num_vertices
        ):
            self._run_step(kernels.HEADS_PASS, self._threads)
            up = _cost(control, words.PENDING_PAGES, words.PENDING_READS)
            upward = upward or up <= down
        else:
            self._state.bitmaps[control[words.NEXT]] = 0
        if upward:
            self._run_step(kernels.STREAM_UP, READERS)
        else:
            self._run_step(kernels.VISIT_HEADS, self._threads)
            before = memory.read_bytes() if again else 0
            self._run_step(kernels.STREAM_DOWN, READERS, cached=again)
            if again:
                control[words.DISK_BYTES] = memory.read_bytes() - before
        self._run_step(kernels.SWEEP, self._threads)
        control[[words.FRONT, words.NEXT]] = control[[words.NEXT, words.FRONT]]
        control[words.FRONTIER] = control[words.FOUND]
        record = self._record()
        record[0] = upward
        sums = (words.EDGES, words.HEADS, words.TAIL_BYTES, words.DISK_BYTES)
        elapsed = time.perf_counter_ns() - start
        record[1:] += np.array([frontier, *(control[word] for word in sums), elapsed])
        control[words.DEPTH] += 1
        control[words.DISK_BYTES] = 0

    def _run_step(self, task: int, threads: int = 1, *, cached: bool = False) -> int:
        """Run a compiled step on so many threads; give what the first one returned.

        With ``cached``, tails are read through the page cache.
        """
        rows = self._rows
        returned = run_step(
            self.pool,
            threads,
            rows.file,
            self._control,
            kernels.step,
            task,
            rows.out_rows,
            rows.in_rows,
            rows.cached_disk if cached else rows.out_disk,
            rows.in_disk,
            self._state,
            self._max_depth,
            self._target,
            time.CLOCK_MONOTONIC,
        )
        return returned or 0


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no traversal's time includes it."""
    num_bytes, ids, words_ = np.zeros(1, np.uint8), np.zeros(1, np.uint32), np.zeros(1, np.int64)
    rows = read_only(one_row())
    state = State(
        np.zeros(1, np.int32),
        _NO_PARENTS,
        np.zeros((4, 1), np.uint64),
        num_bytes.reshape(1, 1),
        ids.reshape(1, 1),
        ids.reshape(1, 1),
        num_bytes,
        words_,
        np.zeros(1, np.int32),
        words_,
        num_bytes,
        words_.reshape(1, 1),
        np.zeros(CONTROL_WORDS, np.int64),
    )
    disk = Disk(0, 0, 0)
    kernels.step(kernels.FILL_CACHE, rows, rows, disk, disk, state, 0, 0, 0, 0)


def _cost(control: NDArray[np.int64], pages: int, reads: int) -> int:
    return int(control[pages]) * PAGE_BYTES + int(control[reads]) * READ_BYTES

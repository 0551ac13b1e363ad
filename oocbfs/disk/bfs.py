"""Breadth-first search with the tails on disk: the driver's part, one level after the other.

A large level begins with the heads pass, unless the frontier's rows are cheap to read: it needs no
disk and leaves few vertices pending. What these or the frontier cost to read is known by then, in
pages and in reads, and the cheaper is read. Small frontiers run many levels in one call (see
``kernels.disk.small_level``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.disk.step import HEADS_WORTH, Readers, make_buffers, read_cost
from oocbfs.formats.io.direct import page_aligned
from oocbfs.graph.disk_rows import DiskRows
from oocbfs.kernels.bfs.search import AUTO, BOTTOM_UP, MAX_RECORDS
from oocbfs.kernels.compiling import Code
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.disk import bfs as kernels
from oocbfs.kernels.disk import level_streams as steps
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import NO_TAILS, PAGE_BYTES
from oocbfs.kernels.disk.small_level import (
    BLOCK_BYTES,
    FILL,
    PAUSED,
    QUEUE_SIZE,
    SMALL_BYTES,
    SMALL_VERTICES,
)
from oocbfs.kernels.disk.state import DiskState
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.record import LEVEL_RECORD
from oocbfs.kernels.recording import record_level
from oocbfs.kernels.rows import one_row, read_only
from oocbfs.plan.disk import READERS

_NO_PARENTS = np.empty(0, np.uint32)
# Where it is called once a level, compiling it for itself would not pay.
_record_level = record_level.py_func


class DiskSearch(NamedTuple):
    """What a search did: one record a level, and the number of levels."""

    records: NDArray[np.void]
    depth: int


def search(
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
) -> DiskSearch:
    """Fill levels (and parents) of stored vertices; see ``kernels.bfs.search``.

    Vertices behind the last non-isolated one are reached only where they are sources.
    """
    n = rows.num_non_isolated
    others, non_isolated = sources[sources >= n], np.unique(sources[sources < n])
    levels[n:] = -1
    levels[others] = 0
    if parents is not None:
        parents[n:] = NO_HEAD
        parents[others] = others
        parents = parents[:n]
    if target >= n:
        max_depth, target = (0 if target in others else max_depth), -1
    if non_isolated.size == 0:
        levels[:n] = -1
        if parents is not None:
            parents[:] = NO_HEAD
        records = np.zeros(int(max_depth != 0), LEVEL_RECORD)
        if records.size:
            _record_level(records, 0, direction == BOTTOM_UP, *[0] * 6)
        return DiskSearch(records, records.size)
    num_threads = max(READERS, threads)
    state = _make_state(levels[:n], parents, num_threads, rows, cache_bytes)
    with Readers(rows.file, state.control, num_threads) as readers:
        search = _Search(rows, state, readers, threads, direction, max_depth, target)
        return search.run(non_isolated)


@dataclass(frozen=True)
class _Search:
    """One search."""

    rows: DiskRows
    state: DiskState
    readers: Readers
    threads: int
    direction: int
    max_depth: int
    target: int

    @property
    def control(self) -> NDArray[np.int64]:
        return self.state.control

    def run(self, sources: NDArray[np.int64]) -> DiskSearch:
        """Run level after level until a frontier is empty."""
        control = self.control
        self._start(sources)
        small = self.direction != BOTTOM_UP and sources.size <= QUEUE_SIZE
        while control[words.FRONTIER_SIZE] and not self._is_over():
            if small:
                small = self._run_small_levels()
            else:
                self._run_large_level()
                small = self.direction != BOTTOM_UP and self._is_small()
                if small:
                    self._run_step(kernels.TO_QUEUE)
        depth = int(control[words.DEPTH])
        return DiskSearch(self.state.records[: min(depth, MAX_RECORDS)].copy(), depth)

    def _start(self, sources: NDArray[np.int64]) -> None:
        """Visit the sources: the frontier's bitmap gets them, and the queue if they are few."""
        state, control = self.state, self.control
        n = state.levels.size
        bits = np.left_shift(np.uint64(1), (sources & 63).astype(np.uint64))
        control[words.BITMAPS] = 0, 1, 2, 3
        frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
        visited = state.bitmaps[control[words.VISITED_BITMAP]]
        np.bitwise_or.at(frontier, sources >> 6, bits)
        visited[:] = frontier
        if n & 63:
            visited[n >> 6] |= np.uint64((1 << 64) - (1 << (n & 63)))
        control[words.FRONTIER_SIZE] = sources.size
        state.levels[:] = -1
        state.levels[sources] = 0
        if state.parents.size:
            state.parents[:] = NO_HEAD
            state.parents[sources] = sources
        few = sources[:QUEUE_SIZE]
        state.queue[0, : few.size] = few
        rows = self.rows.out_rows
        begins, ends = (
            rows.bases[vertices >> rows.shift] + rows.starts[vertices]
            for vertices in (sources, sources + 1)
        )
        control[words.ROW_BYTES] = int((ends - begins).sum())

    def _is_over(self) -> bool:
        if self.target >= 0 and self.state.levels[self.target] >= 0:
            return True
        return bool(self.control[words.DEPTH] == self.max_depth)

    def _is_small(self) -> bool:
        control = self.control
        return bool(
            control[words.FRONTIER_SIZE] <= SMALL_VERTICES
            and control[words.ROW_BYTES] <= SMALL_BYTES
        )

    def _run_small_levels(self) -> bool:
        """Run small levels; tell whether the frontier still is in the queue."""
        todo = self._run_step(kernels.SMALL_LEVELS)
        if todo == FILL:
            start = time.perf_counter()
            self._run_step(kernels.FILL_CACHE, READERS)
            record = self.state.records[min(self.control[words.DEPTH], MAX_RECORDS - 1)]
            record["seconds"] += time.perf_counter() - start
        return todo in (FILL, PAUSED)

    def _run_large_level(self) -> None:
        """Run one level, frontier and next frontier in their bitmaps."""
        control = self.control
        start = time.perf_counter_ns()
        # A small frontier is here only if our cache cannot hold its rows. The page cache has to.
        cached = self.direction != BOTTOM_UP and self._is_small()
        frontier_size = control[words.FRONTIER_SIZE]
        control[words.LEVEL] = control[words.DEPTH] + 1
        down = read_cost(control[words.FRONTIER_PAGES], control[words.FRONTIER_READS])
        control[words.SUMS] = 0
        control[words.COSTS] = 0
        upward = self.direction == BOTTOM_UP
        if upward or (
            self.direction == AUTO and not cached and down > HEADS_WORTH * self.state.levels.size
        ):
            self._run_step(steps.BOTTOM_UP_HEADS, self.threads)
            up = read_cost(control[words.PENDING_PAGES], control[words.PENDING_READS])
            upward = bool(upward or up <= down)
        else:
            self.state.bitmaps[control[words.NEXT_BITMAP]] = 0
        if upward:
            self._run_step(steps.BOTTOM_UP_TAILS, READERS)
        else:
            self._run_step(steps.TOP_DOWN_HEADS, self.threads)
            before = memory.read_bytes() if cached else 0
            self._run_step(steps.TOP_DOWN_TAILS, READERS, cached=cached)
            if cached:
                control[words.DISK_BYTES] = memory.read_bytes() - before
        self._run_step(kernels.SWEEP, self.threads)
        frontiers = [words.FRONTIER_BITMAP, words.NEXT_BITMAP]
        control[frontiers] = control[frontiers[::-1]]
        control[words.FRONTIER_SIZE] = control[words.FOUND]
        moved = control[[words.EDGES, words.HEADS, words.TAIL_BYTES, words.DISK_BYTES]]
        _record_level(
            self.state.records,
            control[words.DEPTH],
            upward,
            frontier_size,
            *moved,
            time.perf_counter_ns() - start,
        )
        control[words.DEPTH] += 1
        control[words.DISK_BYTES] = 0

    def _run_step(self, task: int, threads: int = 1, *, cached: bool = False) -> int:
        """Run a compiled step on so many threads; give what the first one returned.

        With ``cached``, tails are read through the page cache.
        """
        rows = self.rows
        if task in (steps.BOTTOM_UP_HEADS, steps.BOTTOM_UP_TAILS):
            tails = (rows.in_rows, rows.in_disk)
        else:
            tails = (rows.out_rows, rows.cached_disk if cached else rows.out_disk)
        limits = (self.max_depth, self.target, time.CLOCK_MONOTONIC)
        return self.readers.run(threads, kernels.step, task, *tails, self.state, *limits)


def _make_state(
    levels: NDArray[np.int32],
    parents: NDArray[np.uint32] | None,
    num_threads: int,
    disk_rows: DiskRows | None,
    cache_bytes: int,
) -> DiskState:
    tail_bytes = 0 if disk_rows is None else disk_rows.out_disk.tail_bytes
    num_blocks = tail_bytes // BLOCK_BYTES + 1
    slots = max(2, min(cache_bytes // BLOCK_BYTES, num_blocks))
    # A level may take half of the cache, or all of it if it holds everything.
    limit = slots if slots >= num_blocks else slots // 2
    return DiskState(
        levels=levels,
        parents=_NO_PARENTS if parents is None else parents,
        bitmaps=np.zeros((4, (levels.size + 63) // 64 + 1), np.uint64),
        buffers=make_buffers(num_threads, framed=disk_rows is not None and disk_rows.is_framed),
        ids=np.empty((num_threads, 2 * BATCH), np.uint32),
        queue=np.empty((2, QUEUE_SIZE), np.uint32),
        cache=page_aligned(slots * BLOCK_BYTES + PAGE_BYTES),
        tags=np.full(slots, -1, np.int64),
        marks=np.zeros(slots, np.int32),
        missing=np.empty(min(limit, QUEUE_SIZE), np.int64),
        row=np.empty(SMALL_BYTES + PAGE_BYTES, np.uint8),
        records=np.zeros(MAX_RECORDS, LEVEL_RECORD),
        control=np.zeros(words.CONTROL_WORDS, np.int64),
    )


CODE = (Code(kernels.step, __name__, "load"),)


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no search's time includes it."""
    rows = read_only(one_row())
    state = _make_state(np.zeros(1, np.int32), None, 1, None, 0)
    kernels.step(kernels.FILL_CACHE, rows, NO_TAILS, state, 0, 0, 0, 0)

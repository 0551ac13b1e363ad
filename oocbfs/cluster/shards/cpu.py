"""A shard on the CPU: all its rows in the mapped file, all threads in every step."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.shard import Bitmap, BottomUp, TopDown, VertexArray, Work, full_bitmap
from oocbfs.cluster.shards.file import FileShard, damaged
from oocbfs.formats.container.reader import Container
from oocbfs.graph.rows import load_rows
from oocbfs.kernels.shards import run as kernels
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.state import BOTTOM_UP, MAX_HUBS, TOP_DOWN, Bitmaps

# With so few edges, or so few for each word of a bitmap, neighbours are listed.
_FEW_EDGES = 4096
_EDGES_PER_WORD = 1 / 16


class CpuShard(FileShard):
    """A shard of a graph, searched on the CPU from its mapped file."""

    in_memory = True

    def __init__(self, container: Container, threads: int) -> None:
        super().__init__(container, threads)
        kernels.load()
        with container.file.reading():
            rows = load_rows(container)
            in_rows = load_rows(container, transposed=True) if container.directed else rows
        self._sides = (rows, in_rows) if container.directed else (rows,)
        held = kernels.HeldShard(self.number, self.cut.words_of(self.number), rows, in_rows)
        self._team = kernels.Team([held], self.cut.num_shards, threads)
        self._few_edges = max(_FEW_EDGES, int(_EDGES_PER_WORD * self.cut.num_words))

    def bottom_up(self, frontier: Bitmap, visited: Bitmap, *, parents: bool) -> BottomUp:
        """Find own vertices that are not visited and have an in-neighbour in a full frontier."""
        start = time.perf_counter()
        found = np.zeros(self.cut.words_of(self.number), np.uint64)
        by_row = np.empty(self.cut.rows_of(self.number) if parents else 0, np.uint32)
        self._step(
            BOTTOM_UP, Bitmaps(frontier, visited=visited.copy(), found=found, parents=by_row)
        )
        work = self._work(start)
        if not parents:
            return BottomUp(found, None, work)
        return BottomUp(found, by_row[kernels.list_vertices(found)], work)

    def top_down(self, frontier: Bitmap, *, parents: bool) -> TopDown:
        """Find the neighbours of an own frontier."""
        start = time.perf_counter()
        with self._container.file.reading():
            size, edges = kernels.sum_word_degrees(frontier, self._sides[0].degrees)
            if edges <= self._few_edges and size <= MAX_HUBS:
                ids, owners = self._team.list_neighbours(frontier, size, edges)
                return self._list(ids, owners, parents, self._work(start))
        found = full_bitmap(self.cut)
        marks = found.reshape(1, -1)
        self._step(TOP_DOWN, Bitmaps(own=frontier, known=found, marks=marks))
        return TopDown(None, found, None, self._work(start))

    def _step(self, task: int, bitmaps: Bitmaps) -> None:
        """Take one step, with threads that are called for it."""
        with self._container.file.reading():
            self._team.lead(bitmaps, bitmaps, lambda: self._team.step(task))

    def _list(self, ids: VertexArray, owners: VertexArray, parents: bool, work: Work) -> TopDown:
        """Find the neighbours of a frontier with few edges."""
        if not parents:
            return TopDown(np.unique(ids), None, None, work)
        ids, first = np.unique(ids, return_index=True)
        by = self.cut.vertex_of(self.number, owners[first]).astype(np.uint32)
        return TopDown(ids, None, by, work)

    def _work(self, start: float) -> Work:
        if self._team.malformed is not None:
            raise damaged(self.path)
        return work_of(self._team.counts[0], time.perf_counter() - start)

    def close(self) -> None:
        """Release the file."""
        self._container.close()


def work_of(counts: NDArray[np.int64], seconds: float) -> Work:
    """Return what a step looked at on one shard."""
    return Work(
        edges=int(counts[words.EDGES]),
        heads=int(counts[words.HEADS]),
        tested=int(counts[words.TESTED]),
        tail_bytes=int(counts[words.TAIL_BYTES]),
        seconds=seconds,
    )

"""A shard whose tails stay on disk: heads and starts in memory, tails read as a step needs them."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.shard import Bitmap, BottomUp, Forest, TopDown, VertexArray, Work, full_bitmap
from oocbfs.cluster.shards.file import FileShard
from oocbfs.disk.step import Readers, make_buffers
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.formats.container.reader import Container
from oocbfs.graph.disk_rows import DiskRows
from oocbfs.kernels.disk import level_streams as steps
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import NO_TAILS, Disk
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.rows import Rows, one_row, read_only
from oocbfs.kernels.shards import disk as kernels
from oocbfs.kernels.shards.run import list_vertices
from oocbfs.plan.disk import READERS

_NO_PARENTS = np.empty(0, np.uint32)
_NO_WORDS = np.empty(0, np.uint64)


class DiskShard(FileShard):
    """A shard of a graph, searched with its tails on disk."""

    in_memory = False

    def __init__(self, container: Container, threads: int) -> None:
        super().__init__(container, threads)
        load()
        self._rows = DiskRows(container)
        with container.file.reading():
            self._rows.load()
            degrees = container.section(Kind.DEGREES)
        container.release()
        rows = self._rows
        # What is found is counted by its degrees, wherever tails are.
        out_rows = rows.out_rows._replace(degrees=degrees)
        self._sides = (out_rows, rows.in_rows) if container.directed else (out_rows,)
        self._num_threads = max(READERS, threads)
        self._buffers = make_buffers(self._num_threads, framed=rows.is_framed)
        self._ids = np.empty((self._num_threads, 2 * BATCH), np.uint32)
        self._control = np.zeros(words.CONTROL_WORDS, np.int64)
        self._readers = Readers(self._rows.file, self._control, self._num_threads)

    def bottom_up(self, frontier: Bitmap, visited: Bitmap, *, parents: bool) -> BottomUp:
        """Find own vertices that are not visited and have an in-neighbour in a full frontier."""
        start = time.perf_counter()
        found, wanted = np.zeros((2, self.cut.words_of(self.number)), np.uint64)
        by_row = np.empty(self.cut.rows_of(self.number), np.uint32) if parents else _NO_PARENTS
        state = self._state(found, wanted, frontier, visited, by_row)
        rows, disk = self._rows.in_rows, self._rows.in_disk
        with self._container.file.reading():
            self._run(steps.BOTTOM_UP_HEADS, rows, disk, state, self._threads)
            self._run(steps.BOTTOM_UP_TAILS, rows, disk, state, READERS)
        listed = by_row[list_vertices(found)] if parents else None
        return BottomUp(found, listed, self._work(start))

    def top_down(self, frontier: Bitmap, *, parents: bool) -> TopDown:
        """Find the neighbours of an own frontier, always as a bitmap."""
        start = time.perf_counter()
        found = full_bitmap(self.cut)
        state = self._state(found, frontier.copy(), _NO_WORDS, _NO_WORDS, _NO_PARENTS)
        rows, disk = self._rows.out_rows, self._rows.out_disk
        with self._container.file.reading():
            self._run(steps.TOP_DOWN_HEADS, rows, disk, state, self._threads)
            self._run(steps.TOP_DOWN_TAILS, rows, disk, state, READERS)
        return TopDown(None, found, None, self._work(start))

    def forest(self, largest: Bitmap) -> Forest:
        """Join own vertices outside a full bitmap with all their neighbours."""
        with self.reading():
            # Searches need no more of their tails than their size.
            sides = tuple(
                rows._replace(tails=self._container.section(Kind(Kind.TAILS + side)))
                for rows, side in zip(self._sides, (0, TRANSPOSED), strict=False)
            )
            return self._find_forest(sides, largest, bounded=True)

    def _state(
        self,
        found: Bitmap,
        wanted: Bitmap,
        frontier: Bitmap,
        visited: Bitmap,
        parents: VertexArray,
    ) -> kernels.DiskShardState:
        self._control[:] = 0
        return kernels.DiskShardState(
            frontier=np.ascontiguousarray(frontier),
            visited=np.ascontiguousarray(visited),
            wanted=wanted,
            found=found,
            parents=parents,
            buffers=self._buffers,
            ids=self._ids,
            control=self._control,
        )

    def _run(
        self, task: int, rows: Rows, disk: Disk, state: kernels.DiskShardState, threads: int
    ) -> None:
        self._readers.run(threads, kernels.step, task, rows, disk, state)

    def _work(self, start: float) -> Work:
        control: NDArray[np.int64] = self._control
        return Work(
            edges=int(control[words.EDGES]),
            heads=int(control[words.HEADS]),
            tested=int(control[kernels.TESTED]),
            tail_bytes=int(control[words.TAIL_BYTES]),
            disk_bytes=int(control[words.DISK_BYTES]),
            seconds=time.perf_counter() - start,
        )

    def close(self) -> None:
        """End the readers and give the file back."""
        self._readers.__exit__()
        self._rows.close()
        self._container.close()


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no step's time includes it."""
    rows = read_only(one_row())
    state = kernels.DiskShardState(
        frontier=np.zeros(2, np.uint64),
        visited=np.zeros(1, np.uint64),
        wanted=np.zeros(1, np.uint64),
        found=np.zeros(2, np.uint64),
        parents=_NO_PARENTS,
        buffers=make_buffers(1),
        ids=np.empty((1, 2 * BATCH), np.uint32),
        control=np.zeros(words.CONTROL_WORDS, np.int64),
    )
    kernels.step(steps.TOP_DOWN_HEADS, rows, NO_TAILS, state, 0)

"""A shard on the CPU: all its rows in the mapped file, all threads in every step."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.shard import Bitmap, Down, Forest, Up, VertexArray, Work, full_bitmap
from oocbfs.errors import FormatError
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.graph.rows import load_rows
from oocbfs.kernels.rows import Rows
from oocbfs.kernels.shards import run as kernels
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.forest import compress_range, link_rows
from oocbfs.kernels.shards.state import DOWN, MAX_HUBS, UP, Bitmaps

# With so few edges, or so few for each word of a bitmap, neighbours are listed.
_FEW_EDGES = 4096
_EDGES_PER_WORD = 1 / 16


class CpuShard:
    """A part of a graph, searched on the CPU from its mapped file."""

    in_memory = True

    def __init__(self, container: Container, threads: int) -> None:
        self.cut, self.part = part_of(container)
        kernels.load()
        self._container = container
        self.path = str(container.path)
        with container.file.reading():
            rows = load_rows(container)
            in_rows = load_rows(container, transposed=True) if container.directed else rows
        self._sides = (rows, in_rows) if container.directed else (rows,)
        self.rows = rows, in_rows
        self._threads = threads
        held = kernels.HeldPart(self.part, self.cut.words_of(self.part), rows, in_rows)
        self._team = kernels.Team([held], self.cut.parts, threads)
        self._few_edges = max(_FEW_EDGES, int(_EDGES_PER_WORD * self.cut.num_words))

    def reading(self) -> AbstractContextManager[object]:
        """Read its file, which may be cut short meanwhile."""
        return self._container.file.reading()

    def up(self, frontier: Bitmap, visited: Bitmap, *, parents: bool) -> Up:
        """Find own vertices that are not visited and have an in-neighbour in a full frontier."""
        start = time.perf_counter()
        found = np.zeros(self.cut.words_of(self.part), np.uint64)
        by_row = np.empty(self.cut.rows_of(self.part) if parents else 0, np.uint32)
        self._step(UP, Bitmaps(frontier, visited=visited.copy(), found=found, parents=by_row))
        work = self._work(start)
        if not parents:
            return Up(found, None, work)
        return Up(found, by_row[kernels.list_vertices(found)], work)

    def down(self, frontier: Bitmap, *, parents: bool) -> Down:
        """Find the neighbours of an own frontier."""
        start = time.perf_counter()
        with self._container.file.reading():
            size, edges = kernels.weigh_words(frontier, self._sides[0].degrees)
            if edges <= self._few_edges and size <= MAX_HUBS:
                ids, owners = self._team.list_neighbours(frontier, size, edges)
                return self._list(ids, owners, parents, self._work(start))
        found = full_bitmap(self.cut)
        marks = found.reshape(1, -1)
        self._step(DOWN, Bitmaps(own=frontier, known=found, marks=marks))
        return Down(None, found, None, self._work(start))

    def _step(self, task: int, bitmaps: Bitmaps) -> None:
        """Take one step, with threads that are called for it."""
        with self._container.file.reading():
            self._team.lead(bitmaps, bitmaps, lambda: self._team.step(task))

    def _list(self, ids: VertexArray, owners: VertexArray, parents: bool, work: Work) -> Down:
        """Find the neighbours of a frontier with few edges."""
        if not parents:
            return Down(np.unique(ids), None, None, work)
        ids, first = np.unique(ids, return_index=True)
        by = self.cut.vertex_of(self.part, owners[first]).astype(np.uint32)
        return Down(ids, None, by, work)

    def heads(self) -> tuple[VertexArray, ...]:
        """Give the head of each row; those of the in-rows, too, if the graph is directed."""
        with self._container.file.reading():
            return tuple(rows.heads.copy() for rows in self._sides)

    def forest(self, giant: Bitmap) -> Forest:
        """Join own vertices outside a full bitmap with all their neighbours."""
        with self._container.file.reading():
            return find_forest(self._container, self._sides, giant, self._threads)

    def _work(self, start: float) -> Work:
        if self._team.malformed is not None:
            raise damaged(self.path)
        return work_of(self._team.counts[0], time.perf_counter() - start)

    def close(self) -> None:
        """Give the file back."""
        self._container.close()


def part_of(container: Container) -> tuple[Cut, int]:
    """Give the cut and the number of a part that has rows."""
    if container.part is None or container.part.is_names:
        raise FormatError(f"{container.path}: is not a part of a graph")
    return container.part.cut, container.part.number


def find_forest(
    container: Container, sides: tuple[Rows, ...], giant: Bitmap, threads: int
) -> Forest:
    """Join the vertices of a part that are outside a full bitmap with all their neighbours."""
    start = time.perf_counter()
    assert container.part is not None
    labels = np.arange(container.num_ids, dtype=np.uint32)
    deal = (container.part.number, container.part.cut.parts)
    edges = tail_bytes = 0
    for rows in sides:
        index = (rows.heads, rows.bases, rows.starts, rows.shift, rows.tails)
        for looked, num_bytes in over_ranges(
            link_rows, rows.heads.size, threads, labels, giant, *index, deal
        ):
            if looked < 0:
                raise damaged(str(container.path))
            edges, tail_bytes = edges + looked, tail_bytes + num_bytes
    over_ranges(compress_range, labels.size, threads, labels)
    vertices = np.flatnonzero(labels != np.arange(labels.size, dtype=np.uint32))
    work = Work(edges, tail_bytes=tail_bytes, seconds=time.perf_counter() - start)
    return Forest(vertices.astype(np.uint32), labels[vertices], work)


def work_of(counts: NDArray[np.int64], seconds: float) -> Work:
    """Tell what a step looked at on one part."""
    return Work(
        edges=int(counts[words.EDGES]),
        heads=int(counts[words.HEADS]),
        tested=int(counts[words.TESTED]),
        tail_bytes=int(counts[words.TAIL_BYTES]),
        seconds=seconds,
    )


def damaged(path: str) -> FormatError:
    """Say that a row is not what a converter wrote."""
    return FormatError(f"{path}: a row is damaged: run 'oocbfs verify'")

"""A shard on the CPU: all its rows in the mapped file, all threads in every step."""

from __future__ import annotations

import time

import numpy as np

from oocbfs.cluster.shard import Bitmap, Down, Forest, Up, VertexArray, Work, full_bitmap
from oocbfs.errors import FormatError
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.graph.rows import load_rows
from oocbfs.kernels.rows import Rows
from oocbfs.kernels.shards import run as kernels
from oocbfs.kernels.shards.forest import compress_range, link_rows
from oocbfs.kernels.shards.messages import count_bits
from oocbfs.kernels.shards.state import MAX_HUBS

# With so few edges, or so few for each word of a bitmap, neighbours are listed.
_FEW_EDGES = 4096
_EDGES_PER_WORD = 1 / 16


class CpuShard:
    """A part of a graph, searched on the CPU from its mapped file."""

    def __init__(self, container: Container, threads: int) -> None:
        self.cut, self.part = part_of(container)
        kernels.load()
        self._container = container
        with container.file.reading():
            rows = load_rows(container)
            in_rows = load_rows(container, transposed=True) if container.directed else rows
        self._sides = (rows, in_rows) if container.directed else (rows,)
        self._threads = threads
        self._steps = kernels.Stepper(rows, in_rows, threads)
        self._few_edges = max(_FEW_EDGES, int(_EDGES_PER_WORD * self.cut.num_words))

    def up(self, frontier: Bitmap, visited: Bitmap, *, parents: bool) -> Up:
        """Find own vertices that are not visited and have an in-neighbour in a full frontier."""
        start = time.perf_counter()
        found = np.zeros(self.cut.words_of(self.part), np.uint64)
        by_row = np.empty(self.cut.rows_of(self.part), np.uint32) if parents else None
        with self._container.file.reading():
            counts = self._steps.up(frontier, visited, found, by_row)
        work = self._work(counts, start)
        if by_row is None:
            return Up(found, None, work)
        rows = np.empty(count_bits(found), np.uint32)
        kernels.list_bits(rows, found, 0)
        return Up(found, by_row[rows], work)

    def down(self, frontier: Bitmap, *, parents: bool) -> Down:
        """Find the neighbours of an own frontier."""
        start = time.perf_counter()
        with self._container.file.reading():
            size, edges = kernels.weigh_words(frontier, self._sides[0].degrees)
            if edges <= self._few_edges and size <= MAX_HUBS:
                return self._list(frontier, size, edges, parents, start)
            found = full_bitmap(self.cut)
            counts = self._steps.down(frontier, found)
        return Down(None, found, None, self._work(counts, start))

    def _list(self, frontier: Bitmap, size: int, edges: int, parents: bool, start: float) -> Down:
        """Find the neighbours of a frontier with few edges."""
        ids, owners, counts = self._steps.down_ids(frontier, size, edges)
        if not parents:
            return Down(np.unique(ids), None, None, self._work(counts, start))
        ids, first = np.unique(ids, return_index=True)
        by = self.cut.vertex_of(self.part, owners[first]).astype(np.uint32)
        return Down(ids, None, by, self._work(counts, start))

    def heads(self) -> tuple[VertexArray, ...]:
        """Give the head of each row; those of the in-rows, too, if the graph is directed."""
        with self._container.file.reading():
            return tuple(rows.heads.copy() for rows in self._sides)

    def forest(self, giant: Bitmap) -> Forest:
        """Join own vertices outside a full bitmap with all their neighbours."""
        with self._container.file.reading():
            return find_forest(self._container, self._sides, giant, self._threads)

    def _work(self, counts: kernels.Counts, start: float) -> Work:
        if counts.malformed:
            raise damaged(self._container)
        return Work(
            edges=counts.edges,
            heads=counts.heads,
            tested=counts.tested,
            tail_bytes=counts.tail_bytes,
            seconds=time.perf_counter() - start,
        )

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
                raise damaged(container)
            edges, tail_bytes = edges + looked, tail_bytes + num_bytes
    over_ranges(compress_range, labels.size, threads, labels)
    vertices = np.flatnonzero(labels != np.arange(labels.size, dtype=np.uint32))
    work = Work(edges, tail_bytes=tail_bytes, seconds=time.perf_counter() - start)
    return Forest(vertices.astype(np.uint32), labels[vertices], work)


def damaged(container: Container) -> FormatError:
    """Say that a row is not what a converter wrote."""
    return FormatError(f"{container.path}: a row is damaged: run 'oocbfs verify'")

"""What shards of all engines do with the file of their shard: on the host, whatever searches it."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from itertools import pairwise

import numpy as np

from oocbfs.cluster.shard import Bitmap, Forest, VertexArray, Work
from oocbfs.errors import FormatError
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.graph.rows import rows_before
from oocbfs.kernels.rows import Rows
from oocbfs.kernels.shards.forest import compress_range, link_rows
from oocbfs.plan.host import PIECE_BYTES


class FileShard:
    """A shard of a graph in a file; its rows are of one or of both directions."""

    _sides: tuple[Rows, ...]

    def __init__(self, container: Container, threads: int) -> None:
        self.cut, self.number = _shard_of(container)
        self.path = str(container.path)
        self._container, self._threads = container, threads

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """Out- and in-rows, as the host has them."""
        return self._sides[0], self._sides[-1]

    def reading(self) -> AbstractContextManager[object]:
        """Read its file, which may be cut short meanwhile."""
        return self._container.file.reading()

    def heads(self) -> tuple[VertexArray, ...]:
        """Return the head of each row; those of the in-rows, too, if the graph is directed."""
        with self.reading():
            return tuple(rows.heads.copy() for rows in self._sides)

    def forest(self, largest: Bitmap) -> Forest:
        """Join own vertices outside a full bitmap with all their neighbours."""
        with self.reading():
            return self._find_forest(self._sides, largest, bounded=False)

    def _find_forest(self, sides: tuple[Rows, ...], largest: Bitmap, *, bounded: bool) -> Forest:
        """Join own vertices by rows with tails; if memory is bounded, let go of their pages."""
        start = time.perf_counter()
        labels = np.arange(self._container.num_ids, dtype=np.uint32)
        edges = tail_bytes = 0
        for rows in sides:
            bounds = [0, rows.heads.size]
            if bounded:
                offsets = np.arange(PIECE_BYTES, rows.tails.size, PIECE_BYTES)
                bounds[1:1] = rows_before(rows, offsets)
            for first, stop in pairwise(bounds):
                looked, num_bytes = self._link_rows(labels, largest, rows, first, stop)
                edges, tail_bytes = edges + looked, tail_bytes + num_bytes
                if bounded:
                    self._container.release()
        over_ranges(compress_range, labels.size, self._threads, labels)
        vertices = np.flatnonzero(labels != np.arange(labels.size, dtype=np.uint32))
        work = Work(edges, tail_bytes=tail_bytes, seconds=time.perf_counter() - start)
        return Forest(vertices.astype(np.uint32), labels[vertices], work)

    def _link_rows(
        self, labels: VertexArray, largest: Bitmap, rows: Rows, first: int, stop: int
    ) -> tuple[int, int]:
        """Join the vertices of some rows; return the edges looked at and their bytes."""
        cut = (self.number, self.cut.num_shards)
        index = (rows.heads, rows.bases, rows.starts, rows.shift, rows.tails)

        def work(begin: int, end: int) -> tuple[int, int]:
            found: tuple[int, int] = link_rows(
                labels, largest, *index, cut, first + begin, first + end
            )
            return found

        counted = over_ranges(work, stop - first, self._threads, least=64)
        if any(looked < 0 for looked, _ in counted):
            raise damaged(self.path)
        return sum(looked for looked, _ in counted), sum(size for _, size in counted)


def _shard_of(container: Container) -> tuple[Cut, int]:
    """Return the cut and the number of a shard that has rows."""
    if container.shard is None or container.shard.is_names:
        raise FormatError(f"{container.path}: is not a shard of a graph")
    return container.shard.cut, container.shard.number


def damaged(path: str) -> FormatError:
    """Return an error: a row is not what a converter wrote."""
    return FormatError(f"{path}: a row is damaged: run 'oocbfs verify'")

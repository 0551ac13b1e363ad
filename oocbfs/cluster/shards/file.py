"""What shards of all engines do with the file of their shard: on the host, whatever searches it."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

import numpy as np

from oocbfs.cluster.shard import Bitmap, Forest, VertexArray, Work
from oocbfs.errors import FormatError
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.kernels.rows import Rows
from oocbfs.kernels.shards.forest import compress_range, link_rows


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
            return _find_forest(self._container, self._sides, largest, self._threads)


def _shard_of(container: Container) -> tuple[Cut, int]:
    """Return the cut and the number of a shard that has rows."""
    if container.shard is None or container.shard.is_names:
        raise FormatError(f"{container.path}: is not a shard of a graph")
    return container.shard.cut, container.shard.number


def _find_forest(
    container: Container, sides: tuple[Rows, ...], largest: Bitmap, threads: int
) -> Forest:
    """Join the vertices of a shard that are outside a full bitmap with all their neighbours."""
    start = time.perf_counter()
    assert container.shard is not None
    labels = np.arange(container.num_ids, dtype=np.uint32)
    cut = (container.shard.number, container.shard.cut.num_shards)
    edges = tail_bytes = 0
    for rows in sides:
        index = (rows.heads, rows.bases, rows.starts, rows.shift, rows.tails)
        for looked, num_bytes in over_ranges(
            link_rows, rows.heads.size, threads, labels, largest, *index, cut
        ):
            if looked < 0:
                raise damaged(str(container.path))
            edges, tail_bytes = edges + looked, tail_bytes + num_bytes
    over_ranges(compress_range, labels.size, threads, labels)
    vertices = np.flatnonzero(labels != np.arange(labels.size, dtype=np.uint32))
    work = Work(edges, tail_bytes=tail_bytes, seconds=time.perf_counter() - start)
    return Forest(vertices.astype(np.uint32), labels[vertices], work)


def damaged(path: str) -> FormatError:
    """Return an error: a row is not what a converter wrote."""
    return FormatError(f"{path}: a row is damaged: run 'oocbfs verify'")

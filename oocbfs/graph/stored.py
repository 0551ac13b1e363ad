"""A graph that is open: ask it about its vertices, in the ids of the input."""

from __future__ import annotations

import logging
import os
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.container.transposed import TransposedContainer
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.io.page_cache import cached_share
from oocbfs.graph.any_stored import AnyStored
from oocbfs.graph.sizes import Sizes
from oocbfs.lazy import lazy
from oocbfs.memory import allow_unpacking, available_bytes, parse_size

# Kernels are imported when they are asked for: what a file says about itself needs none.
if TYPE_CHECKING:
    from oocbfs.graph.disk_rows import DiskRows
    from oocbfs.graph.lookup import Lookup
    from oocbfs.graph.single_rows import RowsReader, Work
    from oocbfs.kernels.rows import Rows

_log = logging.getLogger(__name__)
# Degrees that are looked at at a time.
_PIECE = 1 << 16
# Decoded rows that are kept beside the others take at most so much, or an eighth of what is free.
_MOST_DECODED_BYTES = 256 << 20


class StoredGraph(AnyStored):
    """A graph in an ``.ocg`` file: what it holds, and the parts of it that are in memory."""

    def __init__(self, container: Container, memory: str | int | None = None) -> None:
        super().__init__(container, None if memory is None else parse_size(memory))
        # Not a method, which would keep a graph alive that everybody dropped.
        container.before_unpacking = partial(
            allow_unpacking, self.path, budget_bytes=self.budget_bytes
        )
        self.num_arcs = container.num_arcs
        self.directed = container.directed

    @property
    def is_named(self) -> bool:
        """Whether other processes can open the file by its path."""
        return self._container.file.is_named

    @property
    def checksum(self) -> int:
        """Checksum of the header, which holds those of all sections: tells graphs apart."""
        return int(self._container.header["checksum"])

    @lazy
    def rows(self) -> Rows:
        """Neighbours of each stored vertex; out-neighbours if the graph is directed."""
        from oocbfs.graph.rows import load_rows

        return load_rows(self._container)

    @lazy
    def in_rows(self) -> Rows:
        """In-neighbours of each stored vertex; the same as ``rows`` if the graph is undirected."""
        from oocbfs.graph.rows import load_rows

        return load_rows(self._container, transposed=True) if self.directed else self.rows

    def rows_by_shard(self) -> Iterator[tuple[Rows, int]]:
        """Yield ``rows``, of shard 0."""
        yield self.rows, 0

    @lazy
    def num_non_isolated(self) -> int:
        """Vertices up to the last one that has an edge; engines leave out those behind it.

        In the order of degrees those are all that have none: half of a Kronecker graph.
        """
        kinds = (Kind.DEGREES, Kind(Kind.DEGREES + TRANSPOSED))[: 1 + self.directed]
        part = self._container.part

        def is_alone(vertex: int) -> bool:
            return not any(part(kind, vertex, vertex + 1)[0] for kind in kinds)

        if self.order_name == "degree":
            # This order is by all edges, so that a cold file need not be read to its end.
            count = bisect_left(range(self.num_vertices), True, key=is_alone)
        else:
            count = max(_num_non_isolated(part, kind, self.num_vertices) for kind in kinds)
        if count < self.num_vertices:
            from oocbfs.graph.rows import check_end

            check_end(self._container, count)
        return count

    @lazy
    def non_isolated_rows(self) -> tuple[Rows, Rows]:
        """``rows`` and ``in_rows`` up to the last vertex that is not isolated."""
        from oocbfs.kernels.rows import first_rows

        rows = first_rows(self.rows, self.num_non_isolated)
        return rows, first_rows(self.in_rows, self.num_non_isolated) if self.directed else rows

    @lazy
    def decoded_rows(self) -> tuple[Rows, Rows]:
        """``non_isolated_rows``, decoded besides if the graph is small and nobody set a budget.

        Decoding takes about as long as a search, and later ones take half as long.
        """
        from oocbfs.graph.rows import decode_rows

        rows, in_rows = self.non_isolated_rows
        num_bytes = 4 * (rows.heads.size + 1 + self.num_arcs) * (2 if self.directed else 1)
        may_decode = num_bytes <= min(_MOST_DECODED_BYTES, available_bytes() // 8)
        if not may_decode or self.budget_bytes is not None:
            return rows, in_rows
        decoded = decode_rows(rows)
        return decoded, decode_rows(in_rows) if self.directed else decoded

    @cached_property
    def kept_scratch(self) -> list[Any]:
        """Memory of searches on the CPU, for the next one; see ``kernels.bfs.search``."""
        return []

    @cached_property
    def lookup(self) -> Lookup:
        """Finds a few vertices without arrays as large as the graph."""
        from oocbfs.graph.lookup import Lookup

        return Lookup(self)

    @lazy
    def single_rows(self) -> RowsReader:
        """Rows that are read by themselves, from the mapped file; nothing is checked or loaded."""
        from oocbfs.graph.single_rows import RowsReader

        return RowsReader(self._container, from_disk=False)

    @lazy
    def single_disk_rows(self) -> RowsReader:
        """The same, read from disk one by one."""
        from oocbfs.graph.single_rows import RowsReader

        return RowsReader(self._container, from_disk=True)

    @cached_property
    def kept_work(self) -> deque[Work]:
        """Memory of searches of small reaches, for the next ones: one for each thread."""
        return deque()

    @lazy
    def disk_rows(self) -> DiskRows:
        """Heads and starts in memory of their own, and the way to the tails on disk."""
        from oocbfs.graph.disk_rows import DiskRows

        return DiskRows(self._container, self.num_non_isolated)

    @property
    def lacks_room(self) -> bool:
        """Whether there is no room for tails in frames, unpacked, and they can stay on disk."""
        container, sizes = self._container, self.sizes
        if sizes.is_archive or not sizes.has_framed_tails or container.has_unpacked(Kind.TAILS):
            return False
        return self.is_named and sizes.unpacked_bytes > available_bytes()

    def expect_unpacking(self) -> None:
        """Refuse a graph of the older compressed kind that has no room; others can stay on disk."""
        if self.sizes.is_archive:
            super().expect_unpacking()

    @property
    def has_disk_rows(self) -> bool:
        """Whether ``disk_rows`` are in memory already."""
        return "disk_rows" in self.__dict__ and self.disk_rows.is_loaded

    @property
    def fast_bytes(self) -> int:
        """Bytes of ``disk_rows``: heads and starts of non-isolated vertices, and bases."""
        left_out = 8 * (self.num_vertices - self.num_non_isolated) * (2 if self.directed else 1)
        return self.sizes.fast_bytes - left_out

    @property
    def disk_rows_bytes(self) -> int:
        """Bytes of ``disk_rows`` that are in memory already."""
        return self.fast_bytes if self.has_disk_rows else 0

    @property
    def stored_degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each stored vertex; out-neighbours if the graph is directed."""
        self._container.expect(Kind.DEGREES)
        degrees: NDArray[np.uint32] = self._container.section(Kind.DEGREES)
        return degrees

    def degrees_at(self, stored: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Numbers of neighbours of a few stored vertices, which are read alone."""
        return self._container.items(Kind.DEGREES, stored)

    @cached_property
    def sizes(self) -> Sizes:
        """How much memory which parts take."""
        return Sizes.of(self._container)

    def neighbor_ids(self, vertex: int, *, inward: bool) -> Ids:
        """Ids of the neighbours of an id, also where users know vertices by names."""
        from oocbfs.graph.rows import neighbours

        with self.reading():
            rows = self.in_rows if inward else self.rows
            stored = int(self.stored(np.array([vertex], np.uint64))[0])
            found = self.ids_of(neighbours(rows, stored))
        found.sort()
        return found

    def _natural_arcs(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
        from oocbfs.graph.rows import decode_edges

        return decode_edges(self.rows, self.order, once=False)

    def id_edges(self) -> Iterator[Edges]:
        """Yield all edges as ids, also where users know vertices by names."""
        return self.each(self._decode_edges())

    def _decode_edges(self) -> Iterator[Edges]:
        from oocbfs.graph.rows import decode_edges

        for sources, targets in decode_edges(self.rows, self.order, once=not self.directed):
            yield Edges(self._natural_ids(sources), self._natural_ids(targets))

    def natural_rows(
        self, *, inward: bool = False
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield all rows in the order of the ids, some at a time: degrees, neighbours.

        Neighbours are positions, those of one row ascending. Beside what is yielded, this takes 4
        bytes for each vertex, unless vertices are stored in the order of their ids.
        """
        return self.each(self._decode_naturally(inward))

    def _decode_naturally(
        self, inward: bool
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        from oocbfs.graph.rows import decode_naturally

        stored_at = None if self.order is None else self.stored_at
        return decode_naturally(self.in_rows if inward else self.rows, self.order, stored_at)

    def natural_degrees(self, *, inward: bool = False) -> Iterator[NDArray[np.uint32]]:
        """Yield the numbers of neighbours in the order of the ids, some at a time."""
        return self.each(self._degrees_in_order(inward))

    def _degrees_in_order(self, inward: bool) -> Iterator[NDArray[np.uint32]]:
        degrees = (self.in_rows if inward else self.rows).degrees
        for first in range(0, degrees.size, _PIECE):
            part = slice(first, first + _PIECE)
            yield degrees[part] if self.order is None else degrees[self.stored_at[part]]

    def _degree_sections(self, *, inward: bool) -> Iterator[NDArray[np.uint32]]:
        kind = Kind(Kind.DEGREES + (TRANSPOSED if inward else 0))
        self._container.expect(kind)
        yield self._container.section(kind)

    def cached_share(self) -> float | None:
        """Estimate how much of the tails is in memory; None if the system does not tell."""
        record = self._container.sections[Kind.TAILS]
        begin = int(record["offset"])
        end = begin + int(record["stored_bytes"])
        return cached_share(self._container.file.descriptor, begin, end)

    @property
    def is_reversed(self) -> bool:
        """Whether every edge is turned around."""
        return isinstance(self._container, TransposedContainer)

    def reversed(self) -> StoredGraph:
        """Open the same file with every edge turned around."""
        with self.reading():
            container = TransposedContainer(self.path, self._container.file.source)
            container.file.is_named = self.is_named
        return StoredGraph(container, self.budget_bytes)

    def share_disk_rows(self, turned: StoredGraph) -> None:
        """Let this graph turned around use the same rows in memory; it is closed first."""
        turned.__dict__["disk_rows"] = self.disk_rows.turned()

    def info(self) -> dict[str, Any]:
        """Return what the file says about itself, without reading the graph."""
        found = self._info(
            bits_per_arc=self._container.bits_per_arc,
            file_bytes=int(self._container.header["file_bytes"]),
            unpacked_bytes=self.sizes.unpacked_bytes,
        )
        return found | {
            "sections": [
                {
                    "name": kind.name.lower(),
                    "encoding": ("raw", "zstd", "frames")[int(record["encoding"])],
                    "bytes": int(record["raw_bytes"]),
                    "stored_bytes": int(record["stored_bytes"]),
                }
                for kind, record in self._container.sections.items()
            ],
        }

    def close(self) -> None:
        """Drop the mapping; arrays that were given out stay valid.

        This does not wait for searches of other threads: the last of them closes the file.
        What is asked for after this is refused.
        """
        self._container.file.close(self._drop)

    def _drop(self) -> None:
        self.release_device()
        kept = ("kept_scratch", "result_pool", "kept_work", "kept_questions", "lookup")
        rows = ("single_rows", "single_disk_rows")
        for name in (
            "rows",
            "in_rows",
            "non_isolated_rows",
            "decoded_rows",
            "order",
            "stored_at",
            "_id_section",
            *kept,
            *rows,
        ):
            self.__dict__.pop(name, None)
        if "disk_rows" in self.__dict__:
            self.__dict__.pop("disk_rows").close()
        self._container.drop()


def _num_non_isolated(part: Callable[..., NDArray[Any]], kind: Kind, num_vertices: int) -> int:
    """Count the vertices up to the last one that has an edge."""
    for end in range(num_vertices, 0, -_PIECE):
        found = np.flatnonzero(part(kind, max(0, end - _PIECE), end))
        if found.size:
            return max(0, end - _PIECE) + int(found[-1]) + 1
    return 0


def open_stored(path: str | os.PathLike[str], *, memory: str | int | None = None) -> StoredGraph:
    """Open a graph in one file, and nothing else; see ``oocbfs.open``."""
    container = Container(path)
    if container.shard is not None:
        container.close()
        raise FormatError(f"{container.path}: is a shard of a graph: name its folder instead")
    graph = StoredGraph(container, memory)
    _log.debug("opened %s: %d vertices, %d edges", path, graph.num_vertices, graph.num_edges)
    return graph

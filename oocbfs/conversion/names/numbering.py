"""From edges between names to edges between numbers, and the list of names."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.conversion.edge_log import EdgeLog
from oocbfs.conversion.ids import check_count
from oocbfs.conversion.names.merge import Merge, least_bytes
from oocbfs.conversion.names.table import NameTable, Run
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.spill import SpillFile
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.writer import ContainerWriter
from oocbfs.formats.edges import Declared, Edges, NamedEdges, NamedEdgeStream
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels.names import merge as merge_kernels
from oocbfs.kernels.names import sort as sort_kernels
from oocbfs.kernels.names import table as table_kernels
from oocbfs.kernels.names import words

# Edges that are numbered at a time.
_PIECE_EDGES = 1 << 16
# More tables are faster, but each must hold many names.
_MOST_TABLES, _TABLE_BYTES = 16, 4 << 20
_COPY_BYTES = 1 << 20


def load() -> None:
    """Load all kernels, so that a conversion knows what memory they take."""
    for module in (words, table_kernels, sort_kernels, merge_kernels):
        for value in vars(module).values():
            if hasattr(value, "prepare"):
                value.prepare()


@dataclass(frozen=True)
class _Generation:
    """Runs that were written together, and which batches of edges use their numbers."""

    first_run: int
    batches: range


class Numbering(Closing):
    """The edges of a stream of names, as a stream of numbers: the positions of the names.

    First ``read``, then ``merge``; then it is an ``EdgeStream``, and ``write`` writes the names.
    """

    unit = "edge"

    def __init__(self, resources: Resources, stream: NamedEdgeStream) -> None:
        self._resources, self._stream = resources, stream
        self._threads = resources.plan.threads
        held = resources.plan.held_bytes
        self._log = EdgeLog(resources.folder, held // 8)
        self._records, self._positions, self._vertices, self._names, self._starts = (
            SpillFile(resources.folder) for _ in range(5)
        )
        self._seed = np.uint64(secrets.randbits(64))
        share = held // 2
        self._partitions = partitions = max(
            1, min(self._threads, _MOST_TABLES, share // _TABLE_BYTES)
        )
        self._tables = [
            NameTable(share // partitions, self._seed, partition, partitions)
            for partition in range(partitions)
        ]
        self._runs: list[Run] = []
        self._generations: list[_Generation] = []
        self.name, self.declared = stream.name, Declared()
        self.total: int | None = None
        self.done = 0
        self.num_names = 0

    # 1. Read

    def read(self) -> None:
        """Assign numbers to all names as they come."""
        stream = self._stream
        with self._resources.phases("read", stream.total, stream.unit) as bar:
            for edges in stream.named_batches():
                for first in range(0, edges.num_edges, _PIECE_EDGES):
                    stop = min(first + _PIECE_EDGES, edges.num_edges)
                    self._add(edges.slice(first, stop))
                self._resources.plan.watch.is_over()
                bar.update(stream.done - bar.n)
            self._end_generation()
        self._tables.clear()
        memory.give_back()
        self.total = self._log.num_edges

    def _add(self, edges: NamedEdges) -> None:
        num_bytes = int(edges.lengths.sum(dtype=np.int64))
        if not self._have_room(edges, num_bytes):
            self._end_generation()
            if not self._have_room(edges, num_bytes) and edges.num_edges > 1:
                half = edges.num_edges // 2
                self._add(edges.slice(0, half))
                self._add(edges.slice(half, edges.num_edges))
                return
        hashes = np.empty(edges.starts.size, np.uint64)
        numbers = np.empty(edges.starts.size, np.uint32)
        step = -(-hashes.size // len(self._tables))

        def mix(first: int) -> None:
            piece = slice(first, first + step)
            words.hash_names(
                hashes[piece],
                edges.text,
                edges.starts[piece],
                edges.lengths[piece],
                self._seed,
            )

        def number(table: NameTable) -> None:
            table.number(numbers, hashes, edges)

        list(ordered_map(mix, range(0, hashes.size, step), self._partitions))
        list(ordered_map(number, self._tables, self._partitions))
        ends = numbers.astype(np.uint64)
        self._log.append(Edges(ends[0::2].copy(), ends[1::2].copy()))

    def _have_room(self, edges: NamedEdges, num_bytes: int) -> bool:
        # A table may get all names of a batch.
        return all(table.has_room(edges.starts.size, num_bytes) for table in self._tables)

    def _end_generation(self) -> None:
        """Write the names of all tables as runs, one after the other in the files."""
        self._log.finish()
        first = self._generations[-1].batches.stop if self._generations else 0
        if first == len(self._log):
            return
        self._generations.append(_Generation(len(self._runs), range(first, len(self._log))))
        self._runs += ordered_map(self._write_run, self._tables, self._partitions)

    def _write_run(self, table: NameTable) -> Run:
        return table.write_run(self._records, self._positions)

    # 2. Merge

    def merge(self) -> None:
        """Make the list of all names, and find out which vertex each name of each run is."""
        held = self._resources.plan.held_bytes
        self._resources.require(least_bytes(self._runs), f"{len(self._runs):,} runs of names")
        total = sum(run.num_names for run in self._runs)
        with self._resources.phases("names", total, "name") as bar:
            merge = Merge(self._runs, self._records, self._vertices, held // 4)
            merge.run(self._names, self._starts, bar.update)
        self._records.close()
        self.num_names = merge.num_names
        check_count(self.num_names)
        self._vertices_starts = merge.vertices_starts
        self.declared = replace(self._stream.declared, num_vertices=self.num_names)

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        files = (self._records, self._positions, self._vertices, self._names, self._starts)
        return self._log.spilled_bytes + sum(file.size for file in files)

    # 3. An edge stream

    def batches(self) -> Iterator[Edges]:
        """Yield the edges between positions of names."""
        for generation in self._generations:
            vertices = self._vertices_of(generation)

            def renamed(index: int, vertices: NDArray[np.uint32] = vertices) -> Edges:
                edges = self._log.take(index)
                sources, targets = (
                    vertices[ends].astype(np.uint64) for ends in (edges.sources, edges.targets)
                )
                return Edges(sources, targets)

            for edges in ordered_map(renamed, generation.batches, self._threads):
                self.done += edges.sources.size
                yield edges
            del vertices, renamed
        self._log.close()
        self._positions.close()
        self._vertices.close()

    def _vertices_of(self, generation: _Generation) -> NDArray[np.uint32]:
        """Return the vertex of each number of a generation."""
        partitions = self._partitions
        runs = self._runs[generation.first_run : generation.first_run + partitions]
        vertices = np.zeros(partitions * max(run.num_names for run in runs), np.uint32)
        for partition, run in enumerate(runs):
            positions = np.empty(run.num_names, np.uint32)
            self._positions.read_into(positions, run.positions_start)
            by_position = np.empty(run.num_names, np.uint32)
            place = self._vertices_starts[generation.first_run + partition]
            self._vertices.read_into(by_position, place)
            vertices[partition::partitions][: run.num_names] = by_position[positions]
        return vertices

    # 4. The names

    def write(self, container: ContainerWriter) -> None:
        """Write the sections of names."""
        for kind, spill in ((Kind.NAMES, self._names), (Kind.NAME_STARTS, self._starts)):
            section = container.begin(kind, spill.size)
            for start in range(0, spill.size, _COPY_BYTES):
                piece = np.empty(min(_COPY_BYTES, spill.size - start), np.uint8)
                spill.read_into(piece, start)
                section.write(piece)
            spill.close()

    def close(self) -> None:
        """Release memory and disk space."""
        self._tables.clear()
        self._log.close()
        for file in (self._records, self._positions, self._vertices, self._names, self._starts):
            file.close()

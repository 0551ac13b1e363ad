"""The folder of a sharded graph, opened: its files, and what they say without a search."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.exchange import Shape
from oocbfs.cluster.manifest import Manifest
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.formats.edges import Edges, Ids
from oocbfs.graph.any_stored import AnyStored
from oocbfs.graph.sizes import Sizes
from oocbfs.memory import parse_size

if TYPE_CHECKING:
    from oocbfs.formats.container.reader import Container
    from oocbfs.kernels.rows import Rows


class ShardFolder(AnyStored):
    """The vertices of a sharded graph, and its rows, which are read shard by shard."""

    def __init__(self, folder: str | os.PathLike[str], memory: str | int | None = None) -> None:
        self.manifest = Manifest.read(folder)
        super().__init__(self.manifest.open(None), None if memory is None else parse_size(memory))
        self.num_arcs = self.manifest.num_arcs
        self.directed = self.manifest.directed
        self.num_shards = self.manifest.cut.num_shards
        self._shards: dict[int, Container] = {}

    @property
    def path(self) -> str:
        """Name of the folder."""
        return str(self.manifest.folder)

    @property
    def checksum(self) -> int:
        """Checksum of the graph that was cut: tells graphs apart."""
        return self.manifest.graph_checksum

    @property
    def spill_folder(self) -> Path | None:
        """Folder for results that have no room in memory; None is the system's."""
        return self.manifest.folder if os.access(self.manifest.folder, os.W_OK) else None

    @property
    def stored_degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each stored vertex; out-neighbours if the graph is directed."""
        degrees: NDArray[np.uint32] = self._container.section(Kind.DEGREES)
        return degrees

    @cached_property
    def shape(self) -> Shape:
        """What drives a search."""
        manifest = self.manifest
        return Shape(manifest.cut, manifest.num_arcs, manifest.connected, manifest.useful)

    @cached_property
    def sizes(self) -> Sizes:
        """How much memory which parts take, of all shards."""
        return Sizes.of(*map(self.shard, range(self.shape.cut.num_shards)))

    def shard(self, number: int) -> Container:
        """Open the file of a shard; kept until ``close``."""
        if number not in self._shards:
            self._shards[number] = self.manifest.open(number)
        return self._shards[number]

    def neighbor_ids(self, vertex: int, *, inward: bool) -> Ids:
        """Ids of the neighbours of an id, also where users know vertices by names."""
        from oocbfs.graph.rows import load_rows, neighbours

        cut = self.shape.cut
        stored = self.stored(np.array([vertex], np.uint64))
        container = self.shard(int(cut.shard_of(stored)[0]))
        with self.reading(), container.file.reading():
            rows = load_rows(container, transposed=inward and self.directed)
            found = self.ids_of(neighbours(rows, int(cut.row_of(stored)[0])))
        found.sort()
        return found

    def stored_edges(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield all edges as stored vertices, a bounded number at a time; undirected ones twice."""
        from oocbfs.graph.rows import decode_edges

        for rows, number in self.rows_by_shard():
            for sources, targets in decode_edges(rows, None, once=False):
                yield self.shape.cut.vertex_of(number, sources), targets.astype(np.int64)

    def rows_by_shard(self) -> Iterator[tuple[Rows, int]]:
        """Yield the rows of each shard, and its number."""
        from oocbfs.graph.rows import load_rows

        for number in range(self.shape.cut.num_shards):
            container = self.shard(number)
            with container.file.reading():
                yield load_rows(container), number

    def id_edges(self) -> Iterator[Edges]:
        """Yield all edges as ids, also where users know vertices by names."""
        return self.each(self._named_edges())

    def _degree_sections(self, *, inward: bool) -> Iterator[NDArray[np.uint32]]:
        if not inward:
            yield self.stored_degrees
            return
        for number in range(self.shape.cut.num_shards):
            container = self.shard(number)
            with container.file.reading():
                yield container.section(Kind(Kind.DEGREES + TRANSPOSED))

    def _natural_arcs(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
        for stored in self.stored_edges():
            natural = stored if self.order is None else [self.order[side] for side in stored]
            sources, targets = (side.astype(np.uint64) for side in natural)
            yield sources, targets

    def _named_edges(self) -> Iterator[Edges]:
        for sources, targets in self._natural_arcs():
            if not self.directed:
                once = sources < targets
                sources, targets = sources[once], targets[once]
            yield Edges(self._natural_ids(sources), self._natural_ids(targets))

    def info(self) -> dict[str, Any]:
        """Return what the folder says about itself, without reading the graph."""
        manifest = self.manifest
        containers = [self.shard(number) for number in range(self.shape.cut.num_shards)]
        found = self._info(
            bits_per_arc=manifest.bits_per_arc,
            file_bytes=manifest.file_bytes,
            unpacked_bytes=self.sizes.unpacked_bytes,
        )
        return found | {
            "parts": [
                {
                    "name": file.name,
                    "vertices": shard.num_vertices,
                    "arcs": file.arcs,
                    "bytes": file.bytes,
                }
                for file, shard in zip(manifest.shards, containers, strict=True)
            ],
            "sections": [],
        }

    def release(self) -> None:
        """Let go of mapped pages, so that they count as memory of this process no more."""
        for container in (self._container, *self._shards.values()):
            container.release()

    def close(self) -> None:
        """Let go of the files."""
        while self._shards:
            self._shards.popitem()[1].close()
        self.__dict__.pop("_id_section", None)
        self._container.close()

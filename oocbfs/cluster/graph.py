"""A graph in parts that is open: the same questions as to a graph in one file, in input ids."""

from __future__ import annotations

import os
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oocbfs import __version__
from oocbfs.cluster.connect import connect
from oocbfs.cluster.driver import Shape
from oocbfs.cluster.exchange import Exchange
from oocbfs.cluster.manifest import Manifest
from oocbfs.cluster.shard import ShardRef
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.ordered import available_threads
from oocbfs.graph.vertices import Vertices
from oocbfs.memory import parse_size


class ShardedGraph(Vertices, Closing):
    """A graph in parts, opened by ``oocbfs.open``."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        memory: str | int | None = None,
        cluster: str | None = None,
    ) -> None:
        self.manifest = Manifest.read(folder)
        super().__init__(self.manifest.open(None), None if memory is None else parse_size(memory))
        self.cluster = cluster
        self.num_edges = self.manifest.num_edges
        self.directed = self.manifest.directed
        self._exchange: Exchange | None = None

    @property
    def path(self) -> str:
        """Name of the folder."""
        return str(self.manifest.folder)

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each stored vertex; out-neighbours if the graph is directed."""
        degrees: NDArray[np.uint32] = self._container.section(Kind.DEGREES)
        return degrees

    @cached_property
    def shape(self) -> Shape:
        """What drives a search."""
        manifest = self.manifest
        return Shape(manifest.cut, manifest.num_edges, manifest.connected, manifest.useful)

    def refs(self, *, threads: int, engine: str = "auto") -> list[ShardRef]:
        """Say where each shard is, and how to open it."""
        return [
            ShardRef(
                path=os.path.realpath(self.manifest.path_of(part)),
                part=part,
                parts=len(self.manifest.parts),
                num_vertices=self.num_vertices,
                checksum=file.checksum,
                version=__version__,
                engine=engine,
                threads=threads,
                memory=self.budget_bytes,
            )
            for part, file in enumerate(self.manifest.parts)
        ]

    def exchange(self, threads: int | None = None) -> Exchange:
        """Reach the shards; kept until ``close``."""
        if self._exchange is None:
            refs = self.refs(threads=available_threads(threads))
            self._exchange = connect(self.cluster, refs, self.degrees)
        return self._exchange

    def close(self) -> None:
        """Let go of the shards and of the file."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None
        self._container.close()

"""The graph that users open: ask it about vertices, search it, find its components."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.reader import Container
from oocbfs.graph.stored import StoredGraph
from oocbfs.graph.vertices import Vertex
from oocbfs.memory import parse_size
from oocbfs.settings import (
    DEFAULT_SCHEDULE,
    Direction,
    Emit,
    Engine,
    ManyEngine,
    Schedule,
    Settings,
    Strategy,
    file_name,
    settings_of,
)

# Searches are imported when they are asked for: opening a graph needs none of their kernels.
if TYPE_CHECKING:
    from oocbfs.cluster.graph import ShardedGraph
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult
    from oocbfs.results.source import SourceResults

# The word for a source in the largest component.
GIANT = "giant"

_log = logging.getLogger(__name__)


class Graph(StoredGraph):
    """A graph in an ``.ocg`` file, opened by ``oocbfs.open``."""

    def __repr__(self) -> str:
        return f"<Graph: {self.title}>"

    @property
    def title(self) -> str:
        """What the file holds, in one line."""
        kind = "directed" if self.directed else "undirected"
        return (
            f"{file_name(self.path)}: {self.num_vertices:,} vertices, {self.num_edges:,} "
            f"edges, {kind}, {self.order_name} order"
        )

    def _repr_html_(self) -> str:
        from oocbfs.results.notebook import graph_html

        return graph_html(self)

    def bfs(
        self,
        source: Vertex | Iterable[Vertex],
        *,
        parents: bool = False,
        threads: int | None = None,
        direction: Direction = "auto",
        max_depth: int | None = None,
        target: Vertex | None = None,
        validate: bool = False,
        engine: Engine = "auto",
        vram: str | int | None = None,
        resident_tails: str | int | None = None,
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
        method: str = "auto",
        schedule: Schedule | None = None,
        devices: Iterable[int] | None = None,
    ) -> BfsResult:
        """Find the distance of every vertex from a source, or from the nearest of several.

        Several threads may traverse one open graph at a time.

        Parameters
        ----------
        source
            An id or several, or ``"giant"``: the smallest id of the largest component. Names where
            the graph has names; ``["giant"]`` is the vertex of that name.
        parents
            Keep a parent for each vertex too.
        threads
            How many cores to use; None is all.
        direction
            Choose the direction of each level by what it costs, or force one.
        max_depth
            Stop after so many levels.
        target
            Stop when this vertex is reached.
        validate
            Check the result by the rules of Graph500.
        engine
            ``"cpu"`` is all cores on the mapped file; ``"disk"`` is all cores with the tails read
            from disk as they are needed; ``"emulator"`` runs the CUDA kernels on the CPU and counts
            the bytes they would move over PCIe; ``"cuda"`` runs them on a GPU. ``"auto"`` is the
            GPU where CuPy finds one that can take the graph, else the CPU; ``stats.fallback`` says
            why. With ``memory`` it is the CPU, or the disk where the file is larger. Without, it is
            the disk for the first traversal of a large file that is not in memory yet;
            ``stats.engine_reason`` says so. What a traversal brings to a device stays there for the
            next with the same options, until ``close`` or ``release_device``.
        vram
            Device memory to use, such as ``"5G"``; None is what is free. The emulator has no limit,
            and keeps no tails in device memory unless it is given one.
        resident_tails
            How much of the tails to keep in device memory, such as ``"25%"`` or ``"512M"``; None is
            as much as fits.
        progress
            Show bars while the graph is brought to the GPU, on a terminal only.
        memory
            Bound for the whole process on the CPU, as ``"4G"``; by default that of ``open``.
        tmp
            Folder for results that have no room in memory; by default that of the graph.
        method
            How to traverse: ``"auto"`` is the best we know; the others are those of the papers, for
            comparison, such as ``"v3.3"`` or ``"two-phase:filter=mask+warp"``.
            ``oocbfs.methods.METHODS`` lists them, with the engines they run on.
        schedule
            The order in which the emulator runs threads; ``oocbfs.settings.Schedule``.
        devices
            Numbers of GPUs of this host, such as ``[0, 1]``: each gets a part of the graph, and
            ``vram`` and ``resident_tails`` are of each. The host must hold all tails meanwhile.
            ``stats.link_bytes`` are what they sent each other. The emulator plays as many devices.

        Raises
        ------
        QueryError
            If an id does not name a vertex, there is no such method, it does not run on the engine,
            its queues overflow (``QueueError``), or the result does not pass validation.
        FormatError
            If the graph is damaged, or cannot be read any more.
        BudgetError
            If device or host memory, or ``memory``, is too small; says how much is needed.
        """
        from oocbfs.search.bfs import bfs

        settings = settings_of(
            memory=self._budget(memory),
            threads=threads,
            engine=engine,
            vram=vram,
            resident_tails=resident_tails,
            progress=progress,
            tmp=tmp,
            direction=direction,
            max_depth=max_depth,
            target=target,
            validate=validate,
            method=method,
            schedule=schedule or DEFAULT_SCHEDULE,
            devices=None if devices is None else tuple(devices),
        )
        sources = self._resolve(source, parents, settings)
        return bfs(self, sources, parents=parents, settings=settings)

    def bfs_many(
        self,
        sources: Iterable[Vertex],
        *,
        emit: Emit = "summary",
        targets: Iterable[Iterable[Vertex]] | None = None,
        threads: int | None = None,
        memory: str | int | None = None,
        strategy: Strategy = "auto",
        engine: ManyEngine = "auto",
    ) -> SourceResults:
        """Find the distances from each of many sources; yields one result a source, in their order.

        ``to_pandas``, ``to_arrow`` and ``plot`` of what this gives take all results at once.

        Parameters
        ----------
        sources
            Ids, as many as you like; 64 are traversed at a time.
        emit
            ``"summary"`` counts the vertices of each level; ``"levels"`` gives every vertex's level
            too; ``"pairs"`` gives the distances of the targets.
        targets
            With ``"pairs"``, the ids whose distances are wanted, one list for each source.
        threads
            How many cores to use; None is all.
        memory
            Bound for the whole process, as ``"4G"``; by default that of ``open``. With less than
            the file's size, tails stay on disk, and 64, 32, 16 or 8 sources share what is read.
        strategy
            ``"together"`` shares one pass over the graph between 64 sources, ``"one-per-core"``
            runs each by itself, or one after the other from disk; ``"auto"`` takes the latter for
            few sources and for long thin graphs.
        engine
            Where 64 sources are traversed together, as for ``bfs``.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        BudgetError
            If the memory is not enough.
        FormatError
            If the graph is damaged.
        """
        from oocbfs.search.many import bfs_many

        settings = settings_of(memory=self._budget(memory), threads=threads, engine=engine)
        return bfs_many(
            self, sources, emit=emit, targets=targets, strategy=strategy, settings=settings
        )

    def components(
        self,
        *,
        threads: int | None = None,
        engine: Engine = "auto",
        vram: str | int | None = None,
        resident_tails: str | int | None = None,
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
    ) -> ComponentsResult:
        """Find the connected components; of a directed graph the weakly connected ones.

        Parameters
        ----------
        threads
            How many cores to use; None is all.
        engine, vram, resident_tails, progress, memory, tmp
            As for ``bfs``.

        Raises
        ------
        FormatError
            If the graph is damaged, or cannot be read any more.
        BudgetError
            If device or host memory, or ``memory``, is too small; says how much is needed.
        """
        from oocbfs.search.components import components

        settings = settings_of(
            memory=self._budget(memory),
            threads=threads,
            engine=engine,
            tmp=tmp,
            vram=vram,
            resident_tails=resident_tails,
            progress=progress,
        )
        return components(self, settings)

    def _resolve(
        self, source: Vertex | Iterable[Vertex], parents: bool, settings: Settings
    ) -> Vertex | Iterable[Vertex]:
        """Give the id that a word stands for, and ids as they are."""
        if not isinstance(source, str) or source != GIANT:
            return source
        from oocbfs.search.components import components
        from oocbfs.search.decision import decide, giant_settings

        if settings.memory is not None and settings.on_host:
            with self.reading():
                self.expect_unpacking()
                decide(self, from_giant=True, parents=parents, settings=settings)
        found = components(self, giant_settings(settings))
        if found.giant is None:
            raise QueryError(f"{self.path}: has no vertex to start from")
        label: Vertex = found.giant.label
        return label

    def reversed(self) -> Graph:
        """Open the same graph with every edge turned around; it is closed by itself."""
        from oocbfs.formats.container.transposed import TransposedContainer

        with self.reading():
            container = TransposedContainer(self.path, self._container.file.source)
        return Graph(container, self.budget_bytes)

    def _budget(self, memory: str | int | None) -> int | None:
        """Give the bytes that a search may take, by default those of ``open``."""
        return self.budget_bytes if memory is None else parse_size(memory)


@overload
def open(path: str | os.PathLike[str], *, memory: str | int | None = None) -> Graph: ...
@overload
def open(
    path: str | os.PathLike[str], *, memory: str | int | None = None, cluster: str | None
) -> ShardedGraph: ...
def open(
    path: str | os.PathLike[str], *, memory: str | int | None = None, cluster: str | None = None
) -> Any:
    """Open a graph for reading: a file, or the folder of a graph in parts.

    Parameters
    ----------
    path
        The file, or the folder.
    memory
        Bound for the process while it traverses, as ``"4G"``; see ``Graph.bfs``.
    cluster
        Where the parts of a graph are searched, such as ``"local:4"``: four processes of this
        machine. None is this process. Type checkers take a path without it for a file.

    Raises
    ------
    FormatError
        If the file is not a graph, is damaged, or comes from another version.
    """
    if os.path.isdir(path):
        from oocbfs.cluster.graph import ShardedGraph

        return ShardedGraph(path, memory, cluster)
    graph = open_file(path, memory=memory)
    if cluster is not None:
        graph.close()
        raise QueryError(
            f"{graph.path}: is in one file, and a cluster wants parts: cut it with 'oocbfs shard'"
        )
    return graph


def open_file(path: str | os.PathLike[str], *, memory: str | int | None = None) -> Graph:
    """Open a graph in one file, and nothing else; see ``open``."""
    container = Container(path)
    if container.part is not None:
        container.close()
        raise FormatError(f"{container.path}: is a part of a graph: name its folder instead")
    graph = Graph(container, memory)
    _log.debug("opened %s: %d vertices, %d edges", path, graph.num_vertices, graph.num_edges)
    return graph

"""A graph in parts that is open: the same questions as to a graph in one file, in input ids."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oocbfs.arrays import ResultPool
from oocbfs.cluster.budget import ON_DEVICES
from oocbfs.cluster.connect import connect
from oocbfs.cluster.folder import PartFolder
from oocbfs.cluster.shard import ShardRef
from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.graph.vertices import Vertex
from oocbfs.memory import parse_size
from oocbfs.settings import Direction, Emit, Settings, Strategy
from oocbfs.version import __version__

if TYPE_CHECKING:
    from oocbfs.cluster.exchange import Exchange
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult
    from oocbfs.results.source import SourceResults

# Where parts are searched in any process: in the mapped file, with tails on disk, or on a device.
_ENGINES = ("auto", "cpu", "disk", *ON_DEVICES)


class ShardedGraph(PartFolder):
    """A graph in parts, opened by ``oocbfs.open``; ``cluster`` says where its parts are searched.

    None is this process, ``"local:4"`` processes of this machine.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        memory: str | int | None = None,
        cluster: str | None = None,
    ) -> None:
        super().__init__(folder, memory)
        self.cluster = cluster
        self._exchange: tuple[tuple[Any, ...], Exchange] | None = None

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
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
        force: bool = False,
        gather: bool = True,
        **others: Any,  # noqa: ANN401
    ) -> BfsResult:
        """Find the distance of every vertex from a source, or from the nearest of several.

        Parameters
        ----------
        threads
            How many cores each process uses; None is all, divided among processes of one machine.
        memory
            Bound for this process, as ``"4G"``, and for each worker; by default that of ``open``.
        force
            Search graphs, too, that have so many levels that messages would take longer than
            the search.
        gather
            Bring all levels into the order of the ids at once. If not, the result is a
            ``PartResult``, which writes them part by part, and takes a byte a vertex meanwhile.
        others
            ``engine`` ``"cuda"`` or ``"emulator"``, ``vram`` and ``resident_tails`` of each part,
            and ``devices``, as many as parts, are as for ``Graph.bfs``; ``"auto"`` is never a GPU.
            What that takes besides is refused, unless it is the default.
        source, parents, direction, max_depth, target, validate, progress, tmp
            As for ``Graph.bfs``.

        Raises
        ------
        QueryError
            If an id does not name a vertex, the result does not pass validation, or the graph is
            too deep.
        FormatError
            If a part is missing, damaged, or of another graph; names it.
        ClusterError
            If a part's worker is lost again and again; names the part.
        BudgetError
            If ``memory`` is too small; says how much is needed.
        """
        from oocbfs.cluster.searches.bfs import bfs

        settings = self.settings(
            memory,
            others,
            threads=threads,
            direction=direction,
            max_depth=max_depth,
            target=target,
            validate=validate,
            progress=progress,
            tmp=tmp,
        )
        if isinstance(source, str) and source == "giant":
            found = self.components(threads=threads, memory=memory, tmp=tmp)
            if found.giant is None:
                raise QueryError(f"{self.path}: has no vertex to start from")
            source = found.giant.label
        if settings.devices is not None:
            from oocbfs.cluster.searches.devices import bfs_on_devices

            with self.reading():
                return bfs_on_devices(self, self.as_ids(source), parents=parents, settings=settings)
        with self.reading():
            return bfs(
                self,
                self.as_ids(source),
                parents=parents,
                settings=settings,
                force=force,
                gather=gather,
            )

    def bfs_many(
        self,
        sources: Iterable[Vertex],
        *,
        emit: Emit = "summary",
        targets: Iterable[Iterable[Vertex]] | None = None,
        threads: int | None = None,
        memory: str | int | None = None,
        strategy: Strategy = "auto",
        force: bool = False,
        **others: Any,  # noqa: ANN401
    ) -> SourceResults:
        """Find the distances from each of many sources; yields one result a source, in their order.

        All parts work on one source at a time; there is no other ``strategy``. ``force`` is as for
        ``bfs``, and everything else as for ``Graph.bfs_many``.
        """
        from oocbfs.cluster.searches.many import bfs_many

        settings = self.settings(memory, others, threads=threads)
        return bfs_many(
            self,
            sources,
            emit=emit,
            targets=targets,
            strategy=strategy,
            settings=settings,
            force=force,
        )

    def components(
        self,
        *,
        threads: int | None = None,
        progress: bool = False,
        memory: str | int | None = None,
        tmp: str | os.PathLike[str] | None = None,
        **others: Any,  # noqa: ANN401
    ) -> ComponentsResult:
        """Find the connected components; of a directed graph the weakly connected ones.

        Each process needs 4 bytes for each vertex of the graph. See ``bfs``, and
        ``Graph.components``.
        """
        from oocbfs.cluster.searches.components import components

        settings = self.settings(memory, others, threads=threads, progress=progress, tmp=tmp)
        with self.reading():
            return components(self, settings)

    def settings(
        self,
        memory: str | int | None,
        others: dict[str, Any],
        **known: Any,  # noqa: ANN401
    ) -> Settings:
        """Put settings together; refuse those that graphs in parts do not have."""
        if others.get("devices") is not None:
            others = {**others, "devices": tuple(others["devices"])}
        settings = Settings(
            memory=self.budget_bytes if memory is None else parse_size(memory), **known, **others
        )
        default = Settings()
        for name in ("engine", "vram", "resident_tails", "method"):
            if name == "engine" and settings.engine in _ENGINES:
                continue
            if name in ("vram", "resident_tails") and (settings.on_device or settings.devices):
                continue
            if getattr(settings, name) != getattr(default, name):
                option = name.replace("_", "-")
                raise QueryError(f"{self.path}: a graph in parts knows no --{option}: leave it out")
        return settings

    @cached_property
    def result_pool(self) -> ResultPool:
        """Memory of earlier results, for the next ones."""
        return ResultPool()

    def refs(self, settings: Settings) -> list[ShardRef]:
        """Say where each shard is, and how to open it."""
        return [
            ShardRef(
                path=os.path.abspath(self.manifest.path_of(part)),
                part=part,
                parts=len(self.manifest.parts),
                num_vertices=self.num_vertices,
                checksum=file.checksum,
                version=__version__,
                engine=settings.engine,
                threads=available_threads(settings.threads),
                memory=settings.memory,
                vram=settings.vram,
                resident_tails=settings.resident_tails,
            )
            for part, file in enumerate(self.manifest.parts)
        ]

    def exchange(self, settings: Settings) -> Exchange:
        """Reach the shards, by an exchange that is kept for the next search of the same kind."""
        device = (settings.vram, settings.resident_tails)
        key = (settings.engine, settings.threads, settings.memory, *device)
        if self._exchange is None or self._exchange[0] != key:
            self._disconnect()
            for number in range(self.shape.cut.parts):
                self.part(number)  # all of them are there, and are what the manifest says
            self._exchange = key, connect(self.cluster, self.refs(settings), self.stored_degrees)
        return self._exchange[1]

    def _disconnect(self) -> None:
        if self._exchange is not None:
            self._exchange[1].close()
            self._exchange = None

    def close(self) -> None:
        """Let go of the shards and of the files."""
        self._disconnect()
        super().close()

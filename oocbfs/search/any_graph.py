"""The graph that users open, in one file or in shards: its searches, declared once for both."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack

from oocbfs.distances.measures import Measures
from oocbfs.errors import QueryError
from oocbfs.graph.vertices import Vertex
from oocbfs.memory import parse_size
from oocbfs.search.keywords import PairKeywords, PairsKeywords, check_keywords, spelled_out
from oocbfs.search.near_graph import NearGraph
from oocbfs.settings import (
    LARGEST_COMPONENT,
    Emit,
    Engine,
    Largest,
    ManyEngine,
    Settings,
    Strategy,
    settings_of,
)

# Results hold on to graphs, and graphs make results.
if TYPE_CHECKING:
    from oocbfs.kernels.compiling import Code
    from oocbfs.plan.host import MemoryPlan
    from oocbfs.point.ask import Asking
    from oocbfs.point.pairs import PairResults
    from oocbfs.point.paths import ShortestPaths
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult
    from oocbfs.results.source import SourceResults


class AnyGraph(Measures, NearGraph):
    """An open graph, as ``oocbfs.open`` gives it: a ``Graph`` or a ``ShardedGraph``.

    Both answer the same questions; where their rows are is known to those who derive from this.
    """

    def _repr_html_(self) -> str:
        from oocbfs.results.notebook import graph_html

        return graph_html(self._stored)

    @abstractmethod
    def reversed(self) -> AnyGraph:
        """Open the same graph with every edge turned around; it is closed by itself."""

    def bfs(
        self,
        source: Vertex | Iterable[Vertex] | Largest,
        *,
        target: Vertex | None = None,
        parents: bool = False,
        max_depth: int | None = None,
        engine: Engine = "auto",
        memory: str | int | None = None,
        threads: int | None = None,
        progress: bool = False,
        validate: bool = False,
        tmp: str | os.PathLike[str] | None = None,
        options: Settings | None = None,
    ) -> BfsResult:
        """Find the distance of every vertex from a source, or from the nearest of several.

        Several threads may search one open graph at a time.

        Parameters
        ----------
        source
            An id or several; names where the graph has names. ``oocbfs.LARGEST_COMPONENT`` is the
            smallest id of the largest component.
        target
            Stop when this vertex is reached.
        parents
            Keep a parent for each vertex too.
        max_depth
            Stop after so many levels.
        engine
            ``"cpu"`` is all cores on the mapped file; ``"disk"`` is all cores with the tails read
            from disk as they are needed; ``"emulator"`` runs the CUDA kernels on the CPU and counts
            the bytes they would move over PCIe; ``"cuda"`` runs them on a GPU. ``"auto"`` is the
            GPU where CuPy finds one that can take the graph, else the CPU; ``stats.fallback`` says
            why. With ``memory`` it is the CPU, or the disk where the file is larger. Without, it is
            the disk for the first search of a large file that is not in memory yet;
            ``stats.engine_reason`` says so. Of a sharded graph, ``"auto"`` is never a GPU. What a
            search brings to a device stays there for the next with the same options, until
            ``close`` or ``release_device``.
        memory
            Bound for the whole process on the CPU, as ``"4G"``, and for each worker; by default
            that of ``open``.
        threads
            How many cores to use; None is all. Processes of one machine share them.
        progress
            Show bars while the graph is brought to the GPU, on a terminal only.
        validate
            Check the result by the rules of Graph500.
        tmp
            Folder for results that have no room in memory; by default that of the graph.
        options
            What few users decide; see ``oocbfs.Settings``.

        Raises
        ------
        QueryError
            If an id does not name a vertex, there is no such method, it does not run on the engine,
            its queues overflow (``QueueError``), the result does not pass validation, or a sharded
            graph is too deep.
        FormatError
            If the graph is damaged, or cannot be read any more.
        ClusterError
            If the worker of a shard is lost again and again; names the shard.
        BudgetError
            If device or host memory, or ``memory``, is too small; says how much is needed.
        """
        settings = self._settings(
            options,
            memory,
            target=target,
            max_depth=max_depth,
            engine=engine,
            threads=threads,
            progress=progress,
            validate=validate,
            tmp=tmp,
        )
        if source is LARGEST_COMPONENT:
            source = self._largest(parents, settings)
        from oocbfs.search.run import bfs

        return bfs(self._stored, source, parents=parents, settings=settings)

    def bfs_many(
        self,
        sources: Iterable[Vertex],
        *,
        emit: Emit = "summary",
        targets: Iterable[Iterable[Vertex]] | None = None,
        engine: ManyEngine = "auto",
        memory: str | int | None = None,
        threads: int | None = None,
        strategy: Strategy = "auto",
        options: Settings | None = None,
    ) -> SourceResults:
        """Find the distances from each of many sources; yields one result a source, in their order.

        ``to_pandas``, ``to_arrow`` and ``plot`` of what this gives take all results at once.

        Parameters
        ----------
        sources
            Ids, as many as you like; 64 are searched at a time.
        emit
            ``"summary"`` counts the vertices of each level; ``"levels"`` gives every vertex's level
            too; ``"pairs"`` gives the distances of the targets.
        targets
            With ``"pairs"``, the ids whose distances are wanted, one list for each source.
        engine
            Where 64 sources are searched together, as for ``bfs``.
        memory
            Bound for the whole process, as ``"4G"``; by default that of ``open``. With less than
            the file's size, tails stay on disk, and 64, 32, 16 or 8 sources share what is read.
        threads
            How many cores to use; None is all.
        strategy
            ``"together"`` shares one pass over the graph between 64 sources, ``"one-per-core"``
            runs each by itself, or one after the other from disk; ``"auto"`` takes the latter for
            few sources and for long thin graphs. All shards of a sharded graph work on one source
            at a time: there is no other strategy.
        options
            As for ``bfs``.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        BudgetError
            If the memory is not enough.
        FormatError
            If the graph is damaged.
        """
        settings = self._settings(options, memory, engine=engine, threads=threads)
        from oocbfs.search.many import bfs_many

        return bfs_many(self._stored, sources, targets, emit, strategy, settings)

    def _bfs_until_found(
        self, sources: Iterable[Vertex], targets: Iterable[Iterable[Vertex]], settings: Settings
    ) -> SourceResults:
        """Find the distances of pairs; each source is searched from as far as its targets are."""
        from oocbfs.search.many import bfs_many

        stored = self._stored
        return bfs_many(stored, sources, targets, "pairs", "auto", settings, until_found=True)

    @spelled_out(PairKeywords)
    def distance(self, source: Vertex, target: Vertex, **how: Unpack[PairKeywords]) -> int:
        """Return the number of steps on a shortest path between two vertices; -1 if there is none.

        It is searched from both ends, and only what that touches is read: on graphs in which
        everything is near to everything, microseconds from memory, milliseconds from disk.

        Parameters
        ----------
        source, target
            Ids, or names where the graph has names; in a directed graph, from source to target.
        **how
            ``max_depth``: give up after so many steps. ``memory`` and ``options`` are as for
            ``bfs``. Rows are read from disk one by one where ``memory`` has no room for the file,
            with ``engine="disk"`` in the options, and from a large file that is not in memory yet.

        Raises
        ------
        QueryError
            If an id does not name a vertex.
        FormatError
            If the graph is damaged, or cannot be read any more.
        """
        settings = self._settings_of(PairKeywords, how)
        return self._asking(settings).distance(source, target)

    @spelled_out(PairKeywords)
    def shortest_path(
        self, source: Vertex, target: Vertex, **how: Unpack[PairKeywords]
    ) -> list[Any] | None:
        """Return the ids on a shortest path, both ends included; None if there is no path.

        Parameters
        ----------
        source, target, **how
            As for ``distance``.
        """
        settings = self._settings_of(PairKeywords, how)
        return self._asking(settings).shortest_path(source, target)

    @spelled_out(PairKeywords)
    def all_shortest_paths(
        self, source: Vertex, target: Vertex, **how: Unpack[PairKeywords]
    ) -> ShortestPaths:
        """Return all shortest paths between two vertices, counted and not listed.

        ``count`` is exact, however many there are; iterating gives one path after the other;
        ``edges()`` are those on any of them.

        Parameters
        ----------
        source, target, **how
            As for ``distance``.
        """
        settings = self._settings_of(PairKeywords, how)
        return self._asking(settings).all_shortest_paths(source, target)

    @spelled_out(PairsKeywords)
    def distances(self, pairs: Any, **how: Unpack[PairsKeywords]) -> PairResults:
        """Find the distances of many pairs of vertices, -1 where there is no path.

        Pairs are searched on all cores; where one source has many targets, sources are searched 64
        at a time.

        Parameters
        ----------
        pairs
            A data frame, a table of Arrow's, an array of two columns, two arrays, or any iterable
            of pairs; of a table with more columns than two, those that are called as the ends of
            edges usually are.
        **how
            ``threads`` is as for ``bfs``, all else as for ``distance``.

        Raises
        ------
        QueryError
            If an id does not name a vertex; names the row.
        """
        from oocbfs.point.pairs import results_of

        settings = self._settings_of(PairsKeywords, how)
        return results_of(self._stored, pairs, settings, paths=False)

    @spelled_out(PairsKeywords)
    def paths(self, pairs: Any, **how: Unpack[PairsKeywords]) -> PairResults:
        """Find a shortest path for each of many pairs of vertices.

        Parameters
        ----------
        pairs, **how
            As for ``distances``.
        """
        from oocbfs.point.pairs import results_of

        settings = self._settings_of(PairsKeywords, how)
        return results_of(self._stored, pairs, settings, paths=True)

    def components(
        self,
        *,
        strong: bool = False,
        engine: Engine = "auto",
        memory: str | int | None = None,
        threads: int | None = None,
        progress: bool = False,
        tmp: str | os.PathLike[str] | None = None,
        options: Settings | None = None,
    ) -> ComponentsResult:
        """Find the connected components; of a directed graph the weakly connected ones.

        Each process that searches a sharded graph needs 4 bytes for each vertex of the graph.

        Parameters
        ----------
        strong
            Find the strongly connected components of a directed graph instead: the vertices of one
            reach each other. The graph is in one file.
        engine, memory, threads, progress, tmp, options
            As for ``bfs``.

        Raises
        ------
        FormatError
            If the graph is damaged, or cannot be read any more.
        BudgetError
            If device or host memory, or ``memory``, is too small; says how much is needed.
        """
        settings = self._settings(
            options, memory, engine=engine, threads=threads, progress=progress, tmp=tmp
        )
        from oocbfs.search.components import components

        return components(self._stored, settings, strong=strong)

    def _settings(
        self, options: Settings | None = None, memory: str | int | None = None, **given: Any
    ) -> Settings:
        """Put settings together; without a bound for memory it is that of ``open``."""
        if memory is None and isinstance(options, Settings):
            memory = options.memory
        budget = self._stored.budget_bytes if memory is None else parse_size(memory)
        return settings_of(options, memory=budget, **given)

    def _plan_distances(
        self,
        codes: Iterable[Code],
        num_sources: int = 0,
        memory: str | int | None = None,
        **how: Any,
    ) -> MemoryPlan:
        from oocbfs.search.decision import decide_distances

        settings = self._settings(None, memory, **how)
        with self._stored.reading():
            return decide_distances(self._stored, settings, codes, num_sources)

    def _settings_of(self, kind: type, how: Mapping[str, Any]) -> Settings:
        if not how:
            return self._default_settings
        check_keywords(kind, how)
        return self._settings(**how)

    @cached_property
    def _asking(self) -> Callable[[Settings], Asking]:
        """Puts questions about two vertices; not imported anew for each, which takes long."""
        from oocbfs.point.ask import asking

        return partial(asking, self._stored)

    @cached_property
    def _default_settings(self) -> Settings:
        return self._settings()

    def _largest(self, parents: bool, settings: Settings) -> Vertex:
        """Return the smallest id of the largest component."""
        from oocbfs.search.components import components

        found = components(self._stored, settings.for_largest()).largest_component
        if found is None:
            raise QueryError(f"{self.path}: has no vertex to start from")
        label: Vertex = found.label
        return label

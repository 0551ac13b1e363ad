"""The subgraph that some vertices induce: they, and all edges between them.

Rows of the vertices are read one by one; where these are most of the graph, all rows are passed
over instead. Edges are handed on as they are found, so that only the vertices are in memory.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Declared, Edges, Ids, NamedEdges
from oocbfs.formats.io.closing import release
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.formats.names import NameColumn
from oocbfs.graph.vertices import are_several
from oocbfs.point.search import PairSearch
from oocbfs.results import tables
from oocbfs.results.call import OfGraph
from oocbfs.settings import IdNames, Settings, file_name, several

if TYPE_CHECKING:
    from oocbfs.conversion.converter import Report
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.graph.vertices import Vertex

Positions = NDArray[np.int64]
# Rows that are read at a time, and neighbours that they have at most, unless one has more.
_ROWS_AT_ONCE = 1 << 12
_ARCS_AT_ONCE = 1 << 18
# Vertices with more than this share of all arcs are found by passing over the whole graph.
_MOST_ARCS = 1 / 4
# With more than this share of the vertices, a byte for each is quicker than seeking.
_MANY_VERTICES = 1 / 64


class Subgraph(tables.Table, OfGraph):
    """Some vertices of a graph and the edges between them, which are found when they are asked for.

    As a table it has a row for each edge, undirected ones once. Ids and names are those of the
    graph; ``num_vertices`` counts those without an edge here, too.
    """

    def __init__(
        self,
        graph: AnyStored,
        positions: Positions,
        settings: Settings,
        *,
        what: str,
        cut: bool = False,
    ) -> None:
        if positions.size == 0:
            raise QueryError("a subgraph has vertices: name at least one")
        self._stored, self._settings, self._what = graph, settings, what
        self._positions = np.unique(positions)
        self.directed = graph.directed
        self.num_vertices = self._positions.size
        self.cut = cut

    def __len__(self) -> int:
        return self.num_vertices

    def __contains__(self, vertex: object) -> bool:
        if vertex not in self._stored:
            return False
        position = self._stored.position(cast("Vertex", vertex))
        place = int(np.searchsorted(self._positions, position))
        return place < self._positions.size and int(self._positions[place]) == position

    @cached_property
    def num_edges(self) -> int:
        """Number of edges, an undirected one counted once; this passes over them."""
        return sum(sources.size for sources, _ in self._local())

    @property
    def title(self) -> str:
        """What this is, in one line."""
        return f"{file_name(self._stored.path)}: {self.num_vertices:,} vertices {self._what}"

    def __repr__(self) -> str:
        return f"<Subgraph: {self.title}>"

    def ids(self) -> NDArray[Any]:
        """Return all ids, or names, in ascending order."""
        return self._stored.given(self._ids)

    @property
    def _ids(self) -> Ids:
        return self._stored.ids_at_positions(self._positions)

    def edges(self) -> Iterator[Edges]:
        """Yield the edges in ids of the input, or in names; undirected ones once."""
        given = self._stored.given
        for batch in self.id_edges():
            yield Edges(given(batch.sources), given(batch.targets))

    def id_edges(self) -> Generator[Edges]:
        """Yield the edges as ids, also where users know vertices by names."""
        ids = self._ids
        with closing(self._local()) as batches:
            for sources, targets in batches:
                yield Edges(ids[sources], ids[targets])

    def about(self) -> dict[str, str]:
        """Return what the table is about."""
        return tables.about(self._stored, subgraph=self._what, subgraph_vertices=self.num_vertices)

    def _types(self) -> tables.Types:
        kind = self._stored.as_column(self._ids[:0]).dtype
        return {"source": kind, "target": kind}

    def _batches(self, *, reached_only: bool = False) -> Iterator[tables.Columns]:
        column = self._stored.as_column
        for batch in self.id_edges():
            yield {"source": column(batch.sources), "target": column(batch.targets)}

    def to_networkx(self) -> Any:
        """Return a networkx graph, whose nodes are ids or names."""
        try:
            import networkx
        except ImportError as error:
            raise QueryError("to_networkx needs networkx: pip install networkx") from error
        made = networkx.DiGraph() if self.directed else networkx.Graph()
        nodes = self.ids().tolist()
        made.add_nodes_from(nodes)
        sources, targets = self._all_local()
        # So that neighbours ascend, too.
        order = np.lexsort((targets, sources))
        pairs = zip(sources[order].tolist(), targets[order].tolist(), strict=True)
        made.add_edges_from((nodes[u], nodes[v]) for u, v in pairs)
        return made

    def to_igraph(self) -> Any:
        """Return an igraph graph, whose vertices have ids as ``id``, or names as ``name``."""
        try:
            import igraph
        except ImportError as error:
            raise QueryError("to_igraph needs igraph: pip install igraph") from error
        sources, targets = self._all_local()
        pairs = np.stack([sources, targets], axis=1)
        made = igraph.Graph(n=self.num_vertices, edges=pairs, directed=self.directed)
        made.vs["id" if self._stored.names is None else "name"] = self.ids().tolist()
        return made

    def to_scipy(self) -> Any:
        """Return a SciPy sparse array of ones, in the order of ``ids()``."""
        from scipy.sparse import csr_array

        sources, targets = self._all_local()
        if not self.directed:
            sources, targets = np.append(sources, targets), np.append(targets, sources)
        shape = (self.num_vertices, self.num_vertices)
        return csr_array((np.ones(sources.size, np.int8), (sources, targets)), shape=shape)

    def save(self, path: str | os.PathLike[str], *, force: bool = False, **settings: Any) -> Report:
        """Write it as a graph file, with the same ids or names; settings as for ``convert``."""
        from oocbfs.conversion.converter import convert

        named = self._stored.names is not None
        stream = _NamedStream(self) if named else _Stream(self)
        ids: Any = "names" if named else "auto"
        return convert(stream, path, ids=ids, force=force, directed=self.directed, **settings)

    @contextmanager
    def stored(
        self, folder: str | os.PathLike[str], threads: int | None = None
    ) -> Generator[StoredGraph]:
        """Yield it as a graph in a file without a name; where there are names, ids are places."""
        from oocbfs.conversion.converter import convert_unnamed
        from oocbfs.formats.container.reader import Container
        from oocbfs.graph.stored import StoredGraph

        stream = _Stream(self) if self._stored.names is None else _PlacedStream(self)
        ids: IdNames = "auto" if self._stored.names is None else "dense"
        with ExitStack() as stack:
            file = convert_unnamed(stream, os.fspath(folder), ids=ids, threads=threads)
            stack.callback(release, file)
            yield stack.enter_context(StoredGraph(Container(self._stored.path, file.fileno())))

    def _all_local(self) -> tuple[Positions, Positions]:
        """Return the ends of all edges, as places in ``ids()``."""
        batches = list(self._local())
        none = np.empty(0, np.int64)
        sources, targets = (np.concatenate([none, *(b[side] for b in batches)]) for side in (0, 1))
        return sources, targets

    def _local(self) -> Generator[tuple[Positions, Positions]]:
        """Yield the ends of edges as places in ``ids()``; undirected ones once, smaller first."""
        graph = self._stored
        small = None
        if not graph.is_sharded:
            with graph.reading():
                small = PairSearch(cast("StoredGraph", graph), self._settings)
        batches = self._pass_over() if small is None else self._choose(small)
        with closing(batches):
            for sources, targets in batches:
                if not graph.directed:
                    once = sources < targets
                    sources, targets = sources[once], targets[once]
                yield sources, targets

    def _choose(self, small: PairSearch) -> Generator[tuple[Positions, Positions]]:
        """Read rows, or pass over all of them if that is less."""
        graph = cast("StoredGraph", self._stored)
        with graph.reading():
            lookup = graph.lookup
            stored = lookup.stored(self._positions, from_disk=small.from_disk).astype(np.uint32)
            if small.from_disk:
                return self._read_rows(small, stored, None)
            degrees = graph.stored_degrees[stored]
        if int(degrees.sum(dtype=np.int64)) > _MOST_ARCS * graph.num_arcs:
            return self._pass_over()
        return self._read_rows(small, stored, degrees)

    def _pass_over(self) -> Generator[tuple[Positions, Positions]]:
        """Pass over all arcs of the graph."""
        graph, positions = self._stored, self._positions
        inside = np.zeros(graph.num_vertices, np.bool_)
        inside[positions] = True
        for sources, targets in graph.each(graph._natural_arcs()):
            both = inside[sources] & inside[targets]
            ends = (side[both].astype(np.int64) for side in (sources, targets))
            one, other = (np.searchsorted(positions, end) for end in ends)
            yield one, other

    def _read_rows(
        self, small: PairSearch, stored: NDArray[np.uint32], degrees: NDArray[np.uint32] | None
    ) -> Generator[tuple[Positions, Positions]]:
        """Read the rows of these vertices."""
        graph = self._stored
        places = np.argsort(stored, kind="stable")
        ascending = stored[places]
        inside = None
        if stored.size > _MANY_VERTICES * graph.num_vertices:
            inside = np.zeros(graph.num_vertices, np.bool_)
            inside[stored] = True

        def work(part: slice) -> tuple[Positions, Positions]:
            with graph.reading(), small.borrowed() as borrowed:
                found, ends = small.reader.list_rows(ascending[part], borrowed)
            sources = np.repeat(places[part], np.diff(ends, prepend=0))
            if inside is not None:
                kept = inside[found]
                sources, found = sources[kept], found[kept]
            at = np.searchsorted(ascending, found)
            at[at == ascending.size] = 0
            kept = ascending[at] == found
            return sources[kept], places[at[kept]]

        threads = available_threads(self._settings.threads)
        parts = _parts(None if degrees is None else degrees[places], stored.size)
        with closing(ordered_map(work, parts, threads)) as found:
            yield from found


def _parts(degrees: NDArray[np.uint32] | None, count: int) -> Iterator[slice]:
    """Cut rows into parts that have some neighbours each."""
    if degrees is None:
        for first in range(0, count, _ROWS_AT_ONCE // 16):
            yield slice(first, min(first + _ROWS_AT_ONCE // 16, count))
        return
    ends, first = np.cumsum(degrees, dtype=np.int64), 0
    while first < count:
        before = int(ends[first - 1]) if first else 0
        stop = int(np.searchsorted(ends, before + _ARCS_AT_ONCE, side="right"))
        stop = min(max(stop, first + 1), first + _ROWS_AT_ONCE, count)
        yield slice(first, stop)
        first = stop


class _Stream:
    """The edges of a subgraph as a stream that is converted."""

    unit = "edge"

    def __init__(self, graph: Subgraph) -> None:
        self.name, self._graph = graph.title, graph
        self.total: int | None = None
        self.done = 0
        self.declared = Declared(directed=graph.directed, directed_why="its graph is")
        if graph._stored.names is None:
            self.declared.vertex_ids = graph._ids

    def batches(self) -> Iterator[Edges]:
        """Yield the edges."""
        for edges in self._graph.id_edges():
            yield edges
            self.done += edges.sources.size


class _PlacedStream(_Stream):
    """The same with places in ``ids()`` instead of ids."""

    def __init__(self, graph: Subgraph) -> None:
        super().__init__(graph)
        self.declared.num_vertices = graph.num_vertices

    def batches(self) -> Iterator[Edges]:
        """Yield the edges."""
        for sources, targets in self._graph._local():
            yield Edges(sources.astype(np.uint64), targets.astype(np.uint64))
            self.done += sources.size


class _NamedStream(_Stream):
    """The same between names; vertices without an edge are there as loops, which are dropped."""

    def named_batches(self) -> Iterator[NamedEdges]:
        """Yield the edges, and every vertex once more."""
        ids = self._graph._ids
        for first in range(0, ids.size, _ROWS_AT_ONCE):
            yield self._named(
                ids[first : first + _ROWS_AT_ONCE], ids[first : first + _ROWS_AT_ONCE]
            )
        for edges in self._graph.id_edges():
            yield self._named(edges.sources, edges.targets)
            self.done += edges.sources.size

    def _named(self, sources: Ids, targets: Ids) -> NamedEdges:
        both = np.empty(2 * sources.size, np.uint64)
        both[::2], both[1::2] = sources, targets
        names = self._graph._stored.as_column(both)
        assert isinstance(names, NameColumn)
        lengths = np.diff(names.bounds).astype(np.uint16)
        return NamedEdges(names.text, names.bounds[:-1].astype(np.uint32), lengths)


def subgraph(graph: AnyStored, vertices: Any, settings: Settings) -> Subgraph:
    """Return the subgraph that some vertices induce."""
    positions = graph.positions(vertices if are_several(vertices) else [vertices])
    return Subgraph(graph, positions, settings, what="and the edges between them")


def ego(
    graph: AnyStored, seeds: Any, depth: int, limit: int | None, settings: Settings
) -> Subgraph:
    """Return the subgraph of all that is within some steps of a vertex, or of any of several."""
    from oocbfs.near.search import NearSearch

    ids = graph.as_ids(seeds if are_several(seeds) else [seeds])
    if ids.size == 0:
        raise QueryError("there are no seeds: name at least one vertex")
    graph.positions(ids)
    search = NearSearch(graph, settings, depth=depth, limit=limit)
    with closing(search.together(ids)) as parts:
        (found,) = parts
    what = (
        f"within {several(depth, 'step')} of {', '.join(map(str, graph.given(ids[:3]).tolist()))}"
    )
    what += f" and {ids.size - 3:,} more" if ids.size > 3 else ""
    cut = bool(found.cut[0])
    return Subgraph(graph, graph.positions(found.ids), settings, what=what, cut=cut)

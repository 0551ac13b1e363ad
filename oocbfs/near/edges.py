"""Whether there are edges between vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.kernels.point.edges import find_edges
from oocbfs.kernels.point.pairs import Pairs
from oocbfs.kernels.structs import Struct
from oocbfs.point.ask import PartsSearch, asking
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.single_rows import Work
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.point.search import PairSearch

# Pairs that a thread looks at in one call of compiled code.
_AT_ONCE = 1 << 12
_NO_ENDS = np.empty(0, np.int64)


def has_edges(
    graph: AnyStored, sources: Any, targets: Any, settings: Settings
) -> NDArray[np.bool_]:
    """Return which pairs have an edge; of one vertex and several, it is with each of these."""
    ends = graph.as_ids(sources), graph.as_ids(targets)
    if 1 not in (ends[0].size, ends[1].size) and ends[0].size != ends[1].size:
        raise QueryError(f"{ends[0].size} vertices and {ends[1].size} are not pairs")
    one, other = np.broadcast_arrays(*ends)
    if graph.is_sharded:
        graph.positions(np.concatenate([one, other]))  # all of them are there
        return _by_rows(graph, one, other)
    return _by_kernel(cast("StoredGraph", graph), one, other, settings)


def has_edge(
    graph: AnyStored,
    source: Any,
    target: Any,
    settings: Settings,
) -> bool:
    """Return whether an edge leads from one vertex to another."""
    asked = asking(graph, settings)
    if isinstance(asked.search, PartsSearch):
        return bool(has_edges(graph, source, target, settings)[0])
    with graph.reading():
        ends = asked.both(source, target)
        with asked.search.borrowed() as work:
            work.pair_ends[0], work.pair_ends[1] = ends
            _find(asked.search, work, work.pair, 1)
            return work.pair_distance[0] == 1


def _by_kernel(graph: StoredGraph, one: Ids, other: Ids, settings: Settings) -> NDArray[np.bool_]:
    asked = asking(graph, settings)
    search = cast("PairSearch", asked.search)
    with graph.reading():
        stored = asked.stored(graph.positions(np.concatenate([one, other])))
        sources, targets = stored[: one.size].copy(), stored[one.size :].copy()
        distances = np.empty(one.size, np.int32)

        def work(first: int) -> None:
            part = slice(first, first + _AT_ONCE)
            some = Pairs(sources[part], targets[part], distances[part], _NO_ENDS)
            with search.borrowed() as borrowed:
                _find(search, borrowed, Struct(some), some.sources.size)

        starts, threads = range(0, one.size, _AT_ONCE), available_threads(settings.threads)
        for _ in ordered_map(work, starts, threads):
            pass
    found: NDArray[np.bool_] = distances == 1
    return found


def _find(search: PairSearch, work: Work, pairs: Struct, count: int) -> None:
    """Say of some pairs whether there is an edge, by one thread."""
    reader = search.reader
    rows = reader.out_rows.address, reader.in_rows.address
    if find_edges(*rows, work.address, pairs.address, 0) < count:
        work.make_room(reader.path)


def _by_rows(graph: AnyStored, one: Ids, other: Ids) -> NDArray[np.bool_]:
    """Look into the row of each different vertex once."""
    found = np.zeros(one.size, np.bool_)
    for vertex in np.unique(one):
        mine = one == vertex
        found[mine] = np.isin(other[mine], graph.neighbor_ids(int(vertex), inward=False))
    return found

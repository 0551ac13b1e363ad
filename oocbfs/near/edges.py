"""Whether there are edges between vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.kernels.point.edges import find_edges
from oocbfs.point.search import PairSearch
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph

# Pairs that a thread looks at in one call of compiled code.
_AT_ONCE = 1 << 12


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


def _by_kernel(graph: StoredGraph, one: Ids, other: Ids, settings: Settings) -> NDArray[np.bool_]:
    with graph.reading():
        small = PairSearch(graph, settings)
        positions = graph.positions(np.concatenate([one, other]))
        stored = graph.lookup.stored(positions, from_disk=small.from_disk).astype(np.uint32)
        sources, targets = stored[: one.size].copy(), stored[one.size :].copy()
        found = np.zeros(one.size, np.uint8)
        rows = small.reader.out_rows.address, small.reader.in_rows.address

        def work(first: int) -> None:
            part = slice(first, first + _AT_ONCE)
            pairs = sources[part], targets[part], found[part]
            with small.borrowed() as borrowed:
                if find_edges(*rows, borrowed.address, *pairs, 0) < pairs[0].size:
                    borrowed.make_room(graph.path)

        starts, threads = range(0, one.size, _AT_ONCE), available_threads(settings.threads)
        for _ in ordered_map(work, starts, threads):
            pass
    return found.astype(np.bool_)


def _by_rows(graph: AnyStored, one: Ids, other: Ids) -> NDArray[np.bool_]:
    """Look into the row of each different vertex once."""
    found = np.zeros(one.size, np.bool_)
    for vertex in np.unique(one):
        mine = one == vertex
        found[mine] = np.isin(other[mine], graph.neighbor_ids(int(vertex), inward=False))
    return found

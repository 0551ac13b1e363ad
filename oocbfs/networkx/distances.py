"""Distances from many nodes: closeness, harmonic centrality, eccentricity and its extremes.

Names, parameters, results and errors are those of networkx, whose documentation explains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocbfs.distances.eccentricity import Eccentricities
from oocbfs.distances.scope import ALL, scope_of
from oocbfs.distances.searches import Searches, ids_at
from oocbfs.networkx.names import Node
from oocbfs.networkx.paths import known
from oocbfs.results.source import SourceResult

_NOT_STRONG = "Found infinite path length because the digraph is not strongly connected"
_NOT_CONNECTED = "Found infinite path length because the graph is not connected"
_NO_BOUNDS = "Cannot compute metric because graph is not connected."


def closeness_centrality(
    G: Any, u: Node | None = None, distance: None = None, wf_improved: bool = True
) -> Any:
    """Return the closeness of all nodes or of one, by the distances to it."""
    nodes = list(G) if u is None else [u]
    found = {}
    for node, result in zip(nodes, searches(G, nodes, inward=True), strict=True):
        total = int(result.level_sizes @ np.arange(result.level_sizes.size))
        # In the order of networkx, so that the last digit is the same.
        closeness = 0.0
        if total > 0 and len(G) > 1:
            closeness = (result.reached - 1.0) / total
            if wf_improved:
                closeness *= (result.reached - 1.0) / (len(G) - 1)
        found[node] = closeness
    return found if u is None else found[u]


def harmonic_centrality(
    G: Any, nbunch: Any = None, distance: None = None, sources: Any = None
) -> dict[Any, float]:
    """Sum up 1 / distance from all sources, for all nodes or some."""
    nodes = set(G.nbunch_iter(nbunch) if nbunch is not None else G.nodes)
    starts = set(G.nbunch_iter(sources) if sources is not None else G.nodes)
    if len(starts) == len(G):
        results = searches(G, nodes, inward=True)
        return {node: result.harmonic or 0 for node, result in zip(nodes, results, strict=True)}
    wanted, begins = (
        np.array([G._backing.names.position(node) for node in some], np.int64)
        for some in (nodes, starts)
    )
    # The smaller side is searched from.
    if len(nodes) < len(starts):
        results = searches(G, nodes, inward=True, levels=True)
        sums = [float(_inverse(result, begins).sum()) for result in results]
    else:
        total = np.zeros(len(nodes))
        for result in searches(G, starts, levels=True):
            total += _inverse(result, wanted)
        sums = total.tolist()
    return {node: value or 0 for node, value in zip(nodes, sums, strict=True)}


def _inverse(result: SourceResult, positions: Any) -> Any:
    """Return 1 / distance, and 0 for the source and what is not reached."""
    assert result.levels is not None
    levels = result.levels[positions].astype(np.float64)
    return np.divide(1, levels, out=np.zeros(levels.size), where=levels > 0)


def eccentricity(G: Any, v: Any = None, sp: None = None, weight: None = None) -> Any:
    """Return the largest distance from all nodes, from some, or from one."""
    if v is None and len(G):
        found = _bounded(G, "eccentricities").eccentricities()
        return dict(zip(G, found.tolist(), strict=True))
    nodes = list(G.nbunch_iter(v))
    eccentricities = {}
    for node, result in zip(nodes, searches(G, nodes), strict=True):
        if result.reached != len(G):
            raise nx.NetworkXError(_NOT_STRONG if G.is_directed() else _NOT_CONNECTED)
        eccentricities[node] = result.eccentricity
    return eccentricities[v] if v in G else eccentricities


def diameter(G: Any, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    """Return the largest eccentricity."""
    if not len(G):
        return max(eccentricity(G).values())  # type: ignore[no-any-return]
    return _bounded(G, "diameter", usebounds).extremes().diameter[0]


def radius(G: Any, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    """Return the smallest eccentricity."""
    if not len(G):
        return min(eccentricity(G).values())  # type: ignore[no-any-return]
    return _bounded(G, "radius", usebounds).extremes().radius[1]


def periphery(G: Any, e: None = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    """Return the nodes of the largest eccentricity."""
    if not len(G):
        return [max(eccentricity(G).values())]  # which refuses a graph without nodes
    found = _bounded(G, "periphery", usebounds)
    return list(G._backing.names.nodes(found.positions_at(found.most)))


def center(G: Any, e: None = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    """Return the nodes of the smallest eccentricity."""
    if not len(G):
        if not G.is_directed() and usebounds is not True:
            nx.is_tree(nx.Graph())  # which refuses a graph without nodes
        return [min(eccentricity(G).values())]
    found = _bounded(G, "center", usebounds)
    return list(G._backing.names.nodes(found.positions_at(found.least)))


def _bounded(graph: Any, wanted: str, usebounds: bool = False) -> Eccentricities:
    """Search until what is wanted is certain; refuse a graph that is not connected."""
    engine = graph._backing.engine
    scope = scope_of(engine, ALL) if not graph.is_directed() else scope_of(engine)
    if not (scope.is_mutual and scope.is_whole):
        message = _NOT_STRONG if graph.is_directed() else _NOT_CONNECTED
        if usebounds is True and not graph.is_directed():
            message = _NO_BOUNDS
        raise nx.NetworkXError(message)
    with Searches(engine, scope) as searches:
        found = Eccentricities(searches, {wanted})
        found.run()
    return found


def searches(
    graph: Any, nodes: Iterable[Node], *, inward: bool = False, levels: bool = False
) -> Iterator[SourceResult]:
    """Search from each node, 64 at a time."""
    positions = [known(graph, node, f"Source {node} is not in G") for node in nodes]
    backing = graph._backing
    engine = backing.reversed_engine if inward and graph.is_directed() else backing.engine
    ids = ids_at(engine, np.array(positions, np.int64))
    yield from engine.bfs_many(ids, emit="levels" if levels else "summary")

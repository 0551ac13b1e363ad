"""Breadth-first search: ``networkx.algorithms.traversal.breadth_first_search``, and what follows.

Names, parameters, results and errors are those of networkx, whose documentation explains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocbfs.distances.searches import ids_at
from oocbfs.networkx.names import Node
from oocbfs.networkx.ordered import OrderedSearch

Depth = float | None
Sort = Callable[[Iterator[Any]], Any] | None


def num_levels(limit: Depth) -> float:
    """Return the number of levels to search: networkx goes on while it is below the limit."""
    return math.inf if limit is None else limit


def bfs_edges(
    G: Any,
    source: Node,
    reverse: bool = False,
    depth_limit: Depth = None,
    sort_neighbors: Sort = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges to the nodes that are found, in the order in which they are."""
    search = OrderedSearch(G._backing, [_known(G, source)], inward=reverse)
    for found in search.run(num_levels(depth_limit)):
        yield from zip(search.parents(found), search.nodes(found), strict=True)


def bfs_tree(
    G: Any,
    source: Node,
    reverse: bool = False,
    depth_limit: Depth = None,
    sort_neighbors: Sort = None,
) -> Any:
    """Return the tree of those edges."""
    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit))
    return tree


def bfs_predecessors(
    G: Any, source: Node, depth_limit: Depth = None, sort_neighbors: Sort = None
) -> Iterator[tuple[Any, Any]]:
    """Yield the nodes that are found, each with the one that it was found from."""
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit):
        yield child, parent


def bfs_successors(
    G: Any, source: Node, depth_limit: Depth = None, sort_neighbors: Sort = None
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the nodes that found others, with those."""
    parent: Any = source
    children: list[Any] = []
    for finder, child in bfs_edges(G, source, depth_limit=depth_limit):
        if finder != parent:
            yield parent, children
            parent, children = finder, []
        children.append(child)
    yield parent, children


def bfs_layers(G: Any, sources: Any) -> Iterator[list[Any]]:
    """Yield the nodes of each distance from the nearest source."""
    # As in networkx, the order of the first layer is that of a set.
    layer = list({sources} if sources in G else set(sources))
    positions = [G._backing.names.position(source) for source in layer]
    for source, position in zip(layer, positions, strict=True):
        if position is None:
            raise nx.NetworkXError(f"The node {source} is not in the graph.")
    search = OrderedSearch(G._backing, positions)
    level = 0
    for found in search.run(math.inf):
        if found.level > level:
            yield layer
            layer, level = [], found.level
        layer.extend(search.nodes(found))
    if layer:
        yield layer


def descendants_at_distance(G: Any, source: Node, distance: float) -> set[Any]:
    """Return the nodes at one distance."""
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    if distance == 0:
        return {source}
    search = OrderedSearch(G._backing, [G._backing.names.position(source)])
    at_distance: set[Any] = set()
    for found in search.run(distance):
        if found.level == distance:
            at_distance.update(search.nodes(found))
    return at_distance


def descendants(G: Any, source: Node) -> set[Any]:
    """Return the nodes that can be reached, without the source."""
    return _reached(G, G._backing.engine, source)


def ancestors(G: Any, source: Node) -> set[Any]:
    """Return the nodes from which the source can be reached, without itself."""
    backing = G._backing
    return _reached(G, backing.reversed_engine if G.is_directed() else backing.engine, source)


def _reached(graph: Any, engine: Any, source: Node) -> set[Any]:
    position = _known(graph, source)
    levels = engine.bfs(ids_at(engine, np.array([position]))).levels
    return set(graph._backing.names.nodes(np.flatnonzero(levels > 0)))


def _known(graph: Any, source: Node) -> int:
    """Return the position of a node whose neighbours networkx would ask for."""
    position: int | None = graph._backing.names.position(source)
    if position is None:
        kind = "digraph" if graph.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {source} is not in the {kind}.")
    return position

"""Shortest paths without weights: ``networkx.algorithms.shortest_paths``.

Names, parameters, results and errors are those of networkx, whose documentation explains them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocbfs.networkx import ordered
from oocbfs.networkx.names import Node, all_nodes
from oocbfs.networkx.ordered import OrderedSearch
from oocbfs.networkx.traversal import Depth, num_levels

Paths = dict[Any, list[Any]]
Lengths = dict[Any, int]


def single_source_shortest_path_length(G: Any, source: Node, cutoff: Depth = None) -> Lengths:
    """Return the distance of each node that can be reached, the nearest first."""
    return _lengths(G, source, f"Source {source} is not in G", cutoff)


def single_target_shortest_path_length(G: Any, target: Node, cutoff: Depth = None) -> Lengths:
    """Return the distance of the target from each node that can reach it, the nearest first."""
    return _lengths(G, target, f"Target {target} is not in G", cutoff, inward=True)


def all_pairs_shortest_path_length(G: Any, cutoff: Depth = None) -> Iterator[tuple[Any, Lengths]]:
    """Yield each node with the distances from it."""
    for node in all_nodes(G._backing.names):
        yield node, single_source_shortest_path_length(G, node, cutoff)


def single_source_shortest_path(G: Any, source: Node, cutoff: Depth = None) -> Paths:
    """Return a path to each node that can be reached, the nearest first."""
    return _paths(G, source, f"Source {source} not in G", cutoff)


def single_target_shortest_path(G: Any, target: Node, cutoff: Depth = None) -> Paths:
    """Return a path to the target from each node that can reach it, the nearest first."""
    return _paths(G, target, f"Target {target} not in G", cutoff, inward=True)


def all_pairs_shortest_path(G: Any, cutoff: Depth = None) -> Iterator[tuple[Any, Paths]]:
    """Yield each node with the paths from it."""
    for node in all_nodes(G._backing.names):
        yield node, single_source_shortest_path(G, node, cutoff)


def bidirectional_shortest_path(G: Any, source: Node, target: Node) -> list[Any]:
    """Return the path that a search from both ends finds."""
    names = G._backing.names
    position = known(G, source, f"Source {source} is not in G")
    end = known(G, target, f"Target {target} is not in G")
    path = ordered.shortest_path(G._backing, position, end)
    if path is None:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return list(names.nodes(np.array(path)))


def has_path(G: Any, source: Node, target: Node) -> bool:
    """Return whether there is a path."""
    try:
        bidirectional_shortest_path(G, source, target)
    except nx.NetworkXNoPath:
        return False
    return True


def shortest_path(
    G: Any, source: Node = None, target: Node = None, weight: None = None, method: str = "dijkstra"
) -> Any:
    """Return paths between all nodes, from one, to one, or from one to one."""
    _check_method(method)
    if source is not None and target is not None:
        return bidirectional_shortest_path(G, source, target)
    return _open_ended(G, source, target, all_pairs_shortest_path, _paths, "not in G")


def shortest_path_length(
    G: Any, source: Node = None, target: Node = None, weight: None = None, method: str = "dijkstra"
) -> Any:
    """Return distances between all nodes, from one, to one, or from one to one."""
    _check_method(method)
    if source is not None and target is not None:
        return len(bidirectional_shortest_path(G, source, target)) - 1
    return _open_ended(G, source, target, all_pairs_shortest_path_length, _lengths, "is not in G")


def _open_ended(
    graph: Any,
    source: Node,
    target: Node,
    all_pairs: Callable[[Any], Any],
    search: Callable[..., Any],
    missing: str,
) -> Any:
    """Answer where not both ends are given."""
    if source is None and target is None:
        return all_pairs(graph)
    node = target if source is None else source
    return search(graph, node, f"Source {node} {missing}", inward=source is None)


def _lengths(
    graph: Any, node: Node, missing: str, cutoff: Depth = None, *, inward: bool = False
) -> Lengths:
    search = OrderedSearch(graph._backing, [known(graph, node, missing)], inward=inward)
    lengths: Lengths = {node: 0}
    for found in search.run(num_levels(cutoff)):
        lengths.update(dict.fromkeys(search.nodes(found), found.level))
    return lengths


def _paths(
    graph: Any, node: Node, missing: str, cutoff: Depth = None, *, inward: bool = False
) -> Paths:
    search = OrderedSearch(graph._backing, [known(graph, node, missing)], inward=inward)
    paths: Paths = {node: [node]}
    for found in search.run(num_levels(cutoff)):
        for child, parent in zip(search.nodes(found), search.parents(found), strict=True):
            paths[child] = [child, *paths[parent]] if inward else [*paths[parent], child]
    return paths


def known(graph: Any, node: Node, missing: str) -> int:
    """Return the position of a node, or raise an error with this message."""
    # What cannot be a node is not in the graph either.
    if node not in graph:
        raise nx.NodeNotFound(missing)
    return int(graph._backing.names.position(node))


def _check_method(method: str) -> None:
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")

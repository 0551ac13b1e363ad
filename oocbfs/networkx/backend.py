"""The backend as networkx loads it: functions by their names, and whether to call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oocbfs.networkx.components import (
    connected_components,
    is_connected,
    is_weakly_connected,
    node_connected_component,
    number_connected_components,
    number_weakly_connected_components,
    weakly_connected_components,
)
from oocbfs.networkx.distances import (
    center,
    closeness_centrality,
    diameter,
    eccentricity,
    harmonic_centrality,
    periphery,
    radius,
)
from oocbfs.networkx.graphs import BACKEND, convert_from_nx, convert_to_nx, is_backed
from oocbfs.networkx.paths import (
    all_pairs_shortest_path,
    all_pairs_shortest_path_length,
    bidirectional_shortest_path,
    has_path,
    shortest_path,
    shortest_path_length,
    single_source_shortest_path,
    single_source_shortest_path_length,
    single_target_shortest_path,
    single_target_shortest_path_length,
)
from oocbfs.networkx.traversal import (
    ancestors,
    bfs_edges,
    bfs_layers,
    bfs_predecessors,
    bfs_successors,
    bfs_tree,
    descendants,
    descendants_at_distance,
)

# What networkx finds here: these functions, ours for its own, and nothing that is called like one.
__all__ = [
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "ancestors",
    "bfs_edges",
    "bfs_layers",
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "bidirectional_shortest_path",
    "can_run",
    "center",
    "closeness_centrality",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "descendants",
    "descendants_at_distance",
    "diameter",
    "eccentricity",
    "harmonic_centrality",
    "has_path",
    "is_connected",
    "is_weakly_connected",
    "node_connected_component",
    "number_connected_components",
    "number_weakly_connected_components",
    "periphery",
    "radius",
    "shortest_path",
    "shortest_path_length",
    "should_run",
    "single_source_shortest_path",
    "single_source_shortest_path_length",
    "single_target_shortest_path",
    "single_target_shortest_path_length",
    "weakly_connected_components",
]

# Parameters that only networkx itself understands, where they are not None: their places.
REFUSED = {
    "bfs_edges": {"sort_neighbors": 4},
    "bfs_predecessors": {"sort_neighbors": 3},
    "bfs_successors": {"sort_neighbors": 3},
    "bfs_tree": {"sort_neighbors": 4},
    "center": {"e": 1, "weight": 3},
    "closeness_centrality": {"distance": 2},
    "diameter": {"e": 1, "weight": 3},
    "eccentricity": {"sp": 2, "weight": 3},
    "harmonic_centrality": {"distance": 2},
    "periphery": {"e": 1, "weight": 3},
    "radius": {"e": 1, "weight": 3},
    "shortest_path": {"weight": 3},
    "shortest_path_length": {"weight": 3},
}
# Functions that may look at a few nodes only: converting a graph for one call takes longer.
_NEAR = {"bidirectional_shortest_path", "descendants_at_distance", "has_path"}
# Smaller graphs are searched sooner than converted: from so many edges on a first call pays, as
# ``scripts/bench networkx --first`` measures it. Functions on all cores need a file besides.
_ALL_PAIRS = 1_000
_LEAST_EDGES = 30_000
_LEAST_EDGES_OF = {
    "all_pairs_shortest_path": _ALL_PAIRS,
    "all_pairs_shortest_path_length": _ALL_PAIRS,
    "center": _ALL_PAIRS,
    "closeness_centrality": _ALL_PAIRS,
    "diameter": _ALL_PAIRS,
    "eccentricity": _ALL_PAIRS,
    "harmonic_centrality": _ALL_PAIRS,
    "periphery": _ALL_PAIRS,
    "radius": _ALL_PAIRS,
    "ancestors": 300_000,
    "descendants": 300_000,
    "node_connected_component": 300_000,
    "connected_components": 1_000_000,
    "is_connected": 1_000_000,
    "is_weakly_connected": 1_000_000,
    "number_connected_components": 1_000_000,
    "number_weakly_connected_components": 1_000_000,
    "weakly_connected_components": 1_000_000,
}


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Return whether a function knows its arguments; a text says why not."""
    for parameter, place in REFUSED.get(name, {}).items():
        if _given(args, kwargs, parameter, place) is not None:
            return f"{parameter} is left to networkx"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Return whether converting a graph of networkx pays; a text says why not."""
    graph = args[0] if args else kwargs["G"]
    cache = getattr(graph, "__networkx_cache__", None) or {}
    if is_backed(graph) or cache.get("backends", {}).get(BACKEND):
        return True
    num_ends = None
    if name in ("shortest_path", "shortest_path_length"):
        ends = [_given(args, kwargs, *end) for end in (("source", 1), ("target", 2))]
        num_ends = len(ends) - ends.count(None)
    if name in _NEAR or num_ends == 2:
        return "a search from one node to another takes less time than converting the graph"
    least = _ALL_PAIRS if num_ends == 0 else _LEAST_EDGES_OF.get(name, _LEAST_EDGES)
    return graph.number_of_edges() >= least or f"the graph has fewer than {least:,} edges"


def _given(args: tuple[Any, ...], kwargs: Mapping[str, Any], name: str, place: int) -> object:
    """Return an argument, None if it is left out."""
    return args[place] if len(args) > place else kwargs.get(name)

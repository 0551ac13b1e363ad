"""The backend as networkx loads it: functions by their names, and whether to call them.

What runs a function is imported when it is called first: asking whether it can run costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from oocbfs.networkx.info import FUNCTIONS, ON_FILES

BACKEND = "oocbfs"
# The modules of the functions.
_MODULES = {
    "components": (
        "connected_components",
        "is_connected",
        "is_weakly_connected",
        "node_connected_component",
        "number_connected_components",
        "number_weakly_connected_components",
        "weakly_connected_components",
    ),
    "distances": (
        "center",
        "closeness_centrality",
        "diameter",
        "eccentricity",
        "harmonic_centrality",
        "periphery",
        "radius",
    ),
    "near": (
        "all_shortest_paths",
        "average_shortest_path_length",
        "degree_centrality",
        "ego_graph",
        "to_pandas_edgelist",
    ),
    "paths": (
        "all_pairs_shortest_path",
        "all_pairs_shortest_path_length",
        "bidirectional_shortest_path",
        "has_path",
        "shortest_path",
        "shortest_path_length",
        "single_source_shortest_path",
        "single_source_shortest_path_length",
        "single_target_shortest_path",
        "single_target_shortest_path_length",
    ),
    "traversal": (
        "ancestors",
        "bfs_edges",
        "bfs_layers",
        "bfs_predecessors",
        "bfs_successors",
        "bfs_tree",
        "descendants",
        "descendants_at_distance",
    ),
}
_HOMES = {name: home for home, names in _MODULES.items() for name in names}


def _later(name: str, home: str) -> Callable[..., Any]:
    """Return a function that is imported from its home when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(f"oocbfs.networkx.{home}"), name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


# What networkx finds here: these functions, ours for its own, and nothing that is called like one.
__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]
__all__ += list(FUNCTIONS)
convert_from_nx = _later("convert_from_nx", "graphs")
convert_to_nx = _later("convert_to_nx", "graphs")
globals().update({name: _later(name, home) for name, home in _HOMES.items()})

# Parameters that only networkx itself understands, where they are not None: their places.
REFUSED = {
    "all_shortest_paths": {"weight": 3},
    "average_shortest_path_length": {"weight": 1},
    "bfs_edges": {"sort_neighbors": 4},
    "bfs_predecessors": {"sort_neighbors": 3},
    "bfs_successors": {"sort_neighbors": 3},
    "bfs_tree": {"sort_neighbors": 4},
    "center": {"e": 1, "weight": 3},
    "closeness_centrality": {"distance": 2},
    "diameter": {"e": 1, "weight": 3},
    "eccentricity": {"sp": 2, "weight": 3},
    "ego_graph": {"undirected": 4, "distance": 5},
    "harmonic_centrality": {"distance": 2},
    "periphery": {"e": 1, "weight": 3},
    "radius": {"e": 1, "weight": 3},
    "shortest_path": {"weight": 3},
    "shortest_path_length": {"weight": 3},
    "to_pandas_edgelist": {"nodelist": 3, "edge_key": 5},
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
        if _given(args, kwargs, parameter, place) not in (None, False):
            return f"{parameter} is left to networkx"
    if name in ON_FILES and not _is_file(args[0] if args else kwargs["G"]):
        return "of graphs that were not opened from a file, networkx looks at rows itself"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Return whether converting a graph of networkx pays; a text says why not."""
    graph = args[0] if args else kwargs["G"]
    cache = getattr(graph, "__networkx_cache__", None) or {}
    if _is_backed(graph) or cache.get("backends", {}).get(BACKEND):
        return True
    num_ends = None
    if name in ("shortest_path", "shortest_path_length"):
        ends = [_given(args, kwargs, *end) for end in (("source", 1), ("target", 2))]
        num_ends = len(ends) - ends.count(None)
    if name in _NEAR or num_ends == 2:
        return "a search from one node to another takes less time than converting the graph"
    least = _ALL_PAIRS if num_ends == 0 else _LEAST_EDGES_OF.get(name, _LEAST_EDGES)
    return graph.number_of_edges() >= least or f"the graph has fewer than {least:,} edges"


def _is_backed(graph: object) -> bool:
    """Return whether a graph has a file or arrays behind it."""
    return getattr(graph, "__networkx_backend__", None) == BACKEND


def _is_file(graph: Any) -> bool:
    """Return whether a graph was opened from a file."""
    return _is_backed(graph) and graph._backing.is_file


def _given(args: tuple[Any, ...], kwargs: Mapping[str, Any], name: str, place: int) -> object:
    """Return an argument, None if it is left out."""
    return args[place] if len(args) > place else kwargs.get(name)

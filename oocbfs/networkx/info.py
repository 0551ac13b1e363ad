"""What networkx reads about this backend whenever it is imported: no more than it must."""

from __future__ import annotations

from typing import Any

_UNWEIGHTED = "Without weights only."
_NO_SORT = "Without ``sort_neighbors`` only."
_BOUNDS = "Without ``e`` and weights only. Undirected graphs are always searched with bounds."
_FROM_64 = "Without weights only. 64 nodes are searched from at a time."

# Each function that is implemented, with what its documentation says besides.
FUNCTIONS = {
    "all_pairs_shortest_path": "",
    "all_pairs_shortest_path_length": "",
    "ancestors": "",
    "bfs_edges": _NO_SORT,
    "bfs_layers": "",
    "bfs_predecessors": _NO_SORT,
    "bfs_successors": _NO_SORT,
    "bfs_tree": _NO_SORT,
    "bidirectional_shortest_path": "",
    "center": _BOUNDS,
    "closeness_centrality": _FROM_64,
    "connected_components": "",
    "descendants": "",
    "descendants_at_distance": "",
    "diameter": _BOUNDS,
    "eccentricity": "Without ``sp`` and weights only.",
    "harmonic_centrality": _FROM_64,
    "has_path": "",
    "is_connected": "",
    "is_weakly_connected": "",
    "node_connected_component": "",
    "number_connected_components": "",
    "number_weakly_connected_components": "",
    "periphery": _BOUNDS,
    "radius": _BOUNDS,
    "shortest_path": _UNWEIGHTED,
    "shortest_path_length": _UNWEIGHTED,
    "single_source_shortest_path": "",
    "single_source_shortest_path_length": "",
    "single_target_shortest_path": "",
    "single_target_shortest_path_length": "",
    "weakly_connected_components": "",
}


def get_info() -> dict[str, Any]:
    """Describe the backend."""
    return {
        "backend_name": "oocbfs",
        "project": "oocbfs",
        "package": "oocbfs",
        "short_summary": "Breadth-first search on compressed graphs that need not fit in memory.",
        "functions": {
            name: {"additional_docs": docs} if docs else {} for name, docs in FUNCTIONS.items()
        },
    }

"""What networkx reads about this backend whenever it is imported: no more than it must."""

from __future__ import annotations

from typing import Any

_UNWEIGHTED = "Without weights only."
_NO_SORT = "Without ``sort_neighbors`` only."
_BOUNDS = "Without ``e`` and weights only. Undirected graphs are always searched with bounds."
_ON_FILES = "On opened files only."
_FROM_64 = "Without weights only. 64 nodes are searched from at a time."

# Each function that is implemented, with what its documentation says besides.
FUNCTIONS = {
    "all_pairs_shortest_path": "",
    "all_pairs_shortest_path_length": "",
    "all_shortest_paths": f"{_ON_FILES} {_UNWEIGHTED}",
    "ancestors": "",
    "average_shortest_path_length": f"{_ON_FILES} {_FROM_64}",
    "bfs_edges": _NO_SORT,
    "bfs_layers": "",
    "bfs_predecessors": _NO_SORT,
    "bfs_successors": _NO_SORT,
    "bfs_tree": _NO_SORT,
    "bidirectional_shortest_path": "",
    "center": _BOUNDS,
    "closeness_centrality": _FROM_64,
    "connected_components": "",
    "degree_centrality": _ON_FILES,
    "descendants": "",
    "descendants_at_distance": "",
    "diameter": _BOUNDS,
    "eccentricity": "Without ``sp`` and weights only.",
    "ego_graph": f"{_ON_FILES} Without ``undirected`` and ``distance`` only.",
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
    "to_pandas_edgelist": f"{_ON_FILES} Without ``nodelist`` and ``edge_key`` only.",
    "weakly_connected_components": "",
}

# Functions on opened files only: of other graphs, networkx has what they need at hand.
ON_FILES = {name for name, docs in FUNCTIONS.items() if docs.startswith(_ON_FILES)}


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

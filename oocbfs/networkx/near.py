"""Functions on opened files that look at a part of the graph, or at rows and degrees alone.

Names, parameters, results and errors are those of networkx, whose documentation explains them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from oocbfs.distances.searches import ids_at
from oocbfs.networkx.distances import searches
from oocbfs.networkx.names import Node, Positions
from oocbfs.networkx.paths import known
from oocbfs.networkx.traversal import Depth, num_levels

_METHODS = ("unweighted", "dijkstra", "bellman-ford", "floyd-warshall", "floyd-warshall-numpy")
_MOST_LEVELS = (1 << 31) - 1


def ego_graph(
    G: Any,
    n: Node,
    radius: Depth = 1,
    center: bool = True,
    undirected: bool = False,
    distance: None = None,
) -> Any:
    """Return the subgraph of all nodes within a radius, in the order of the file."""
    position = known(G, n, f"Source {n} is not in G")
    engine, depth = G._backing.engine, num_levels(radius)
    positions = np.array([position])
    if depth > 0:
        ids = ids_at(engine, positions)
        whole = min(math.ceil(depth) if depth < math.inf else _MOST_LEVELS, _MOST_LEVELS)
        positions = engine.ego(ids, whole)._positions
    if not center:
        positions = positions[positions != position]
    return _induced(G, positions)


def induced(G: Any, nodes: Any) -> Any:
    """Return the subgraph of some nodes, as ``G.subgraph``; it cannot be changed."""
    names = G._backing.names
    found = (names.position(node) for node in G.nbunch_iter(nodes))
    positions = np.unique(np.fromiter((p for p in found if p is not None), np.int64))
    return nx.freeze(_induced(G, positions))


def _induced(G: Any, positions: NDArray[np.int64]) -> Any:
    if positions.size == 0:
        return nx.DiGraph() if G.is_directed() else nx.Graph()
    engine = G._backing.engine
    return engine.subgraph(ids_at(engine, positions)).to_networkx()


def all_shortest_paths(
    G: Any, source: Node, target: Node, weight: None = None, method: str = "dijkstra"
) -> Iterator[list[Any]]:
    """Yield all shortest paths between two nodes, which are found as they are asked for."""
    start = known(G, source, f"Source {source} not in G")
    end = G._backing.names.position(target) if target in G else None
    engine = G._backing.engine
    if end is None:
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    ends = (engine._stored.given(ids_at(engine, np.array([at])))[0] for at in (start, end))
    found = engine.all_shortest_paths(*ends)
    if found.distance < 0:
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    levels, before = _in_order(found)
    names = [level.tolist() for level in levels]

    def paths() -> Iterator[list[Any]]:
        """Go from the target to the source, as networkx does."""
        ways = [iter([0])]
        path: list[Any] = []
        while ways:
            place, depth = next(ways[-1], None), found.distance - len(ways) + 1
            if place is None:
                ways.pop()
                del path[-1:]
            elif depth == 0:
                yield [names[0][place], *reversed(path)]
            else:
                path.append(names[depth][place])
                ways.append(iter(before[depth - 1][place]))

    return paths()


def _in_order(found: Any) -> tuple[list[NDArray[Any]], list[list[list[int]]]]:
    """Put the levels into the order in which a search finds them; return who is before whom, too.

    All that comes before a vertex on shortest paths is on one itself, so that the order follows
    from these alone.
    """
    levels: list[NDArray[Any]] = [found.levels[0]]
    before = []
    place = np.zeros(1, np.int64)
    for step, level in zip(found.steps, found.levels[1:], strict=True):
        first = np.full(level.size, np.iinfo(np.int64).max)
        np.minimum.at(first, step.heads, place[step.tails])
        by_name = np.argsort(np.argsort(level))
        order = np.lexsort((by_name, first))
        place_after = np.empty(level.size, np.int64)
        place_after[order] = np.arange(level.size)
        rows: list[list[int]] = [[] for _ in range(level.size)]
        for tail, head in sorted(zip(place[step.tails], place_after[step.heads], strict=True)):
            rows[int(head)].append(int(tail))
        levels.append(level[order])
        before.append(rows)
        place = place_after
    return levels, before


def average_shortest_path_length(G: Any, weight: None = None, method: str | None = None) -> Any:
    """Return the mean distance between two nodes."""
    if method is not None and method not in _METHODS:
        raise ValueError(f"method not supported: {method}")
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept(
            "the null graph has no paths, thus there is no average shortest path length"
        )
    if n == 1:
        return 0
    total = 0
    for result in searches(G, G):
        if result.reached != n:
            kind = "strongly connected" if G.is_directed() else "connected"
            raise nx.NetworkXError(f"Graph is not {kind}.")
        total += int(result.level_sizes @ np.arange(result.level_sizes.size))
    return total / (n * (n - 1))


def degree_centrality(G: Any) -> dict[Any, float]:
    """Return the share of other nodes that each node is a neighbour of."""
    if len(G) <= 1:
        return dict.fromkeys(G, 1)
    stored = G._backing.engine._stored
    sides = (False, True)[: 1 + G.is_directed()]
    with stored.reading():
        found = [np.concatenate(list(stored.natural_degrees(inward=side))) for side in sides]
    scale = 1.0 / (len(G) - 1.0)
    total: NDArray[np.int64] = np.sum(found, axis=0, dtype=np.int64)
    return dict(zip(G, (total * scale).tolist(), strict=True))


def to_pandas_edgelist(
    G: Any,
    source: Any = "source",
    target: Any = "target",
    nodelist: None = None,
    dtype: Any = None,
    edge_key: Any = None,
) -> Any:
    """Return the edges as a data frame of pandas."""
    import pandas

    stored, first = G._backing.engine._stored, 0
    parts: list[tuple[Positions, Positions]] = []
    for degrees, neighbours in stored.natural_rows():
        sources = np.repeat(np.arange(first, first + degrees.size), degrees)
        kept = slice(None) if G.is_directed() else sources < neighbours
        parts.append((sources[kept], neighbours[kept].astype(np.int64)))
        first += degrees.size
    none = np.empty(0, np.int64)
    columns = {}
    for name, side in ((source, 0), (target, 1)):
        positions = np.concatenate([none, *(part[side] for part in parts)])
        # Of no edges, networkx does not know the type.
        columns[name] = list(G._backing.names.nodes(positions)) if positions.size else []
    return pandas.DataFrame(columns, dtype=dtype)

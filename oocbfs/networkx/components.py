"""Connected components: ``networkx.algorithms.components``, weak ones of directed graphs.

Names, parameters, results and errors are those of networkx, whose documentation explains them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocbfs.distances.searches import ids_at
from oocbfs.networkx.names import Node


def connected_components(G: Any) -> Iterator[set[Any]]:
    """Yield the nodes of each component, the one of the first node first."""
    labels = G._backing.engine.components().labels
    # A label is the smallest id of a component, so that labels ascend as first nodes do.
    by_label = np.argsort(labels, kind="stable")
    sorted_labels = labels[by_label]
    for members in np.split(by_label, np.flatnonzero(sorted_labels[1:] != sorted_labels[:-1]) + 1):
        if members.size:
            yield set(G._backing.names.nodes(members))


def number_connected_components(G: Any) -> int:
    """Count the components."""
    return int(G._backing.engine.components().num_components)


def is_connected(G: Any) -> bool:
    """Return whether there is one component."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G) == 1


def node_connected_component(G: Any, n: Node) -> set[Any]:
    """Return the nodes of the component of one."""
    position = G._backing.names.position(n)
    if position is None:
        raise KeyError(n)
    engine = G._backing.engine
    levels = engine.bfs(ids_at(engine, np.array([position]))).levels
    return set(G._backing.names.nodes(np.flatnonzero(levels >= 0)))


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected

"""Which vertices distances are about: a component, or all vertices of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from oocbfs.distances.measures import Measures
    from oocbfs.graph.vertices import Vertex

LARGEST, ALL = "largest", "all"


@dataclass(frozen=True)
class Scope:
    """Some vertices, by position, and whether they all reach each other.

    ``inside`` is None where they are all.
    """

    text: str
    total: int
    inside: NDArray[np.bool_] | None
    num_vertices: int
    is_mutual: bool
    label: Any = None
    # Vertices of the largest component, and of the second, where there are several.
    largest: int = 0
    second: int = 0
    # Bytes of tails read from disk to find it.
    disk_bytes: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether these are all vertices of the graph."""
        return self.inside is None

    def positions(self) -> NDArray[np.int64]:
        """Return their positions."""
        return np.arange(self.total) if self.inside is None else np.flatnonzero(self.inside)

    def at(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of those that have these numbers, counted from 0."""
        return numbers if self.inside is None else np.flatnonzero(self.inside)[numbers]


def scope_of(graph: Measures, component: Vertex = LARGEST, **settings: Any) -> Scope:
    """Find the vertices that are meant: ``"largest"``, ``"all"``, or the component of a vertex.

    Of a directed graph, components are the strongly connected ones.
    """
    n = graph.num_vertices
    if component == ALL and graph.directed:
        return Scope("all vertices", n, None, n, is_mutual=n < 2)
    found = graph.components(strong=True, **settings)
    is_one = found.num_components <= 1
    disk_bytes = found.stats.slow_bytes_by_tier.get("disk", 0)
    if component == ALL or n == 0:
        largest, second = (*found.sizes[:2].tolist(), 0, 0)[:2]
        sizes = {"largest": largest, "second": second}
        return Scope("all vertices", n, None, n, is_one, **sizes, disk_bytes=disk_bytes)
    kind = "strongly connected component" if graph.directed else "component"
    if component == LARGEST:
        assert found.largest_component is not None
        label, text = found.largest_component.label, f"the largest {kind}"
    else:
        label, text = found.label_of(component), f"the {kind} of {component}"
    if is_one:
        return Scope(text, n, None, n, True, label, largest=n, disk_bytes=disk_bytes)
    inside = found.labels == found.labels[graph._stored.position(label)]
    count = int(np.count_nonzero(inside))
    return Scope(text, n, inside, count, True, label, largest=count, disk_bytes=disk_bytes)

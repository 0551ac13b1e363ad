"""Which vertices distances are about: a component, or all vertices of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import PIECE, ResultArrays, pieces_of
from oocbfs.distances.code import CODE
from oocbfs.plan.host import MemoryPlan

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
    # What may be taken beside searches.
    plan: MemoryPlan = field(default_factory=MemoryPlan)

    @property
    def room(self) -> ResultArrays:
        """Where arrays of all vertices live; they are only gone along."""
        return self.plan.arrays

    @property
    def is_whole(self) -> bool:
        """Whether these are all vertices of the graph."""
        return self.inside is None

    def parts(self) -> Iterator[NDArray[np.int64]]:
        """Yield their positions, piece by piece."""
        if self.inside is None:
            for first in range(0, self.total, PIECE):
                yield np.arange(first, min(first + PIECE, self.total))
            return
        for part in pieces_of(self.inside):
            yield part.start + np.flatnonzero(self.inside[part])

    def pieces_of(self, *arrays: NDArray[Any]) -> Iterator[slice]:
        """Yield the pieces of arrays of all vertices that are gone along together with these."""
        return pieces_of(*arrays, *(() if self.inside is None else (self.inside,)))

    def positions(self) -> NDArray[np.int64]:
        """Return their positions."""
        return np.concatenate((np.empty(0, np.int64), *self.parts()))

    def at(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of those that have these numbers, ascending and counted from 0."""
        if self.inside is None:
            return numbers
        found, before = np.empty(numbers.size, np.int64), 0
        for part in self.parts():
            some = slice(*np.searchsorted(numbers, (before, before + part.size)).tolist())
            found[some] = part[numbers[some] - before]
            before += part.size
        return found


def scope_of(
    graph: Measures,
    component: Vertex = LARGEST,
    *,
    plan: MemoryPlan | None = None,
    **settings: Any,
) -> Scope:
    """Find the vertices that are meant: ``"largest"``, ``"all"``, or the component of a vertex.

    Of a directed graph, components are the strongly connected ones. Refuses a budget in which
    distances have no room.
    """
    plan = graph._plan_distances(CODE, **settings) if plan is None else plan
    n = graph.num_vertices
    if component == ALL and graph.directed:
        return Scope("all vertices", n, None, n, is_mutual=n < 2, plan=plan)
    # Whatever device searches, they are found on the host.
    host = {name: value for name, value in settings.items() if name != "engine"}
    if plan.engine == "disk":
        # What others unpack would stay.
        host["engine"] = "disk"
    found = graph.components(strong=True, **host)
    is_one = found.num_components <= 1
    disk_bytes = found.stats.slow_bytes_by_tier.get("disk", 0)
    if component == ALL or n == 0:
        largest, second = (*found.sizes[:2].tolist(), 0, 0)[:2]
        sizes = {"largest": largest, "second": second}
        return Scope("all vertices", n, None, n, is_one, **sizes, disk_bytes=disk_bytes, plan=plan)
    kind = "strongly connected component" if graph.directed else "component"
    if component == LARGEST:
        assert found.largest_component is not None
        label, text = found.largest_component.label, f"the largest {kind}"
    else:
        label, text = found.label_of(component), f"the {kind} of {component}"
    if is_one:
        return Scope(text, n, None, n, True, label, largest=n, disk_bytes=disk_bytes, plan=plan)
    inside, count = plan.arrays.allocate(n, np.bool_), 0
    wanted = found.labels[graph._stored.position(label)]
    for part in pieces_of(inside, found.labels):
        inside[part] = found.labels[part] == wanted
        count += int(np.count_nonzero(inside[part]))
    sizes = {"largest": count, "disk_bytes": disk_bytes}
    return Scope(text, n, inside, count, True, label, **sizes, plan=plan)

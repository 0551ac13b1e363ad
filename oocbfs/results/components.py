"""What the components of a graph are, in input ids."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Ids
from oocbfs.results import tables
from oocbfs.results.call import CallStats, OfGraph
from oocbfs.settings import file_name

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.vertices import Vertex
    from oocbfs.kernels.components.connect import ComponentStep

_PIECE = 1 << 18


class Component(NamedTuple):
    """A component by its smallest id, or the first of its names, and how many vertices it has."""

    label: Any
    size: int


class ComponentsRun(NamedTuple):
    """What an engine did, besides filling labels; ``seconds`` are its own."""

    engine: str
    threads: int
    steps: list[ComponentStep]
    seconds: float
    slow_bytes_by_tier: dict[str, int]
    # What is not as it was planned.
    note: str | None = None


@dataclass(frozen=True)
class ComponentsStats(CallStats):
    """How it went; searching is to find the components, and then they are counted, too.

    ``tail_bytes`` are those of the whole graph.
    """

    steps: list[ComponentStep] = field(repr=False)
    tail_bytes: int

    @property
    def tail_bytes_decoded(self) -> int:
        """Bytes of the tails that were decoded."""
        return sum(step.tail_bytes for step in self.steps)


@dataclass(frozen=True, repr=False, eq=False)
class ComponentsResult(OfGraph, tables.Tabular):
    """Connected components; of a directed graph the weakly or the strongly connected ones.

    ``labels`` holds the smallest id of each vertex's component, and is aligned with the ids in
    ascending order: position i is id i where ids are 0 … n-1. Where vertices have names, a label is
    the position of a name in ``graph.names``.
    """

    _stored: AnyStored = field(repr=False)
    labels: Ids
    stats: ComponentsStats
    # How many vertices share the label of this position, 0 where none does.
    _counts: NDArray[np.uint32] = field(repr=False)
    # Of a directed graph: whether all vertices of a component reach each other.
    strong: bool = False

    @cached_property
    def histogram(self) -> dict[int, int]:
        """How many components there are of each size, sizes ascending."""
        found: Counter[int] = Counter()
        for _, sizes in self._pieces():
            values, counts = np.unique(sizes, return_counts=True)
            found.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        return dict(sorted(found.items()))

    @cached_property
    def num_components(self) -> int:
        """Number of components."""
        return sum(self.histogram.values())

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Sizes of all components, the largest first."""
        sizes = np.fromiter(self.histogram, np.int64, len(self.histogram))
        counts = np.fromiter(self.histogram.values(), np.int64, len(self.histogram))
        return np.repeat(sizes[::-1], counts[::-1])

    def size_classes(self) -> list[tuple[int, int, int, int]]:
        """Sum up by powers of two: smallest and largest size, components, vertices."""
        classes: dict[int, tuple[int, int]] = {}
        for size, count in self.histogram.items():
            bits = (size - 1).bit_length()
            components, vertices = classes.get(bits, (0, 0))
            classes[bits] = components + count, vertices + size * count
        return [
            ((1 << bits - 1) + 1 if bits else 1, 1 << bits, components, vertices)
            for bits, (components, vertices) in classes.items()
        ]

    def largest(self, count: int) -> list[Component]:
        """Return the largest components, of equal ones those with smaller labels first."""
        positions = np.empty(0, np.int64)
        sizes = np.empty(0, np.int64)
        for more, more_sizes in self._pieces():
            positions, sizes = np.append(positions, more), np.append(sizes, more_sizes)
            kept = np.argsort(-sizes, kind="stable")[:count]
            positions, sizes = positions[kept], sizes[kept]
        graph = self._stored
        return [
            Component(graph.given_one(int(graph.ids_at(position, position + 1)[0])), size)
            for position, size in zip(positions.tolist(), sizes.tolist(), strict=True)
        ]

    @cached_property
    def largest_component(self) -> Component | None:
        """The largest component; None if there are no vertices."""
        return next(iter(self.largest(1)), None)

    def labels_between(self, first: int, stop: int) -> NDArray[np.uint64]:
        """Labels at positions first … stop-1."""
        return self.labels[first:stop]

    def label_of(self, vertex: Vertex) -> Any:
        """Smallest id of a vertex's component."""
        return self._stored.given_one(self.labels[self._stored.position(vertex)])

    def members(self, vertex: Vertex) -> NDArray[Any]:
        """Ids of all vertices in the component of this one, ascending."""
        label = self.labels[self._stored.position(vertex)]
        found = []
        for first in range(0, self.labels.size, _PIECE):
            labels = self.labels[first : first + _PIECE]
            found.append(self._stored.ids_at(first, first + labels.size)[labels == label])
        return self._stored.given(np.concatenate(found))

    def in_largest(self, stored: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which stored vertices are in the largest component."""
        if self.largest_component is None:
            return np.zeros(stored.size, np.bool_)
        with self._stored.reading():
            natural = stored if self._stored.order is None else self._stored.order[stored]
        label = self.labels[self._stored.position(self.largest_component.label)]
        inside: NDArray[np.bool_] = self.labels[natural] == label
        return inside

    @cached_property
    def largest_edges(self) -> int:
        """Edges of the largest component, undirected ones counted once.

        Of a strongly connected one, those that leave it are counted too.
        """
        total = 0
        with self._stored.reading():
            degrees = self._stored.stored_degrees
            for first in range(0, degrees.size, _PIECE):
                piece = degrees[first : first + _PIECE]
                inside = self.in_largest(np.arange(first, first + piece.size))
                total += int(piece[inside].sum(dtype=np.int64))
        return total if self._stored.directed else total // 2

    def _pieces(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the positions that are labels, and their components' sizes, piece by piece."""
        for first in range(0, self._counts.size, _PIECE):
            piece = self._counts[first : first + _PIECE]
            positions = np.flatnonzero(piece)
            yield positions + first, piece[positions].astype(np.int64)

    def about(self) -> dict[str, str]:
        """Return what the table of these components is about."""
        found = {"components": self.num_components, "engine": self.stats.engine}
        return tables.about(self._stored, **found)

    def _columns_between(self, first: int, stop: int) -> tables.Columns:
        labels = self._stored.as_column(self.labels_between(first, stop))
        return {"id": self._stored.id_column(first, stop), "component": labels}

    @property
    def _values(self) -> Ids:
        return self.labels

    def _draw(self, path: str | os.PathLike[str] | None, *, force: bool) -> Any:
        from oocbfs.results.plots import plot_components

        return plot_components(self, path, force=force)

    @property
    def title(self) -> str:
        """What was searched, how, and what was found, in one line."""
        n, stats = self._stored.num_vertices, self.stats
        return (
            f"{file_name(self._stored.path)}: {self.num_components:,} components, "
            f"{max(self.histogram, default=0) / max(1, n):.1%} of {n:,} vertices in the largest, "
            f"{stats.seconds * 1e3:,.1f} ms on the {stats.engine} engine"
        )

    def _repr_html_(self) -> str:
        from oocbfs.results.notebook import components_html

        return components_html(self)

    def summary(self) -> dict[str, Any]:
        """Return the figures, for JSON."""
        largest = self.largest_component
        return {
            "graph": self._stored.path,
            "vertices": self._stored.num_vertices,
            "edges": self._stored.num_edges,
            "arcs": self._stored.num_arcs,
            "components": self.num_components,
            "strong": self.strong,
            "largest_component": None if largest is None else largest._asdict(),
            "sizes": [list(pair) for pair in self.histogram.items()],
            "seconds": self.stats.seconds,
            "compile_seconds": self.stats.compile_seconds,
            "load_seconds": self.stats.load_seconds,
            "search_seconds": self.stats.search_seconds,
            "to_ids_seconds": self.stats.to_ids_seconds,
            "engine": self.stats.engine,
            "threads": self.stats.threads,
            "fallback": self.stats.fallback,
            "engine_reason": self.stats.engine_reason,
            "tail_bytes_decoded": self.stats.tail_bytes_decoded,
            "tail_bytes": self.stats.tail_bytes,
            "slow_bytes": self.stats.slow_bytes,
            "slow_bytes_by_tier": self.stats.slow_bytes_by_tier,
            "steps": [step._asdict() for step in self.stats.steps],
        }

"""The graphs of the checks: small, but with rows of every length and levels of every size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.converter import convert
from oocbfs.formats.io.ordered import available_threads
from oocbfs.generate import generators
from oocbfs.graph.stored import StoredGraph
from oocbfs.kernels.bfs import search as cpu
from oocbfs.progress import Phases
from oocbfs.search.graph import Graph, open_file


@dataclass(frozen=True)
class Sizes:
    """Vertices of each graph, the side of the grid, and the scale of the Kronecker graph."""

    star: int
    path: int
    side: int
    hubs: int
    scale: int


# The path has more levels than one launch of small levels runs.
LARGE = Sizes(star=60_000, path=5_000, side=200, hubs=40_000, scale=12)
# The emulator takes some thousand times as long as a GPU.
SMALL = Sizes(star=3_000, path=100, side=16, hubs=6_000, scale=8)


@dataclass(frozen=True)
class Case:
    """A graph, and stored vertices to search from: the two of most neighbours, and another.

    From the second, most heads miss, because they name the first.
    """

    name: str
    graph: Graph
    sources: tuple[int, ...]
    _levels: dict[int, NDArray[np.int32]] = field(default_factory=dict)

    @property
    def stored(self) -> StoredGraph:
        """The graph as its file stores it."""
        return self.graph._stored

    def levels(self, source: int) -> NDArray[np.int32]:
        """Return what the CPU finds, by stored vertex."""
        if source not in self._levels:
            graph, levels = self.stored, np.empty(self.graph.num_vertices, np.int32)
            sources = np.array([source], np.uint32)
            cpu.search(graph.rows, graph.in_rows, sources, levels, threads=available_threads())
            self._levels[source] = levels
        return self._levels[source]


@contextmanager
def open_cases(folder: Path, sizes: Sizes, phases: Phases) -> Iterator[list[Case]]:
    """Make all graphs in a folder, directed and not."""
    made, described = [], list(product(_edges(sizes).items(), (False, True)))
    with ExitStack() as stack:
        with phases("graphs", len(described), "graph") as bar:
            for (name, edges), directed in described:
                path = folder / f"{name.replace(' ', '-')}-{directed}.ocg"
                convert(edges, path, directed=directed, order=_ORDERS.get(name.split()[0], "auto"))
                graph = stack.enter_context(open_file(path))
                kind = "directed" if directed else "undirected"
                made.append(Case(f"{name}, {kind}", graph, _sources(graph)))
                bar.update(1)
        yield made


# In the order of ids most heads miss, and rows of any length lie side by side. In that of degrees,
# results have to be brought into the order of ids.
_ORDERS: dict[str, Any] = {
    "hubs": "natural",
    "islands": "natural",
    "star": "degree",
    "Kronecker": "degree",
}


def _sources(graph: Graph) -> tuple[int, ...]:
    degrees = graph._stored.rows.degrees
    others = np.flatnonzero(degrees)
    largest = np.argsort(degrees, kind="stable")[-2:]
    return (*map(int, largest[::-1]), int(others[others.size // 3]))


def _edges(sizes: Sizes) -> dict[str, Any]:
    return {
        "star": _star(sizes.star),
        "path": _along(np.arange(sizes.path)),
        "grid": _grid(sizes.side),
        "hubs": _hubs(sizes.hubs),
        "islands": _islands(sizes.hubs),
        f"Kronecker {sizes.scale}": _kronecker(sizes.scale),
    }


def _from(vertex: int, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([np.full(targets.size, vertex), targets], axis=1)


def _along(vertices: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([vertices[:-1], vertices[1:]], axis=1)


def _star(count: int) -> NDArray[np.int64]:
    return _from(count // 2, np.delete(np.arange(count), count // 2))


def _grid(side: int) -> NDArray[np.int64]:
    cells = np.arange(side * side).reshape(side, side)
    lines = [_along(line) for line in (*cells, *cells.T)]
    return np.concatenate(lines)


def _hubs(count: int) -> NDArray[np.int64]:
    """Make hubs whose segments end in stretched varints, rows for a lane and for a warp, a path."""
    rng = np.random.default_rng(1)
    inner = count - 100
    parts = [rng.integers(0, inner // 2, (count // 3, 2))]
    # The last two have neighbours in common, and several segments; the first has long gaps.
    for hub, far in ((17, 0.03), (inner // 2, 0.004), (inner - 1, 0.005)):
        gaps = rng.choice([1, 2, 3, 150], count, p=[0.6, 0.3, 0.1 - far, far])
        targets = np.cumsum(gaps)
        parts.append(_from(hub, targets[targets < inner]))
    parts += [
        _from(vertex, rng.integers(0, inner, int(rng.integers(20, 400))))
        for vertex in range(100, 130)
    ]
    # From hub to hub, and away from all of them.
    parts += [np.array([[17, inner - 1], [inner - 1, inner // 2], [inner // 3, inner]])]
    parts.append(_along(np.arange(inner, inner + 20)))
    return np.concatenate(parts)


def _kronecker(scale: int) -> NDArray[np.int64]:
    """Make a graph whose number of vertices is odd; the last three of them have no edges."""
    batches = list(generators.rmat(scale, shuffle=True).batches())
    pairs = [np.stack([one.sources, one.targets], axis=1).astype(np.int64) for one in batches]
    last = (1 << scale) + 2
    return np.concatenate([*pairs, np.array([[last, last]])])


def _islands(count: int) -> NDArray[np.int64]:
    """Make many components, none of them with most vertices, and hubs apart from all of them.

    Two hubs more are joined by an edge that comes last in both rows, and is the head of neither.
    """
    third = count // 3
    sparse = np.random.default_rng(2).integers(0, third, (third * 4 // 5, 2))
    leaves, last = np.arange(2 * third, 3 * third), 3 * third
    pairs = [(last, leaves[::6]), (last + 1, leaves[1::6])]
    pairs += [(last + 2, leaves[2::3]), (last + 3, leaves[3::6]), (last + 3, leaves[4::6])]
    joined = [[last, last + 1], [last, last + 2], [last + 1, last + 3]]
    parts = [_from(hub, targets) for hub, targets in pairs]
    return np.concatenate([sparse, _hubs(third) + third, *parts, np.array(joined)])

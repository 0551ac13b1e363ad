"""All shortest paths between two vertices: a graph of levels that is counted, not listed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.point import pairs as kernels
from oocbfs.kernels.point import state as words
from oocbfs.results import tables

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.single_rows import Work
    from oocbfs.point.search import PairSearch

_MOST_64 = 2**63 - 1


class Step(NamedTuple):
    """The arcs of all shortest paths from one level to the next, by the places of their ends."""

    tails: NDArray[np.int64]
    heads: NDArray[np.int64]


class ShortestPaths(tables.Table):
    """All shortest paths from a source to a target, as the levels and arcs that they consist of.

    ``count`` is exact however many there are; iterating finds one after the other. Without a path,
    ``distance`` is -1 and there is none.
    """

    def __init__(
        self,
        graph: AnyStored,
        source: Any,
        target: Any,
        levels: list[NDArray[Any]],
        steps: list[Step],
    ) -> None:
        self._stored = graph
        self.source, self.target = source, target
        self._levels, self._steps = levels, steps

    @property
    def distance(self) -> int:
        """Steps from the source to the target; -1 if there is no path."""
        return len(self._levels) - 1

    @property
    def levels(self) -> list[NDArray[Any]]:
        """Ids of the vertices on shortest paths, by their distance from the source."""
        return self._levels

    @property
    def steps(self) -> list[Step]:
        """The arcs from each level to the next."""
        return self._steps

    @property
    def num_edges(self) -> int:
        """Number of edges that are on a shortest path."""
        return sum(step.tails.size for step in self._steps)

    @cached_property
    def count(self) -> int:
        """Number of shortest paths, exactly."""
        if self.distance < 0:
            return 0
        counts: NDArray[Any] = np.ones(1, np.int64)
        for step, level in zip(self._steps, self._levels[1:], strict=True):
            if counts.dtype != object and int(counts.max()) > _MOST_64 // max(1, step.tails.size):
                counts = counts.astype(object)
            following: NDArray[Any] = np.zeros(level.size, counts.dtype)
            np.add.at(following, step.heads, counts[step.tails])
            counts = following
        return int(counts[0])

    def __bool__(self) -> bool:
        return self.distance >= 0

    def __iter__(self) -> Iterator[list[Any]]:
        """Yield paths, each a list of ids from the source to the target."""
        if self.distance < 0:
            return
        names = [level.tolist() for level in self._levels]
        following = [
            _by_tail(step, len(level)) for step, level in zip(self._steps, names, strict=False)
        ]
        # How to go on from each vertex of the present path.
        ways = [iter([0])]
        path: list[Any] = []
        while ways:
            place = next(ways[-1], None)
            if place is None:
                ways.pop()
                if path:
                    path.pop()
                continue
            depth = len(ways) - 1
            path.append(names[depth][place])
            if depth == self.distance:
                yield path.copy()
                path.pop()
            else:
                ways.append(iter(following[depth][place]))

    def first(self, number: int) -> list[list[Any]]:
        """Return so many paths, or all if there are fewer."""
        return list(islice(self, number))

    def edges(self) -> dict[str, NDArray[Any]]:
        """Return the edges on shortest paths: source, target, and the level of the source."""
        pairs = list(zip(self._steps, pairwise(self._levels), strict=True))
        none = np.empty(0, np.uint64)
        return {
            "source": np.concatenate([level[step.tails] for step, (level, _) in pairs] or [none]),
            "target": np.concatenate([level[step.heads] for step, (_, level) in pairs] or [none]),
            "level": np.repeat(np.arange(len(pairs)), [step.tails.size for step, _ in pairs]),
        }

    def about(self) -> dict[str, str]:
        """Say what the table of edges is about."""
        found = {"source_vertex": self.source, "target_vertex": self.target}
        return tables.about(self._stored, **found)

    def _types(self) -> tables.Types:
        return {name: column.dtype for name, column in self.edges().items()}

    def _batches(self, *, reached_only: bool) -> Iterator[tables.Columns]:
        columns: tables.Columns = {**self.edges()}
        yield columns

    def __repr__(self) -> str:
        if not self:
            return f"<ShortestPaths: none from {self.source} to {self.target}>"
        return (
            f"<ShortestPaths: {self.count:,} of {self.distance:,} steps from {self.source} to "
            f"{self.target}, {self.num_edges:,} edges>"
        )


def _by_tail(step: Step, size: int) -> list[list[int]]:
    """Return the heads of each tail's arcs."""
    order = np.argsort(step.tails, kind="stable")
    ends = np.searchsorted(step.tails[order], np.arange(1, size))
    return [part.tolist() for part in np.split(step.heads[order], ends)]


def find_all(
    search: PairSearch, source: int, target: int
) -> tuple[list[NDArray[np.uint32]], list[Step]]:
    """Return the levels and arcs of all shortest paths between stored vertices; empty if none is.

    The search from both ends stops at the first edge between its sides, which are complete then:
    every shortest path has one edge from the last level of one to the last level of the other.
    """
    if source == target:
        return [np.array([source], np.uint32)], []
    with search.borrowed() as work:
        distance = search.meet(work, source, target)
        if distance == kernels.NO_PATH:
            return [], []
        sides = None if distance == kernels.GIVEN_UP else _sides(work, distance)
    if sides is None:
        return _from_levels(search, source, target)
    before, behind, outward = sides
    lister = Lister(search)
    # From the side that was taken further, whose rows were looked at already.
    if outward:
        first, second = lister.arcs(before[-1], behind[-1])
    else:
        second, first = lister.arcs(behind[-1], before[-1], inward=True)
    middle = [(first, second)]
    arcs_before = _back(lister, before[:-1], np.unique(first), inward=True)
    arcs_behind = _back(lister, behind[:-1], np.unique(second), inward=False)
    turned = [(heads, tails) for tails, heads in reversed(arcs_before)]
    return _numbered(source, [*turned, *middle, *arcs_behind])


Arcs = tuple[NDArray[np.uint32], NDArray[np.uint32]]


class Lister:
    """Lists arcs from some vertices to a set of others."""

    def __init__(self, search: PairSearch) -> None:
        self._search = search

    def arcs(
        self, vertices: NDArray[np.uint32], others: NDArray[np.uint32], *, inward: bool = False
    ) -> Arcs:
        """Return the arcs of some vertices whose other end is among ``others``, which ascend."""
        owners, ids = self.all_arcs(vertices, inward=inward)
        places = np.minimum(np.searchsorted(others, ids), others.size - 1)
        are_in = others[places] == ids
        return owners[are_in], ids[are_in]

    def all_arcs(self, vertices: NDArray[np.uint32], *, inward: bool) -> Arcs:
        """Return all arcs of some vertices, these first."""
        with self._search.borrowed() as work:
            ids, ends = self._search.reader.list_rows(vertices, work, inward=inward)
        return np.repeat(vertices, np.diff(ends, prepend=0)), ids


def _sides(
    work: Work, distance: int
) -> tuple[list[NDArray[np.uint32]], list[NDArray[np.uint32]], bool]:
    """Return the complete levels of both sides, ascending, and whether the source's was the last.

    The last expansion found the edge between them; what else it found belongs to no shortest path.
    """
    entries = int(work.control[words.ENTRIES])
    queue, levels = work.reach.queue[:entries], work.reach.levels[:entries]
    roots = work.reach.owners[:entries].astype(np.int64)
    while (roots > 1).any():
        roots = roots[roots]
    near, far = (int(work.control[word]) for word in (kernels.NEAR, kernels.FAR))
    outward = int(work.control[kernels.SIDE]) == 0
    one, other = (near, far) if outward else (far, near)
    before, behind = (
        [
            np.sort(queue[(roots == side) & (levels == level)])
            for level in range(int(levels[end]) + 1)
        ]
        for side, end in ((0, one), (1, other))
    )
    assert len(before) + len(behind) == distance + 1
    return before, behind, outward


def _back(
    lister: Lister, levels: list[NDArray[np.uint32]], last: NDArray[np.uint32], *, inward: bool
) -> list[Arcs]:
    """Follow shortest paths from a set of vertices to the end of its side, level by level."""
    found = []
    for level in reversed(levels):
        arcs = lister.arcs(last, level, inward=inward)
        found.append(arcs)
        last = np.unique(arcs[1])
    return found


def _numbered(source: int, arcs: list[Arcs]) -> tuple[list[NDArray[np.uint32]], list[Step]]:
    """Return levels, and arcs by the places of their ends in them."""
    levels = [np.array([source], np.uint32), *(np.unique(heads) for _, heads in arcs)]
    steps = [
        Step(np.searchsorted(levels[i], tails), np.searchsorted(levels[i + 1], heads))
        for i, (tails, heads) in enumerate(arcs)
    ]
    return levels, steps


def _from_levels(
    search: PairSearch, source: int, target: int
) -> tuple[list[NDArray[np.uint32]], list[Step]]:
    """Do the same with the levels of a search of the whole graph."""
    distance, level_of = search.whole.levels_up_to(source, target)
    if distance < 0:
        return [], []
    lister = Lister(search)
    arcs: list[Arcs] = []
    last = np.array([target], np.uint32)
    for level in range(distance - 1, -1, -1):
        heads, tails = lister.all_arcs(last, inward=True)
        are_nearer = level_of(tails) == level
        arcs.append((tails[are_nearer], heads[are_nearer]))
        last = np.unique(arcs[-1][0])
    return _numbered(source, arcs[::-1])

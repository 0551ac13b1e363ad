"""All edges of a graph once, sorted, without loops and duplicates: what sorting leaves.

An edge is a key of two vertices, ``source << column_bits | target``; the smaller one comes first if
the graph is undirected. An arc is an entry of a row: an undirected edge has two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.edge_runs import SAMPLE_EDGES
from oocbfs.conversion.graph_run import GraphRun
from oocbfs.conversion.key_sorter import Keys, KeySorter
from oocbfs.conversion.order import NO_ORDER
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.spill import BlockLog
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels.convert import arrange, gaps, graph_keys
from oocbfs.kernels.threads import renewed_after_fork

Result = TypeVar("Result")

# Keys of a graph that was left in place that are decoded at a time.
_PIECE_KEYS = 1 << 17


class Side(IntEnum):
    """Which arcs of an edge are meant; the numbers are those of the kernels."""

    OUT = 0
    IN = 1
    BOTH = 2


class SortedEdges:
    """Sorted keys, packed, in memory or on disk; the exact degrees, and a sample of the keys."""

    def __init__(
        self,
        resources: Resources,
        num_vertices: int,
        column_bits: int,
        *,
        num_edges_read: int,
        directed: bool,
        budget_bytes: int,
    ) -> None:
        self._resources, self._column_bits = resources, column_bits
        self._num_edges_read, self.directed = num_edges_read, directed
        self.num_keys = 0
        self.out_degrees = np.zeros(num_vertices, np.uint32)
        self.in_degrees = np.zeros(num_vertices, np.uint32) if directed else self.out_degrees
        self._log = BlockLog(resources.folder, budget_bytes)
        self._sizes: list[int] = []
        self._sample = np.empty(0, np.uint64)
        self._renumbered: tuple[NDArray[np.uint32], int] | None = None
        self._base: GraphRun | None = None

    def collect(self, sorter: KeySorter, advance: Callable[[int], object]) -> None:
        """Take all keys of a sorter; ``advance`` is called with the number of each bucket."""
        lock = renewed_after_fork(Lock())
        stride = max(1, self._num_edges_read // SAMPLE_EDGES)

        def work(keys: Keys) -> tuple[int, Keys, Keys]:
            with lock:
                arrange.count_degrees(self.out_degrees, self.in_degrees, keys, self._column_bits)
            return keys.size, gaps.packed(keys), keys[::stride].copy()

        samples = [np.empty(0, np.uint64)]
        for size, packed, some_keys in sorter.drain(work):
            self._log.append(packed)
            self._sizes.append(size)
            samples.append(some_keys)
            advance(size)
        self.num_keys = sum(self._sizes)
        self._sample = np.concatenate(samples)

    def leave_in_place(self, base: GraphRun) -> None:
        """Count the edges of a graph in, which are none of the keys: they are in its rows."""
        self._base = base
        base.add_degrees(self.out_degrees, self.in_degrees)

    def renumber(self, vertices: NDArray[np.uint32], num_vertices: int, column_bits: int) -> None:
        """Give each vertex another number, in the same order; those that go have no edges.

        ``vertices`` are kept. The sample is drawn anew, as from a graph that never had others.
        """
        kept = vertices < num_vertices
        self.out_degrees = _moved(self.out_degrees, kept, vertices, num_vertices)
        self.in_degrees = (
            _moved(self.in_degrees, kept, vertices, num_vertices)
            if self.directed
            else self.out_degrees
        )
        self._renumbered = (vertices, self._column_bits)
        self._column_bits = column_bits
        stride = max(1, self._num_edges_read // SAMPLE_EDGES)
        samples = [np.empty(0, np.uint64)]
        samples += self.each(lambda keys: keys[::stride].copy())
        self._sample = np.concatenate(samples)

    @property
    def num_edges(self) -> int:
        """All edges, those that were left in place among them."""
        return self.num_keys + (0 if self._base is None else self._base.num_edges)

    @property
    def total_degrees(self) -> NDArray[np.uint32]:
        """Neighbours of each vertex, in both directions."""
        return self.out_degrees + self.in_degrees if self.directed else self.out_degrees

    @property
    def largest_degree(self) -> int:
        """Length of the longest row."""
        return max(int(self.out_degrees.max(initial=0)), int(self.in_degrees.max(initial=0)))

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._log.spilled_bytes

    def num_arcs(self, side: Side) -> int:
        """Entries of the rows of a side."""
        return self.num_edges * (2 if side is Side.BOTH else 1)

    def sort_arcs(
        self,
        phase: str,
        side: Side,
        stored_at: NDArray[np.uint32],
        *,
        budget_bytes: int,
        keep: bool,
        rows: GraphRun | None = None,
    ) -> KeySorter:
        """Scatter the arcs of a side by row, as an order stores them; none is the natural one.

        ``keep`` tells whether the edges are needed once more. Edges that were left in place are
        merged with them as ``rows``, which are in the same order, or else scattered, too.
        """
        free_bytes = budget_bytes - self._log.resident_bytes
        sample = self._arcs(self._sample, side, stored_at)
        others = rows or self._base
        if others is not None:
            # Of each as many as its share.
            wanted = SAMPLE_EDGES * self.num_keys // max(1, others.num_edges)
            some = sample[:: max(1, sample.size // max(1, wanted))]
            firsts = others.sample(SAMPLE_EDGES, self._column_bits)
            places = NO_ORDER if rows is not None else stored_at
            sample = np.concatenate([some, self._arcs(firsts, Side.OUT, places)])
        sorter = self._resources.key_sorter(
            sample,
            self.num_arcs(side),
            free_bytes,
            self._column_bits,
            [] if rows is None else [rows],
        )

        def scatter(keys: Keys) -> int:
            arcs = self._arcs(keys, side, stored_at)
            sorter.add(arcs)
            return arcs.size

        total = self.num_arcs(side) - (0 if rows is None else rows.num_arcs)
        with self._resources.phases(phase, total, "edge") as bar:
            for size in self.each(scatter, keep=keep):
                bar.update(size)
            if rows is None and self._base is not None:
                pieces = self._base.keys(0, self.out_degrees.size, self._column_bits, _PIECE_KEYS)
                for size in ordered_map(scatter, pieces, self._resources.plan.threads):
                    bar.update(size)
        return sorter

    def each(self, work: Callable[[Keys], Result], *, keep: bool = True) -> Iterator[Result]:
        """Apply work to the keys, sorted and some at a time, and yield what it returns in order.

        ``keep`` tells whether they are needed once more. What was left in place is not among them.
        """

        def unpack(index: int) -> Result:
            return work(self._unpack(index, keep=keep))

        return ordered_map(unpack, range(len(self._log)), self._resources.plan.threads)

    def arcs_in_place(self, rows: NDArray[np.int64], *, inward: bool) -> Keys:
        """Return the arcs of some rows that were left in place, of the transpose if inward."""
        if self._base is None:
            return np.empty(0, np.uint64)
        return self._base.arcs_of(rows, self._column_bits, inward=inward)

    def are_in_place(self, keys: Keys) -> NDArray[np.bool_]:
        """Return which keys are those of edges that were left in place."""
        return np.zeros(keys.size, np.bool_) if self._base is None else self._base.has(keys)

    def heads(self, stored_at: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the stored vertex of each vertex's first neighbour, num_vertices if it has none.

        In a directed graph, those with an edge to it count.
        """
        heads = np.full(stored_at.size, stored_at.size, np.uint32)
        with self._resources.phases("heads", self.num_keys, "edge") as bar:
            for keys in self.each(lambda keys: keys):
                arrange.note_heads(heads, stored_at, keys, self._column_bits, not self.directed)
                bar.update(keys.size)
        return heads

    def _unpack(self, index: int, *, keep: bool = True) -> Keys:
        keys = gaps.unpacked(self._log.take(index, keep=keep), self._sizes[index])
        if self._renumbered is not None:
            graph_keys.renumber_keys(keys, *self._renumbered, self._column_bits)
        return keys

    def _arcs(self, keys: Keys, side: Side, stored_at: NDArray[np.uint32]) -> Keys:
        """Arcs of keys in the directions of a side, both ends as stored."""
        out = np.empty(keys.size * (2 if side is Side.BOTH else 1), np.uint64)
        arrange.directed_keys(out, keys, stored_at, self._column_bits, int(side))
        return out

    def close(self) -> None:
        """Release memory and disk space."""
        self._log.close()


def _moved(
    degrees: NDArray[np.uint32],
    kept: NDArray[np.bool_],
    vertices: NDArray[np.uint32],
    num_vertices: int,
) -> NDArray[np.uint32]:
    moved = np.zeros(num_vertices, np.uint32)
    moved[vertices[kept]] = degrees[kept]
    return moved

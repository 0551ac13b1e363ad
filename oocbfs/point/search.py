"""Distances and paths between pairs of stored vertices: each pair from both ends, all cores.

What a pair touches is bounded: by edges that are looked at, and by entries of a table. One that
needs more goes over to a search of the whole graph, as do sources with so many targets that such a
search, shared between 64 of them, costs less.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.errors import BudgetError, QueryError
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.graph.single_rows import RowsReader, Work
from oocbfs.kernels.array_types import I32Array, U32Array
from oocbfs.kernels.point import pairs as kernels
from oocbfs.kernels.point import state as words
from oocbfs.kernels.structs import Struct
from oocbfs.plan.host import is_cold, mapping_bytes
from oocbfs.point.whole import WholeSearch
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

NO_PATH = kernels.NO_PATH
# Pairs that a thread searches in one call of compiled code.
_PAIRS_AT_ONCE = 256
# The bounds of one pair: a share of the arcs, and of the vertices. On roads and grids, where nearly
# all pairs touch more, a search up to 1/64 of the arcs takes 0.1 of the time that one of the whole
# graph takes afterwards, and up to 1/32 already 0.3; in small worlds pairs touch 1/1000 and less.
ARCS_SHARE = 1 / 128
LEAST_EDGES = 1 << 12
VERTICES_SHARE = 1 / 8
LEAST_ENTRIES = 1 << 12
# Of a budget, tables of all threads take at most this share of what is free.
_TABLES_SHARE = 1 / 2
_ENTRY_BYTES = 28
# A source is searched with 63 others if its pairs would look at more than this share of the arcs:
# such a search looks at each arc once, in the order of memory, and pairs at theirs anywhere.
SHARED_ARCS = 1 / 100
# What a pair may look at where most go over: only the nearest are found so.
_FEW_EDGES = 1 << 8
# So many pairs may go over before anybody concludes from it that most do.
_FEW_GONE_OVER = 8
# Pairs that are searched to learn what one costs.
_SAMPLE = 256
# So many pairs of one source are worth a thought.
_MANY_TARGETS = 16
# Control words that are set before a search: all but the number of entries, which are cleared then.
_FIRST_SET, _SET_END = words.FOUND, kernels.MOST_ENTRIES + 1
_NO_ENDS = np.empty(0, np.int64)
_NO_VERTICES = np.empty(0, np.uint32)


class Found(NamedTuple):
    """Distances of pairs, -1 where there is no path; paths one after the other, and their ends."""

    distances: NDArray[np.int32]
    ends: NDArray[np.int64] = _NO_ENDS
    vertices: NDArray[np.uint32] = _NO_VERTICES


class PairSearch:
    """Searches pairs of one graph; inside ``graph.reading()``, and by any number of threads."""

    def __init__(
        self, graph: StoredGraph, settings: Settings, *, most_edges: int | None = None
    ) -> None:
        settings.check()
        if settings.engine not in ("auto", "cpu", "disk", "point"):
            raise QueryError(
                f"this is searched on the CPU or from disk: leave engine {settings.engine} out"
            )
        graph.expect_unpacking()
        self._graph, self._settings = graph, settings
        self.from_disk = reads_from_disk(graph, settings)
        self.reader: RowsReader = graph.single_disk_rows if self.from_disk else graph.single_rows
        self.whole = WholeSearch(graph, settings, graph.lookup.ids_of)
        depth = settings.max_depth
        self._max_depth = -1 if depth is None else depth
        self._threads = available_threads(settings.threads)
        self._most_edges = most_edges or max(LEAST_EDGES, int(graph.num_arcs * ARCS_SHARE))
        self.most_entries = self._bound_entries()
        # How the control words begin, counts and bounds: also where only few edges are worth it.
        self._words = self._begin_words(self._most_edges)
        self._words_if_far = self._begin_words(min(self._most_edges, _FEW_EDGES))
        # What was touched, and how many pairs needed a search of the whole graph.
        self.edges = self.rows = self.disk_bytes = self.num_pairs = 0
        self.num_gone_over = self.num_shared = 0

    def _begin_words(self, most_edges: int) -> memoryview:
        control = np.zeros(words.CONTROL_WORDS, np.int64)
        control[kernels.MOST_EDGES] = most_edges
        control[kernels.MAX_DEPTH] = self._max_depth
        control[kernels.MOST_ENTRIES] = self.most_entries
        return memoryview(control)[_FIRST_SET:_SET_END]

    def _bound_entries(self) -> int:
        most = max(LEAST_ENTRIES, int(self._graph.num_vertices * VERTICES_SHARE))
        if self._settings.memory is None:
            return most
        free = self._settings.memory - memory.used_bytes()
        if self.from_disk:
            free -= self._graph.lookup.window_bytes(free)
        each = int(free * _TABLES_SHARE) // self._threads // _ENTRY_BYTES
        if each < words.FIRST_ENTRIES:
            needed = 2 * self._threads * _ENTRY_BYTES * words.FIRST_ENTRIES
            needed += memory.used_bytes()
            raise BudgetError(
                f"{self._graph.path}: this search needs {memory.format_size(needed)} of memory "
                f"and may take {memory.format_size(self._settings.memory)}: allow more",
                needed,
            )
        return min(most, each)

    def most_entries_of(self, share: float) -> int:
        """Return how many entries there may be if they are at most a share of the vertices."""
        return min(self.most_entries, max(LEAST_ENTRIES, int(self._graph.num_vertices * share)))

    def find(
        self, sources: NDArray[np.uint32], targets: NDArray[np.uint32], *, paths: bool = False
    ) -> Found:
        """Return the distances of pairs, and a shortest path of each if they are wanted."""
        distances = np.full(sources.size, kernels.GIVEN_UP, np.int32)
        if paths or sources.size <= _SAMPLE:
            found = self._search(sources, targets, distances, paths=paths)
            return self._go_over(sources, targets, found, paths=paths)
        sample = slice(0, _SAMPLE)
        self._search(sources[sample], targets[sample], distances[sample])
        num_far = int((distances[sample] == kernels.GIVEN_UP).sum())
        self.num_gone_over += num_far
        apart = self._share(sources, targets, distances)
        left = np.flatnonzero(distances[_SAMPLE:] == kernels.GIVEN_UP) + _SAMPLE
        left = left if apart is None else left[~apart[left]]
        part = distances[left]
        self._search(sources[left], targets[left], part)
        distances[left] = part
        return self._go_over(sources, targets, Found(distances), paths=False, counted=num_far)

    def nearby(self, sources: NDArray[np.uint32], targets: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the distances of pairs, less than NO_PATH where that would touch too much."""
        distances = np.empty(sources.size, np.int32)
        self._search(sources, targets, distances)
        return distances

    def _search(
        self, sources: U32Array, targets: U32Array, distances: I32Array, *, paths: bool = False
    ) -> Found:
        """Search pairs from both ends; GIVEN_UP where that touches too much."""

        def work(first: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
            part = slice(first, first + _PAIRS_AT_ONCE)
            return self._search_part(sources[part], targets[part], distances[part], paths=paths)

        pieces = range(0, sources.size, _PAIRS_AT_ONCE)
        self.num_pairs += sources.size
        ends, vertices, size = [_NO_ENDS], [_NO_VERTICES], 0
        for part_ends, part_vertices in ordered_map(work, pieces, self._threads):
            ends.append(part_ends + size)
            vertices.append(part_vertices)
            size += part_vertices.size
        return Found(distances, np.concatenate(ends), np.concatenate(vertices))

    def _search_part(
        self, sources: U32Array, targets: U32Array, distances: I32Array, *, paths: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Search some pairs by one thread."""
        ends = np.zeros(sources.size if paths else 0, np.int64)
        with self.borrowed() as work:
            pairs = kernels.Pairs(sources, targets, distances, ends)
            self._run(work, Struct(pairs), sources.size)
            return ends, work.found()

    def _run(self, work: Work, pairs: Struct, stop: int) -> None:
        """Search pairs, with more room where there is too little."""
        rows_out, rows_in = self.reader.out_rows.address, self.reader.in_rows.address
        done = 0
        while True:
            done = kernels.search_pairs(rows_out, rows_in, work.address, pairs.address, done, stop)
            if done == stop:
                return
            work.make_room(self._graph.path)

    @contextmanager
    def borrowed(self) -> Iterator[Work]:
        """Give a thread what it needs to search, with this search's bounds."""
        work = self._borrow()
        try:
            yield work
        finally:
            self._return(work)

    def _borrow(self) -> Work:
        try:
            work = self._graph.kept_work.pop()
        except IndexError:
            work = Work(framed=self.reader.is_framed)
        # Where most pairs are far from each other, only the nearest are worth a try.
        gone_over = self.num_gone_over
        are_far = gone_over > _FEW_GONE_OVER and gone_over > self.num_pairs // 2
        work.words[_FIRST_SET:_SET_END] = self._words_if_far if are_far else self._words
        return work

    def _return(self, work: Work) -> None:
        control = work.words
        self.edges += control[words.EDGES]
        self.rows += control[words.ROWS]
        self.disk_bytes += work.disk_bytes
        if control[words.FRAMES]:
            self.reader.count_frames(control[words.FRAMES])
        self._graph.kept_work.append(work)

    def _share(
        self,
        sources: NDArray[np.uint32],
        targets: NDArray[np.uint32],
        distances: NDArray[np.int32],
    ) -> NDArray[np.bool_] | None:
        """Search sources of many targets 64 at a time; return which pairs that were, if any."""
        if not self._graph.directed:
            # The side with fewer different vertices has more of the other for each.
            sources, targets = _fewer_first(sources, targets)
        _, inverse, counts = np.unique(sources, return_inverse=True, return_counts=True)
        mean = self.edges / max(1, self.num_pairs)
        many = (counts >= _MANY_TARGETS) & (counts * mean > self._graph.num_arcs * SHARED_ARCS)
        if not many.any():
            return None
        wanted = np.flatnonzero(many[inverse] & (distances == kernels.GIVEN_UP))
        self.whole.fill(sources, targets, distances, wanted)
        self.num_shared += wanted.size
        return many[inverse]

    def _go_over(
        self,
        sources: NDArray[np.uint32],
        targets: NDArray[np.uint32],
        found: Found,
        *,
        paths: bool,
        counted: int = 0,
    ) -> Found:
        """Search the whole graph for pairs that were given up; some of them are counted already."""
        left = np.flatnonzero(found.distances == kernels.GIVEN_UP)
        self.num_gone_over += left.size - counted
        if left.size == 0:
            return found
        if not paths:
            self.whole.fill(sources, targets, found.distances, left)
            return found
        pieces = np.split(found.vertices, found.ends[:-1])
        for number in left.tolist():
            path = self.whole.path(int(sources[number]), int(targets[number]))
            found.distances[number] = path.size - 1
            pieces[number] = path
        ends = np.cumsum([piece.size for piece in pieces])
        return Found(found.distances, ends, np.concatenate(pieces))

    def one(self, source: int, target: int) -> int:
        """Return the distance of one pair, with as little as possible besides."""
        work = self._borrow()
        try:
            distance = self.meet(work, source, target)
        finally:
            self._return(work)
        if distance == kernels.GIVEN_UP:
            self.num_gone_over += 1
            left = np.array([distance], np.int32)
            one, other = (np.array([vertex], np.uint32) for vertex in (source, target))
            self.whole.fill(one, other, left, np.arange(1))
            return int(left[0])
        return distance

    def path(self, source: int, target: int) -> NDArray[np.uint32]:
        """Return a shortest path of one pair; an empty one if there is none."""
        with self.borrowed() as work:
            if self.meet(work, source, target) != kernels.GIVEN_UP:
                return work.found()
        self.num_gone_over += 1
        return self.whole.path(source, target)

    def meet(self, work: Work, source: int, target: int) -> int:
        """Search one pair, whose path and reach are in ``work`` afterwards; return its distance."""
        work.pair_ends[0], work.pair_ends[1] = source, target
        self.num_pairs += 1
        self._run(work, work.pair, 1)
        distance: int = work.pair_distance[0]
        return distance


def _fewer_first(
    one: NDArray[np.uint32], other: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return two columns, first the one with fewer different values."""
    return (one, other) if np.unique(one).size <= np.unique(other).size else (other, one)


def reads_from_disk(graph: StoredGraph, settings: Settings) -> bool:
    """Decide whether rows are read one by one: where the file has no room, or is cold."""
    can = RowsReader.can_read_disk(graph._container)
    if settings.engine == "disk":
        if not can:
            raise QueryError(f"{graph.path}: is compressed, or no file: leave engine disk out")
        return True
    if settings.memory is not None:
        return can and settings.engine != "cpu" and mapping_bytes(graph) > settings.memory
    return can and settings.engine != "cpu" and is_cold(graph)

"""A graph file as an input of a conversion: one more sorted run, decoded as it is merged.

Its rows are read in the order of the ids. In every order that files are stored in, vertices of one
kind keep the order of their ids, so that this reads each part of the file about once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.ids import IdMap, IdRange
from oocbfs.conversion.plan import MemoryWatch
from oocbfs.errors import FormatError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.graph.rows import columns
from oocbfs.graph.stored import StoredGraph
from oocbfs.kernels.convert import graph_keys
from oocbfs.kernels.rows import Rows

_NONE = np.empty(0, np.uint32)
_PIECE_VERTICES = 1 << 18
# Edges that are looked for, and rows that are read, here and there at a time: each may bring some
# pages of the file along.
_PIECE_EDGES = _PIECE_ROWS = 1 << 8


class GraphRun:
    """The edges of an open graph, ascending, as keys of the vertices of a conversion."""

    def __init__(self, stored: StoredGraph, watch: MemoryWatch) -> None:
        self.stored, self._watch = stored, watch
        self.name, self.directed = stored.path, stored.directed
        self.num_edges = stored.num_edges
        self._rows: Rows = stored.rows
        self._order = _NONE if stored.order is None else stored.order
        self._stored_at = _NONE if stored.order is None else stored.stored_at
        self._offset, self._vertices = 0, _NONE
        self._once = not stored.directed
        self.is_disjoint, self._has_all = False, True
        self.column_bits = 0
        stored.check_ids()

    @property
    def num_arcs(self) -> int:
        """Entries of the rows of one side."""
        return self._rows.num_arcs

    @property
    def table_bytes(self) -> int:
        """Bytes for each vertex of the file: where it is stored, and which vertex it is here."""
        return (4 if self._stored_at.size else 0) * self.stored.num_vertices + self._vertices_bytes

    @property
    def _vertices_bytes(self) -> int:
        plain = self.stored.listed_ids is None and self.stored.names is None
        return 0 if plain else 4 * self.stored.num_vertices

    @property
    def asked_ids(self) -> str:
        """Which ids are vertices, if its conversion was told: ``compact``, ``dense`` or ``auto``.

        It was told where the ids alone would have chosen the other.
        """
        stored = self.stored
        named = stored.info()["vertices_in_input"]
        if stored.num_vertices == 0:
            return "auto"
        is_dense = stored.listed_ids is None and stored.first_id == 0
        if is_dense:
            return "dense" if stored.num_vertices > 4 * named else "auto"
        return "compact" if stored.largest_id + 1 <= 4 * named else "auto"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Read the mapped file, and let go of its pages where memory is short."""
        with self.stored.reading():
            if self._watch.is_over():
                self.stored.release()
            yield
            if self._watch.is_over():
                self.stored.release()

    # Which vertices it has

    def named_ids(self) -> Iterator[Ids]:
        """Yield the ids that its input named: those with edges, or all where it named all.

        The others are there because vertices are all ids up to the largest.
        """
        stored = self.stored
        every = stored.info()["vertices_in_input"] >= stored.num_vertices
        in_degrees = stored.in_rows.degrees if stored.directed and not every else None
        for first in range(0, stored.num_vertices, _PIECE_VERTICES):
            stop = min(first + _PIECE_VERTICES, stored.num_vertices)
            ids = stored.ids_at(first, stop)
            if not every:
                with stored.reading():
                    has_edges = self._in_order(self._rows.degrees, first, stop) > 0
                    if in_degrees is not None:
                        has_edges |= self._in_order(in_degrees, first, stop) > 0
                ids = ids[has_edges]
            yield ids

    def place(self, ids: IdMap, largest: int) -> None:
        """Learn the vertices that ids are; ``largest`` is the largest id that names one."""
        stored = self.stored
        if isinstance(ids, IdRange) and stored.listed_ids is None:
            self._offset = stored.first_id - ids.first_id
            return
        self._vertices = np.empty(stored.num_vertices, np.uint32)
        for first in range(0, stored.num_vertices, _PIECE_VERTICES):
            stop = min(first + _PIECE_VERTICES, stored.num_vertices)
            # Those outside name nothing, and have no edges.
            some = np.clip(stored.ids_at(first, stop), np.uint64(ids.first_id), np.uint64(largest))
            self._vertices[first:stop] = ids.to_vertices(some)

    def place_at(self, vertices: NDArray[np.uint32]) -> None:
        """Learn which vertex each of its names is, in the order of the names."""
        self._vertices = vertices

    def stored_vertices(self, ids: IdMap) -> NDArray[np.uint32]:
        """Return its vertices in the order in which they are stored, less those that are none."""
        found = np.empty(self.stored.num_vertices, np.uint32)
        filled = 0
        for first in range(0, found.size, _PIECE_VERTICES):
            stop = min(first + _PIECE_VERTICES, found.size)
            positions = np.arange(first, stop)
            with self._reading():
                if self._order.size:
                    positions = self._order[first:stop].astype(np.int64)
                if self.stored.names is None:
                    listed = self.stored.listed_ids
                    some = positions if listed is None else listed[positions]
                    some = some.astype(np.uint64)
                    if listed is None:
                        some += np.uint64(self.stored.first_id)
                    positions = positions[ids.find(some)[1]]
            found[filled : filled + positions.size] = self._vertex_of(positions)
            filled += positions.size
        return found[:filled]

    def as_stored(self, *, inward: bool = False) -> GraphRun:
        """Return the same rows, or those of the transpose, in the order in which they are stored.

        For a conversion in which stored vertices keep their numbers, and that adds only what
        ``keep`` has left of other edges; every arc is one key.
        """
        run = copy(self)
        run._order = run._stored_at = run._vertices = _NONE
        run._offset, run._once, run.is_disjoint = 0, False, True
        run._rows = self.stored.in_rows if inward else self.stored.rows
        return run

    def as_placed(
        self, places: NDArray[np.uint32], num_vertices: int, *, inward: bool = False
    ) -> GraphRun:
        """Return the same rows, or those of the transpose, in another order; each arc is one key.

        ``places`` has the new number of each vertex, in the order in which they are stored.
        """
        run = copy(self)
        run._offset, run._once = 0, False
        run._rows = self.stored.in_rows if inward else self.stored.rows
        run._vertices, run._order = _NONE, places
        run._stored_at = np.full(num_vertices, graph_keys.NOWHERE)
        run._stored_at[places] = np.arange(places.size, dtype=np.uint32)
        run._has_all = places.size == num_vertices
        return run

    def lower_heads(
        self,
        heads: NDArray[np.uint32],
        vertices: NDArray[np.uint32],
        places: NDArray[np.uint32],
        degrees: NDArray[np.uint32],
        threads: int,
    ) -> None:
        """Lower the head of each of its vertices to the lowest place of a neighbour.

        ``vertices`` and ``places`` are in the order in which they are stored; places are by
        ``degrees``. In a directed graph, neighbours are those with an edge to it.
        """
        more = -1
        if self.stored.order_name == "degree" and not self.directed:
            with self._reading():
                more = int((degrees[vertices] - self._rows.degrees).max(initial=0))
        rows = self.stored.in_rows if self.directed else self.stored.rows
        arguments = heads, *columns(rows), vertices, places, more
        for piece in range(0, self.stored.num_vertices, _PIECE_VERTICES):
            count = min(_PIECE_VERTICES, self.stored.num_vertices - piece)

            def lower(first: int, stop: int, piece: int = piece) -> int:
                done: int = graph_keys.lower_heads(*arguments, piece + first, piece + stop)
                return done

            with self._reading():
                done = over_ranges(lower, count, threads, least=_PIECE_VERTICES // 8)
            self._check(min(done, default=0))

    def arcs_of(
        self, vertices: NDArray[np.int64], column_bits: int, *, inward: bool
    ) -> NDArray[np.uint64]:
        """Return all arcs of some vertices, or of the transpose, row after row."""
        positions = self._positions_of(vertices)
        rows = vertices[positions >= 0].astype(np.uint64)
        positions = positions[positions >= 0]
        run = copy(self)
        run._once = False
        run._rows = self.stored.in_rows if inward else self.stored.rows
        run._stored_at = (
            self._stored_at[positions] if self._stored_at.size else positions.astype(np.uint32)
        )
        with self._reading():
            degrees = run._rows.degrees[run._stored_at]
        ends = np.append(0, np.cumsum(degrees, dtype=np.int64))
        arcs = np.empty(int(ends[-1]), np.uint64)
        for first in range(0, positions.size, _PIECE_ROWS):
            stop = min(first + _PIECE_ROWS, positions.size)
            with self._reading():
                # Rows come out as numbers of the list.
                count = run._decode(arcs[ends[first] : ends[stop]], first, stop, column_bits)
            self._check(count)
        columns_ = arcs & np.uint64((1 << column_bits) - 1)
        return np.repeat(rows, degrees) << np.uint64(column_bits) | columns_

    def add_degrees(self, out_degrees: NDArray[np.uint32], in_degrees: NDArray[np.uint32]) -> None:
        """Add the degrees of its vertices; those of both directions may be one array."""
        sides = [(self.stored.rows, out_degrees)]
        if self.directed:
            sides.append((self.stored.in_rows, in_degrees))
        for first in range(0, self.stored.num_vertices, _PIECE_VERTICES):
            stop = min(first + _PIECE_VERTICES, self.stored.num_vertices)
            vertices = self._vertex_of(np.arange(first, stop)).view(np.int64)
            with self._reading():
                for rows, degrees in sides:
                    degrees[vertices] += self._in_order(rows.degrees, first, stop)

    def keep(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return those of some keys whose edges it does not have."""
        absent: NDArray[np.uint64] = keys[~self.has(keys)]
        return absent

    def has(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which keys are those of its edges."""
        bits = np.uint64(self.column_bits)
        ends = [
            self._positions_of((part).view(np.int64))
            for part in (keys >> bits, keys & np.uint64((1 << self.column_bits) - 1))
        ]
        found = np.zeros(keys.size, np.uint8)
        rows = self._rows
        for first in range(0, keys.size, _PIECE_EDGES):
            some = slice(first, first + _PIECE_EDGES)
            with self._reading():
                graph_keys.mark_present(
                    found[some],
                    *(end[some] for end in ends),
                    *columns(rows),
                    self._stored_at,
                    rows.max_degree,
                    not self.directed,
                )
        return found.view(np.bool_)

    def _positions_of(self, vertices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the natural positions of vertices, -1 of those that it does not have."""
        if not self._vertices.size:
            found = vertices - self._offset
            return np.where((found >= 0) & (found < self.stored.num_vertices), found, -1)
        found = np.searchsorted(self._vertices, vertices.astype(np.uint32))
        found = np.minimum(found, self._vertices.size - 1)
        return np.where(self._vertices[found] == vertices, found, -1)

    def close(self) -> None:
        """Release the tables: the file is read no more."""
        self._vertices = self._order = self._stored_at = _NONE
        self.stored.release()

    # Its edges

    def sample(self, num_keys: int, column_bits: int) -> NDArray[np.uint64]:
        """Return about so many first keys of rows, one for each so many arcs."""
        stride = max(1, self._rows.num_arcs // max(1, num_keys))
        found, before, following = [np.empty(0, np.uint64)], 0, stride // 2
        num_rows = self._stored_at.size or self.stored.num_vertices
        for first in range(0, num_rows, _PIECE_VERTICES):
            stop = min(first + _PIECE_VERTICES, num_rows)
            with self._reading():
                degrees = self._in_order(self._rows.degrees, first, stop)
            ends = before + np.cumsum(degrees, dtype=np.int64)
            before = int(ends[-1])
            wanted = np.arange(following, before, stride)
            following += stride * wanted.size
            rows = first + np.searchsorted(ends, wanted, "right")
            found.append(self._vertex_of(rows) << np.uint64(column_bits))
        return np.concatenate(found)

    def count(self, first: int, stop: int) -> int:
        """Count about the keys of the vertices first … stop-1; those of a hub may be twice that."""
        begin, end = self._positions(first, stop)
        total = 0
        with self._reading():
            for part in range(begin, end, _PIECE_VERTICES):
                degrees = self._in_order(self._rows.degrees, part, min(part + _PIECE_VERTICES, end))
                total += int(degrees.sum(dtype=np.int64))
        return total // 2 if self._once else total

    def keys(
        self, first: int, stop: int, column_bits: int, piece_keys: int
    ) -> Iterator[NDArray[np.uint64]]:
        """Yield the keys of the vertices first … stop-1, whole rows, about so many at a time."""
        begin, end = self._positions(first, stop)
        while begin < end:
            with self._reading():
                part = min(begin + piece_keys, end)
                ends = np.cumsum(self._in_order(self._rows.degrees, begin, part), dtype=np.int64)
                num_rows = max(1, int(np.searchsorted(ends, piece_keys, "right")))
                out = np.empty(int(ends[num_rows - 1]), np.uint64)
                count = self._decode(out, begin, begin + num_rows, column_bits)
            self._check(count)
            yield out[:count]
            begin += num_rows

    def _check(self, code: int) -> None:
        """Raise an error if a decoder has met a damaged row."""
        if code < 0:
            raise FormatError(f"{self.name}: is damaged: run 'oocbfs verify'")

    def _decode(self, out: NDArray[np.uint64], first: int, stop: int, column_bits: int) -> int:
        return int(
            graph_keys.decode_keys(
                out,
                *columns(self._rows),
                self._order,
                self._stored_at,
                self._vertices,
                self._offset,
                column_bits,
                first,
                stop,
                self._once,
            )
        )

    def _in_order(self, degrees: NDArray[np.uint32], first: int, stop: int) -> NDArray[np.uint32]:
        part = slice(first, stop)
        if not self._stored_at.size:
            return degrees[part]
        places = self._stored_at[part]
        if self._has_all:
            return degrees[places]
        found = degrees[np.minimum(places, degrees.size - 1)]
        return np.where(places < degrees.size, found, np.uint32(0))

    def _vertex_of(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        found = self._vertices[positions] if self._vertices.size else positions + self._offset
        return found.astype(np.uint64)

    def _positions(self, first: int, stop: int) -> tuple[int, int]:
        """Return the range of natural positions whose vertices are first … stop-1."""
        if self._vertices.size:
            # Of the same type, or the whole array would be copied into another.
            ends = np.array([first, min(stop, 2**32 - 1)], np.uint32)
            begin, end = np.searchsorted(self._vertices, ends)
            return int(begin), int(end)
        last = self._stored_at.size or self.stored.num_vertices
        return min(max(0, first - self._offset), last), min(max(0, stop - self._offset), last)

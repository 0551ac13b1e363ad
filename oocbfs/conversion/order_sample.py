"""What orders would write: stretches of rows as each would store them, encoded and packed.

Rows that resemble those beside them become small, so that a sample has stretches of rows of each
order, whichever vertices these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.order import Degrees, head_weights, inverse
from oocbfs.conversion.row_writer import EncodedRows, encode
from oocbfs.conversion.sorted_edges import Side, SortedEdges
from oocbfs.formats.container.framing import LEAST_BYTES, Sample, written_bytes
from oocbfs.formats.container.layout import TRANSPOSED, Kind, Order
from oocbfs.kernels.convert import arrange, radix

# Stretches of rows in each order, of both directions together, and the arcs of each.
_STRETCHES = 32
_STRETCH_ARCS = 1 << 14
# Rows that one may have, if most have no arcs. A row that is longer than that is left out: it takes
# few bits for each arc in every order.
_MOST_ROWS = _MAX_ROW = 1 << 16
# Rows whose arcs are counted at a time; and pieces of an order's own section, with their numbers.
_BLOCK_ROWS = 1 << 12
_ORDER_PIECES = 64


class Size(NamedTuple):
    """Bits for each arc: of heads and tails in memory, of all that is written, and of that raw."""

    in_memory: float
    written: float
    raw: float

    @property
    def is_framed(self) -> bool:
        """Whether anything is written in frames."""
        return self.written < self.raw


class Candidate(NamedTuple):
    """An order that may be taken: ``make`` gives the position of each vertex in it."""

    order: Order
    make: Callable[[Order], NDArray[np.uint32]]
    asked: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.asked or self.order.name.lower()


class Stretches:
    """Rows of one direction that are looked at, and their arcs; the orders share both."""

    def __init__(self, num_vertices: int, column_bits: int, num_stretches: int) -> None:
        # A bit for each order.
        self._marks = np.zeros(num_vertices, np.uint8)
        self._column_bits, self._num_stretches = column_bits, num_stretches
        self._chunks = [np.empty(0, np.uint64)]

    def choose(self, number: int, stored_at: NDArray[np.uint32], degrees: Degrees) -> None:
        """Choose rows of an order, evenly by their arcs; orders are numbered."""
        vertices = (
            inverse(stored_at) if stored_at.size else np.arange(degrees.size, dtype=np.uint32)
        )
        for rows in self._stretches(vertices, degrees):
            self._marks[rows[degrees[rows] <= _MAX_ROW]] |= np.uint8(1 << number)

    def _stretches(
        self, vertices: NDArray[np.uint32], degrees: Degrees
    ) -> Iterator[NDArray[np.uint32]]:
        """Yield the vertices of each stretch."""

        def block(number: int) -> NDArray[np.uint32]:
            return vertices[number * _BLOCK_ROWS : (number + 1) * _BLOCK_ROWS]

        num_blocks = -(-vertices.size // _BLOCK_ROWS)
        sums = [int(degrees[block(i)].sum(dtype=np.int64)) for i in range(num_blocks)]
        ends = np.cumsum(sums, dtype=np.int64)
        num_arcs = int(ends[-1]) if ends.size else 0
        for number in range(self._num_stretches if num_arcs else 0):
            offset = num_arcs * number // self._num_stretches
            i = int(np.searchsorted(ends, offset, "right"))
            before = int(ends[i - 1]) if i else 0
            within = np.cumsum(degrees[block(i)], dtype=np.int64)
            first = i * _BLOCK_ROWS + int(np.searchsorted(within, offset - before, "right"))
            some = vertices[first : first + _MOST_ROWS]
            counts = np.where(degrees[some] <= _MAX_ROW, degrees[some], 0)
            stop = int(np.searchsorted(np.cumsum(counts, dtype=np.int64), _STRETCH_ARCS)) + 1
            yield some[:stop]

    def take(self, keys: NDArray[np.uint64], *, turned: bool) -> NDArray[np.uint64]:
        """Return those of some arcs, or of the same arcs turned, that any order looks at."""
        arcs = np.empty_like(keys)
        count = arrange.marked_arcs(arcs, keys, self._marks, self._column_bits, turned)
        return arcs[:count].copy()

    def rows(self) -> NDArray[np.int64]:
        """Return the rows that any order looks at."""
        return np.flatnonzero(self._marks)

    def add(self, arcs: NDArray[np.uint64]) -> None:
        """Keep arcs that were taken."""
        self._chunks.append(arcs)

    def arcs(self, number: int) -> NDArray[np.uint64]:
        """Return the arcs that an order looks at."""
        mark = np.uint8(1 << number)
        marked = [
            chunk[self._marks[chunk >> np.uint64(self._column_bits)] & mark != 0]
            for chunk in self._chunks
        ]
        return np.concatenate(marked)


class OrderSample:
    """Samples of rows, one for each order."""

    def __init__(self, edges: SortedEdges, column_bits: int, codec: str) -> None:
        self._edges, self._column_bits = edges, column_bits
        sides: Sequence[Side] = (Side.OUT, Side.IN) if edges.directed else (Side.BOTH,)
        num_arcs = sum(map(edges.num_arcs, sides))
        size = edges.out_degrees.size
        self._measure = _Measure(edges, column_bits, num_arcs, codec)
        self._sides = [Stretches(size, column_bits, _STRETCHES // len(sides)) for _ in sides]

    def measure(self, candidates: Sequence[Candidate]) -> dict[str, Size]:
        """Return what a sample takes in each order, in one pass over the edges.

        Where vertices are stored is asked for twice, so that one order is held at a time.
        """
        edges, sides = self._edges, self._sides
        for number, candidate in enumerate(candidates):
            stored_at = candidate.make(candidate.order)
            for side, degrees in zip(sides, (edges.out_degrees, edges.in_degrees), strict=False):
                side.choose(number, stored_at, degrees)
            del stored_at
        ways = [(sides[0], False), (sides[-1], True)]
        for taken in edges.each(lambda keys: [side.take(keys, turned=turn) for side, turn in ways]):
            for (side, _), arcs in zip(ways, taken, strict=True):
                side.add(arcs)
        for side, inward in zip(sides, (False, True), strict=False):
            side.add(edges.arcs_in_place(side.rows(), inward=inward))
        found = {}
        for number, candidate in enumerate(candidates):
            stored_at = candidate.make(candidate.order)
            samples = [side.arcs(number) for side in sides]
            found[candidate.name] = self._measure.size(samples, candidate.order, stored_at)
            del stored_at, samples
        return found

    def arcs_of(self, number: int) -> NDArray[np.uint64]:
        """Return the arcs that the order with a number looks at, in the first direction."""
        return self._sides[0].arcs(number)


class _Measure:
    """Encodes rows, and packs them as a codec does."""

    def __init__(self, edges: SortedEdges, column_bits: int, num_arcs: int, codec: str) -> None:
        self._edges, self._column_bits = edges, column_bits
        self._num_arcs = max(1, num_arcs)
        num_rows = edges.out_degrees.size * (2 if edges.directed else 1)
        # Files of few pages have no frames, and are in memory as they are.
        self._is_small = codec == "auto" and 2 * num_arcs + 12 * num_rows < LEAST_BYTES
        self._codec = codec

    def size(
        self,
        samples: Sequence[NDArray[np.uint64]],
        order: Order,
        stored_at: NDArray[np.uint32],
    ) -> Size:
        """Return what arcs take in an order, its own section included."""
        weights = head_weights(order, self._edges.total_degrees, stored_at)
        num_arcs = in_memory = 0
        sections: dict[Kind, NDArray[Any]] = {}
        for arcs, side in zip(samples, (0, TRANSPOSED), strict=False):
            keys = np.empty_like(arcs)
            arrange.directed_keys(keys, arcs, stored_at, self._column_bits, int(Side.OUT))
            keys = keys[: radix.sort_unique(keys, np.empty_like(keys))]
            rows = encode(_without_gaps(keys, self._column_bits), self._column_bits, weights)
            if rows is not None:
                num_arcs += keys.size
                in_memory += rows.heads.nbytes + rows.tails.size
                sections |= {Kind(kind + side): some for kind, some in _sections(rows).items()}
        mean = 8 * in_memory / max(1, num_arcs)
        if self._is_small:
            return Size(mean, mean, mean)
        # In bits for each arc. Rows without arcs are in no sample, and take as much as others.
        each = 8 / max(1, num_arcs)
        numbers_bits = 32 * self._edges.out_degrees.size / self._num_arcs
        sampled = {}
        for kind, some in sections.items():
            bits = some.nbytes * each
            is_tails = kind % TRANSPOSED == Kind.TAILS
            sampled[kind] = Sample(some, bits, bits if is_tails else max(bits, numbers_bits))
        if stored_at.size:
            sampled[Kind.ORDER] = Sample(_some_of(stored_at), numbers_bits, numbers_bits)
        raw = sum(sample.raw_bytes for sample in sampled.values())
        return Size(mean, written_bytes(sampled, self._codec), raw)


def _sections(rows: EncodedRows) -> dict[Kind, NDArray[Any]]:
    """Return what is written of some rows."""
    starts = np.cumsum(rows.lengths, dtype=np.uint32) - rows.lengths
    return {
        Kind.TAILS: rows.tails,
        Kind.HEADS: rows.heads,
        Kind.STARTS: starts,
        Kind.DEGREES: rows.degrees,
    }


def _some_of(stored_at: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return pieces of the section of an order."""
    vertices = inverse(stored_at)
    stride = -(-vertices.size // (_ORDER_PIECES * _BLOCK_ROWS)) * _BLOCK_ROWS
    return np.concatenate([vertices[i : i + _BLOCK_ROWS] for i in range(0, vertices.size, stride)])


def _without_gaps(keys: NDArray[np.uint64], column_bits: int) -> NDArray[np.uint64]:
    """Give rows numbers that follow each other, as stretches of an order are beside others."""
    bits = np.uint64(column_bits)
    rows = keys >> bits
    opening = np.zeros(keys.size, np.bool_)
    opening[1:] = rows[1:] != rows[:-1]
    numbers = np.cumsum(opening).astype(np.uint64)
    return numbers << bits | keys & np.uint64((1 << column_bits) - 1)

"""Encoded rows on their way into the container, in ascending order of row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.order import max_tail_bytes
from oocbfs.errors import InputError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.writer import ContainerWriter
from oocbfs.kernels import varint
from oocbfs.kernels.constants import NO_HEAD

_ROWS_PER_PIECE = 1 << 16


@dataclass(frozen=True)
class EncodedRows:
    """Ascending rows, encoded; those between them have no neighbours."""

    rows: NDArray[np.int64]
    heads: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    degrees: NDArray[np.uint32]
    tails: NDArray[np.uint8]


def encode(
    keys: NDArray[np.uint64], column_bits: int, weights: NDArray[np.uint32]
) -> EncodedRows | None:
    """Encode the whole rows that sorted distinct keys (row << column_bits | neighbour) make up."""
    if keys.size == 0:
        return None
    first = int(keys[0]) >> column_bits
    stop = (int(keys[-1]) >> column_bits) + 1
    if stop - first <= 2 * keys.size:
        rows = np.arange(first, stop)
    else:  # most of them are empty: number only those that are not
        bits = np.uint64(column_bits)
        every = (keys >> bits).astype(np.int64)
        opening = np.concatenate(([True], every[1:] != every[:-1]))
        rows, first = every[opening], 0
        numbers = (np.cumsum(opening) - 1).astype(np.uint64)
        keys = numbers << bits | keys & np.uint64((1 << column_bits) - 1)
    heads, lengths, degrees = (np.empty(rows.size, np.uint32) for _ in range(3))
    tails = np.empty(max_tail_bytes(keys.size), np.uint8)
    size = varint.encode_rows(tails, heads, lengths, degrees, keys, weights, first, column_bits)
    return EncodedRows(
        rows=rows, heads=heads, lengths=lengths, degrees=degrees, tails=tails[:size].copy()
    )


def choose_block_shift(degrees: NDArray[np.uint32]) -> int:
    """Largest block of rows whose tails cannot reach 2^32 bytes, for any neighbours.

    ``degrees`` are in stored order. With a shift of 0 every row has its own 64-bit base.
    """
    for shift in range(layout.MAX_BLOCK_SHIFT, 0, -1):
        starts = np.arange(0, degrees.size, 1 << shift)
        if (
            starts.size == 0
            or max_tail_bytes(int(np.add.reduceat(degrees, starts, dtype=np.int64).max())) < 2**32
        ):
            return shift
    return 0


class RowWriter:
    """Fills the five sections of one direction; the tails begin with ``begin_tails``."""

    def __init__(
        self, container: ContainerWriter, num_vertices: int, block_shift: int, side: int
    ) -> None:
        self._container, self._num_vertices, self._shift = container, num_vertices, block_shift
        self._side = side
        self._sections = {
            kind: container.begin(
                Kind(kind + side), layout.raw_bytes(kind, num_vertices, block_shift)
            )
            for kind in layout.ROW_KINDS
            if kind is not Kind.TAILS
        }
        self._bases = np.zeros(layout.num_blocks(num_vertices, block_shift), np.uint64)
        self._next_row = 0
        self.num_arcs = 0
        self.tail_bytes = 0
        self.max_degree = 0

    def begin_tails(self) -> None:
        """Begin the tails section, which grows until the next section begins."""
        self._tails = self._container.begin(Kind(Kind.TAILS + self._side))

    def write(self, rows: EncodedRows) -> None:
        """Append rows; those skipped since the last call have no neighbours."""
        start = 0
        while start < rows.rows.size:
            first = int(rows.rows[start])
            self._skip_to(first)
            stop = int(np.searchsorted(rows.rows, first + _ROWS_PER_PIECE))
            index = [values[start:stop] for values in (rows.heads, rows.lengths, rows.degrees)]
            num_rows = int(rows.rows[stop - 1]) + 1 - first
            if num_rows > stop - start:
                spread = np.zeros((3, num_rows), np.uint32)
                spread[0] = NO_HEAD
                spread[:, rows.rows[start:stop] - first] = index
                index = list(spread)
            self._write_index(*index)
            start = stop
        self._tails.write(rows.tails)

    def _skip_to(self, row: int) -> None:
        while self._next_row < row:
            count = min(_ROWS_PER_PIECE, row - self._next_row)
            zeros = np.zeros(count, np.uint32)
            self._write_index(np.full(count, NO_HEAD, np.uint32), zeros, zeros)

    def _write_index(
        self,
        heads: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        degrees: NDArray[np.uint32],
    ) -> None:
        self._sections[Kind.HEADS].write(heads)
        self._sections[Kind.DEGREES].write(degrees)
        ends = self.tail_bytes + np.cumsum(lengths, dtype=np.uint64)
        self._write_starts(ends - lengths)
        self.tail_bytes = int(ends[-1])
        self._next_row += heads.size
        self.num_arcs += int(degrees.sum(dtype=np.int64))
        self.max_degree = max(self.max_degree, int(degrees.max()))

    def _write_starts(self, starts: NDArray[np.uint64]) -> None:
        rows = np.arange(self._next_row, self._next_row + starts.size)
        opening = rows & ((1 << self._shift) - 1) == 0
        self._bases[rows[opening] >> self._shift] = starts[opening]
        relative = starts - self._bases[rows >> self._shift]
        if int(relative.max()) >= 2**32:
            raise InputError("a vertex has more neighbours than a row can hold (2^32 bytes)")
        self._sections[Kind.STARTS].write(relative.astype(np.uint32))

    def finish(self) -> None:
        """Write the rows that remain, the end of the last one, and the bases."""
        self._skip_to(self._num_vertices)
        self._write_starts(np.array([self.tail_bytes], np.uint64))
        self._sections[Kind.BASES].write(self._bases)

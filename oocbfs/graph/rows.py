"""One direction of a graph, loaded from its container and decoded."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import fresh
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import ROW_KINDS, TRANSPOSED, Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.ordered import available_threads, over_ranges
from oocbfs.kernels import varint
from oocbfs.kernels.gather import SPARE
from oocbfs.kernels.results import checking as check
from oocbfs.kernels.rows import Rows

_NO_IDS = np.empty(0, np.uint32)
_NO_BASES = np.empty(0, np.uint64)
_NO_BYTES = np.empty(0, np.uint8)
_ARCS_PER_PIECE = 1 << 18


def span(rows: Rows, vertex: int) -> tuple[int, int]:
    """Offset and end of a stored vertex's tail."""
    start, end = (
        int(rows.bases[row >> rows.shift]) + int(rows.starts[row]) for row in (vertex, vertex + 1)
    )
    return start, end


def columns(rows: Rows) -> tuple[Any, ...]:
    """Return what decoders of whole rows take, in their order."""
    return (
        rows.heads,
        rows.bases,
        rows.starts,
        rows.shift,
        rows.tails,
        rows.degrees,
        rows.num_ids,
    )


def rows_before(rows: Rows, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the rows whose tail begins before each of some offsets."""
    low = np.zeros(offsets.size, np.int64)
    high = np.full(offsets.size, rows.heads.size)
    while (low < high).any():
        middle = (low + high) // 2
        begins = rows.bases[middle >> rows.shift].astype(np.int64) + rows.starts[middle]
        before = (begins < offsets) & (low < high)
        high = np.where(before, high, middle)
        low = np.where(before, middle + 1, low)
    return low


def neighbours(rows: Rows, vertex: int) -> NDArray[np.uint32]:
    """Return the stored neighbours of a stored vertex, ascending."""
    degree, head = int(rows.degrees[vertex]), int(rows.heads[vertex])
    out = fresh(degree, np.uint32)
    start, end = (min(offset, rows.tails.size) for offset in span(rows, vertex))
    count = varint.decode_tail(out[1:], rows.tails, start, end, rows.num_ids)
    if count != max(0, degree - 1) or (head < rows.num_ids) != (degree > 0):
        raise FormatError(f"the row of stored vertex {vertex} is damaged: run 'oocbfs verify'")
    if degree:
        out[0] = head
        out.sort()
    return out


def checked(rows: Rows, path: os.PathLike[str]) -> Rows:
    """Return rows of a file after checking what decoders rely on to stay inside the sections.

    Raises
    ------
    FormatError
        If a row leads outside.
    """
    index = (rows.heads, rows.bases, rows.starts, rows.shift, rows.tails.size, rows.num_ids)
    # The end of no rows at all is checked too.
    results = over_ranges(check.check_index, rows.heads.size, available_threads(), *index) or [
        check.check_index(*index, 0, 0)
    ]
    for problem, row in results:
        if problem:
            raise FormatError(f"{path}: row {row} is damaged: {check.PROBLEMS[problem]}")
    return rows


def check_end(container: Container, row: int) -> None:
    """Check that there is nothing in a row or behind it, as the degrees say.

    Raises
    ------
    FormatError
        If it has a neighbour, or tails go on.
    """
    block = row >> container.block_shift
    for side in (0, TRANSPOSED)[: 1 + container.directed]:
        head, start, base = (
            int(container.part(Kind(kind + side), place, place + 1)[0])
            for kind, place in ((Kind.HEADS, row), (Kind.STARTS, row), (Kind.BASES, block))
        )
        tail_bytes = int(container.sections[Kind(Kind.TAILS + side)]["raw_bytes"])
        if head < container.num_ids or base + start != tail_bytes:
            problem = check.PROBLEMS[check.BAD_DEGREE]
            raise FormatError(f"{container.path}: row {row} is damaged: {problem}")


def is_permutation(order: NDArray[np.uint32]) -> bool:
    """Return whether an order holds every number below its size once.

    Sums of fingerprints tell, so that it takes one pass and no memory; ``secrets`` keeps files from
    aiming at them.
    """
    seed = np.uint64(secrets.randbits(64))
    sums = over_ranges(check.sum_order, order.size, available_threads(), order, seed)
    return sum(map(int, sums)) % 2**64 == 0


def load_rows(container: Container, *, transposed: bool = False) -> Rows:
    """Load one direction, and check what decoders rely on to stay inside it."""
    side = TRANSPOSED if transposed else 0
    degrees, heads, bases, starts, tails = (
        container.section(Kind(kind + side)) for kind in ROW_KINDS
    )
    rows = no_rows(container)._replace(
        heads=heads, bases=bases, starts=starts, tails=tails, degrees=degrees
    )
    if int(degrees.max(initial=0)) > rows.max_degree:
        raise FormatError(f"{container.path}: a degree is larger than the largest one stated")
    return checked(rows, container.path)


def no_rows(container: Container) -> Rows:
    """Return what a container says about its rows, without any of them."""
    return Rows(
        heads=_NO_IDS,
        bases=_NO_BASES,
        starts=_NO_IDS,
        tails=_NO_BYTES,
        degrees=_NO_IDS,
        shift=container.block_shift,
        num_arcs=container.num_arcs,
        max_degree=int(container.header["max_degree"]),
        num_ids=container.num_ids,
    )


def decode_rows(rows: Rows) -> Rows:
    """Decode all rows besides; return them as they were if one of them is damaged."""
    firsts = np.zeros(rows.heads.size + 1, np.uint32)
    np.cumsum(rows.degrees, out=firsts[1:])
    neighbours = np.zeros(int(firsts[-1]) + SPARE, np.uint32)
    columns = (rows.heads, rows.bases, rows.starts, rows.shift, rows.tails)
    damaged = over_ranges(
        varint.decode_range, rows.heads.size, available_threads(), neighbours, firsts, *columns
    )
    return rows if any(damaged) else rows._replace(firsts=firsts, neighbours=neighbours)


def decode_edges(
    rows: Rows, order: NDArray[np.uint32] | None, *, once: bool
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    """Yield sources and targets of all edges as natural positions, a bounded number at a time.

    With ``once``, only edges from the smaller to the larger position.
    """
    for _, sources, targets in _decode(rows, order, None, once=once):
        yield sources, targets


def decode_naturally(
    rows: Rows, order: NDArray[np.uint32] | None, stored_at: NDArray[np.uint32] | None
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """Yield rows in the order of the ids, a bounded number at a time.

    Each time it gives the degrees of the rows, and their neighbours as natural positions, those of
    one row ascending. ``stored_at`` are None if vertices are stored in the order of their ids.
    """
    for decoded, sources, targets in _decode(rows, order, stored_at, once=False):
        keys = sources << np.uint64(32)
        keys |= targets
        keys.sort()
        neighbours = keys.astype(np.uint32)  # which takes the lower half
        begin = 0
        for first in range(decoded.start, decoded.stop, _ARCS_PER_PIECE):
            part = slice(first, min(first + _ARCS_PER_PIECE, decoded.stop))
            degrees = rows.degrees[part] if stored_at is None else rows.degrees[stored_at[part]]
            end = begin + int(degrees.sum(dtype=np.int64))
            yield degrees, neighbours[begin:end]
            begin = end


def _decode(
    rows: Rows,
    order: NDArray[np.uint32] | None,
    stored_at: NDArray[np.uint32] | None,
    *,
    once: bool,
) -> Iterator[tuple[range, NDArray[np.uint64], NDArray[np.uint64]]]:
    """Yield ranges of rows, as stored or with ``stored_at`` by position, and their edges."""
    row, n = 0, rows.heads.size
    size = max(_ARCS_PER_PIECE, int(rows.degrees.max(initial=0)))
    order, stored_at = (_NO_IDS if given is None else given for given in (order, stored_at))
    while row < n:
        first = row
        sources, targets = fresh(size, np.uint64), fresh(size, np.uint64)
        row, count = varint.decode_rows(
            sources, targets, *columns(rows), order, stored_at, row, once
        )
        if count < 0:
            raise FormatError(f"row {row} is damaged: run 'oocbfs verify'")
        yield range(first, row), sources[:count], targets[:count]

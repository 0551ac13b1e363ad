"""Rows as the search reads them: where a row lies in the memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.array_types import ReadU8Array, ReadU32Array, ReadU64Array
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES
from oocbfs.kernels.structs import at_address

_NO_IDS = np.empty(0, np.uint32)


class Rows(NamedTuple):
    """One direction of a graph: heads, tails and how to find them.

    The caller has checked that starts are monotonic and inside the tails, that heads are vertices
    or NO_HEAD, and that a row without a head has no tail. Vertices are numbered below num_ids: the
    number of rows, or, in a part of a graph, that of all parts. A mapped file may be overwritten
    afterwards: kernels follow no head that is no vertex, and read nothing outside the tails.
    Tails may hold anything, with SLACK_BYTES readable bytes after them; where they are on disk,
    only their size is used. Degrees, num_arcs and max_degree only steer: wrong ones cost time,
    not correctness.

    Rows may be decoded besides, and checked: then row u is neighbours[firsts[u] : firsts[u + 1]],
    its head first, and SPARE more elements follow the last row. Otherwise both arrays are empty.
    """

    heads: ReadU32Array
    bases: ReadU64Array
    starts: ReadU32Array
    tails: ReadU8Array
    degrees: ReadU32Array
    shift: int
    num_arcs: int
    max_degree: int
    num_ids: int
    firsts: ReadU32Array = _NO_IDS
    neighbours: ReadU32Array = _NO_IDS
    # No row from this one on has a tail; ``read_only`` counts them.
    num_tailed: int = 0


rows_at = at_address(Rows)


def freeze(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return arrays as one type, mapped or not: numba then compiles only once."""
    view = np.ascontiguousarray(array, dtype).view(np.ndarray)[:]
    view.flags.writeable = False
    return view


def read_only(rows: Rows) -> Rows:
    """Freeze all arrays, and count the rows up to the last one that has a tail."""
    return Rows(
        heads=freeze(rows.heads, np.uint32),
        bases=freeze(rows.bases, np.uint64),
        starts=freeze(rows.starts, np.uint32),
        tails=freeze(rows.tails, np.uint8),
        degrees=freeze(rows.degrees, np.uint32),
        shift=int(rows.shift),
        num_arcs=int(rows.num_arcs),
        max_degree=int(rows.max_degree),
        num_ids=int(rows.num_ids),
        firsts=freeze(rows.firsts, np.uint32),
        neighbours=freeze(rows.neighbours, np.uint32),
        num_tailed=_count_tailed(rows),
    )


def _count_tailed(rows: Rows) -> int:
    """Find the first row that begins where all tails end."""

    def begin(row: int) -> int:
        return int(rows.bases[row >> rows.shift]) + int(rows.starts[row])

    low, high = 0, rows.heads.size
    end = begin(high)
    while low < high:
        middle = (low + high) // 2
        if begin(middle) < end:
            low = middle + 1
        else:
            high = middle
    return low


def first_rows(rows: Rows, count: int) -> Rows:
    """Return the first rows of a whole graph; the others have no edges."""
    return rows._replace(
        heads=rows.heads[:count],
        starts=rows.starts[: count + 1],
        degrees=rows.degrees[:count],
        num_ids=count,
    )


def one_row() -> Rows:
    """Return a graph of one vertex, on which kernels are compiled before they are needed."""
    return Rows(
        heads=np.array([NO_HEAD], np.uint32),
        bases=np.zeros(2, np.uint64),
        starts=np.zeros(2, np.uint32),
        tails=np.empty(0, np.uint8),
        degrees=np.zeros(1, np.uint32),
        shift=0,
        num_arcs=0,
        max_degree=0,
        num_ids=1,
    )


@inlined
def row_begin(rows, u):
    """Return the offset of row u's first tail byte, which is the end of row u - 1."""
    offset = rows.bases[u >> rows.shift] + np.uint64(rows.starts[u])
    return np.int64(min(offset, np.uint64(rows.tails.size)))


@inlined
def num_segments(rows, u):
    """Count the segments of row u: of its tail or, where it is decoded, of as many ids."""
    if rows.neighbours.size != 0:
        size = np.int64(rows.firsts[u + 1]) - np.int64(rows.firsts[u])
    else:
        size = row_begin(rows, u + 1) - row_begin(rows, u)
    return (size + SEGMENT_BYTES - 1) // SEGMENT_BYTES

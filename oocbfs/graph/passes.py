"""Passes over all rows of a graph, with every core, and within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.io.ordered import PIECE, over_ranges
from oocbfs.graph.rows import rows_before
from oocbfs.kernels.rows import Rows

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# Tails that a pass within a budget maps at a time.
_PIECE_BYTES = 16 << 20
# Few rows may have so many, and all threads are to share them.
_LEAST_ROWS = 64


def pass_over(
    graph: StoredGraph,
    kernel: Callable[..., Any],
    *arguments: Any,
    inward: bool = False,
    threads: int,
    bounded: bool,
    wanted: NDArray[Any] | None = None,
) -> tuple[int, int]:
    """Run a kernel over the rows of one direction; return the sums of the two that it returns.

    It takes the arguments, columns of the rows, and which of them; -1 is a malformed tail. If
    memory is ``bounded``, pages are let go of in between. Pieces in which no vertex is ``wanted``
    are left out.

    Raises
    ------
    FormatError
        If a row is damaged.
    """
    rows = graph.in_rows if inward else graph.rows
    columns = rows.heads, rows.bases, rows.starts, rows.shift, rows.tails
    sums = [0, 0]
    for first, stop in _pieces(rows, bounded=bounded):
        if wanted is not None and not wanted[first:stop].any():
            continue

        def work(begin: int, end: int, first: int = first) -> Any:
            return kernel(*arguments, *columns, first + begin, first + end)

        least = _LEAST_ROWS if bounded else PIECE
        for found, num_bytes in over_ranges(work, stop - first, threads, least=least):
            if found < 0:
                raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
            sums[0] += found
            sums[1] += num_bytes
        if bounded:
            graph.release()
    return sums[0], sums[1]


def _pieces(rows: Rows, *, bounded: bool) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows: all of them, or those of as many tails as are mapped at a time."""
    bounds = [0, rows.heads.size]
    if bounded:
        bounds[1:1] = rows_before(rows, np.arange(_PIECE_BYTES, rows.tails.size, _PIECE_BYTES))
    yield from pairwise(bounds)

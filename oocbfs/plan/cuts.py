"""Where a level is cut in two: vertices before the cut search, the frontier expands to the others.

Expanding reads the rows of the frontier, mostly those of hubs. Many neighbours of hubs are other
vertices of high degree, of which few are left to find. In degree order these have the smallest
numbers, so they come first in every row: a cut lets them search, and saves the first segments of
every hub.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oocbfs.graph.rows import neighbours, rows_before, span
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.cuda.source import NUM_RANGES
from oocbfs.kernels.rows import Rows

_SAMPLED_VERTICES = 256
_NEIGHBOURS_EACH = 4
# The sector between two segments is read with both.
_SEAM = 32 / SEGMENT_BYTES


class Cuts:
    """Where a level may be cut, and what that saves."""

    def __init__(self, rows: Rows, in_rows: Rows) -> None:
        size = in_rows.tails.size
        # Equal ranges of the tails; cuts lie between words of a bitmap.
        cuts = rows_before(in_rows, size * np.arange(1, NUM_RANGES) // NUM_RANGES) // 32 * 32
        self.vertices = cuts.astype(np.uint32)
        self._rows = rows

    def vertex(self, ranges: int) -> int:
        """Return the first vertex after so many ranges: 0 for none, num_vertices for all."""
        return int([0, *self.vertices, self._rows.heads.size][ranges])

    @cached_property
    def _skipped(self) -> NDArray[np.float64]:
        """Return the share of all segments but the last of each hub that lie before each cut.

        Hubs are drawn as frontiers draw them: among the neighbours of vertices.
        """
        rows = self._rows
        seams: list[int] = []
        for vertex in range(0, rows.degrees.size, rows.degrees.size // _SAMPLED_VERTICES + 1):
            near = neighbours(rows, vertex)
            for hub in near[:: near.size // _NEIGHBOURS_EACH + 1].tolist():
                begin, end = span(rows, hub)
                seams.extend(range(begin + SEGMENT_BYTES, end, SEGMENT_BYTES))
        firsts = np.sort(_first_neighbours(rows.tails, np.array(seams, np.int64)))
        before = np.searchsorted(firsts, self.vertices, "right")
        return before.astype(np.float64) / max(firsts.size, 1)

    def costs(
        self, search_costs: NDArray[np.int64], expand_cost: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return what a level costs if no range searches, the first one, and so on to all.

        ``search_costs`` are by range; ``expand_cost`` is what expanding the frontier costs, and how
        much of that a cut can save.
        """
        whole, skippable = expand_cost
        skipped = np.append(0, self._skipped)
        expanded = whole + skippable * (_SEAM - (1 + _SEAM) * skipped)
        total: NDArray[np.float64] = np.append(expanded, 0.0)
        total[1:] += np.cumsum(search_costs)
        return total

    def choose(self, search_costs: NDArray[np.int64], expand_cost: NDArray[np.int64]) -> int:
        """Return how many ranges should search, so that a level costs the least."""
        # Where some are the same, the more search the better.
        return int(NUM_RANGES - np.argmin(self.costs(search_costs, expand_cost)[::-1]))


def _first_neighbours(tails: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Decode the varint at each offset."""
    values = np.zeros(offsets.size, np.int64)
    goes_on = np.ones(offsets.size, np.bool_)
    for k in range(5):
        groups = tails[offsets + k * goes_on].astype(np.int64)
        values += np.where(goes_on, (groups & 127) << (7 * k), 0)
        goes_on &= groups >= 128
    return values

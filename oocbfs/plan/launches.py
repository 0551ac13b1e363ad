"""How much one launch does, so that no watchdog ends it.

Drivers end a kernel after 2 seconds (Windows, WSL) or some more (a screen under Linux). Where a
device has such a watchdog, vertices and segments of hubs are divided between several launches. What
reads device memory alone is not cut: it takes milliseconds. Nor is one row, which few lanes search.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.plan.shape import Tails

# What a launch is predicted to take at most; a tenth of the watchdog's time, since rows differ.
LAUNCH_SECONDS = 0.2
# Levels that one launch of small_levels then runs: one of 8,192 vertices takes 16 turns of the
# block, in each of which a lane waits some ten times for memory, for about 1.2 µs over PCIe.
WATCHED_SMALL_LEVELS = 1024
_WARP = 32


def rows_a_launch(tails: Tails, launch_bytes: int) -> int:
    """Return how many rows have so many bytes at most, those of the heaviest blocks.

    What is known of a row is how much its block has: some thousand blocks, of equally many rows.
    They are some whole warps of rows, one at least.
    """
    sizes = np.sort(np.diff(tails.offsets, append=tails.num_bytes))[::-1]
    sums = np.concatenate([[0], np.cumsum(sizes)])
    blocks = float(np.interp(launch_bytes, sums, np.arange(sums.size)))
    return max(1, int(blocks / max(1, sizes.size) * tails.num_rows) // _WARP) * _WARP


def segments_a_launch(launch_bytes: int) -> int:
    """Return how many segments of hubs have so many bytes at most."""
    return max(1, launch_bytes // SEGMENT_BYTES)


def most_segments(tail_bytes: int) -> int:
    """Return how many segments hubs have at most: the last one of a row may be short."""
    return 2 * tail_bytes // SEGMENT_BYTES + 1


def pieces(begin: int, end: int, most: int | None) -> Iterator[tuple[int, int]]:
    """Cut a range into pieces of at most so many; an empty one is a piece too."""
    step = max(1, end - begin) if most is None else most
    for first in range(begin, max(end, begin + 1), step):
        yield first, min(first + step, end)

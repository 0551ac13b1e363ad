"""Count the sectors that small levels move: they keep some in a cache (see sector_count)."""

# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.cuda.source import SMALL_BLOCK_THREADS
from oocbfs.plan.search_arrays import cached_sectors
from tests.support.gpu.sector_count import (
    SECTORS_PER_INSTRUCTION,
    SHORT_BYTES,
    distinct,
    span,
    whole,
)

# Rows that small_levels expands in a turn.
BLOCK_ROWS = SMALL_BLOCK_THREADS


def empty_cache(tail_bytes: int) -> NDArray[np.int64]:
    """Return what count_small_level fills: the sectors that the cache of small_levels holds."""
    return np.full(cached_sectors(tail_bytes), -1)


@njit(cache=True)
def count_small_level(bases, starts, shift, frontier, fast, cache):
    """Sectors of a frontier that small_levels expands; ``cache`` holds what it kept, -1: nothing.

    Of the sectors that a turn of the block misses, the largest gets a place of the cache and is
    loaded once. Those without a place are loaded by each warp for itself.
    """
    moved = 0
    each = min(32, -(-frontier.size * 32 // BLOCK_ROWS))  # vertices of a warp
    listed = np.empty(2 * BLOCK_ROWS, np.int64)
    firsts = np.zeros(BLOCK_ROWS + 1, np.int64)
    largest = np.full(cache.size, -1)
    for first in range(0, frontier.size, BLOCK_ROWS):
        part = frontier[first : first + BLOCK_ROWS]
        total = 0
        for i in range(part.size):
            begin, end = span(bases, starts, shift, part[i])
            if end - begin > SHORT_BYTES:
                for segment in range(begin, end, SEGMENT_BYTES):
                    moved += whole(segment, min(segment + SEGMENT_BYTES, end), fast)
            elif begin < end:
                for sector in range(begin >> 5, (end - 1 >> 5) + 1):
                    place = sector & cache.size - 1
                    missed = cache[place] != sector and (sector < fast[0] or sector >= fast[1])
                    listed[total] = sector if missed else -1
                    total += 1
                    if missed:
                        largest[place] = max(largest[place], sector)
            firsts[i + 1] = total
        for k in range(total):
            place = listed[k] & cache.size - 1
            if listed[k] >= 0 and listed[k] == largest[place]:
                moved += cache[place] != listed[k]
                cache[place] = listed[k]
                listed[k] = -1
        for lane in range(0, part.size, each):
            begin, end = firsts[lane], firsts[min(lane + each, part.size)]
            for k in range(begin, end, SECTORS_PER_INSTRUCTION):
                alone = listed[k : min(k + SECTORS_PER_INSTRUCTION, end)]
                alone = alone[alone >= 0]
                moved += distinct(alone, alone.size)
        largest[:] = -1
    return moved

"""The arrays that a search on a device works on: how large they are, and what they are for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.cuda.source import (
    CACHED_SECTORS,
    CONTROL_WORDS,
    DISK_BLOCK_BYTES,
    MAX_SMALL_LEVELS,
    NUM_RANGES,
)
from oocbfs.plan.shape import Shape

# CuPy's pool gives memory in such units.
UNIT_BYTES = 512
# Results come to the host in pieces, through slots on the device and as many in pinned memory: one
# is filled while the host takes what is in the other.
RESULT_SLOTS = 2
RESULT_SLOT_BYTES = 4 << 20

# What the arrays of a search are for.
_PURPOSES = {
    "levels": "levels",
    "parents": "parents",
    "queue": "queues",
    "pending": "queues",
    "visited": "bitmaps",
    "claimed": "bitmaps",
    "hubs": "queues",
    "hub_segments": "queues",
    "control": "queues",
    "expanded_blocks": "bitmaps",
    "searched_blocks": "bitmaps",
    "cuts": "queues",
    "cache_tags": "cache",
    "cache_data": "cache",
}


class ArrayShape(NamedTuple):
    """How many items of which type."""

    size: int
    dtype: type[np.generic]

    @property
    def num_bytes(self) -> int:
        """Bytes of all items."""
        return self.size * np.dtype(self.dtype).itemsize


def search_arrays(
    num_vertices: int, tail_bytes: tuple[int, ...], *, with_parents: bool
) -> dict[str, ArrayShape]:
    """List the arrays of a search from one source; tails are out and, if directed, in."""
    words = (num_vertices + 31) // 32
    num_hubs = tail_bytes[0] // (SEGMENT_BYTES + 1) + 1
    return {
        # Written by words where they are cleared.
        "levels": ArrayShape(-(-num_vertices // 4) * 4, np.uint8),
        "parents": ArrayShape(num_vertices if with_parents else 1, np.uint32),
        "queue": ArrayShape(num_vertices, np.uint32),
        "pending": ArrayShape(num_vertices, np.uint32),
        "visited": ArrayShape(words, np.uint32),
        "claimed": ArrayShape(words, np.uint32),
        "hubs": ArrayShape(num_hubs, np.uint32),
        "hub_segments": ArrayShape(num_hubs, np.uint32),
        # The recorded level ends follow the control words, so that one copy reads both.
        "control": ArrayShape(CONTROL_WORDS + MAX_SMALL_LEVELS // 2, np.uint64),
        "expanded_blocks": ArrayShape(block_words(tail_bytes[0]), np.uint32),
        "searched_blocks": ArrayShape(block_words(tail_bytes[-1]), np.uint32),
        "cuts": ArrayShape(NUM_RANGES - 1, np.uint32),
        "cache_tags": ArrayShape(cached_sectors(tail_bytes[0]), np.uint64),
        "cache_data": ArrayShape(cached_sectors(tail_bytes[0]) * 32, np.uint8),
    }


def shard_arrays(
    cut: Cut, shard: int, tail_bytes: tuple[int, ...], *, with_parents: bool
) -> dict[str, ArrayShape]:
    """List the arrays of a shard; bitmaps of all shards are of one size."""
    arrays = search_arrays(cut.rows_of(shard), tail_bytes, with_parents=with_parents)
    bitmap = ArrayShape(2 * cut.words_of(0), np.uint32)
    return {**arrays, "visited": bitmap, "claimed": bitmap}


def exchange_arrays(cut: Cut) -> dict[str, ArrayShape]:
    """List the bitmaps of all vertices that every shard has besides, and its messages."""
    bitmap, message = (
        ArrayShape(size, np.uint64) for size in (cut.num_words, cut.num_shards * cut.words_of(0))
    )
    return {"reached": bitmap, "marked": bitmap, "sent": message, "received": message}


def exchange_bytes(cut: Cut) -> int:
    """Return how much device memory these take, and what pads the bitmaps of a shard."""
    messages = sum(allocated_bytes(array.num_bytes) for array in exchange_arrays(cut).values())
    return messages + 4 * UNIT_BYTES


def cached_sectors(tail_bytes: int) -> int:
    """Return the size of the cache of small levels, a power of two: no more than tails need."""
    return min(CACHED_SECTORS, 1 << (-(-tail_bytes // 32)).bit_length())


def result_slot_bytes(num_results: int) -> int:
    """Return how large a slot for results is: no larger than what four bytes a vertex need."""
    return min(RESULT_SLOT_BYTES, allocated_bytes(4 * num_results))


def order_bytes(shape: Shape, *, with_parents: bool) -> int:
    """Return what brings results into the order of ids: for parents the order, too."""
    if not shape.ordered:
        return 0
    order = allocated_bytes(4 * shape.num_vertices) if with_parents else 0
    return allocated_bytes(4 * shape.num_results) + order


def block_words(tail_bytes: int) -> int:
    """Count the words that have a bit for every block of tails on disk, and for one block more."""
    return -(-tail_bytes // DISK_BLOCK_BYTES) // 32 + 1


def mandatory_bytes(shape: Shape, *, with_parents: bool) -> dict[str, int]:
    """Sum up the arrays that are always in device memory by what they are for."""
    tail_bytes = tuple(side.num_bytes for side in shape.tails)
    arrays = search_arrays(shape.num_vertices, tail_bytes, with_parents=with_parents)
    found = dict.fromkeys(("bitmaps", "queues", "cache", "levels", "parents", "results"), 0)
    for name, (size, dtype) in arrays.items():
        found[_PURPOSES[name]] += allocated_bytes(max(size, 1) * np.dtype(dtype).itemsize)
    found["results"] = RESULT_SLOTS * result_slot_bytes(shape.num_results)
    found["heads"] = len(shape.tails) * allocated_bytes(4 * max(shape.num_vertices, 1))
    num_bases = (shape.num_vertices >> shape.shift) + 1
    found["starts"] = len(shape.tails) * (
        allocated_bytes(4 * (shape.num_vertices + 1)) + allocated_bytes(8 * num_bases)
    )
    return found


def allocated_bytes(num_bytes: int) -> int:
    """Return how much CuPy's pool takes for so many bytes."""
    return -(-num_bytes // UNIT_BYTES) * UNIT_BYTES

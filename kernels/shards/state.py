"""What the threads of one step on a part share: bitmaps, scratch, control words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.array_types import I64, I64_2D, U32, U32_2D, U64
from oocbfs.kernels.region import REGION_WORDS
from oocbfs.kernels.structs import StructType, at_address

# Control words after those of the region: sums over the threads, how many hubs wait, and whether a
# tail holds what no converter wrote.
TESTED, EDGES, HEADS, TAIL_BYTES, NUM_HUBS, FAILED = range(REGION_WORDS, REGION_WORDS + 6)
CONTROL_WORDS = REGION_WORDS + 8

# Steps: bottom-up; top-down into a bitmap, first without hubs, then their segments; top-down of a
# few rows into a list of ids.
UP, DOWN, DOWN_HUBS, DOWN_IDS = range(4)

MAX_HUBS = 4096
# A row with more segments is shared between threads.
HUB_SEGMENTS = 16


class ShardState(NamedTuple):
    """The arrays of a step; those that it does not need are empty.

    A *full* bitmap has a bit for each vertex of the graph and one more word of zeros, an *own* one
    the words of the part, row by row.

    frontier
        Full in a step up, own in a step down.
    visited
        Own; a step up looks for those that are not.
    found
        Own in a step up, full in a step down into a bitmap.
    parents
        In a step up, if parents are wanted: a vertex for each row that was found.
    list_ids, list_owners
        In a step down into a list: neighbours, and whose they are.
    ids, offsets, queues
        Scratch, one row a thread.
    hubs
        Rows that wait for DOWN_HUBS.
    """

    frontier: NDArray[np.uint64]
    visited: NDArray[np.uint64]
    found: NDArray[np.uint64]
    parents: NDArray[np.uint32]
    list_ids: NDArray[np.uint32]
    list_owners: NDArray[np.uint32]
    ids: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    queues: NDArray[np.uint32]
    hubs: NDArray[np.int64]
    control: NDArray[np.int64]


STATE = StructType(
    "ShardState",
    {
        "frontier": U64,
        "visited": U64,
        "found": U64,
        "parents": U32,
        "list_ids": U32,
        "list_owners": U32,
        "ids": U32_2D,
        "offsets": I64_2D,
        "queues": U32_2D,
        "hubs": I64,
        "control": I64,
    },
)
state_at = at_address(STATE)

"""The arrays and control words that the threads of one traversal share; see region."""

# Types come from what the leader passes in; numba reads no annotations.
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.region import REGION_WORDS

# Words of State.control behind those of the region.
QUEUE_END = REGION_WORDS
# Sums over the threads of a region; FAILED is set when a tail holds what no converter wrote.
FOUND, EDGES, HEADS, BYTES, FAILED, NUM_HUBS, TESTED = range(40, 47)
# What the leader tells the helpers about the open region.
MODE, LEVEL, QUEUE_BEGIN, FRONTIER_END, FRONT, NEXT, VISITED = range(48, 55)
HUB_LIMIT, DENSE_MASK, NUM_PARTS, PARTS_TAKEN, KEPT = range(56, 61)
# What the leader remembers between two levels.
UNEXPLORED, PROBED, DEPTH, FRONTIER, WEIGHT, IN_BITMAP, SYNCED, REPEATS = range(64, 72)
CONTROL_WORDS = 72

MAX_HUBS = 1024
# Edges up to which a frontier is expanded in parts, and their largest number.
PARTS_EDGES = 32768
MAX_PARTS = 16
# What is known of a part: its finds, their place in the queue, the edges and bytes it took to find them.
PART_COUNT, PART_PLACE, PART_EDGES, PART_BYTES = range(4)
# Vertices that one thread probes bottom-up at a time.
PENDING = 256
# Threads that take part in a dense step: each but the first two has a bitmap of its own.
MAX_DENSE = 32


class State(NamedTuple):
    """The arrays that the threads of one traversal share.

    The frontiers of all top-down levels lie in the queue one behind the other. A vertex enters it
    once, but for those that two parts found at the same time: control[REPEATS] is an upper bound of
    them, and the queue has room for PARTS_EDGES of them and for one more level. While control[KEPT],
    the last frontier is still in the finds of the parts that found it, and only its places in the
    queue are known. The first three bitmaps take turns as frontier, next frontier and visited; ids
    and places are scratch, one row a thread; finds and parts have one row a part.
    """

    levels: NDArray[np.int32]
    parents: NDArray[np.uint32]
    queue: NDArray[np.uint32]
    bitmaps: NDArray[np.uint64]
    ids: NDArray[np.uint32]
    places: NDArray[np.int64]
    finds: NDArray[np.uint32]
    parts: NDArray[np.int64]
    hubs: NDArray[np.int64]
    records: NDArray[np.int64]
    control: NDArray[np.int64]

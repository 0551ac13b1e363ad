"""What the threads of a traversal from up to 64 sources at once share.

Every vertex has a word in which bit s belongs to source s: *seen* since the start, in the *frontier*,
or *found* for the next frontier. The two last take turns. Helpers join as in bfs_state.
"""

# Types come from what the leader passes in; numba reads no annotations.
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

# Places in State.control behind those of the region. Sums over a region's threads:
FOUND, EDGES, HEADS, BYTES, FAILED = range(32, 37)
# What the leader tells the helpers about the open region.
FRONT, DEPTH, PUSHED = range(40, 43)
# What the leader remembers between two levels: whether the frontier is listed, which list it is and
# where it ends, whether the finds are clear, and how many levels Python has taken away.
LISTED, LIST, LIST_END, CLEAN, DRAINED = range(48, 53)
CONTROL_WORDS = 56

# Places in State.masks: sources whose next level is pushed, and those that are pulled.
PUSHING, PULLING = range(2)

# Vertices that are skipped, counted and weighed together: fewer than a byte can count.
BLOCK = 128
# Vertices that a thread takes at a time.
CHUNK = 4 * BLOCK
# Levels that the compiled loop records before Python takes them away.
MAX_RECORDS = 1024


class State(NamedTuple):
    """The arrays that the threads of one traversal share.

    words
        Seen, and two that take turns as frontier and finds, one word a vertex each. Seen is all ones
        where no edge leads. Finds of other threads but the first follow.
    planes
        Bit p of each vertex's level plus 1, for each source; no planes if nobody asked for levels.
    common, idle
        What all vertices of a block have seen, and whether no edge leads to any of them.
    lists
        The frontier's vertices, if it is listed or when it is pushed, and those that a sparse step
        marked. They take turns.
    ids, wanted, places
        Scratch, one row a thread: vertices, their words, and where their tails are read.
    counts, weights
        Vertices and edges of the next frontier by source, one row a thread.
    num_bytes
        Counters of one byte a source, one row a thread.
    unexplored
        Edges of vertices that a source has not seen.
    sizes, records
        Vertices of each level by source, and what the level did (see many.RECORD), one row a level.
    """

    words: NDArray[np.uint64]
    planes: NDArray[np.uint64]
    common: NDArray[np.uint64]
    idle: NDArray[np.uint8]
    lists: NDArray[np.uint32]
    ids: NDArray[np.uint32]
    wanted: NDArray[np.uint64]
    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    num_bytes: NDArray[np.uint8]
    masks: NDArray[np.uint64]
    unexplored: NDArray[np.float64]
    sizes: NDArray[np.int64]
    records: NDArray[np.int64]
    control: NDArray[np.int64]

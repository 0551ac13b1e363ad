"""What the threads of a search from up to 64 sources share: arrays, control words and records.

Every vertex has a word in which bit s belongs to source s, as in MS-BFS (Then et al., PVLDB 8(4),
2014): whether it was *seen* since the start, is in the *frontier*, or in the *next frontier*. The
two last take turns. Import the module as ``words`` for the control words: control[words.DEPTH].
"""

# Types come from what the leader passes in; numba reads no annotations.
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.record import WORK_FIELDS
from oocbfs.kernels.region import REGION_WORDS

# Control words after those of the region. Sums over a region's threads:
FOUND, EDGES, HEADS, TAIL_BYTES, FAILED = range(REGION_WORDS, REGION_WORDS + 5)
# What the leader tells the workers about the open region: which row of the sets is the frontier,
# how deep it is, and whether any source went top-down.
FRONTIER_ROW, DEPTH, WENT_TOP_DOWN = range(40, 43)
# What the leader remembers between two levels: whether the frontier is listed, which list it is and
# where it ends, whether the next frontier is clear, how many levels Python has taken away, and how
# many targets nobody has found.
IS_LISTED, LIST, LIST_END, IS_CLEAR, NUM_DRAINED, NUM_MISSING = range(48, 54)
CONTROL_WORDS = 56

# Rows of ManyState.sets: seen, two that take turns, and those of the threads that go top-down.
SEEN, FIRST_FRONTIER, SECOND_FRONTIER, FIRST_OWN = range(4)
# Words of ManyState.masks: sources whose next level goes top-down, and those that go bottom-up.
TOP_DOWN_SOURCES, BOTTOM_UP_SOURCES = range(2)
# Tasks of a region.
BEGIN, CLEAR, LIST_FRONTIER, TOP_DOWN, BOTTOM_UP = range(5)

# Sources of one search: the bits of a word.
WIDTH = 64
# Vertices that are skipped, counted and summed together: fewer than a byte can count.
BLOCK = 128
# Vertices that a thread takes at a time.
CHUNK = 4 * BLOCK
# Levels that the compiled loop records before Python takes them away.
MAX_RECORDS = 1024

MANY_RECORD = np.dtype(
    [("top_down", "u8"), ("bottom_up", "u8"), ("degree_sum", "i8"), *WORK_FIELDS]
)


class ManyOptions(NamedTuple):
    """How to search: the leader alone expands frontiers of at most sparse_edges edges.

    The search is given up after max_levels.
    """

    threads: int
    alpha: float
    sparse_edges: int
    max_levels: int
    clock: int


class ManyState(NamedTuple):
    """The arrays that the threads of one search share.

    sets
        One word a vertex in each row: seen, and two that take turns as frontier and next
        frontier. Seen is all ones where no edge leads. What threads but the first mark goes to
        rows of their own.
    planes
        Bit p of each vertex's level plus 1, for each source; no planes if nobody asked for levels.
    common, idle
        What all vertices of a block have seen, and whether no edge leads to any of them.
    lists
        The frontier's vertices, if it is listed or goes top-down, and those that a sparse step
        marked. They take turns.
    ids, wanted, offsets
        Scratch, one row a thread: vertices, their words, and where their tails are read.
    counts, degree_sums
        Vertices and edges of the next frontier by source, one row a thread.
    byte_counts
        Counters of one byte a source, one row a thread.
    unexplored
        Edges of vertices that a source has not seen.
    targets, askers, missing
        Vertices that are still looked for, and the source that each is wanted from: the first
        control[NUM_MISSING]; how many each source misses, -1 if it wants all vertices there are.
    sizes, records
        Vertices of each level by source, and what the level did (MANY_RECORD), one row a level.
    """

    sets: NDArray[np.uint64]
    planes: NDArray[np.uint64]
    common: NDArray[np.uint64]
    idle: NDArray[np.uint8]
    lists: NDArray[np.uint32]
    ids: NDArray[np.uint32]
    wanted: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    degree_sums: NDArray[np.float64]
    byte_counts: NDArray[np.uint8]
    masks: NDArray[np.uint64]
    unexplored: NDArray[np.float64]
    targets: NDArray[np.uint32]
    askers: NDArray[np.uint8]
    missing: NDArray[np.int64]
    sizes: NDArray[np.int64]
    records: NDArray[np.void]
    control: NDArray[np.int64]


@inlined
def other_row(row):
    """Return the row of the next frontier if this is the frontier's, and the other way round."""
    return FIRST_FRONTIER + SECOND_FRONTIER - row


@inlined
def frontiers(state):
    """Return the words of the frontier and of the next frontier."""
    row = state.control[FRONTIER_ROW]
    return state.sets[row], state.sets[other_row(row)]

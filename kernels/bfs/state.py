"""What the threads of one search share: arrays, control words, forms, tasks and records.

Import the module as ``words`` for the control words: control[words.DEPTH].
"""

# Types come from what the leader passes in; numba reads no annotations.
from __future__ import annotations

from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from oocbfs.kernels.array_types import (
    I32Array,
    I64Array,
    I64Grid,
    U8Array,
    U32Array,
    U32Grid,
    U64Grid,
)
from oocbfs.kernels.bottom_up.probe import PROBE_WORDS
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.parking import Parking
from oocbfs.kernels.record import LEVEL_RECORD
from oocbfs.kernels.region import REGION_WORDS
from oocbfs.kernels.results.levels import count_levels
from oocbfs.kernels.rows import Rows, read_only
from oocbfs.kernels.structs import Struct, at_address

# Control words after those of the region. The queue's end has a cache line of its own.
QUEUE_END = REGION_WORDS
# Sums over the threads of a region; FAILED is set when a tail holds what no converter wrote.
FOUND, EDGES, HEADS, TAIL_BYTES, FAILED, NUM_HUBS, TESTED = range(40, 47)
# What the leader tells the workers about the open region: the level that is being found, the
# slice of the queue that is the frontier, which bitmap is which, and who takes part how.
LEVEL, FRONTIER_BEGIN, FRONTIER_END = range(48, 51)
FRONTIER_BITMAP, NEXT_BITMAP, VISITED_BITMAP = range(51, 54)
HUB_SEGMENTS, DENSE_THREADS, NUM_LOCAL_QUEUES, LOCAL_QUEUES_TAKEN, FORM = range(54, 59)
# Which words a bottom-up region goes over: all, or every 2**SAMPLE_SHIFT-th, or the rest of them.
# WASTED_EDGES are those that a sample looked at before another direction was chosen.
WHICH_WORDS, SAMPLE_SHIFT, WASTED_EDGES = range(59, 62)
# The compiled function that does the work of regions, and whether workers were asked to come.
WORK_ADDRESS, WOKEN = 62, 63
# What the leader remembers between two levels: how far the search is, the edges of the
# vertices that were not in a frontier yet, those that a bottom-up level would look at (-1: there
# was none), those of the frontier, of a bitmap only estimated, and, of the queue, how far
# visited bits are set and how many vertices may be in it twice; last, how many were found so far.
DEPTH, FRONTIER_SIZE, UNEXPLORED_EDGES, BOTTOM_UP_EDGES, FRONTIER_EDGES = range(64, 69)
NUM_MARKED, NUM_REPEATS, NUM_FOUND = range(69, 72)
# When results are brought to ids in the end: since when, whether from the queue alone, what is
# clear then and the next search need not clear, and from which level on vertices are counted
# because some may have been found twice (0: from none); cursors, and how much is done, a cache line
# each.
TO_IDS_BEGAN, FROM_QUEUE, LEVELS_CLEAR, PARENTS_CLEAR, FIRST_COUNTED = range(72, 77)
ID_CURSOR, BROUGHT, WORD_CURSOR, WORDS_SUMMED, SUMMED_EDGES = range(80, 120, 8)
PARENT_CURSOR, PARENTS_PLACED = 120, 128
CONTROL_WORDS = 136

# Forms of a frontier; levels.py says who writes and who converts which.
IN_QUEUE, IN_BITMAP, IN_BOTH, IN_LOCAL_QUEUES = range(4)
# Steps that expand a frontier, and the other tasks of a region.
SMALL_STEP, LOCAL_STEP, SPARSE_STEP, DENSE_STEP, BOTTOM_UP_STEP = range(5)
CLEAR, SUM_DEGREES, SWEEP, QUEUE_TO_BITMAP, BITMAP_TO_QUEUE, MERGE_LOCAL_QUEUES = range(5, 11)
ALL_WORDS, SAMPLED_WORDS, OTHER_WORDS = range(3)
# Directions that a caller may ask for.
AUTO, TOP_DOWN, BOTTOM_UP = range(3)

MAX_HUBS = 1024
# Edges up to which a frontier is expanded from local queues, one a thread, and their number.
LOCAL_LIMIT = 32768
MAX_LOCAL_QUEUES = 16
# Columns of BfsState.local_queues: how much it found, where that begins in the queue, and the edges
# and tail bytes it took to find it.
LOCAL_SIZE, LOCAL_BEGIN, LOCAL_EDGES, LOCAL_BYTES = range(4)
# Columns are 8 so that each local queue has a cache line of its own.
LOCAL_COLUMNS = 8
# Levels beyond these are summed up in the last record.
MAX_RECORDS = 1 << 16
# Threads that take part in a dense step: each but the first two has a bitmap of its own.
MAX_DENSE = 32
# A row with more segments is shared between threads.
SHARED_SEGMENTS = 16


class BfsOptions(NamedTuple):
    """How to search; depth and target are -1 when they do not limit."""

    threads: int
    direction: int
    max_depth: int
    target: int
    clock: int
    unexplored_edges: int
    early_edges: int
    alone_edges: int
    local_edges: int
    first_local_queues: int
    dense_edges: int


class BfsState(NamedTuple):
    """The arrays that the threads of one search share.

    queue
        The frontiers of top-down levels, one after the other. A vertex enters it once, but for
        those that two threads found at the same time: control[NUM_REPEATS] is an upper bound of
        them, and the queue has room for LOCAL_LIMIT of them and for one more level.
    bitmaps
        Three that take turns as frontier, next frontier and visited, and one for each thread of a
        dense step but the first two.
    ids, probing
        Scratch, one row a thread.
    finds, local_queues
        What a thread found, and what is known about that (LOCAL_SIZE …), one row a local queue.
    hubs
        Where in the queue the hubs are, later the number of each one's first segment.
    deep_levels
        The levels of vertices whose byte in ``levels`` is DEEP; others are not set.
    records
        What each level did, one row a level.
    mailbox
        Where workers of the search before wait for this one; see ``kernels.parking``.
    """

    levels: U8Array
    deep_levels: I32Array
    parents: U32Array
    queue: U32Array
    bitmaps: U64Grid
    ids: U32Grid
    probing: I64Grid
    finds: U32Grid
    local_queues: I64Grid
    hubs: I64Array
    records: Annotated[NDArray[np.void], types.Array(from_dtype(LEVEL_RECORD), 1, "C")]
    mailbox: I64Array
    control: I64Array


options_at, state_at = at_address(BfsOptions), at_address(BfsState)


class BfsFound(NamedTuple):
    """What a search did.

    A record a level, the number of levels, whether tails were bad, how many vertices each level
    has, how many edges those have that were reached, and how long it took to bring results to ids.
    """

    records: NDArray[np.void]
    depth: int
    malformed: bool
    sizes: NDArray[np.int64]
    edges: int
    to_ids_seconds: float


class BfsScratch:
    """What a search needs besides its results, kept from one to the next."""

    def __init__(self, rows_out: Rows, rows_in: Rows, threads: int) -> None:
        self._made_for = (rows_out, rows_in, threads)
        self.rows_out = Struct(read_only(rows_out))
        self.rows_in = self.rows_out if rows_in is rows_out else Struct(read_only(rows_in))
        num_vertices = rows_out.heads.size
        num_words = (num_vertices + 63) >> 6
        num_local = min(threads, MAX_LOCAL_QUEUES)
        num_bitmaps = 3 + max(0, min(threads, MAX_DENSE) - 2)
        # One more word, which is for what has no level: vertices without edges at the end.
        self.levels = np.empty(64 * num_words + 64, np.uint8)
        self.queue = np.empty(num_vertices + 1 + 2 * LOCAL_LIMIT, np.uint32)
        self.bitmaps = np.zeros((num_bitmaps, num_words + 1), np.uint64)
        self.ids = np.empty((threads, 2 * BATCH), np.uint32)
        self.probing = np.empty((threads, PROBE_WORDS), np.int64)
        self.finds = np.empty((num_local, LOCAL_LIMIT), np.uint32)
        self.local_queues = np.zeros((num_local, LOCAL_COLUMNS), np.int64)
        self.hubs = np.zeros(MAX_HUBS + 1, np.int64)
        self.records = np.zeros(min(num_vertices + 1, MAX_RECORDS), LEVEL_RECORD)
        self.counts = np.zeros((threads, self.records.size + 1), np.uint32)
        # Control words as a search begins, but for its sources.
        self.control = np.zeros(CONTROL_WORDS, np.int64)
        self.control[[FRONTIER_BITMAP, NEXT_BITMAP, VISITED_BITMAP]] = 0, 1, 2
        self.control[UNEXPLORED_EDGES] = rows_out.num_arcs
        self.control[BOTTOM_UP_EDGES] = -1
        self.control[HUB_SEGMENTS] = SHARED_SEGMENTS
        self.parking = Parking(threads)
        # Structs of the last search: most of what the next one passes is the same.
        self.structs: tuple[Struct, ...] | None = None
        # How many more searches are left to the leader alone.
        self.calls_alone = 0
        self._num_vertices = num_vertices

    @classmethod
    def take(
        cls, kept: list[BfsScratch] | None, rows_out: Rows, rows_in: Rows, threads: int
    ) -> BfsScratch:
        """Take what was kept for these very rows, or new memory; other threads may do so, too.

        What was made for more threads serves as well, with a local queue for each that comes.
        """
        scratch = cls._take_kept(kept, rows_out, rows_in, threads)
        if scratch is None:
            scratch = cls(rows_out, rows_in, threads)
        scratch.control[NUM_LOCAL_QUEUES] = min(threads, MAX_LOCAL_QUEUES)
        return scratch

    @staticmethod
    def _take_kept(
        kept: list[BfsScratch] | None, rows_out: Rows, rows_in: Rows, threads: int
    ) -> BfsScratch | None:
        try:
            while kept:
                scratch = kept.pop()
                known_out, known_in, known_threads = scratch._made_for
                if known_out is rows_out and known_in is rows_in and known_threads >= threads:
                    return scratch
        except IndexError:  # another thread took the last one
            pass
        return None

    @cached_property
    def deep_levels(self) -> NDArray[np.int32]:
        """Levels of more than a byte, where the result has no room for them meanwhile."""
        return np.empty(self._num_vertices, np.int32)

    @cached_property
    def parents(self) -> NDArray[np.uint32]:
        """Parents of stored vertices, from which those of ids are made, and one more for none."""
        return np.empty(self._num_vertices + 1, np.uint32)

    def sum_up(
        self, control: NDArray[np.int64], levels: NDArray[np.int32], to_ids_seconds: float
    ) -> BfsFound:
        """Return what a search found, and clear what the next one expects to be clear."""
        depth = int(control[DEPTH])
        records = self.records[: min(depth, self.records.size)].copy()
        self.records[: records.size] = 0
        if depth >= self.records.size:
            # A search that failed may have found some of the next level.
            sizes = np.zeros(depth + 2, np.int64)
            count_levels(sizes, levels, 0, levels.size)
            sizes = sizes[: depth + 1]
        else:
            sizes = np.empty(depth + 1, np.int64)
            sizes[:depth] = records["frontier"]
            sizes[depth] = control[FRONTIER_SIZE]
            if first := int(control[FIRST_COUNTED]):
                sizes[first:] = self.counts[:, first : depth + 1].sum(axis=0)
                self.counts[:, first : depth + 2] = 0
        edges = int(control[SUMMED_EDGES])
        if 2 * control[NUM_FOUND] >= self._num_vertices:
            edges = int(self.control[UNEXPLORED_EDGES]) - edges
        if sizes[-1] == 0:  # nothing was found any more
            sizes = sizes[:-1]
        return BfsFound(records, depth, bool(control[FAILED]), sizes, edges, to_ids_seconds)

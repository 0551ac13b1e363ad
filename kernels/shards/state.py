"""What the threads share that take a step on the shards that one process holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocbfs.kernels.array_types import (
    I32Array,
    I64Array,
    I64Grid,
    U8Array,
    U32Array,
    U32Grid,
    U64Array,
    U64Grid,
)
from oocbfs.kernels.region import REGION_WORDS
from oocbfs.kernels.structs import at_address

# Control words after those of the region: which of two states counts, the level that is being
# found, how many hubs wait, one more than the shard where a tail holds what no converter wrote,
# and how many vertices there are up to the last that has edges, and up to the last that leads on.
TURN, LEVEL, NUM_HUBS, FAILED, NON_ISOLATED, USEFUL = range(REGION_WORDS, REGION_WORDS + 6)
CONTROL_WORDS = REGION_WORDS + 8

# Steps: bottom-up; top-down into marks, first without hubs, then their segments; taking marks in
# that nobody visited before; all of that for a few edges, by one thread, where all shards are held;
# top-down of a few rows into a list of ids; the begin of a search.
BOTTOM_UP, TOP_DOWN, TOP_DOWN_HUBS, TAKE, SMALL, TOP_DOWN_IDS, CLEAR = range(7)

# Columns of ``shards``: addresses of the out- and the in-rows, the shard, the place of its first
# word, and how many words it has.
OUT, IN, NUMBER, PLACE, NUM_WORDS = range(5)
# Columns of ``counts``, a row a shard: sums over the threads, and the cursor of the step.
FOUND, FRONTIER_EDGES, TESTED, EDGES, HEADS, TAIL_BYTES, WORD_CURSOR = range(7)
COUNTS = 8

MAX_HUBS = 4096
# A row with more segments is shared between threads.
HUB_SEGMENTS = 16


_NO_WORDS = np.empty(0, np.uint64)


class Bitmaps(NamedTuple):
    """The arrays of a search, or of one step; those that it does not need are empty.

    A *full* bitmap has a bit for each vertex of the graph and one more word of zeros. A *placed*
    array has the words of the shards that are held: all of them in their own order, or one shard
    after the other. Where all shards are held, both are the same.

    frontier
        Full; what a bottom-up step looks for.
    own
        Placed: the frontier of held shards, which a top-down step expands.
    known
        Full: what need not be marked.
    visited, found
        Placed.
    marks
        Full bitmaps, one that threads share or one for each, zero between two levels: what a
        top-down step comes across, whatever shard it belongs to.
    levels, deep_levels, parents
        Placed, one number a vertex. Levels are as in ``kernels.bfs.state``.
    """

    frontier: U64Array = _NO_WORDS
    own: U64Array = _NO_WORDS
    known: U64Array = _NO_WORDS
    visited: U64Array = _NO_WORDS
    found: U64Array = _NO_WORDS
    marks: U64Grid = np.empty((0, 0), np.uint64)
    levels: U8Array = np.empty(0, np.uint8)
    deep_levels: I32Array = np.empty(0, np.int32)
    parents: U32Array = np.empty(0, np.uint32)


class TeamState(NamedTuple):
    """Bitmaps, the shards that are held, and scratch.

    num_shards, stride
        Shards of the graph, and words from one word of a shard to the next in placed arrays.
    list_ids, list_owners
        In a top-down step into a list: neighbours, and the rows that these belong to.
    ids, probing, queues
        Scratch, one row a thread.
    hubs
        Shards and rows that wait for TOP_DOWN_HUBS.
    """

    bitmaps: Bitmaps
    shards: I64Grid
    counts: I64Grid
    list_ids: U32Array
    list_owners: U32Array
    ids: U32Grid
    probing: I64Grid
    queues: U32Grid
    hubs: I64Grid
    control: I64Array
    num_shards: int
    stride: int


state_at = at_address(TeamState)

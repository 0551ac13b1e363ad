"""The end of a traversal on the CPU: levels and parents by id, and what was reached.

All threads of the traversal take chunks, the leader too, which waits for the others in the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from oocbfs.kernels.array_types import I32, I64, READ_U32, READ_U64, U32_2D
from oocbfs.kernels.atomics import atomic_add, inlined, kernel, trailing_zeros
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.state import DEEP, UNREACHED
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.region import ALONE, ONE, ZERO, chunk_for, take_chunk, wait_for
from oocbfs.kernels.structs import StructType, at_address
from oocbfs.kernels.vectors import where_equal

_LEAST_CHUNK, _MOST_CHUNK = 1 << 10, 1 << 14
_LEAST_WORDS, _MOST_WORDS = 1 << 5, 1 << 10


class Names(NamedTuple):
    """How results are put in the order of ids; an empty array stands for what is as it is stored.

    ``ranks`` are stored vertices by position, ``order`` is the inverse of it, ``ids`` are those of
    the positions, by default consecutive from ``first_id``.
    """

    ranks: NDArray[np.uint32]
    order: NDArray[np.uint32]
    ids: NDArray[np.uint64]
    first_id: int


class Results(NamedTuple):
    """What a traversal fills by position.

    Parents as ids, only if there is room for any; ``counts`` of each level's vertices, a row a
    thread, if some may have been counted twice.
    """

    levels: NDArray[np.int32]
    parents: NDArray[np.int64]
    counts: NDArray[np.uint32]


NAMES = StructType(
    "Names", {"ranks": READ_U32, "order": READ_U32, "ids": READ_U64, "first_id": types.int64}
)
RESULTS = StructType("Results", {"levels": I32, "parents": I64, "counts": U32_2D})
names_at, results_at = at_address(NAMES), at_address(RESULTS)


@kernel
def _sum_degrees(control, levels, degrees):
    """Sum up the degrees of those that were reached; of the others, if they are fewer."""
    n = degrees.size
    num_words = (n + 63) >> 6
    few_found = 2 * control[words.NUM_FOUND] < n
    flip = ~ZERO if few_found else ZERO
    chunk = chunk_for(num_words, _LEAST_WORDS, _MOST_WORDS)
    while True:
        first, end = take_chunk(control, words.WORD_CURSOR, chunk, num_words)
        if first == end:
            return
        edges = np.int64(0)
        for w in range(first, end):
            bits = where_equal(levels, w * 64, np.uint8(UNREACHED)) ^ flip
            if w * 64 + 64 > n:
                bits &= ~ZERO >> np.uint64(w * 64 + 64 - n)
            while bits != ZERO:
                edges += np.int64(degrees[w * 64 + trailing_zeros(bits)])
                bits &= bits - ONE
        atomic_add(control, words.SUMMED_EDGES, edges)
        atomic_add(control, words.WORDS_SUMMED, end - first)


@inlined
def _parent_id(parent, names, n):
    """Give the id of a parent, -1 of none: without a branch, as below."""
    known = np.int64(parent < n)
    position = np.int64(parent) * known
    if names.order.size:
        position = np.int64(names.order[position])
    ids = names.ids
    position = np.int64(ids[position]) if ids.size else position + names.first_id
    return position * known + known - 1


@kernel
def finish(state, names, results, degrees, thread):
    """Do one thread's part: sum up degrees, then fill the results by position.

    Levels and parents are of fewer vertices than results where the last ones have no edges.
    """
    control, levels, deep_levels, parents = (
        state.control,
        state.levels,
        state.deep_levels,
        state.parents,
    )
    ranks, out, out_parents, counts = names.ranks, results.levels, results.parents, results.counts
    if thread != 0 and control[ALONE] != 0:
        return
    _sum_degrees(control, levels, degrees)
    last, last_parent = np.int64(levels.size - 1), np.int64(parents.size - 1)
    chunk = chunk_for(out.size, _LEAST_CHUNK, _MOST_CHUNK)
    while True:
        first, end = take_chunk(control, words.NAME_CURSOR, chunk, out.size)
        if first == end:
            break
        # Which vertices were reached cannot be guessed, so there is no branch.
        if control[words.DEPTH] < DEEP:
            for i in range(first, end):
                level = np.int32(levels[min(np.int64(ranks[i]) if ranks.size else i, last)])
                out[i] = level - (np.int32(level == UNREACHED) << 8)
        else:
            for i in range(first, end):
                v = min(np.int64(ranks[i]) if ranks.size else i, last)
                level = np.int32(levels[v])
                if level == DEEP:
                    level = deep_levels[v]  # which may be ``out``
                elif level == UNREACHED:
                    level = np.int32(-1)
                out[i] = level
        if control[words.NUM_REPEATS] and control[words.DEPTH] + 1 < counts.shape[1]:
            own = counts[thread]
            for i in range(first, end):
                own[out[i]] += np.uint32(out[i] >= 0)
        if out_parents.size:
            for i in range(first, end):
                v = np.int64(ranks[i]) if ranks.size else i
                parent = parents[min(v, last_parent)] | (np.uint32(v > last_parent) * NO_HEAD)
                out_parents[i] = _parent_id(parent, names, parents.size)
        atomic_add(control, words.NAMED, end - first)
    if thread == 0:
        wait_for(control, words.NAMED, out.size)
        wait_for(control, words.WORDS_SUMMED, (degrees.size + 63) >> 6)

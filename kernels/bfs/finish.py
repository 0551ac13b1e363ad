"""The end of a search on the CPU: levels and parents by id, and what was reached.

All threads of the search take chunks, the leader too, which waits for the others in the end.
Loops count in unsigned numbers: an index that might be negative makes LLVM gather what lies side by
side, which takes half as long again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocbfs.kernels.array_types import I32Array, I64Array, ReadU32Array, ReadU64Array, U32Grid
from oocbfs.kernels.atomics import (
    atomic_add,
    inlined,
    kernel,
    prefetch_once,
    store_past_caches,
    trailing_zeros,
)
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.state import IN_LOCAL_QUEUES
from oocbfs.kernels.bitmaps import DEEP, UNREACHED
from oocbfs.kernels.constants import NO_HEAD, ONE, ZERO
from oocbfs.kernels.region import ALONE, chunk_for, take_chunk, wait_for
from oocbfs.kernels.structs import at_address
from oocbfs.kernels.vectors import where_equal

_LEAST_CHUNK, _MOST_CHUNK = 1 << 12, 1 << 14
_LEAST_WORDS, _MOST_WORDS = 1 << 8, 1 << 10
_LEAST_QUEUED = 1 << 12
# Results of fewer vertices are filled by the leader: they stay in its cache from call to call.
SMALL_RESULTS = 1 << 19
# If at most n / 8 were reached, it is faster to fill the results and to name those one by one.
_FEW_SHIFT = 3
# Results of more vertices are larger than what caches hold for one core, so that they are written
# past them. The atomic operation that follows each chunk makes them visible on all processors.
_LARGE = 1 << 21
# Numbers of a cache line, and how far ahead stored vertices are asked for.
_LINE, _AHEAD = 16, 128
# Fewer vertices leave the top bit of a parent clear, but for NO_HEAD.
_SIGNED = 1 << 31
# Searches of fewer levels leave the top bit of each level's byte clear.
_FEW_LEVELS = 127


class ToIds(NamedTuple):
    """How results are put in the order of ids; an empty array stands for what is as it is stored.

    ``stored_at`` are stored vertices by position, ``order`` is its inverse, ``ids`` are those of
    the positions, by default consecutive from ``first_id``.
    """

    stored_at: ReadU32Array
    order: ReadU32Array
    ids: ReadU64Array
    first_id: int


class Results(NamedTuple):
    """What a search fills by position.

    Parents as ids, only if there is room for any; ``counts`` of each level's vertices, a row a
    thread, if some may have been counted twice.
    """

    levels: I32Array
    parents: I64Array
    counts: U32Grid


to_ids_at, results_at = at_address(ToIds), at_address(Results)


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


@kernel
def _place_parents(control, parents, order):
    """Replace stored parents by their positions, in the order of stored vertices.

    Parents are few vertices, mostly, and looked up faster one after the other than when they are
    gathered. All of them are placed before any is gathered.
    """
    n = parents.size - 1
    chunk = chunk_for(n, _LEAST_CHUNK, _MOST_CHUNK)
    while True:
        first, end = take_chunk(control, words.PARENT_CURSOR, chunk, n)
        if first == end:
            break
        for v in range(np.uint64(first), np.uint64(end)):
            parent = parents[v]
            # None stays none, without a branch.
            none = np.uint32(parent >= n) * NO_HEAD
            parents[v] = order[parent & ~none] | none
        atomic_add(control, words.PARENTS_PLACED, end - first)
    wait_for(control, words.PARENTS_PLACED, n)


@kernel
def _parents_to_ids(out, parents, to_ids, first, end):
    """Fill out[first:end] with the ids of parents, which are positions; -1 where there is none.

    The last parent is none, for vertices without a row. Gathering goes first and by itself, as
    processors with slow vector gathers take twice as long if anything else is done in its loop.
    """
    stored_at, ids, first_id = to_ids.stored_at, to_ids.ids, to_ids.first_id
    last = np.uint64(parents.size - 1)
    first, end = np.uint64(first), np.uint64(end)
    if stored_at.size and out.size > _LARGE:
        for i in range(first, end):
            parent = np.int64(np.int32(parents[min(np.uint64(stored_at[i]), last)]))
            store_past_caches(out, i, parent)
    else:
        for i in range(first, end):
            v = min(np.uint64(stored_at[i]) if stored_at.size else i, last)
            out[i] = np.int64(np.int32(parents[v]))
    if ids.size == 0 and first_id == 0 and parents.size < _SIGNED:
        return
    for i in range(first, end):
        position = np.int64(np.uint32(out[i]))
        if out[i] != -1:
            out[i] = np.int64(ids[position]) if ids.size else position + first_id


@inlined
def _few_levels_to_ids(out, levels, stored_at, first, end):
    """Fill out[first:end]; no level but UNREACHED, which stands for -1, has the top bit of a byte.

    Which vertices were reached cannot be guessed, so there is no branch.
    """
    last = np.uint64(levels.size - 1)
    first, end = np.uint64(first), np.uint64(end)
    if stored_at.size and out.size > _LARGE:
        whole = end - (end - first) % np.uint64(_LINE)
        for line in range(first, whole, np.uint64(_LINE)):
            # Stored vertices that stay in the cache would take the place of levels: 0.9 of the
            # time.
            prefetch_once(stored_at, line + np.uint64(_AHEAD))
            for j in range(np.uint64(0), np.uint64(_LINE)):
                level = np.int32(np.int8(levels[min(np.uint64(stored_at[line + j]), last)]))
                store_past_caches(out, line + j, level)
        for i in range(whole, end):
            level = np.int32(np.int8(levels[min(np.uint64(stored_at[i]), last)]))
            store_past_caches(out, i, level)
    elif stored_at.size:
        for i in range(first, end):
            out[i] = np.int32(np.int8(levels[min(np.uint64(stored_at[i]), last)]))
    else:
        for i in range(first, end):
            out[i] = np.int32(np.int8(levels[min(i, last)]))


@kernel
def _levels_to_ids(out, levels, deep_levels, stored_at, first, end):
    """Fill out[first:end] with levels of any number."""
    last = np.uint64(levels.size - 1)
    for i in range(np.uint64(first), np.uint64(end)):
        v = min(np.uint64(stored_at[i]) if stored_at.size else i, last)
        # One more than UNREACHED is 0 in a byte: which were reached cannot be guessed.
        level = np.int32(np.uint8(levels[v] + np.uint8(1))) - np.int32(1)
        if level == DEEP:
            level = deep_levels[v]  # which may be ``out``
        out[i] = level


@kernel
def plan_finish(state, num_vertices):
    """Decide how all threads finish, and so what is clear for the next search.

    Those that were reached all lie in the queue, each once, unless bottom-up steps followed each
    other or parts were expanded.
    """
    control = state.control
    control[words.NUM_FOUND] += control[words.FRONTIER_SIZE]
    found = control[words.NUM_FOUND]
    is_queued = control[words.FORM] != IN_LOCAL_QUEUES or control[words.FRONTIER_SIZE] == 0
    from_queue = (
        is_queued
        and control[words.QUEUE_END] == found
        and control[words.FIRST_COUNTED] == 0
        and control[words.DEPTH] < DEEP
        and control[words.FAILED] == 0
        and found << _FEW_SHIFT <= num_vertices
    )
    control[words.FROM_QUEUE] = np.int64(from_queue)
    control[words.LEVELS_CLEAR] = np.int64(from_queue)
    if state.parents.size != 0:
        control[words.PARENTS_CLEAR] = np.int64(from_queue)


@inlined
def _fill(out, first, end):
    """Fill out[first:end] with -1."""
    first, end = np.uint64(first), np.uint64(end)
    if out.size > _LARGE:
        for i in range(first, end):
            store_past_caches(out, i, out.dtype.type(-1))
    else:
        for i in range(first, end):
            out[i] = -1


@inlined
def _vertex_to_ids(state, to_ids, results, v):
    """Fill in the results of a vertex, and clear what the search noted for it."""
    levels, parents, control = state.levels, state.parents, state.control
    order, ids, first_id = to_ids.order, to_ids.ids, to_ids.first_id
    position = np.uint64(order[v]) if order.size else np.uint64(v)
    results.levels[position] = levels[v]
    levels[v] = UNREACHED
    state.bitmaps[control[words.VISITED_BITMAP], v >> 6] = ZERO
    if results.parents.size:
        parent = np.uint64(order[parents[v]]) if order.size else np.uint64(parents[v])
        # One type for both: of unsigned and signed numba makes a float, which rounds large ids.
        named = np.int64(ids[parent]) if ids.size else np.int64(parent) + first_id
        results.parents[position] = named
        parents[v] = NO_HEAD


@kernel
def _finish_from_queue(state, to_ids, results, degrees, thread):
    """Do one thread's part where few vertices were reached; for others, only results are filled."""
    control, out, out_parents = state.control, results.levels, results.parents
    if thread != 0 and (control[ALONE] != 0 or out.size <= SMALL_RESULTS):
        return
    chunk = chunk_for(out.size, _LEAST_CHUNK, _MOST_CHUNK)
    while True:
        first, end = take_chunk(control, words.ID_CURSOR, chunk, out.size)
        if first == end:
            break
        _fill(out, first, end)
        if out_parents.size:
            _fill(out_parents, first, end)
        atomic_add(control, words.BROUGHT, end - first)
    wait_for(control, words.BROUGHT, out.size)
    size = control[words.QUEUE_END]
    chunk = chunk_for(size, _LEAST_QUEUED, _MOST_CHUNK)
    while True:
        first, end = take_chunk(control, words.WORD_CURSOR, chunk, size)
        if first == end:
            break
        edges = np.int64(0)
        for v in state.queue[first:end]:
            edges += np.int64(degrees[v])
            _vertex_to_ids(state, to_ids, results, v)
        atomic_add(control, words.SUMMED_EDGES, edges)
        atomic_add(control, words.WORDS_SUMMED, end - first)
    if thread == 0:
        wait_for(control, words.WORDS_SUMMED, size)


@kernel
def finish_all(state, to_ids, results, degrees, thread):
    """Do one thread's part: sum up degrees, then fill the results by position.

    The leader waits until all is done. Levels and parents are of fewer vertices than results where
    the last ones have no edges.
    """
    control, levels, deep_levels, parents = (
        state.control,
        state.levels,
        state.deep_levels,
        state.parents,
    )
    stored_at, out, out_parents, counts = (
        to_ids.stored_at,
        results.levels,
        results.parents,
        results.counts,
    )
    if thread != 0 and control[ALONE] != 0:
        return
    _sum_degrees(control, levels, degrees)
    if out_parents.size and to_ids.order.size:
        _place_parents(control, parents, to_ids.order)
    first_counted = control[words.FIRST_COUNTED]
    chunk = chunk_for(out.size, _LEAST_CHUNK, _MOST_CHUNK)
    while True:
        first, end = take_chunk(control, words.ID_CURSOR, chunk, out.size)
        if first == end:
            break
        if control[words.DEPTH] < _FEW_LEVELS:
            _few_levels_to_ids(out, levels, stored_at, first, end)
        else:
            _levels_to_ids(out, levels, deep_levels, stored_at, first, end)
        if first_counted != 0 and control[words.DEPTH] + 1 < counts.shape[1]:
            own = counts[thread]
            for i in range(first, end):
                if out[i] >= first_counted:
                    own[out[i]] += np.uint32(1)
        if out_parents.size:
            _parents_to_ids(out_parents, parents, to_ids, first, end)
        atomic_add(control, words.BROUGHT, end - first)
    if thread == 0:
        wait_for(control, words.BROUGHT, out.size)
        wait_for(control, words.WORDS_SUMMED, (degrees.size + 63) >> 6)


@kernel
def finish(state, to_ids, results, degrees, thread):
    """Do one thread's part of the way that was planned; the leader waits until all is done."""
    if state.control[words.FROM_QUEUE]:
        _finish_from_queue(state, to_ids, results, degrees, thread)
    else:
        finish_all(state, to_ids, results, degrees, thread)

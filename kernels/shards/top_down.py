"""Top-down on shards: rows of the frontier give their neighbours, whatever shard these belong to.

Into marks of all vertices, with all threads, or into a list, if there are few. What is visited
already is among them, unless this process holds all shards: only the owner of a vertex knows.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import apart, atomic_add, inlined, kernel, trailing_zeros
from oocbfs.kernels.bitmaps import keep_unset, mark_levels, set_bits, set_shared_bits
from oocbfs.kernels.constants import ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.gather import BATCH, FULL, NOT_BEGUN, gather_row_segment, gather_rows
from oocbfs.kernels.region import HUB_CURSOR, chunk_for, take_chunk
from oocbfs.kernels.rows import num_segments, rows_at
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.state import HUB_SEGMENTS, MAX_HUBS
from oocbfs.kernels.shards.take import words_below

_LEAST_WORDS, _MOST_WORDS = 4, 64
_HUB_CHUNK = 4


@kernel
def mark(found, ids, count):
    """Set the bits of ids, which other threads may do, too; most are set already."""
    set_shared_bits(found, ids, keep_unset(found, ids, ids, count, False))


@inlined
def _tells_parents(state):
    """Whether parents are wanted, and all shards are held: only then it is known what is new."""
    return state.parents.size != 0 and state.stride == state.num_shards


@inlined
def _mark_found(state, thread, shard, ids, owners, count):
    """Mark ids that are neither marked nor known; their parents are the owners, if wanted."""
    if state.marks.shape[0] == 1 and state.ids.shape[0] > 1 and not _tells_parents(state):
        mark(state.marks[0], ids, count)
        return
    own, known, parents = state.marks[thread % state.marks.shape[0]], state.known, state.parents
    tells_parents = _tells_parents(state)
    unseen = keep_unset(own, ids, owners, count, tells_parents)
    unseen = keep_unset(known, ids, owners, unseen, tells_parents)
    if state.marks.shape[0] == state.ids.shape[0]:
        set_bits(own, ids, unseen)
    else:
        set_shared_bits(own, ids, unseen)
    if _tells_parents(state):
        number = state.shards[shard, words.NUMBER]
        for i in range(unseen):
            u = np.int64(owners[i])
            parents[ids[i]] = ((u >> 6) * state.num_shards + number << 6) | (u & 63)


@inlined
def _queue_words(rows, state, shard, queue, first, end):
    """Queue the rows of frontier words, but for long ones, which wait; return how many."""
    control, degrees = state.control, rows.degrees
    first_place = state.shards[shard, words.PLACE]
    size = np.int64(0)
    for w in range(first, end):
        bits = state.own[w * state.stride + first_place]
        while bits != ZERO:
            u = w * 64 + trailing_zeros(bits)
            bits &= bits - ONE
            is_long = np.int64(degrees[u]) * 5 > HUB_SEGMENTS * SEGMENT_BYTES
            if is_long and num_segments(rows, u) > HUB_SEGMENTS:
                number = atomic_add(control, words.NUM_HUBS, 1)
                if number < MAX_HUBS:
                    state.hubs[number, 0] = shard
                    state.hubs[number, 1] = u
                    continue
            queue[size] = u
            size += 1
    return size


@apart
def top_down(rows, state, shard, thread):
    """Take chunks of a shard's frontier words until none are left; mark the neighbours of rows."""
    control, counts = state.control, state.counts[shard]
    ids, owners, queue = state.ids[thread, :BATCH], state.ids[thread, BATCH:], state.queues[thread]
    num_words = words_below(state, shard, control[words.USEFUL])
    chunk = chunk_for(num_words, _LEAST_WORDS, _MOST_WORDS)
    with_parents = _tells_parents(state)
    edges = np.int64(0)
    num_bytes = np.int64(0)
    count = np.int64(0)
    while control[words.FAILED] == 0:
        first, end = take_chunk(counts, words.WORD_CURSOR, chunk, num_words)
        if first == end:
            break
        size = _queue_words(rows, state, shard, queue, first, end)
        q, offset = np.int64(0), np.int64(NOT_BEGUN)
        while q < size:
            q, offset, count, more_bytes = gather_rows(
                rows, queue, q, offset, size, ids, owners, count, with_parents
            )
            num_bytes += more_bytes
            if count < 0:
                control[words.FAILED] = shard + 1
                count = np.int64(0)
                break
            if count >= FULL:
                _mark_found(state, thread, shard, ids, owners, count)
                edges += count
                count = np.int64(0)
    _mark_found(state, thread, shard, ids, owners, count)
    atomic_add(counts, words.EDGES, edges + count)
    atomic_add(counts, words.TAIL_BYTES, num_bytes)


@apart
def top_down_hubs(state, thread):
    """Take segments of the long rows that wait until none are left; mark their ids."""
    control, hubs = state.control, state.hubs
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    num_hubs = min(control[words.NUM_HUBS], MAX_HUBS)
    total = np.int64(0)
    for i in range(num_hubs):
        total += num_segments(rows_at(state.shards[hubs[i, 0], words.OUT]), hubs[i, 1])
    hub, before = np.int64(0), np.int64(0)
    while control[words.FAILED] == 0:
        first, end = take_chunk(control, HUB_CURSOR, _HUB_CHUNK, total)
        if first == end:
            break
        for segment in range(first, end):
            while True:
                shard, u = hubs[hub, 0], hubs[hub, 1]
                rows = rows_at(state.shards[shard, words.OUT])
                size = num_segments(rows, u)
                if segment < before + size:
                    break
                before += size
                hub += 1
            count, num_bytes = gather_row_segment(rows, u, segment - before, ids)
            if count < 0:
                control[words.FAILED] = shard + 1
                break
            if _tells_parents(state):
                for i in range(count):
                    owners[i] = u
            _mark_found(state, thread, shard, ids, owners, count)
            atomic_add(state.counts[shard], words.EDGES, count)
            atomic_add(state.counts[shard], words.TAIL_BYTES, num_bytes)


@inlined
def _visit(state, v, parent):
    """Visit a vertex of any shard, all of which are held; return its degree, or -1 if it was."""
    w, bit = np.int64(v >> 6), ONE << np.uint64(v & 63)
    if state.visited[w] & bit != ZERO:
        return np.int64(-1)
    state.visited[w] |= bit
    state.found[w] |= bit
    mark_levels(state.levels, state.deep_levels, state.control[words.LEVEL], w * 64, bit)
    if state.parents.size != 0:
        state.parents[v] = parent
    row = (w // state.num_shards << 6) | np.int64(v & 63)
    return np.int64(rows_at(state.shards[w % state.num_shards, words.OUT]).degrees[row])


@apart
def small(rows, state, shard, thread):
    """Expand the few rows of a shard's frontier and visit what they lead to, by one thread."""
    control, counts, ids = state.control, state.counts[shard], state.ids[thread, :BATCH]
    number, first_place = state.shards[shard, words.NUMBER], state.shards[shard, words.PLACE]
    for w in range(words_below(state, shard, control[words.USEFUL])):
        bits = state.own[w * state.stride + first_place]
        while bits != ZERO:
            b = trailing_zeros(bits)
            bits &= bits - ONE
            u = w * 64 + b
            parent = (w * state.num_shards + number << 6) | b
            for segment in range(max(np.int64(1), num_segments(rows, u))):
                count, num_bytes = gather_row_segment(rows, u, segment, ids)
                if count < 0:
                    control[words.FAILED] = shard + 1
                    return
                counts[words.EDGES] += count
                counts[words.TAIL_BYTES] += num_bytes
                for i in range(count):
                    degree = _visit(state, ids[i], parent)
                    counts[words.FOUND] += np.int64(degree >= 0)
                    counts[words.FRONTIER_EDGES] += max(np.int64(0), degree)


@apart
def top_down_ids(rows, state, thread):
    """List the neighbours of the few rows hubs[:NUM_HUBS], and whose they are."""
    control, counts, ids = state.control, state.counts[0], state.ids[thread]
    size = np.int64(0)
    num_bytes = np.int64(0)
    for i in range(control[words.NUM_HUBS]):
        u = state.hubs[i, 1]
        for number in range(max(np.int64(1), num_segments(rows, u))):
            count, more_bytes = gather_row_segment(rows, u, number, ids)
            if count < 0 or size + count > state.list_ids.size:
                control[words.FAILED] = 1
                return
            for k in range(count):
                state.list_ids[size + k] = ids[k]
                state.list_owners[size + k] = u
            size += count
            num_bytes += more_bytes
    counts[words.EDGES] = size
    counts[words.TAIL_BYTES] = num_bytes

"""Top-down on a part: rows of the frontier give their neighbours, whatever part these belong to.

Into a bitmap of all vertices, with all threads, or into a list, if there are few. What is visited
already is among them: only the owner of a vertex knows.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import apart, atomic_add, atomic_or, inlined, kernel, trailing_zeros
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.gather import BATCH, FULL, NOT_BEGUN, gather_row_segment, gather_rows
from oocbfs.kernels.region import CURSOR, HUB_CURSOR, ONE, ZERO, chunk_for, take_chunk
from oocbfs.kernels.rows import num_segments
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.state import HUB_SEGMENTS, MAX_HUBS

_LEAST_WORDS, _MOST_WORDS = 4, 64
_HUB_CHUNK = 4


@kernel
def mark(found, ids, count):
    """Set the bits of ids, which other threads may do, too; most are set already."""
    unseen = 0
    for i in range(count):
        v = ids[i]
        ids[unseen] = v
        unseen += np.int64(~found[v >> 6] >> np.uint64(v & 63) & ONE)
    for i in range(unseen):
        v = ids[i]
        atomic_or(found, np.int64(v >> 6), ONE << np.uint64(v & 63))


@inlined
def _queue_words(rows, state, queue, first, end):
    """Queue the rows of frontier words; long ones wait for DOWN_HUBS. Gives how many are queued."""
    control, degrees = state.control, rows.degrees
    size = np.int64(0)
    for w in range(first, end):
        bits = state.frontier[w]
        while bits != ZERO:
            u = w * 64 + trailing_zeros(bits)
            bits &= bits - ONE
            is_long = np.int64(degrees[u]) * 5 > HUB_SEGMENTS * SEGMENT_BYTES
            if is_long and num_segments(rows, u) > HUB_SEGMENTS:
                number = atomic_add(control, words.NUM_HUBS, 1)
                if number < MAX_HUBS:
                    state.hubs[number] = u
                    continue
            queue[size] = u
            size += 1
    return size


@apart
def down(rows, state, thread):
    """Take chunks of frontier words until none are left; mark the neighbours of their rows."""
    control, found = state.control, state.found
    ids, owners, queue = state.ids[thread, :BATCH], state.ids[thread, BATCH:], state.queues[thread]
    num_words = (rows.heads.size + 63) >> 6
    chunk = chunk_for(num_words, _LEAST_WORDS, _MOST_WORDS)
    edges = np.int64(0)
    num_bytes = np.int64(0)
    count = np.int64(0)
    while control[words.FAILED] == 0:
        first, end = take_chunk(control, CURSOR, chunk, num_words)
        if first == end:
            break
        size = _queue_words(rows, state, queue, first, end)
        q, offset = np.int64(0), np.int64(NOT_BEGUN)
        while q < size:
            q, offset, count, more_bytes = gather_rows(
                rows, queue, q, offset, size, ids, owners, count, False
            )
            num_bytes += more_bytes
            if count < 0:
                control[words.FAILED] = 1
                count = np.int64(0)
                break
            if count >= FULL:
                mark(found, ids, count)
                edges += count
                count = np.int64(0)
    mark(found, ids, count)
    atomic_add(control, words.EDGES, edges + count)
    atomic_add(control, words.TAIL_BYTES, num_bytes)


@apart
def down_hubs(rows, state, thread):
    """Take segments of the long rows that wait until none are left; mark their ids."""
    control, hubs, ids = state.control, state.hubs, state.ids[thread]
    num_hubs = min(control[words.NUM_HUBS], MAX_HUBS)
    total = np.int64(0)
    for i in range(num_hubs):
        total += num_segments(rows, hubs[i])
    hub, before = np.int64(0), np.int64(0)
    edges = np.int64(0)
    num_bytes = np.int64(0)
    while control[words.FAILED] == 0:
        first, end = take_chunk(control, HUB_CURSOR, _HUB_CHUNK, total)
        if first == end:
            break
        for segment in range(first, end):
            while segment >= before + num_segments(rows, hubs[hub]):
                before += num_segments(rows, hubs[hub])
                hub += 1
            count, more_bytes = gather_row_segment(rows, hubs[hub], segment - before, ids)
            if count < 0:
                control[words.FAILED] = 1
                break
            mark(state.found, ids, count)
            edges += count
            num_bytes += more_bytes
    atomic_add(control, words.EDGES, edges)
    atomic_add(control, words.TAIL_BYTES, num_bytes)


@apart
def down_ids(rows, state, thread):
    """List the neighbours of the few rows hubs[:NUM_HUBS], and whose they are."""
    control, ids = state.control, state.ids[thread]
    size = np.int64(0)
    num_bytes = np.int64(0)
    for i in range(control[words.NUM_HUBS]):
        u = state.hubs[i]
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
    control[words.EDGES] = size
    control[words.TAIL_BYTES] = num_bytes

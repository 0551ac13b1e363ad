"""Small levels: the leader alone expands them, one after the other.

A path has a million levels of one vertex each, so a level must cost nothing but its rows: what a
row reaches is looked up in the levels and gets its own there, without bitmaps, atomics or other
threads. ``parts.py`` does the same for middling levels, each thread on its part of the frontier.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel, nanoseconds
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.rows import BATCH, NOT_BEGUN, gather_rows


@inlined
def _visit(state, out, out_end, ids, owners, count, level):
    """Level the ids that have no level yet and append them to out; give its new end."""
    levels, parents = state.levels, state.parents
    if parents.size == 0:
        for i in range(count):
            v = ids[i]
            old = levels[v]
            levels[v] = level if old < 0 else old
            out[out_end] = v
            out_end += np.int64(old < 0)
    else:
        for i in range(count):
            v = ids[i]
            if levels[v] < 0:
                levels[v] = level
                parents[v] = owners[i]
                out[out_end] = v
                out_end += 1
    return out_end


@inlined
def expand_by_levels(rows, state, thread, begin, end, out, out_end, level):
    """Expand queue[begin:end]; append what is found to out[:out_end].

    Gives the new end of out (-1 if a row is damaged), the edges, and the bytes.
    """
    ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
    with_parents = state.parents.size != 0
    edges = np.int64(0)
    num_bytes = np.int64(0)
    q = begin
    offset = np.int64(NOT_BEGUN)
    while q < end:
        q, offset, count, more_bytes = gather_rows(
            rows, state.queue, q, offset, end, ids, owners, np.int64(0), with_parents
        )
        if count < 0 or out_end + count > out.size:  # a wrong id, or more than the degrees promised
            return np.int64(-1), edges, num_bytes
        out_end = _visit(state, out, out_end, ids, owners, count, level)
        edges += count
        num_bytes += more_bytes
    return out_end, edges, num_bytes


@kernel
def small_levels(rows, state, options, started, pause):
    """Expand the queued frontier on the leading thread, and those that follow while they are tiny.

    Gives the time at which the last of these levels ended.
    """
    control, queue = state.control, state.queue
    begin, end = control[words.FRONTIER_BEGIN], control[words.FRONTIER_END]
    depth = control[words.DEPTH]
    while True:
        next_end, edges, num_bytes = expand_by_levels(
            rows, state, 0, begin, end, queue, end, np.int32(depth + 1)
        )
        if next_end < 0:
            control[words.FAILED] = 1
            break
        ended = nanoseconds(options.clock)
        record_level(state.records, depth, False, end - begin, edges, 0, num_bytes, ended - started)
        control[words.UNEXPLORED_EDGES] -= edges
        started = ended
        begin, end = end, next_end
        depth += 1
        if (
            begin == end
            or (end - begin) * rows.max_degree > options.tiny_edges
            or depth == options.max_depth
            or started > pause
            or (options.target >= 0 and state.levels[options.target] >= 0)
        ):
            break
    control[words.FRONTIER_BEGIN] = begin
    control[words.FRONTIER_END] = end
    control[words.QUEUE_END] = end
    control[words.FRONTIER_SIZE] = end - begin
    control[words.DEPTH] = depth
    return started


@inlined
def record_level(records, depth, upward, frontier, edges, heads, tail_bytes, duration):
    """Record what a level did; levels beyond the last record are summed up there."""
    record = records[min(depth, records.size - 1)]
    record.direction = np.int64(upward)
    record.frontier += frontier
    record.edges += edges
    record.heads += heads
    record.tail_bytes += tail_bytes
    record.seconds += duration * 1e-9

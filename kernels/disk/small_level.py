"""Small levels of a search whose tails stay on disk: one thread, many levels in one call.

Long graphs have thousands of levels, and the pages that one level needs are mostly those of the
levels just before. So small frontiers read through a cache of blocks, each of which has one slot
where it may lie. What a level lacks is read beforehand: a few blocks by the thread itself, many by
all threads, for which it returns to the driver. A level that needs more blocks than the cache can
hold is not small.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, kernel, nanoseconds
from oocbfs.kernels.constants import NO_HEAD, ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import PAGE_BYTES, read_pages
from oocbfs.kernels.disk.stream import BUFFER_BYTES, NO_ROWS, add_row
from oocbfs.kernels.gather import BATCH, gather_segment
from oocbfs.kernels.recording import record_level
from oocbfs.kernels.region import SLICE_NANOSECONDS
from oocbfs.kernels.rows import row_begin

# How small levels end: the search is over, the time slice is, blocks are to be read by all
# threads, or the frontier is too large and lies in its bitmap.
FINISHED, PAUSED, FILL, LARGE = range(4)

BLOCK_BYTES = 1 << 14
# The largest frontier that one thread expands, in vertices and in the bytes of their rows.
SMALL_VERTICES = 1 << 15
SMALL_BYTES = 1 << 18
# A vertex that such a frontier finds takes a byte of a row, or is a head.
QUEUE_SIZE = SMALL_VERTICES + SMALL_BYTES
# Missing blocks that the thread reads itself.
_FEW_BLOCKS = 4


@kernel
def _load(disk, state, block, thread):
    """Read one block into its slot; tell whether that worked."""
    begin = block * BLOCK_BYTES
    pages = (min(BLOCK_BYTES, disk.tail_bytes - begin) + PAGE_BYTES - 1) // PAGE_BYTES
    slot = block % state.tags.size
    count = pages * PAGE_BYTES
    cache, scratch = state.cache, state.buffers[thread, BUFFER_BYTES:]
    return read_pages(cache, slot * BLOCK_BYTES, count, disk, begin, state.control, scratch)


@kernel
def fill(disk, state, thread):
    """Read missing blocks until none are left."""
    control = state.control
    while control[words.FAILED] == 0:
        i = atomic_add(control, words.CURSOR, 1)
        if i >= control[words.NUM_MISSING]:
            return
        _load(disk, state, state.missing[i], thread)


@kernel
def _reserve(rows, state, frontier):
    """Assign slots to the blocks that the frontier's rows need; list those that must be read.

    Of two blocks that share a slot, the second stays out: it is read when it is the turn of its
    row. Returns how many there are, or -1 if the level needs more than half of the cache: little of
    it would be there for the next one.
    """
    tags, marks, missing = state.tags, state.marks, state.missing
    level = np.int32(state.control[words.DEPTH] + 1)
    count = 0
    wanted = 0
    for u in frontier:
        begin, end = row_begin(rows, np.int64(u)), row_begin(rows, np.int64(u) + 1)
        if begin == end:
            continue
        for block in range(begin // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            slot = block % tags.size
            wanted += np.int64(marks[slot] != level)
            marks[slot] = level
            if wanted > missing.size:
                for i in range(count):
                    tags[missing[i] % tags.size] = -1
                return np.int64(-1)
            if tags[slot] == block or tags[slot] < -1:
                continue
            tags[slot] = -2 - block
            missing[count] = block
            count += 1
    for i in range(count):
        tags[missing[i] % tags.size] = missing[i]
    return count


@kernel
def _find_row(disk, state, begin, end):
    """Return an array that holds a row's bytes, until the next call, and where they begin in it."""
    tags, cache = state.tags, state.cache
    first = begin // BLOCK_BYTES
    last = (end - 1) // BLOCK_BYTES
    copied = begin
    for block in range(first, last + 1):
        slot = block % tags.size
        if tags[slot] != block:
            if not _load(disk, state, block, 0):
                return cache, np.int64(0)
            tags[slot] = block
        shift = slot * BLOCK_BYTES - block * BLOCK_BYTES
        if first == last:
            return cache, begin + shift
        stop = min(end, (block + 1) * BLOCK_BYTES)
        for i in range(copied, stop):
            state.row[i - begin] = cache[i + shift]
        copied = stop
    return state.row, np.int64(0)


@kernel
def _visit(rows, state, ids, count, owner, level):
    """Visit ids that are not visited yet, and append them to the next frontier."""
    control, levels, parents = state.control, state.levels, state.parents
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    next_frontier = state.queue[1 - control[words.QUEUE]]
    size = control[words.FRONTIER_SIZE]
    num_bytes = control[words.ROW_BYTES]
    for i in range(count):
        v = np.int64(ids[i])
        bit = ONE << np.uint64(v & 63)
        if visited[v >> 6] & bit == ZERO:
            visited[v >> 6] |= bit
            levels[v] = level
            if parents.size != 0:
                parents[v] = owner
            next_frontier[size] = v
            size += 1
            num_bytes += row_begin(rows, v + 1) - row_begin(rows, v)
    control[words.FRONTIER_SIZE] = size
    control[words.ROW_BYTES] = num_bytes


@kernel
def _expand(rows, disk, state, frontier, level):
    """Visit the neighbours of the frontier; return edges and bytes of its tails."""
    control = state.control
    ids = state.ids[0, :BATCH]
    n = rows.heads.size
    edges = 0
    num_bytes = 0
    control[words.FRONTIER_SIZE] = 0
    control[words.ROW_BYTES] = 0
    for i in range(frontier.size):
        u = np.int64(frontier[i])
        if rows.heads[u] == NO_HEAD:
            continue
        ids[0] = rows.heads[u]
        count = np.int64(1)
        begin, end = row_begin(rows, u), row_begin(rows, u + 1)
        num_bytes += end - begin
        row, offset = (
            _find_row(disk, state, begin, end) if begin < end else (state.row, np.int64(0))
        )
        if control[words.FAILED] != 0:
            break
        row_end = offset + end - begin
        while True:
            segment_end = min(offset + SEGMENT_BYTES, row_end)
            count = gather_segment(ids, count, row, offset, segment_end, n)
            if count < 0:
                control[words.FAILED] = words.MALFORMED
                return edges, num_bytes
            _visit(rows, state, ids, count, u, level)
            edges += count
            count = np.int64(0)
            offset = segment_end
            if offset >= row_end:
                break
    return edges, num_bytes


@kernel
def _to_bitmap(rows, state, frontier):
    """Bring the frontier into its bitmap, and count what reading its rows takes, one by one."""
    control = state.control
    bits = state.bitmaps[control[words.FRONTIER_BITMAP]]
    bits[:] = ZERO
    pages = 0
    reads = 0
    for i in range(frontier.size):
        u = np.int64(frontier[i])
        bits[u >> 6] |= ONE << np.uint64(u & 63)
        cost = add_row(NO_ROWS, row_begin(rows, u), row_begin(rows, u + 1))
        pages += cost.pages
        reads += cost.reads
    control[words.FRONTIER_PAGES] = pages
    control[words.FRONTIER_READS] = reads


@kernel
def _prepare(rows, disk, state, frontier):
    """Make the cache hold the frontier's rows; FINISHED if it does, else what to do first."""
    control = state.control
    if control[words.FRONTIER_SIZE] > SMALL_VERTICES or control[words.ROW_BYTES] > SMALL_BYTES:
        return LARGE
    num_missing = _reserve(rows, state, frontier)
    if num_missing < 0:
        return LARGE
    control[words.NUM_MISSING] = num_missing
    if num_missing > _FEW_BLOCKS:
        control[words.FILLED] = 1
        return FILL
    for i in range(num_missing):
        _load(disk, state, state.missing[i], 0)
    return FINISHED


@kernel
def small_levels(rows, disk, state, max_depth, target, clock):
    """Run levels while they are small; say why it stopped."""
    control = state.control
    started = nanoseconds(clock)
    pause = started + SLICE_NANOSECONDS
    while control[words.FRONTIER_SIZE] != 0 and control[words.DEPTH] != max_depth:
        if target >= 0 and state.levels[target] >= 0:
            break
        if started > pause:
            return PAUSED
        frontier = state.queue[
            control[words.QUEUE], : min(control[words.FRONTIER_SIZE], QUEUE_SIZE)
        ]
        if control[words.FILLED] == 0:
            todo = _prepare(rows, disk, state, frontier)
            if todo == LARGE:
                _to_bitmap(rows, state, frontier)
            if todo != FINISHED:
                return todo
        control[words.FILLED] = 0
        edges, num_bytes = _expand(rows, disk, state, frontier, np.int32(control[words.DEPTH] + 1))
        if control[words.FAILED] != 0:
            break
        control[words.QUEUE] = 1 - control[words.QUEUE]
        ended = nanoseconds(clock)
        record_level(
            state.records,
            control[words.DEPTH],
            False,
            frontier.size,
            edges,
            0,
            num_bytes,
            control[words.DISK_BYTES],
            ended - started,
        )
        control[words.DEPTH] += 1
        control[words.DISK_BYTES] = 0
        started = ended
    return FINISHED

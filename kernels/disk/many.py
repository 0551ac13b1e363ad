"""Levels of a traversal from many sources at once whose tails stay on disk.

Every vertex has two words with a bit for each source, as wide as memory allows: whether it was *seen*,
and a *mark*. The frontier is seen and marked, the next frontier is marked and not yet seen. (Words of
sources, seen and next are those of MS-BFS: Then et al., The More the Merrier, VLDB 2014.) The heads pass
answers what it can, for all sources. Then one stream reads every row once that any source wants:
sources that push, because it belongs to their frontier, and sources that pull, because its vertex has
not seen them. Sources that do not move in a step keep their frontier. Only vertices up to the last that
has an edge have words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, atomic_or, inlined, kernel, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.stream import NO_ROWS, add_row, make_stream, part_in_buffer
from oocbfs.kernels.region import ONE, ZERO, take_chunk
from oocbfs.kernels.rows import gather_segment, row_begin, take_varint

# Where a vertex's words are in its pair.
SEEN, MARK = range(2)
# Rows of DiskManyState.masks: sources that move in this step, and those of them that push or pull.
MOVING, PUSH, PULL = range(3)
# Sums of DiskManyState.sums: vertices of the next frontier, and pages and reads that their rows take.
FOUND, PAGES, READS = range(3)
HEADS_PASS, VISIT_HEADS, PRICE, STREAM, SWEEP = range(5)
# Vertices that a thread takes at a time.
_CHUNK = 4096


class DiskManyState(NamedTuple):
    """The arrays that the threads share.

    pairs
        Seen and mark of each vertex that has edges, side by side.
    levels
        One row a source, -1 where not reached; no rows if nobody asked for them.
    buffers, ids, reach
        Scratch, one row a thread: pages of tails, decoded ids, and where the rows counted so far end.
    sums
        By thread, kind of sum and source.
    depths
        The level that each source finds next.
    """

    pairs: NDArray[np.unsignedinteger]
    levels: NDArray[np.int8]
    buffers: NDArray[np.uint8]
    ids: NDArray[np.uint32]
    reach: NDArray[np.int64]
    sums: NDArray[np.int64]
    masks: NDArray[np.uint64]
    depths: NDArray[np.int64]
    control: NDArray[np.int64]


@inlined
def _seen_and_mark(pairs, v):
    """Give both words of a vertex."""
    return np.uint64(pairs[2 * v + SEEN]), np.uint64(pairs[2 * v + MARK])


@inlined
def _frontier(pairs, v):
    """Tell in which sources' frontier a vertex is."""
    seen, mark = _seen_and_mark(pairs, v)
    return seen & mark


@inlined
def _mark(pairs, v, sources):
    """Put a vertex into the next frontier of the sources that have not seen it."""
    seen, mark = _seen_and_mark(pairs, v)
    sources &= ~seen
    if sources & ~mark != ZERO:
        atomic_or(pairs, 2 * v + MARK, sources)


@kernel
def _heads_pass(rows, state):
    """Answer by heads what they can."""
    control, heads, pairs = state.control, rows.heads, state.pairs
    moving = state.masks[MOVING]
    size = pairs.size // 2
    while True:
        first, end = take_chunk(control, words.CURSOR, _CHUNK, size)
        if first == end:
            return
        for v in range(first, end):
            wanted = moving & ~np.uint64(pairs[2 * v + SEEN])
            if wanted == ZERO or heads[v] == NO_HEAD:
                continue
            pairs[2 * v + MARK] |= _frontier(pairs, np.int64(heads[v])) & wanted


@kernel
def _visit_heads(rows, state):
    """Push along the heads of the frontier."""
    control, heads, pairs = state.control, rows.heads, state.pairs
    pushing = state.masks[PUSH]
    size = pairs.size // 2
    while True:
        first, end = take_chunk(control, words.CURSOR, _CHUNK, size)
        if first == end:
            return
        for v in range(first, end):
            sources = _frontier(pairs, v) & pushing
            if sources != ZERO and heads[v] != NO_HEAD:
                _mark(pairs, np.int64(heads[v]), sources)


@inlined
def _find_wanted(state):
    """Give the sources that push, and those that pull."""
    return state.masks[PUSH], state.masks[PULL]


@inlined
def _who_wants(state, wanted, v):
    """Give the sources that push along a row, and those that still look for its vertex."""
    pushing, pulling = wanted
    seen, mark = _seen_and_mark(state.pairs, v)
    return seen & mark & pushing, pulling & ~(seen | mark)


@inlined
def _next_wanted(rows, state, wanted, v, end):
    """Find the next vertex from v on whose row a source wants."""
    while v < min(end, state.pairs.size // 2):
        pushed, pulled = _who_wants(state, wanted, v)
        if pushed | pulled != ZERO:
            return v
        v += 1
    return end


@kernel
def _price(rows, state):
    """Count what reading all wanted rows takes."""
    control, wanted = state.control, _find_wanted(state)
    size = state.pairs.size // 2
    pages = 0
    reads = 0
    while True:
        first, end = take_chunk(control, words.CURSOR, _CHUNK, size)
        if first == end:
            break
        reach = np.int64(NO_ROWS)
        v = _next_wanted(rows, state, wanted, first, end)
        while v < end:
            row, row_end = row_begin(rows, v), row_begin(rows, v + 1)
            reach, pages, reads = add_row(reach, pages, reads, row, row_end)
            v = _next_wanted(rows, state, wanted, v + 1, end)
    atomic_add(control, words.FRONTIER_PAGES, pages)
    atomic_add(control, words.FRONTIER_READS, reads)


@kernel
def _push_part(pairs, buffer, ids, begin, end, sources):
    """Push along a part of a row; tell whether it is well formed."""
    while begin < end:
        segment_end = min(begin + SEGMENT_BYTES, end)
        count = gather_segment(ids, 0, buffer, begin, segment_end, pairs.size // 2)
        if count < 0:
            return False
        for i in range(count):
            _mark(pairs, np.int64(ids[i]), sources)
        begin = segment_end
    return True


@kernel
def _pull_part(pairs, buffer, offset, end, u, wanted):
    """Look for sources among the neighbours in a part of a row; tell whether it is well formed."""
    got = ZERO
    while offset < end and wanted & ~got != ZERO:
        segment_end = min(offset + SEGMENT_BYTES, end)
        v = np.int64(-1)
        while offset < segment_end:
            delta, offset = take_varint(buffer, offset)
            v += delta + 1
            if v >= pairs.size // 2:
                return False
            got |= _frontier(pairs, v)
            if wanted & ~got == ZERO:
                break
        if offset > segment_end:
            return False
        offset = segment_end
    _mark(pairs, u, got & wanted)
    return True


@kernel
def _use_extent(rows, state, wanted, extent, buffer, thread):
    """Push and pull along the rows of one read; give no edges and their bytes, or -1.

    What is no longer wanted is skipped. Nothing becomes wanted that was not read.
    """
    pairs = state.pairs
    num_bytes = 0
    v = _next_wanted(rows, state, wanted, extent.first, extent.end)
    while v < extent.end:
        begin, end = part_in_buffer(rows, v, extent)
        if begin < end:
            pushed, pulled = _who_wants(state, wanted, v)
            num_bytes += end - begin
            fine = True
            if pushed != ZERO:
                fine = _push_part(pairs, buffer, state.ids[thread], begin, end, pushed)
            if pulled != ZERO and fine:
                fine = _pull_part(pairs, buffer, begin, end, v, pulled)
            if not fine:
                return np.int64(-1), num_bytes
        v = _next_wanted(rows, state, wanted, v + 1, extent.end)
    return np.int64(0), num_bytes


_stream = make_stream(_find_wanted, _next_wanted, _use_extent)


@kernel
def _sweep(rows, state, thread):
    """Make the next frontier the frontier; count it by source, and price its rows."""
    control, levels, depths, pairs = state.control, state.levels, state.depths, state.pairs
    sums, reach, moving = state.sums[thread], state.reach[thread], state.masks[MOVING]
    size = pairs.size // 2
    with_levels = levels.shape[0] != 0
    while True:
        first, end = take_chunk(control, words.CURSOR, _CHUNK, size)
        if first == end:
            return
        reach[:] = NO_ROWS
        for v in range(first, end):
            seen, mark = _seen_and_mark(pairs, v)
            if mark == ZERO:
                continue
            sources = mark & ~seen
            # Those that do not move stay in their frontier.
            pairs[2 * v + SEEN] = seen | sources
            pairs[2 * v + MARK] = mark & ~(seen & moving)
            row, row_end = row_begin(rows, v), row_begin(rows, v + 1)
            while sources != ZERO:
                s = trailing_zeros(sources)
                sources &= sources - ONE
                sums[FOUND, s] += 1
                reach[s], sums[PAGES, s], sums[READS, s] = add_row(
                    reach[s], sums[PAGES, s], sums[READS, s], row, row_end
                )
                if with_levels:
                    levels[s, v] = depths[s]


@compiled(_nrt=False)
def step(task, rows, disk, state, thread):
    """Run a step."""
    if task == HEADS_PASS:
        _heads_pass(rows, state)
    elif task == VISIT_HEADS:
        _visit_heads(rows, state)
    elif task == PRICE:
        _price(rows, state)
    elif task == STREAM:
        _stream(rows, disk, state, thread)
    else:
        _sweep(rows, state, thread)

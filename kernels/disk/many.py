"""Levels of a traversal from many sources at once whose tails stay on disk.

Every vertex has two words with a bit for each source, as wide as memory allows: whether it was *seen*, and a
*mark*. The frontier is seen and marked, the next frontier is marked and not yet seen. The heads pass answers whom it can, for all
sources. Then one stream goes through the tails in the order of the file and reads a row once, whoever
wants it: sources that push, because it belongs to their frontier, and sources that pull, because
its vertex has not seen them. Sources that do not move in a step keep their frontier. Only vertices up to the
last that has an edge have words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, atomic_or, inlined, kernel, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES
from oocbfs.kernels.disk.large_level import CHUNK_BYTES, GAP_PAGES, add_row, row_at, row_part
from oocbfs.kernels.disk.read import PAGE_BYTES, read_pages
from oocbfs.kernels.disk.state import (
    CURSOR,
    FAILED,
    FRONT_PAGES,
    FRONT_READS,
    MALFORMED,
    TAIL_BYTES,
)
from oocbfs.kernels.region import ONE, ZERO
from oocbfs.kernels.rows import gather_segment, row_begin, take_varint

# Places in State.masks: sources that move in this step, and those of them that push or pull.
MOVING, PUSH, PULL = range(3)
# Places in State.sums: the vertices of the next frontier, and the pages and reads that their rows take.
FOUND, PAGES, READS = range(3)
HEADS_PASS, VISIT_HEADS, PRICE, STREAM, SWEEP = range(5)
# Vertices that a thread takes at a time.
_CHUNK = 4096


class State(NamedTuple):
    """The arrays that the threads share.

    words
        Seen and mark of each vertex that has edges, one behind the other.
    levels
        One row a source, -1 where not reached; no rows if nobody asked for them.
    buffers, ids, reach
        Scratch, one row a thread: pages of tails, decoded ids, and where the rows counted so far end.
    sums
        By thread, kind of sum and source.
    depths
        The level that each source finds next.
    """

    words: NDArray[np.unsignedinteger]
    levels: NDArray[np.int8]
    buffers: NDArray[np.uint8]
    ids: NDArray[np.uint32]
    reach: NDArray[np.int64]
    sums: NDArray[np.int64]
    masks: NDArray[np.uint64]
    depths: NDArray[np.int64]
    control: NDArray[np.int64]


@inlined
def _frontier(words, v):
    """Tell in whose frontier a vertex is."""
    return np.uint64(words[2 * v]) & np.uint64(words[2 * v + 1])


@kernel
def _heads_pass(rows, state):
    """Answer by heads what they can."""
    control, heads, words = state.control, rows.heads, state.words
    moving = state.masks[MOVING]
    size = words.size // 2
    while True:
        taken = atomic_add(control, CURSOR, _CHUNK)
        if taken >= size:
            return
        for v in range(taken, min(taken + _CHUNK, size)):
            want = moving & ~np.uint64(words[2 * v])
            if want == ZERO or heads[v] == NO_HEAD:
                continue
            words[2 * v + 1] |= _frontier(words, np.int64(heads[v])) & want


@inlined
def _mark(words, v, sources):
    """Put a vertex into the next frontier of the sources that have not seen it."""
    sources &= ~np.uint64(words[2 * v])
    if sources & ~np.uint64(words[2 * v + 1]) != ZERO:
        atomic_or(words, 2 * v + 1, sources)


@kernel
def _visit_heads(rows, state):
    """Push along the heads of the frontier."""
    control, heads, words = state.control, rows.heads, state.words
    push = state.masks[PUSH]
    size = words.size // 2
    while True:
        taken = atomic_add(control, CURSOR, _CHUNK)
        if taken >= size:
            return
        for v in range(taken, min(taken + _CHUNK, size)):
            sources = _frontier(words, v) & push
            if sources != ZERO and heads[v] != NO_HEAD:
                _mark(words, np.int64(heads[v]), sources)


@inlined
def _wishes(state, v):
    """Tell which sources push along a row, and which still look for its vertex."""
    masks = state.masks
    seen, mark = np.uint64(state.words[2 * v]), np.uint64(state.words[2 * v + 1])
    return seen & mark & masks[PUSH], masks[PULL] & ~(seen | mark)


@kernel
def _price(rows, state):
    """Count what reading all wanted rows takes."""
    control = state.control
    size = state.words.size // 2
    pages = 0
    reads = 0
    while True:
        taken = atomic_add(control, CURSOR, _CHUNK)
        if taken >= size:
            break
        reach = np.int64(-GAP_PAGES - 1)
        for v in range(taken, min(taken + _CHUNK, size)):
            pushed, wanted = _wishes(state, v)
            if pushed | wanted != ZERO:
                begin, end = row_begin(rows, v), row_begin(rows, v + 1)
                reach, pages, reads = add_row(reach, pages, reads, begin, end)
    atomic_add(control, FRONT_PAGES, pages)
    atomic_add(control, FRONT_READS, reads)


@kernel
def _next_extent(rows, state, u, stop, low, high):
    """Find the next wanted rows that one read brings; see disk_wide."""
    first = stop
    begin = end = np.int64(-1)
    while u < stop:
        pushed, wanted = _wishes(state, u)
        if pushed | wanted != ZERO:
            place, last = row_part(rows, u, low, high)
            if place < last:
                if begin < 0:
                    first = u
                    begin = place // PAGE_BYTES
                elif place // PAGE_BYTES > end + GAP_PAGES:
                    return first, u, begin, end
                end = max(end, (last - 1) // PAGE_BYTES + 1)
        u += 1
    return first, stop, begin, end


@kernel
def _push_part(words, buffer, ids, at, end, sources):
    """Push along a part of a row; tell whether it is well formed."""
    while at < end:
        segment_end = min(at + SEGMENT_BYTES, end)
        count = gather_segment(ids, 0, buffer, at, segment_end, words.size // 2)
        if count < 0:
            return False
        for i in range(count):
            _mark(words, np.int64(ids[i]), sources)
        at = segment_end
    return True


@kernel
def _pull_part(words, buffer, at, end, u, wanted):
    """Look for sources among the neighbours in a part of a row; tell whether it is well formed."""
    got = ZERO
    while at < end and wanted & ~got != ZERO:
        segment_end = min(at + SEGMENT_BYTES, end)
        v = np.int64(-1)
        while at < segment_end:
            delta, at = take_varint(buffer, at)
            v += delta + 1
            if v >= words.size // 2:
                return False
            got |= _frontier(words, v)
            if wanted & ~got == ZERO:
                break
        if at > segment_end:
            return False
        at = segment_end
    _mark(words, u, got & wanted)
    return True


@kernel
def _stream(rows, disk, state, thread):
    """Take chunks of the tails until none are left, read what they hold of wanted rows, and use it."""
    control, buffer, ids = state.control, state.buffers[thread], state.ids[thread]
    num_bytes = 0
    while control[FAILED] == 0:
        low = atomic_add(control, CURSOR, CHUNK_BYTES)
        if low >= disk.tail_bytes:
            break
        high = min(low + CHUNK_BYTES, disk.tail_bytes)
        u, stop = row_at(rows, low), min(row_at(rows, high - 1) + 1, state.words.size // 2)
        while control[FAILED] == 0:
            first, u, begin, end = _next_extent(rows, state, u, stop, low, high)
            if first >= stop:
                break
            shift = begin * PAGE_BYTES
            if not read_pages(buffer, 0, (end - begin) * PAGE_BYTES, disk, shift, control):
                break
            for v in range(first, u):
                # What is not wanted any more is skipped; nothing becomes wanted that was not read.
                pushed, wanted = _wishes(state, v)
                at, last = row_part(rows, v, low, high)
                if at >= last or pushed | wanted == ZERO:
                    continue
                num_bytes += last - at
                fine = True
                if pushed != ZERO:
                    fine = _push_part(state.words, buffer, ids, at - shift, last - shift, pushed)
                if wanted != ZERO and fine:
                    fine = _pull_part(state.words, buffer, at - shift, last - shift, v, wanted)
                if not fine:
                    control[FAILED] = MALFORMED
                    break
    atomic_add(control, TAIL_BYTES, num_bytes)


@kernel
def _sweep(rows, state, thread):
    """Make the next frontier the frontier; count it by source, and price its rows."""
    control, levels, depths, words = state.control, state.levels, state.depths, state.words
    sums, reach, moving = state.sums[thread], state.reach[thread], state.masks[MOVING]
    size = words.size // 2
    with_levels = levels.shape[0] != 0
    while True:
        taken = atomic_add(control, CURSOR, _CHUNK)
        if taken >= size:
            return
        reach[:] = -GAP_PAGES - 1
        for v in range(taken, min(taken + _CHUNK, size)):
            seen, mark = np.uint64(words[2 * v]), np.uint64(words[2 * v + 1])
            if mark == ZERO:
                continue
            sources = mark & ~seen
            # Those that do not move stay in their frontier.
            words[2 * v] = seen | sources
            words[2 * v + 1] = mark & ~(seen & moving)
            begin, end = row_begin(rows, v), row_begin(rows, v + 1)
            while sources != ZERO:
                s = trailing_zeros(sources)
                sources &= sources - ONE
                sums[FOUND, s] += 1
                reach[s], sums[PAGES, s], sums[READS, s] = add_row(
                    reach[s], sums[PAGES, s], sums[READS, s], begin, end
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

"""Levels of a search from many sources at once whose tails stay on disk.

Every vertex has two words with a bit for each source, as wide as memory allows: whether it was
*seen*, and a *mark*. The frontier is seen and marked, the next frontier is marked and not yet seen.
(Words of sources, seen and next are those of MS-BFS: Then et al., The More the Merrier, VLDB 2014.)
The heads pass answers what it can, for all sources. Then one stream reads every row once that any
source wants: those that go top-down, because it belongs to their frontier, and those that go
bottom-up, because its vertex has not seen them. Sources that do not move in a step keep their
frontier. Only vertices up to the last that has an edge have words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, atomic_or, inlined, kernel, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import NO_HEAD, ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.passes import make_pass
from oocbfs.kernels.disk.stream import NO_ROWS, ReadCost, add_row, make_stream, part_in_buffer
from oocbfs.kernels.gather import gather_segment, make_tail_walk
from oocbfs.kernels.rows import row_begin

# Where a vertex's words are in its pair.
SEEN, MARK = range(2)
# Rows of DiskManyState.masks: sources that move in this step, and those of them that go top-down,
# or bottom-up.
MOVING, TOP_DOWN, BOTTOM_UP = range(3)
# Sums of DiskManyState.sums: vertices of the next frontier, and pages and reads that their rows
# take.
FOUND, PAGES, READS = range(3)
HEADS_PASS, VISIT_HEADS, PRICE, STREAM, SWEEP = range(5)
# Vertices that a thread takes at a time.
_CHUNK = 4096


class DiskManyState(NamedTuple):
    """The arrays that the threads share.

    pairs
        Seen and mark of each vertex that has edges, side by side.
    levels
        One row a source, -1 where not reached; no rows if they are not wanted.
    buffers, ids, end_pages
        Scratch, one row a thread: pages of tails, decoded ids, and where the rows counted so far
        end.
    sums
        By thread, kind of sum and source.
    depths
        The level that each source finds next.
    """

    pairs: NDArray[np.unsignedinteger]
    levels: NDArray[np.int8]
    buffers: NDArray[np.uint8]
    ids: NDArray[np.uint32]
    end_pages: NDArray[np.int64]
    sums: NDArray[np.int64]
    masks: NDArray[np.uint64]
    depths: NDArray[np.int64]
    control: NDArray[np.int64]


@inlined
def _seen_and_mark(pairs, v):
    """Return both words of a vertex."""
    return np.uint64(pairs[2 * v + SEEN]), np.uint64(pairs[2 * v + MARK])


@inlined
def _frontier(pairs, v):
    """Return in which sources' frontier a vertex is."""
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
def _test_heads(rows, state, first, end, thread):
    """Answer by heads what they can."""
    heads, pairs, moving = rows.heads, state.pairs, state.masks[MOVING]
    for v in range(first, end):
        wanted = moving & ~np.uint64(pairs[2 * v + SEEN])
        if wanted != ZERO and heads[v] != NO_HEAD:
            pairs[2 * v + MARK] |= _frontier(pairs, np.int64(heads[v])) & wanted


@kernel
def _top_down_heads(rows, state, first, end, thread):
    """Go top-down along the heads of the frontier."""
    heads, pairs, top_down = rows.heads, state.pairs, state.masks[TOP_DOWN]
    for v in range(first, end):
        sources = _frontier(pairs, v) & top_down
        if sources != ZERO and heads[v] != NO_HEAD:
            _mark(pairs, np.int64(heads[v]), sources)


@inlined
def _find_wanted(state):
    """Return the sources that go top-down, and those that go bottom-up."""
    return state.masks[TOP_DOWN], state.masks[BOTTOM_UP]


@inlined
def _who_wants(state, wanted, v):
    """Return the sources that go top-down along a row, and those that still look for its vertex."""
    top_down, bottom_up = wanted
    seen, mark = _seen_and_mark(state.pairs, v)
    return seen & mark & top_down, bottom_up & ~(seen | mark)


@inlined
def _next_wanted(rows, state, wanted, v, end):
    """Find the next vertex from v on whose row a source wants."""
    while v < min(end, state.pairs.size // 2):
        top_down, bottom_up = _who_wants(state, wanted, v)
        if top_down | bottom_up != ZERO:
            return v
        v += 1
    return end


@kernel
def _price_rows(rows, state, first, end, thread):
    """Count what reading the wanted rows takes."""
    wanted = _find_wanted(state)
    cost = NO_ROWS
    v = _next_wanted(rows, state, wanted, first, end)
    while v < end:
        cost = add_row(cost, row_begin(rows, v), row_begin(rows, v + 1))
        v = _next_wanted(rows, state, wanted, v + 1, end)
    atomic_add(state.control, words.FRONTIER_PAGES, cost.pages)
    atomic_add(state.control, words.FRONTIER_READS, cost.reads)


@kernel
def _top_down_span(pairs, buffer, ids, begin, end, sources):
    """Go top-down along a part of a row; tell whether it is well formed."""
    while begin < end:
        segment_end = min(begin + SEGMENT_BYTES, end)
        count = gather_segment(ids, 0, buffer, begin, segment_end, pairs.size // 2)
        if count < 0:
            return False
        for i in range(count):
            _mark(pairs, np.int64(ids[i]), sources)
        begin = segment_end
    return True


@inlined
def _look_for_sources(got, context, v):
    """Take the sources in whose frontier v is, until all that are wanted were found."""
    pairs, wanted = context
    got |= _frontier(pairs, v)
    return got, wanted & ~got == ZERO


_bottom_up_walk = make_tail_walk(_look_for_sources)


@kernel
def _bottom_up_span(pairs, buffer, begin, end, u, wanted):
    """Look for sources among the neighbours in a part of a row; tell whether it is well formed."""
    n = pairs.size // 2
    got, num_ids, _ = _bottom_up_walk(buffer, begin, end, n, ZERO, (pairs, wanted))
    if num_ids < 0:
        return False
    _mark(pairs, u, got & wanted)
    return True


@kernel
def _use_extent(rows, state, wanted, extent, buffer, thread):
    """Go along the rows of one read; return no edges and their bytes, or -1.

    What is no longer wanted is skipped. Nothing becomes wanted that was not read.
    """
    pairs = state.pairs
    num_bytes = 0
    v = _next_wanted(rows, state, wanted, extent.first, extent.end)
    while v < extent.end:
        begin, end = part_in_buffer(rows, v, extent)
        if begin < end:
            top_down, bottom_up = _who_wants(state, wanted, v)
            num_bytes += end - begin
            fine = True
            if top_down != ZERO:
                fine = _top_down_span(pairs, buffer, state.ids[thread], begin, end, top_down)
            if bottom_up != ZERO and fine:
                fine = _bottom_up_span(pairs, buffer, begin, end, v, bottom_up)
            if not fine:
                return np.int64(-1), num_bytes
        v = _next_wanted(rows, state, wanted, v + 1, extent.end)
    return np.int64(0), num_bytes


_stream = make_stream(_find_wanted, _next_wanted, _use_extent)


@kernel
def _sweep_vertices(rows, state, first, end, thread):
    """Make the next frontier the frontier; count it by source, and price its rows."""
    levels, depths, pairs = state.levels, state.depths, state.pairs
    sums, end_pages, moving = state.sums[thread], state.end_pages[thread], state.masks[MOVING]
    with_levels = levels.shape[0] != 0
    end_pages[:] = NO_ROWS.end_page
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
            cost = add_row(ReadCost(end_pages[s], sums[PAGES, s], sums[READS, s]), row, row_end)
            end_pages[s], sums[PAGES, s], sums[READS, s] = cost
            if with_levels:
                levels[s, v] = depths[s]


_heads_pass = make_pass(_CHUNK, _test_heads)
_visit_heads = make_pass(_CHUNK, _top_down_heads)
_price = make_pass(_CHUNK, _price_rows)
_sweep = make_pass(_CHUNK, _sweep_vertices)


@compiled(_nrt=False)
def step(task, rows, disk, state, thread):
    """Run a step."""
    num_vertices = state.pairs.size // 2
    if task == HEADS_PASS:
        _heads_pass(rows, state, num_vertices, thread)
    elif task == VISIT_HEADS:
        _visit_heads(rows, state, num_vertices, thread)
    elif task == PRICE:
        _price(rows, state, num_vertices, thread)
    elif task == STREAM:
        _stream(rows, disk, state, thread)
    else:
        _sweep(rows, state, num_vertices, thread)

"""The dense half of a level: every vertex asks its neighbours for the sources it still wants.

Only sources that go bottom-up are asked for; what others found is already in the next frontier.
A thread owns the vertices of the chunk it took: all heads first, then the tails of those for whom
the head was not enough, in rounds of one neighbour each (as in bottom_up/step.py), until nothing
is wanted or the row is over. Then what is new in the chunk's next frontier becomes seen and is
counted by source.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_add, inlined, kernel, prefetch
from oocbfs.kernels.constants import ALL_ONES, SEGMENT_BYTES, ZERO
from oocbfs.kernels.gather import make_tail_walk, take_varint
from oocbfs.kernels.many import state as words
from oocbfs.kernels.many.state import (
    BLOCK,
    BOTTOM_UP_SOURCES,
    CHUNK,
    FIRST_OWN,
    SEEN,
    WIDTH,
    frontiers,
)
from oocbfs.kernels.region import CURSOR, take_chunk
from oocbfs.kernels.rows import row_begin
from oocbfs.kernels.vectors import add_where


@kernel
def _ask_heads(rows, state, bottom_up, ids, wanted, pending, begin, end):
    """Ask the heads of a block; return how many vertices were asked, and how many want more."""
    heads, seen = rows.heads, state.sets[SEEN]
    frontier, next_frontier = frontiers(state)
    n = np.uint64(heads.size)
    asked = 0
    for v in range(begin, end):
        head = np.uint64(heads[v])
        # A vertex without a head wants nothing, and one that wants nothing looks at no head.
        want = bottom_up & ~seen[v] if head < n else ZERO
        got = frontier[head if want != ZERO else ZERO] & want
        next_frontier[v] |= got
        asked += np.int64(want != ZERO)
        ids[pending] = v
        wanted[pending] = want ^ got
        pending += np.int64(want != got)
    return asked, pending


@inlined
def _look_for_wanted(got, context, v):
    """Add what v can give; it is enough when that is all that is wanted."""
    frontier, want = context
    got |= frontier[v]
    return got, want & ~got == ZERO


_ask_until_content = make_tail_walk(_look_for_wanted)


@kernel
def _ask_long_tail(rows, frontier, next_frontier, u, want, begin, end):
    """Ask a tail of several segments; return the edges looked at (-1: malformed) and bytes."""
    n = rows.heads.size
    got, edges, num_bytes = _ask_until_content(rows.tails, begin, end, n, ZERO, (frontier, want))
    next_frontier[u] |= got & want
    return edges, num_bytes


@kernel
def _ask_round(rows, frontier, next_frontier, ids, wanted, offsets, ends, last, pending):
    """Ask one more neighbour of each pending vertex; return how many stay (-1: malformed), bytes.

    All neighbours are decoded, and their words asked for, before the first word is needed.
    """
    tails = rows.tails
    n = rows.heads.size
    num_bytes = 0
    malformed = False
    for i in range(pending):
        begin = offsets[i]
        delta, offset = take_varint(tails, begin)
        num_bytes += offset - begin
        v = last[i] + delta + 1
        malformed |= (v >= n) | (offset > ends[i])
        last[i] = v
        offsets[i] = offset
        prefetch(frontier, v)
    if malformed:
        return np.int64(-1), num_bytes
    left = 0
    for i in range(pending):
        u = ids[i]
        offset = offsets[i]
        end = ends[i]
        v = last[i]
        want = wanted[i]
        got = frontier[v] & want
        next_frontier[u] |= got
        want ^= got
        ids[left] = u
        wanted[left] = want
        offsets[left] = offset
        ends[left] = end
        last[left] = v
        left += np.int64(offset < end) & np.int64(want != ZERO)
    return left, num_bytes


@kernel
def _ask_tails(rows, state, frontier, next_frontier, ids, wanted, offsets, pending):
    """Ask the tails of the pending vertices; return the edges looked at and the bytes."""
    ends, last = offsets[CHUNK : 2 * CHUNK], offsets[2 * CHUNK :]
    edges = 0
    num_bytes = 0
    short = 0
    for i in range(pending):
        u = ids[i]
        offset, end = row_begin(rows, np.int64(u)), row_begin(rows, np.int64(u) + 1)
        if end - offset > SEGMENT_BYTES:
            more, more_bytes = _ask_long_tail(
                rows, frontier, next_frontier, u, wanted[i], offset, end
            )
            num_bytes += more_bytes
            edges += more
            if more < 0:
                state.control[words.FAILED] = 1
        else:
            ids[short] = u
            wanted[short] = wanted[i]
            offsets[short] = offset
            ends[short] = end
            last[short] = -1
            short += np.int64(offset < end)
    while short > 0:
        edges += short
        short, more_bytes = _ask_round(
            rows, frontier, next_frontier, ids, wanted, offsets, ends, last, short
        )
        num_bytes += more_bytes
    if short < 0:
        state.control[words.FAILED] = 1
    return edges, num_bytes


@kernel
def _collect(sets, next_frontier, top_down, first, end):
    """Collect what the threads found top-down in a block, and clear what is not the first's."""
    if not top_down:
        next_frontier[first:end] = ZERO
        return
    for row in range(FIRST_OWN, sets.shape[0]):
        own = sets[row]
        for v in range(first, end):
            next_frontier[v] |= own[v]
            own[v] = ZERO


@kernel
def _commit(state, degrees, next_frontier, thread, first, end):
    """Keep what is new in the next frontier of a block, and count it; return the vertices.

    Sums of degrees are estimated: the vertices of a block are taken for equally connected.
    """
    seen, planes = state.sets[SEEN], state.planes
    some = ZERO
    common = ALL_ONES
    degree = ZERO
    for v in range(first, end):
        fresh = next_frontier[v] & ~seen[v]
        next_frontier[v] = fresh
        seen[v] |= fresh
        common &= seen[v]
        some |= fresh
        degree += np.uint64(degrees[v])
    state.common[first // BLOCK] = common
    if some == ZERO:
        return 0
    found = 0
    for v in range(first, end):
        found += np.int64(next_frontier[v] != ZERO)
    value = state.control[words.DEPTH] + 2
    for p in range(planes.shape[0]):
        if value >> p & 1:
            plane = planes[p]
            for v in range(first, end):
                plane[v] |= next_frontier[v]
    mean_degree = np.float64(degree) / (end - first)
    _count_sources(state, next_frontier, mean_degree, thread, first, end)
    return found


@inlined
def _count_sources(state, next_frontier, mean_degree, thread, first, end):
    """Add the vertices and edges of a block's next frontier to the sums of each source."""
    byte_counts, counts = state.byte_counts[thread], state.counts[thread]
    degree_sums = state.degree_sums[thread]
    byte_counts[:] = 0
    for v in range(first, end):
        add_where(byte_counts, 0, next_frontier[v], np.uint8(1))
    for b in range(WIDTH):
        counts[b] += np.int64(byte_counts[b])
        degree_sums[b] += np.float64(byte_counts[b]) * mean_degree


@kernel
def bottom_up(rows_out, rows_in, state, thread):
    """Take chunks until none are left."""
    control, common = state.control, state.common
    frontier, next_frontier = frontiers(state)
    ids, wanted, offsets = state.ids[thread], state.wanted[thread], state.offsets[thread]
    bottom_up = state.masks[BOTTOM_UP_SOURCES]
    top_down = control[words.WENT_TOP_DOWN] != 0
    found = 0
    asked = 0
    edges = 0
    num_bytes = 0
    while control[words.FAILED] == 0:
        begin, end = take_chunk(control, CURSOR, CHUNK, frontier.size)
        if begin == end:
            break
        pending = np.int64(0)
        for first in range(begin, end, BLOCK):
            if state.idle[first // BLOCK]:
                continue
            block_end = min(first + BLOCK, end)
            _collect(state.sets, next_frontier, top_down, first, block_end)
            if bottom_up & ~common[first // BLOCK] != ZERO:
                more, pending = _ask_heads(
                    rows_in, state, bottom_up, ids, wanted, pending, first, block_end
                )
                asked += more
        if pending != 0:
            more, more_bytes = _ask_tails(
                rows_in, state, frontier, next_frontier, ids, wanted, offsets, pending
            )
            edges += more
            num_bytes += more_bytes
        for first in range(begin, end, BLOCK):
            if state.idle[first // BLOCK]:
                continue
            if not top_down and bottom_up & ~common[first // BLOCK] == ZERO:
                continue
            block_end = min(first + BLOCK, end)
            found += _commit(state, rows_out.degrees, next_frontier, thread, first, block_end)
    atomic_add(control, words.FOUND, found)
    atomic_add(control, words.HEADS, asked)
    atomic_add(control, words.EDGES, edges)
    atomic_add(control, words.TAIL_BYTES, num_bytes)

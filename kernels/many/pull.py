"""The dense half of a level: every vertex asks its neighbours for the sources it still wants.

Only sources that go bottom-up are asked for; what others pushed is already among the finds. A thread
owns the vertices of the chunk it took: all heads first, then the tails of those for whom the head was
not enough, in rounds of one neighbour each (as in bfs_bottom_up), until nothing is wanted or the row
is over. Then the chunk's finds become seen and are counted by source.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import add_where, atomic_add, inlined, kernel, prefetch
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.many.state import (
    ALL,
    BLOCK,
    BYTES,
    CHUNK,
    DEPTH,
    EDGES,
    FAILED,
    FOUND,
    FRONT,
    HEADS,
    PULLING,
    PUSHED,
)
from oocbfs.kernels.region import CURSOR, ZERO, take_chunk
from oocbfs.kernels.rows import make_tail_walk, row_begin, take_varint


@kernel
def _ask_heads(rows, seen, front, finds, pulling, ids, wanted, places, pending, begin, end):
    """Ask the heads of a block; give how many vertices were asked, and how many want more."""
    heads = rows.heads
    n = np.uint64(heads.size)
    asked = 0
    for v in range(begin, end):
        head = np.uint64(heads[v])
        # Who has no head wants nothing, and nobody asks the head of who wants nothing.
        want = pulling & ~seen[v] if head < n else ZERO
        got = front[head if want != ZERO else ZERO] & want
        finds[v] |= got
        asked += np.int64(want != ZERO)
        ids[pending] = v
        wanted[pending] = want ^ got
        pending += np.int64(want != got)
    return asked, pending


@inlined
def _look_for_wanted(got, context, v):
    """Add what v can give; it is enough when that is all that is wanted."""
    front, want = context
    got |= front[v]
    return got, want & ~got == ZERO


_ask_until_content = make_tail_walk(_look_for_wanted)


@kernel
def _ask_long_tail(rows, front, finds, u, want, begin, end):
    """Ask a tail of several segments; give the edges looked at, or -1 if it is malformed, and bytes."""
    n = rows.heads.size
    got, edges, num_bytes = _ask_until_content(rows.tails, begin, end, n, ZERO, (front, want))
    finds[u] |= got & want
    return edges, num_bytes


@kernel
def _ask_round(rows, front, finds, ids, wanted, places, ends, last, pending):
    """Ask one more neighbour of each pending vertex; give how many are left (-1: malformed), bytes.

    All neighbours are decoded, and their words asked for, before the first word is needed.
    """
    tails = rows.tails
    n = rows.heads.size
    num_bytes = 0
    malformed = False
    for i in range(pending):
        begin = places[i]
        delta, at = take_varint(tails, begin)
        num_bytes += at - begin
        v = last[i] + delta + 1
        malformed |= (v >= n) | (at > ends[i])
        last[i] = v
        places[i] = at
        prefetch(front, v)
    if malformed:
        return np.int64(-1), num_bytes
    left = 0
    for i in range(pending):
        u = ids[i]
        at = places[i]
        end = ends[i]
        v = last[i]
        want = wanted[i]
        got = front[v] & want
        finds[u] |= got
        want ^= got
        ids[left] = u
        wanted[left] = want
        places[left] = at
        ends[left] = end
        last[left] = v
        left += np.int64(at < end) & np.int64(want != ZERO)
    return left, num_bytes


@kernel
def _ask_tails(rows, state, front, finds, ids, wanted, places, pending):
    """Ask the tails of the pending vertices; give the edges looked at and the bytes."""
    ends, last = places[CHUNK : 2 * CHUNK], places[2 * CHUNK :]
    edges = 0
    num_bytes = 0
    short = 0
    for i in range(pending):
        u = ids[i]
        at, end = row_begin(rows, np.int64(u)), row_begin(rows, np.int64(u) + 1)
        if end - at > SEGMENT_BYTES:
            more, more_bytes = _ask_long_tail(rows, front, finds, u, wanted[i], at, end)
            num_bytes += more_bytes
            edges += more
            if more < 0:
                state.control[FAILED] = 1
        else:
            ids[short] = u
            wanted[short] = wanted[i]
            places[short] = at
            ends[short] = end
            last[short] = -1
            short += np.int64(at < end)
    while short > 0:
        edges += short
        short, more_bytes = _ask_round(rows, front, finds, ids, wanted, places, ends, last, short)
        num_bytes += more_bytes
    if short < 0:
        state.control[FAILED] = 1
    return edges, num_bytes


@kernel
def _collect(words, finds, pushed, first, stop):
    """Bring together what the threads pushed to a block, and clear what is not the first's."""
    if not pushed:
        finds[first:stop] = ZERO
        return
    for own in range(3, words.shape[0]):
        others = words[own]
        for v in range(first, stop):
            finds[v] |= others[v]
            others[v] = ZERO


@kernel
def _settle(state, degrees, finds, thread, first, stop):
    """Keep what is new among the finds of a block, and count it; give the number of vertices.

    Weights are estimated: the vertices of a block are taken for equally connected.
    """
    seen, planes = state.words[0], state.planes
    num_bytes, counts, weights = (
        state.num_bytes[thread],
        state.counts[thread],
        state.weights[thread],
    )
    some = ZERO
    common = ALL
    degree = ZERO
    for v in range(first, stop):
        fresh = finds[v] & ~seen[v]
        finds[v] = fresh
        seen[v] |= fresh
        common &= seen[v]
        some |= fresh
        degree += np.uint64(degrees[v])
    state.common[first // BLOCK] = common
    if some == ZERO:
        return 0
    found = 0
    for v in range(first, stop):
        found += np.int64(finds[v] != ZERO)
    value = state.control[DEPTH] + 2
    for plane in range(planes.shape[0]):
        if value >> plane & 1:
            column = planes[plane]
            for v in range(first, stop):
                column[v] |= finds[v]
    num_bytes[:] = 0
    for v in range(first, stop):
        add_where(num_bytes, 0, finds[v], np.uint8(1))
    mean = np.float64(degree) / (stop - first)
    for b in range(64):
        counts[b] += np.int64(num_bytes[b])
        weights[b] += np.float64(num_bytes[b]) * mean
    return found


@kernel
def pull(rows_out, rows_in, state, thread):
    """Take chunks until none are left."""
    control, seen, common = state.control, state.words[0], state.common
    front, finds = state.words[control[FRONT]], state.words[3 - control[FRONT]]
    ids, wanted, places = state.ids[thread], state.wanted[thread], state.places[thread]
    pulling = state.masks[PULLING]
    pushed = control[PUSHED] != 0
    n = seen.size
    found = 0
    asked = 0
    edges = 0
    num_bytes = 0
    while control[FAILED] == 0:
        begin, end = take_chunk(control, CURSOR, CHUNK, n)
        if begin == end:
            break
        pending = np.int64(0)
        for first in range(begin, end, BLOCK):
            if state.idle[first // BLOCK]:
                continue
            stop = min(first + BLOCK, end)
            _collect(state.words, finds, pushed, first, stop)
            if pulling & ~common[first // BLOCK] != ZERO:
                more, pending = _ask_heads(
                    rows_in, seen, front, finds, pulling, ids, wanted, places, pending, first, stop
                )
                asked += more
        if pending != 0:
            more, more_bytes = _ask_tails(
                rows_in, state, front, finds, ids, wanted, places, pending
            )
            edges += more
            num_bytes += more_bytes
        for first in range(begin, end, BLOCK):
            if state.idle[first // BLOCK]:
                continue
            stop = min(first + BLOCK, end)
            if not pushed and pulling & ~common[first // BLOCK] == ZERO:
                continue
            found += _settle(state, rows_out.degrees, finds, thread, first, stop)
    atomic_add(control, FOUND, found)
    atomic_add(control, HEADS, asked)
    atomic_add(control, EDGES, edges)
    atomic_add(control, BYTES, num_bytes)

"""Large levels of a search whose tails stay on disk.

The heads pass needs no disk. What it leaves pending is then answered by one of two streams:
bottom-up through the rows of the pending vertices, or top-down through those of the frontier. A
sweep ends the level: levels, visited bits, and what the next frontier costs to read.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import (
    atomic_add,
    atomic_or,
    count_ones,
    inlined,
    kernel,
    trailing_zeros,
)
from oocbfs.kernels.bottom_up.heads import answer_by_heads
from oocbfs.kernels.constants import ONE, ZERO
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.level_streams import WORD_CHUNK, Bitmaps, make_level
from oocbfs.kernels.disk.passes import make_pass
from oocbfs.kernels.disk.stream import NO_ROWS, add_row
from oocbfs.kernels.rows import row_begin


@inlined
def _add_rows(rows, first, bits, cost):
    """Add the rows of a word's bits to what is read.

    Returns the bits of those that have tails, the bytes of these, and the cost with them.
    """
    with_tails = ZERO
    num_bytes = np.int64(0)
    while bits != ZERO:
        b = trailing_zeros(bits)
        bits &= bits - ONE
        begin, end = row_begin(rows, first + b), row_begin(rows, first + b + 1)
        with_tails |= np.uint64(begin < end) << np.uint64(b)
        num_bytes += end - begin
        cost = add_row(cost, begin, end)
    return with_tails, num_bytes, cost


@kernel
def _test_words(rows, state, first_word, end_word, thread):
    """Answer open vertices by their heads; make the bitmaps next frontier and pending."""
    control = state.control
    frontier = state.bitmaps[control[words.FRONTIER_BITMAP]]
    next_frontier = state.bitmaps[control[words.NEXT_BITMAP]]
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    pending = state.bitmaps[control[words.PENDING_BITMAP]]
    tested = 0
    answered = 0
    cost = NO_ROWS
    for w in range(first_word, end_word):
        if visited[w] == ~ZERO:
            next_frontier[w] = ZERO
            pending[w] = ZERO
            continue
        hits, none, open_bits = answer_by_heads(rows, frontier, state.parents, visited[w], w, w)
        next_frontier[w] = hits
        visited[w] |= hits | none
        tested += count_ones(hits | open_bits)
        answered += count_ones(hits)
        pending[w], _, cost = _add_rows(rows, w * 64, open_bits, cost)
    atomic_add(control, words.EDGES, tested)
    atomic_add(control, words.HEADS, answered)
    atomic_add(control, words.PENDING_PAGES, cost.pages)
    atomic_add(control, words.PENDING_READS, cost.reads)


@kernel
def _mark(values, first, bits, value):
    """Store value in values[first + b] for every bit b that is set."""
    if count_ones(bits) > 12:
        for b in range(64):
            if bits >> np.uint64(b) & ONE != ZERO:
                values[first + b] = value
    else:
        while bits != ZERO:
            values[first + trailing_zeros(bits)] = value
            bits &= bits - ONE


@kernel
def _sweep_words(rows, state, first_word, end_word, thread):
    """Set the level of the next frontier; count it, and what its rows will cost to read."""
    control, levels = state.control, state.levels
    next_frontier = state.bitmaps[control[words.NEXT_BITMAP]]
    visited = state.bitmaps[control[words.VISITED_BITMAP]]
    level = np.int32(control[words.LEVEL])
    found = 0
    num_bytes = 0
    cost = NO_ROWS
    for w in range(first_word, end_word):
        bits = next_frontier[w]
        if bits == ZERO:
            continue
        visited[w] |= bits
        found += count_ones(bits)
        _mark(levels, w * 64, bits, level)
        _, more_bytes, cost = _add_rows(rows, w * 64, bits, cost)
        num_bytes += more_bytes
    atomic_add(control, words.FOUND, found)
    atomic_add(control, words.FRONTIER_PAGES, cost.pages)
    atomic_add(control, words.FRONTIER_READS, cost.reads)
    atomic_add(control, words.ROW_BYTES, num_bytes)


@kernel
def _claim(state, ids, owners, count):
    """Claim ids on the visited bitmap while others do the same, for the next frontier."""
    parents = state.parents
    next_frontier = state.bitmaps[state.control[words.NEXT_BITMAP]]
    visited = state.bitmaps[state.control[words.VISITED_BITMAP]]
    for i in range(count):
        v = ids[i]
        bit = ONE << np.uint64(v & 63)
        word = np.int64(v >> 6)
        if visited[word] & bit == ZERO and atomic_or(visited, word, bit) & bit == ZERO:
            atomic_or(next_frontier, word, bit)
            if parents.size != 0:
                parents[v] = owners[i]


@inlined
def _bottom_up_bitmaps(state):
    """Return what a bottom-up level looks at: it wants the pending rows."""
    control, bitmaps = state.control, state.bitmaps
    return Bitmaps(
        wanted=bitmaps[control[words.PENDING_BITMAP]],
        found=bitmaps[control[words.NEXT_BITMAP]],
        frontier=bitmaps[control[words.FRONTIER_BITMAP]],
    )


@inlined
def _top_down_bitmaps(state):
    """Return what a top-down level looks at: it wants the rows of the frontier."""
    control, bitmaps = state.control, state.bitmaps
    frontier = bitmaps[control[words.FRONTIER_BITMAP]]
    return Bitmaps(wanted=frontier, found=bitmaps[control[words.NEXT_BITMAP]], frontier=frontier)


run_level_step = make_level(_test_words, _bottom_up_bitmaps, _top_down_bitmaps, _claim)
sweep = make_pass(WORD_CHUNK, _sweep_words)

"""Both directions of a level whose tails stay on disk, on a whole graph or on a shard of one.

Bottom-up, rows that are wanted look for the frontier; top-down, rows of the frontier are wanted,
and what they lead to is visited. Heads are in memory, tails are read (see ``kernels.disk.stream``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, atomic_or, inlined, kernel, trailing_zeros
from oocbfs.kernels.bitmaps import next_bit
from oocbfs.kernels.bottom_up.probe import probe_segments
from oocbfs.kernels.constants import ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.passes import make_pass
from oocbfs.kernels.disk.stream import make_stream, part_in_buffer
from oocbfs.kernels.gather import BATCH, FULL, gather_segment

# Steps of a level.
BOTTOM_UP_HEADS, BOTTOM_UP_TAILS, TOP_DOWN_HEADS, TOP_DOWN_TAILS = range(4)
# Words of a bitmap that a thread takes at a time.
WORD_CHUNK = 512


class Bitmaps(NamedTuple):
    """What a level looks at: the rows that are wanted, what was found, and the frontier.

    Top-down, the rows of the frontier are wanted.
    """

    wanted: NDArray[np.uint64]
    found: NDArray[np.uint64]
    frontier: NDArray[np.uint64]


def make_level(test_words, bottom_up_bitmaps, top_down_bitmaps, visit):
    """Make the kernel that runs any of the four steps of a level.

    Parameters
    ----------
    test_words(rows, state, first_word, end_word, thread)
        Answers by heads what is not visited, bottom-up.
    bottom_up_bitmaps(state), top_down_bitmaps(state)
        Return the Bitmaps of a level.
    visit(state, ids, owners, count)
        Takes what rows lead to, top-down, and, where parents are wanted, whose row each id is from.
    """
    bottom_up_heads = make_pass(WORD_CHUNK, test_words)
    bottom_up_tails = _make_bottom_up_tails(bottom_up_bitmaps)
    top_down_heads, top_down_tails = _make_top_down(top_down_bitmaps, visit)

    @kernel
    def run_step(step, rows, disk, state, thread):
        """Run one thread's part of a step on the in-rows, top-down on the out-rows."""
        num_words = (rows.heads.size + 63) >> 6
        if step == BOTTOM_UP_HEADS:
            bottom_up_heads(rows, state, num_words, thread)
        elif step == BOTTOM_UP_TAILS:
            bottom_up_tails(rows, disk, state, thread)
        elif step == TOP_DOWN_HEADS:
            top_down_heads(rows, state, num_words, thread)
        else:
            top_down_tails(rows, disk, state, thread)

    return run_step


def _make_bottom_up_tails(bitmaps_of):
    """Make the stream of a bottom-up level."""

    @inlined
    def next_open(rows, state, bitmaps, u, end):
        """Return the next row from u on that is wanted and was not found meanwhile, or the end.

        Other threads write the bitmap of those found all the time. So each bit is tested by a
        branch, which is easy to predict: if the next row depended on that word, a core would wait
        for it.
        """
        wanted, found = bitmaps.wanted, bitmaps.found
        u = next_bit(wanted, u, end)
        while u < end and found[u >> 6] >> np.uint64(u & 63) & ONE != ZERO:
            u = next_bit(wanted, u + 1, end)
        return u

    @kernel
    def probe_extent(rows, state, bitmaps, extent, buffer, thread):
        """Look for the frontier in the rows of one read; return edges and bytes, or -1."""
        n = rows.num_ids
        edges = 0
        num_bytes = 0
        u = next_open(rows, state, bitmaps, extent.first, extent.end)
        while u < extent.end:
            begin, end = part_in_buffer(rows, u, extent)
            if begin < end:
                v, more_edges, more_bytes = probe_segments(
                    buffer, n, bitmaps.frontier, state.ids[thread], begin, end
                )
                if v >= n:
                    return np.int64(-1), num_bytes
                edges += more_edges
                num_bytes += more_bytes
                if v >= 0:
                    atomic_or(bitmaps.found, u >> 6, ONE << np.uint64(u & 63))
                    if state.parents.size != 0:
                        state.parents[u] = v
            u = next_open(rows, state, bitmaps, u + 1, extent.end)
        return edges, num_bytes

    return make_stream(bitmaps_of, next_open, probe_extent)


def _make_top_down(bitmaps_of, visit):
    """Make the pass over the heads and the stream of the tails of a top-down level."""

    @inlined
    def next_wanted(rows, state, bitmaps, u, end):
        """Return the next row from u on that is wanted, or the end."""
        return next_bit(bitmaps.wanted, u, end)

    @kernel
    def visit_heads(rows, state, first_word, end_word, thread):
        """Visit the heads of the frontier."""
        heads, frontier = rows.heads, bitmaps_of(state).wanted
        ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
        count = 0
        edges = 0
        for w in range(first_word, end_word):
            bits = frontier[w]
            while bits != ZERO:
                u = w * 64 + trailing_zeros(bits)
                bits &= bits - ONE
                ids[count] = heads[u]
                owners[count] = u
                count += np.int64(heads[u] < rows.num_ids)
            if count >= BATCH - 64:
                visit(state, ids, owners, count)
                edges += count
                count = 0
        visit(state, ids, owners, count)
        atomic_add(state.control, words.EDGES, edges + count)

    @kernel
    def expand_extent(rows, state, bitmaps, extent, buffer, thread):
        """Visit the neighbours in the rows of one read; return edges and bytes, or -1."""
        ids, owners = state.ids[thread, :BATCH], state.ids[thread, BATCH:]
        edges = 0
        num_bytes = 0
        count = np.int64(0)
        u = next_bit(bitmaps.wanted, extent.first, extent.end)
        while u < extent.end:
            begin, end = part_in_buffer(rows, u, extent)
            num_bytes += max(0, end - begin)
            while begin < end:
                segment_end = min(begin + SEGMENT_BYTES, end)
                gathered = gather_segment(ids, count, buffer, begin, segment_end, rows.num_ids)
                if gathered < 0:
                    return np.int64(-1), num_bytes
                if state.parents.size != 0:
                    owners[count:gathered] = u
                count = gathered
                if count >= FULL:
                    visit(state, ids, owners, count)
                    edges += count
                    count = np.int64(0)
                begin = segment_end
            u = next_bit(bitmaps.wanted, u + 1, extent.end)
        visit(state, ids, owners, count)
        return edges + count, num_bytes

    return make_pass(WORD_CHUNK, visit_heads), make_stream(bitmaps_of, next_wanted, expand_extent)

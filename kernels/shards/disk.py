"""Steps on a part of a graph whose tails stay on disk; see ``kernels.disk.stream``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, atomic_or, count_ones, kernel, trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.large_level import next_bit
from oocbfs.kernels.disk.passes import make_pass
from oocbfs.kernels.disk.stream import make_stream, part_in_buffer
from oocbfs.kernels.gather import BATCH, FULL, gather_segment
from oocbfs.kernels.heads import test_open_heads
from oocbfs.kernels.probe import probe_segments
from oocbfs.kernels.region import ONE, ZERO
from oocbfs.kernels.shards.down import mark

TEST_HEADS, STREAM_UP, MARK_HEADS, STREAM_DOWN = range(4)
# Where TESTED is among the control words of ``kernels.disk.state``: one that is not used here.
TESTED = words.FRONTIER_SIZE
_WORD_CHUNK = 512


class DiskShardState(NamedTuple):
    """The arrays of a step; a *full* bitmap is of all vertices and a word more, others are own.

    frontier
        Full in a step up; what a step down is to expand is in ``wanted``.
    visited, wanted
        Rows that are visited, and rows whose tails are read.
    found
        Own in a step up, full in a step down.
    parents
        In a step up, if parents are wanted: a vertex for each row that was found.
    """

    frontier: NDArray[np.uint64]
    visited: NDArray[np.uint64]
    wanted: NDArray[np.uint64]
    found: NDArray[np.uint64]
    parents: NDArray[np.uint32]
    buffers: NDArray[np.uint8]
    ids: NDArray[np.uint32]
    control: NDArray[np.int64]


@kernel
def _test_words(rows, state, first_word, end_word, thread):
    """Test the heads of words; those that have none in the frontier want their tails."""
    heads, with_parents = rows.heads, state.parents.size != 0
    tested = 0
    answered = 0
    for w in range(first_word, end_word):
        open_bits = ~state.visited[w]
        if w * 64 + 64 > heads.size:
            open_bits &= ~ZERO >> np.uint64(w * 64 + 64 - heads.size)
        hits, none = test_open_heads(heads, rows.num_ids, state.frontier, w * 64, open_bits)
        state.found[w] = hits
        state.wanted[w] = open_bits & ~(hits | none)
        tested += count_ones(open_bits & ~none)
        answered += count_ones(hits)
        while with_parents and hits != ZERO:
            u = w * 64 + trailing_zeros(hits)
            state.parents[u] = heads[u]
            hits &= hits - ONE
    atomic_add(state.control, TESTED, tested)
    atomic_add(state.control, words.HEADS, answered)
    atomic_add(state.control, words.EDGES, tested)


@kernel
def _mark_words(rows, state, first_word, end_word, thread):
    """Mark the heads of the rows that are wanted."""
    ids = state.ids[thread]
    for w in range(first_word, end_word):
        bits = state.wanted[w]
        count = np.int64(0)
        while bits != ZERO:
            head = rows.heads[w * 64 + trailing_zeros(bits)]
            bits &= bits - ONE
            ids[count] = head
            count += np.int64(head < rows.num_ids)
        mark(state.found, ids, count)
        atomic_add(state.control, words.EDGES, count)


_test_heads = make_pass(_WORD_CHUNK, _test_words)
_mark_heads = make_pass(_WORD_CHUNK, _mark_words)


@kernel
def _wanted(state):
    """Give nothing: there is only one bitmap of rows that are wanted."""
    return np.int64(0)


@kernel
def _next_wanted(rows, state, wanted, u, end):
    """Find the next row from u on that is wanted."""
    return next_bit(state.wanted, u, end)


@kernel
def _next_open(rows, state, wanted, u, end):
    """Find the next row from u on that is wanted and was not found by another thread."""
    u = next_bit(state.wanted, u, end)
    while u < end and state.found[u >> 6] >> np.uint64(u & 63) & ONE != ZERO:
        u = next_bit(state.wanted, u + 1, end)
    return u


@kernel
def _probe_extent(rows, state, wanted, extent, buffer, thread):
    """Look for the frontier in the rows of one read; give edges and bytes, or -1."""
    edges = 0
    num_bytes = 0
    u = _next_open(rows, state, wanted, extent.first, extent.end)
    while u < extent.end:
        begin, end = part_in_buffer(rows, u, extent)
        if begin < end:
            v, more_edges, more_bytes = probe_segments(
                buffer, rows.num_ids, state.frontier, state.ids[thread], begin, end
            )
            if v >= rows.num_ids:
                return np.int64(-1), num_bytes
            edges += more_edges
            num_bytes += more_bytes
            if v >= 0:
                atomic_or(state.found, u >> 6, ONE << np.uint64(u & 63))
                if state.parents.size != 0:
                    state.parents[u] = v
        u = _next_open(rows, state, wanted, u + 1, extent.end)
    return edges, num_bytes


@kernel
def _mark_extent(rows, state, wanted, extent, buffer, thread):
    """Mark the neighbours in the rows of one read; give edges and bytes, or -1."""
    ids = state.ids[thread, :BATCH]
    edges = 0
    num_bytes = 0
    count = np.int64(0)
    u = _next_wanted(rows, state, wanted, extent.first, extent.end)
    while u < extent.end:
        begin, end = part_in_buffer(rows, u, extent)
        num_bytes += max(0, end - begin)
        while begin < end:
            segment_end = min(begin + SEGMENT_BYTES, end)
            count = gather_segment(ids, count, buffer, begin, segment_end, rows.num_ids)
            if count < 0:
                return np.int64(-1), num_bytes
            if count >= FULL:
                mark(state.found, ids, count)
                edges += count
                count = np.int64(0)
            begin = segment_end
        u = _next_wanted(rows, state, wanted, u + 1, extent.end)
    mark(state.found, ids, count)
    return edges + count, num_bytes


_stream_up = make_stream(_wanted, _next_open, _probe_extent)
_stream_down = make_stream(_wanted, _next_wanted, _mark_extent)


@compiled(_nrt=False)
def step(task, rows, disk, state, thread):
    """Run one thread's part of a step."""
    num_words = (rows.heads.size + 63) >> 6
    if task == TEST_HEADS:
        _test_heads(rows, state, num_words, thread)
    elif task == STREAM_UP:
        _stream_up(rows, disk, state, thread)
    elif task == MARK_HEADS:
        _mark_heads(rows, state, num_words, thread)
    else:
        _stream_down(rows, disk, state, thread)
    return np.int64(0)

"""What was found is taken in: bits that were marked and not visited, their levels and degrees."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import apart, atomic_add, count_ones, inlined, kernel
from oocbfs.kernels.bitmaps import UNREACHED, mark_levels, sum_degrees
from oocbfs.kernels.constants import NO_HEAD, ZERO
from oocbfs.kernels.region import CURSOR, chunk_for, take_chunk
from oocbfs.kernels.shards import state as words

_LEAST_WORDS, _MOST_WORDS = 64, 512
_CLEAR_WORDS = 1024


@inlined
def words_below(state, shard, vertices):
    """Count the words of a shard that hold one of so many first vertices."""
    shards, num_shards = state.shards, state.num_shards
    left = (vertices + 63 >> 6) - shards[shard, words.NUMBER]
    return min(
        max(np.int64(0), (left + num_shards - 1) // num_shards), shards[shard, words.NUM_WORDS]
    )


@apart
def take(degrees, state, shard):
    """Take chunks of a shard's words until none are left; marks are zero afterwards."""
    marks, counts, shards = state.marks, state.counts[shard], state.shards
    number, first_place = shards[shard, words.NUMBER], shards[shard, words.PLACE]
    num_words = words_below(state, shard, state.control[words.NON_ISOLATED])
    chunk = chunk_for(num_words, _LEAST_WORDS, _MOST_WORDS)
    level = state.control[words.LEVEL]
    found = 0
    edges = np.int64(0)
    while True:
        first, end = take_chunk(counts, words.WORD_CURSOR, chunk, num_words)
        if first == end:
            break
        for w in range(first, end):
            word, place = w * state.num_shards + number, w * state.stride + first_place
            bits = ZERO
            for row in range(marks.shape[0]):
                bits |= marks[row, word]
                marks[row, word] = ZERO
            bits &= ~state.visited[place]
            state.found[place] = bits
            if bits == ZERO:
                continue
            state.visited[place] |= bits
            found += count_ones(bits)
            mark_levels(state.levels, state.deep_levels, level, place * 64, bits)
            edges += sum_degrees(degrees, w, bits)
    atomic_add(counts, words.FOUND, found)
    atomic_add(counts, words.FRONTIER_EDGES, edges)


@kernel
def clear(state):
    """Begin a search: take chunks of placed words until none are left; nothing has a level."""
    levels, parents, control = state.levels, state.parents, state.control
    num_words = levels.size >> 6
    while True:
        first, end = take_chunk(control, CURSOR, _CLEAR_WORDS, num_words)
        if first == end:
            return
        levels[first * 64 : end * 64] = UNREACHED
        for w in range(first, min(end, state.own.size)):
            state.visited[w] = ZERO
            state.own[w] = ZERO
        for v in range(first * 64, min(end * 64, parents.size)):
            parents[v] = NO_HEAD

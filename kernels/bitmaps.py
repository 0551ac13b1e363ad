"""What kernels do for the bits of a bitmap's word: a word has a bit for each of 64 vertices."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_or, inlined, kernel, trailing_zeros
from oocbfs.kernels.constants import ONE, ZERO
from oocbfs.kernels.vectors import store_where

# Levels are bytes, which leaves most of them in the caches: these say that a vertex was not
# reached, and that its level is in ``deep_levels``.
UNREACHED, DEEP = 255, 254


@inlined
def mark_levels(levels, deep_levels, level, first, bits):
    """Store the level of the vertex first + b for every bit b that is set, if levels are wanted."""
    if levels.size == 0:
        return
    store_where(levels, first, bits, np.uint8(min(level, DEEP)))
    if level >= DEEP:
        while bits != ZERO:
            deep_levels[first + trailing_zeros(bits)] = level
            bits &= bits - ONE


@inlined
def sum_degrees(degrees, w, bits):
    """Return the sum of the degrees of some rows of word w."""
    total = np.int64(0)
    while bits != ZERO:
        total += np.int64(degrees[w * 64 + trailing_zeros(bits)])
        bits &= bits - ONE
    return total


@inlined
def take_heads(parents, first, heads, first_row, bits):
    """Make the head of row first_row + b the parent of vertex first + b for every bit b."""
    while bits != ZERO:
        b = trailing_zeros(bits)
        parents[first + b] = heads[first_row + b]
        bits &= bits - ONE


@kernel
def next_bit(bitmap, u, end):
    """Return the next vertex from u on whose bit is set, or the end."""
    if u >= end:
        return end
    w = u >> 6
    bits = bitmap[w] & (~ZERO << np.uint64(u & 63))
    while bits == ZERO:
        w += 1
        if w * 64 >= end:
            return end
        bits = bitmap[w]
    return min(w * 64 + trailing_zeros(bits), end)


def make_keep(is_unset):
    """Make what keeps those ids for which ``is_unset(known, v)`` is 1, where others are 0."""

    @inlined
    def keep(known, ids, owners, count, with_owners):
        """Move ids that are not set, and their owners likewise, to the begin; return how many.

        One may be there twice. Most are set, and reads alone tell: without writes to what is known,
        reads need not wait for them.
        """
        kept = ZERO
        for i in range(count):
            v = ids[i]
            ids[kept] = v
            if with_owners:
                owners[kept] = owners[i]
            kept += is_unset(known, v)
        return kept

    return keep


@inlined
def _is_clear(bitmap, v):
    return ~bitmap[v >> 6] >> np.uint64(v & 63) & ONE


@inlined
def _is_unreached(levels, v):
    return np.uint64(levels[v] == UNREACHED)


keep_unset, keep_unreached = make_keep(_is_clear), make_keep(_is_unreached)


@inlined
def set_bits(bitmap, ids, count):
    """Set the bits of ids[:count] in a bitmap that no other thread writes."""
    for i in range(count):
        v = ids[i]
        bitmap[v >> 6] |= ONE << np.uint64(v & 63)


@inlined
def set_shared_bits(bitmap, ids, count):
    """Set the bits of ids[:count], which other threads may do, too."""
    for i in range(count):
        v = ids[i]
        atomic_or(bitmap, np.int64(v >> 6), ONE << np.uint64(v & 63))

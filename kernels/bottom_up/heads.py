"""Bottom-up by heads: a word of 64 vertices asks whether their heads are in the frontier."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import count_ones, inlined, kernel, trailing_zeros
from oocbfs.kernels.bitmaps import take_heads
from oocbfs.kernels.constants import ONE, ZERO

# With fewer open vertices than this in a word, their heads are tested one by one.
_FEW = 16


@kernel
def test_heads(heads, num_ids, frontier, first):
    """Test 64 heads at once; return the bits of those in the frontier and those that are none."""
    hits = ZERO
    none = ZERO
    pad = np.uint64(frontier.size - 1)
    num_ids = np.uint64(num_ids)
    first = np.uint64(first)  # numba would gather what might have a negative index
    for b in range(64):
        head = np.uint64(heads[first + np.uint64(b)])
        word = frontier[min(head >> np.uint64(6), pad)]
        hits |= (word >> (head & np.uint64(63)) & ONE) << np.uint64(b)
        none |= np.uint64(head >= num_ids) << np.uint64(b)
    return hits, none


@kernel
def test_few_heads(heads, num_ids, frontier, first, bits):
    """Test the heads of these bits one by one."""
    hits = ZERO
    none = ZERO
    while bits != ZERO:
        b = trailing_zeros(bits)
        head = heads[first + b]
        if head >= num_ids:
            none |= ONE << np.uint64(b)
        else:
            hits |= (frontier[head >> 6] >> np.uint64(head & 63) & ONE) << np.uint64(b)
        bits &= bits - ONE
    return hits, none


@inlined
def test_open_heads(heads, num_ids, frontier, first, open_bits):
    """Test the heads of a word's open vertices: all 64 without a branch, or few one by one.

    Heads are numbers of vertices below num_ids, each with a bit in the frontier, or none.
    Returns the bits of those whose head is in the frontier, and of those that have none.
    """
    if first + 64 <= heads.size and count_ones(open_bits) > _FEW:
        hits, none = test_heads(heads, num_ids, frontier, first)
        return hits & open_bits, none & open_bits
    return test_few_heads(heads, num_ids, frontier, first, open_bits)


@inlined
def answer_by_heads(rows, frontier, parents, visited, w, place):
    """Test the heads of word w of the rows, but for those visited, whose bits are given.

    Returns the bits of those whose head is in the frontier, of those that have none, and of the
    others. A head that is in the frontier becomes a parent, if parents are wanted: those of word w
    are at 64 * place.
    """
    open_bits = ~visited
    if w * 64 + 64 > rows.heads.size:
        open_bits &= ~ZERO >> np.uint64(w * 64 + 64 - rows.heads.size)
    hits, none = test_open_heads(rows.heads, rows.num_ids, frontier, w * 64, open_bits)
    if hits != ZERO and parents.size != 0:
        take_heads(parents, place * 64, rows.heads, w * 64, hits)
    return hits, none, open_bits & ~(hits | none)

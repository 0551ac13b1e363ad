"""Degrees, orders and renamed edges: the inner loops between the two sorts of a conversion."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.atomics import leading_zeros
from oocbfs.kernels.cache import compiled

_U8 = types.Array(types.uint8, 1, "C")
_U32 = types.Array(types.uint32, 1, "C")
_U64 = types.Array(types.uint64, 1, "C")
_I64 = types.int64
# How many bits a head can have, none included.
_NUM_SIZES = 33


@njit(nogil=True, inline="always")
def _ends(key, bits):
    """Return both ends of a key."""
    return key >> bits, key & ((np.uint64(1) << bits) - np.uint64(1))


@compiled(types.void(_U32, _U32, _U64, _I64))
def count_degrees(out_degrees, in_degrees, keys, column_bits):
    """Count each key's first end in ``out_degrees`` and its second in ``in_degrees``.

    The two may be one array. Not to be run by two threads at a time.
    """
    bits = np.uint64(column_bits)
    for k in keys:
        u, v = _ends(k, bits)
        out_degrees[u] += np.uint32(1)
        in_degrees[v] += np.uint32(1)


@compiled(types.void(_U32, _U32, _I64))
def order_by_class(stored_at, classes, num_classes):
    """Position of each vertex when sorted by class, vertices of one class in natural order."""
    cursor = np.zeros(num_classes, np.int64)
    for c in classes:
        cursor[c] += 1
    total = 0
    for c in range(num_classes):
        count = cursor[c]
        cursor[c] = total
        total += count
    for v in range(classes.size):
        stored_at[v] = cursor[classes[v]]
        cursor[classes[v]] += 1


@njit(nogil=True, inline="always")
def _size_of(head):
    """Return the number of bits of a head."""
    return 64 - leading_zeros(np.uint64(head))


@compiled(types.void(_U32, _U32, _U64, _I64, types.boolean))
def note_heads(heads, stored_at, keys, column_bits, both):
    """Lower the head of each key's second end to where its first is stored; if both, its first's.

    Not to be run by two threads at a time.
    """
    bits = np.uint64(column_bits)
    for k in keys:
        u, v = _ends(k, bits)
        heads[v] = min(heads[v], stored_at[u])
        if both:
            heads[u] = min(heads[u], stored_at[v])


@compiled(types.void(_U32, _U32, _U32, _U32))
def order_by_degree_and_head(stored_at, by_head, degrees, heads):
    """Position of each vertex by descending degree, then by its head's size, then by position.

    The size of a head is its number of bits: few classes, so that vertices of one class keep the
    order of ids, in which results are gathered. Sorted by the heads themselves, gathering takes
    twice as long on Kronecker graphs. ``by_head`` is memory to work in.
    """
    cursor = np.zeros(_NUM_SIZES + 1, np.int64)
    for h in heads:
        cursor[_size_of(h) + 1] += 1
    for c in range(_NUM_SIZES):
        cursor[c + 1] += cursor[c]
    for v in range(heads.size):
        size = _size_of(heads[v])
        by_head[cursor[size]] = v
        cursor[size] += 1
    largest = 0
    for d in degrees:
        largest = max(largest, np.int64(d))
    cursor = np.zeros(largest + 2, np.int64)
    for d in degrees:
        cursor[largest - np.int64(d) + 1] += 1
    for c in range(largest + 1):
        cursor[c + 1] += cursor[c]
    for v in by_head:
        c = largest - np.int64(degrees[v])
        stored_at[v] = cursor[c]
        cursor[c] += 1


@compiled(types.void(_U64, _U64, _U32, _I64, _I64))
def directed_keys(out, keys, stored_at, column_bits, side):
    """Rename the ends of each key and pack it again.

    ``side`` 0 keeps the direction, 1 reverses it, 2 writes both (``out`` is then twice as long). An
    empty ``stored_at`` keeps the names.
    """
    bits = np.uint64(column_bits)
    count = 0
    for k in keys:
        u, v = _ends(k, bits)
        if stored_at.size != 0:
            u = np.uint64(stored_at[u])
            v = np.uint64(stored_at[v])
        if side != 1:
            out[count] = u << bits | v
            count += 1
        if side != 0:
            out[count] = v << bits | u
            count += 1


@compiled(_I64(_U64, _U64, _U8, _I64, types.boolean))
def marked_arcs(out, keys, marks, column_bits, turned):
    """Collect the keys, or the same keys turned, whose row has a mark; return their number."""
    bits = np.uint64(column_bits)
    kept = 0
    for k in keys:
        u, v = _ends(k, bits)
        if turned:
            u, v = v, u
        if marks[u] != 0:
            out[kept] = u << bits | v
            kept += 1
    return kept

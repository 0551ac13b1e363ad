"""Sorting 64-bit keys: scatter into buckets by splitters, then radix sort within a bucket."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.cache import compiled

_KEYS = types.Array(types.uint64, 1, "C")
_COUNTS = types.Array(types.int64, 1, "C")

# Keys of a bucket differ in some 35 bits: three passes, with counters that stay in the L1 cache.
_DIGIT_BITS = 12
_TABLE_BITS = 14


@compiled(types.void(_KEYS, _COUNTS, _KEYS, _KEYS))
def scatter(out, bounds, keys, splitters):
    """Group keys by bucket: bucket b holds the keys k with splitters[b-1] <= k < splitters[b].

    ``bounds`` has one entry more than there are buckets; bucket b is out[bounds[b]:bounds[b+1]].
    """
    top = np.uint64(0)
    for k in keys:
        top |= k
    shift = np.uint64(0)
    while top >> shift >= np.uint64(1 << _TABLE_BITS):
        shift += np.uint64(1)
    # first[t]: how many splitters are below every key whose leading bits are t. Few splitters share
    # their leading bits, so that the search that remains is short and its branches predictable.
    first = np.empty((1 << _TABLE_BITS) + 1, np.int64)
    b = 0
    for t in range(first.size):
        while b < splitters.size and splitters[b] >> shift < np.uint64(t):
            b += 1
        first[t] = b
    buckets = np.empty(keys.size, np.uint16)
    bounds[:] = 0
    for i in range(keys.size):
        t = keys[i] >> shift
        low = first[t]
        high = first[t + np.uint64(1)]
        while low < high:
            middle = (low + high) >> 1
            if splitters[middle] <= keys[i]:
                low = middle + 1
            else:
                high = middle
        buckets[i] = low
        bounds[low + 1] += 1
    for b in range(bounds.size - 1):
        bounds[b + 1] += bounds[b]
    cursor = bounds.copy()
    for i in range(keys.size):
        b = buckets[i]
        out[cursor[b]] = keys[i]
        cursor[b] += 1


@compiled(types.int64(_KEYS, _KEYS))
def sort_unique(keys, spare):
    """Sort keys in place, drop duplicates, return how many remain; ``spare`` is as long as keys."""
    if keys.size == 0:
        return 0
    lowest = keys[0]
    highest = keys[0]
    for k in keys:
        lowest = min(lowest, k)
        highest = max(highest, k)
    spread = highest - lowest
    bits = 0
    while bits < 64 and (spread >> np.uint64(bits)) != 0:
        bits += 1
    num_passes = (bits + _DIGIT_BITS - 1) // _DIGIT_BITS
    mask = np.uint64((1 << _DIGIT_BITS) - 1)
    cursors = np.zeros((num_passes, 1 << _DIGIT_BITS), np.int64)
    for k in keys:  # the counts of all digits in one pass
        rest = k - lowest
        for digit in range(num_passes):
            cursors[digit, rest & mask] += 1
            rest >>= np.uint64(_DIGIT_BITS)
    source, target = keys, spare
    for digit in range(num_passes):
        shift = np.uint64(digit * _DIGIT_BITS)
        cursor = cursors[digit]
        total = 0
        for d in range(cursor.size):
            count = cursor[d]
            cursor[d] = total
            total += count
        for k in source:
            d = ((k - lowest) >> shift) & mask
            target[cursor[d]] = k
            cursor[d] += 1
        source, target = target, source
    kept = 1
    last = source[0]
    keys[0] = last
    for i in range(1, source.size):
        if source[i] != last:
            last = source[i]
            keys[kept] = last
            kept += 1
    return kept

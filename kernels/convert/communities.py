"""The order by communities: labels that spread along edges, in layers from fine to coarse.

Layered label propagation, after Boldi, Rosa, Santini and Vigna. In each layer every vertex begins
as a community of its own and joins, round by round, the one that most of its neighbours are in,
less a price for its members that are no neighbours. From layer to layer the price falls, so that
communities grow, and each layer brings together what the layers before it have ordered.

What comes out depends on the graph alone: vertices choose in batches, by the labels that were there
before the batch, and ties go to the smaller label.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.cache import compiled

_U8 = types.Array(types.uint8, 1, "C")
_U32 = types.Array(types.uint32, 1, "C")
_READ_ONLY = types.Array(types.uint32, 1, "C", readonly=True)
_I64 = types.int64
# So many neighbours vote, spread evenly over a longer row.
MOST_VOTES = 1 << 14
# Slots of the table in which a thread counts votes: first the labels, then the counts.
_SLOTS = 2 * MOST_VOTES
TABLE_WORDS = 2 * _SLOTS


@njit(nogil=True, inline="always")
def _mixed(x, bits):
    """Return another number of so many bits, which no other number leads to."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    half = np.uint64((bits + 1) // 2)
    x = (x * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x7F4A7C15)) & mask
    x ^= x >> half
    x = (x * np.uint64(0xBF58476D1CE4E5B9)) & mask
    x ^= x >> half
    x = (x * np.uint64(0x94D049BB133111EB)) & mask
    return x ^ (x >> half)


@compiled(types.void(_U32))
def scatter(numbers):
    """Give each vertex a number of its own, 0 … n-1, that says nothing about its place."""
    n = np.uint64(numbers.size)
    bits = 1
    while numbers.size > 1 << bits:
        bits += 1
    for v in range(numbers.size):
        number = _mixed(np.uint64(v), bits)
        while number >= n:
            number = _mixed(number, bits)
        numbers[v] = number


@njit(nogil=True, inline="always")
def _slot_of(label, table, mask):
    """Return the slot of a label, or the empty one where it belongs."""
    slot = (np.int64(label) * 0x9E3779B1 >> 15) & mask
    while table[_SLOTS + slot] != 0 and table[slot] != label:
        slot = (slot + 1) & mask
    return slot


@compiled(_I64(_U32, _READ_ONLY, _READ_ONLY, _READ_ONLY, _U32, _I64, _U32, _I64))
def choose_labels(chosen, labels, sizes, degrees, neighbours, first, table, layer):
    """Choose labels for vertices from ``first`` on, whose rows are ``neighbours``.

    In a community, 2^layer members that are no neighbours weigh as much as one that is. All of
    ``table`` is 0, before and after. Returns how many vertices change their label.
    """
    num_changed = 0
    end = 0
    for k in range(chosen.size):
        own = labels[first + k]
        begin, end = end, end + np.int64(degrees[first + k])
        chosen[k] = own
        if begin == end:
            continue
        stride = 1 + (end - begin - 1) // MOST_VOTES
        mask = 1
        while mask < _SLOTS and mask < 2 * (end - begin):
            mask *= 2
        mask -= 1
        for i in range(begin, end, stride):
            label = labels[neighbours[i]]
            slot = _slot_of(label, table, mask)
            table[slot] = label
            table[_SLOTS + slot] += np.uint32(1)
        best = own
        best_score = np.int64(-1) << np.int64(62)
        for slot in range(mask + 1):
            votes = np.int64(table[_SLOTS + slot])
            if votes == 0:
                continue
            table[_SLOTS + slot] = 0
            label = table[slot]
            is_own = np.int64(label == own)
            strangers = np.int64(sizes[label]) - is_own - votes
            # Twice, so that its own label wins where others are as good.
            score = 2 * ((votes << layer) - max(0, strangers)) + is_own
            if score > best_score or (score == best_score and label < best):
                best, best_score = label, score
        chosen[k] = best
        num_changed += best != own
    return num_changed


@compiled(types.void(_U32, _U32, _U32, _I64))
def apply_labels(labels, sizes, chosen, first):
    """Give vertices from ``first`` on the labels that were chosen for them."""
    for k in range(chosen.size):
        old, new = labels[first + k], chosen[k]
        if old != new:
            sizes[old] -= np.uint32(1)
            sizes[new] += np.uint32(1)
            labels[first + k] = new


@compiled(types.void(_U32, _U32, _U32, _U8))
def gather(placed, labels, sizes, begun):
    """Bring the members of each community together, in the order in which vertices were placed.

    Communities are in the order of their first members. Then ``labels`` are the vertices' places,
    and ``sizes`` are lost; ``begun`` has a zero bit for each vertex.
    """
    total = np.uint32(0)
    for u in placed:
        label = labels[u]
        bit = np.uint8(1 << (label & 7))
        if not begun[label >> 3] & bit:
            begun[label >> 3] |= bit
            size = sizes[label]
            sizes[label] = total
            total += size
        place = sizes[label]
        # Its own place in the community: those before it were placed before.
        sizes[label] = place + np.uint32(1)
        labels[u] = place
    for u in range(labels.size):
        placed[labels[u]] = u

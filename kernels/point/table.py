"""A table from vertices to entries by open addressing, which is cleared by what was entered.

A slot is a vertex in its upper half; in its lower half the number of its entry plus 1, and in the
lowest bit the *side*: of a search from both ends, which end it was found from. Zero is a free slot.
There are twice as many slots as there is room for entries, so that a free one is always near.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel
from oocbfs.kernels.constants import GOLDEN, HALF_BITS, LOW_HALF, ONE, ZERO
from oocbfs.kernels.point import state as words


@inlined
def home_of(slots, v):
    """Return the slot where the search for a vertex begins."""
    return np.int64((np.uint64(v) * GOLDEN >> HALF_BITS) & np.uint64(slots.size - 1))


@inlined
def slot_of(slots, v):
    """Return the slot of a vertex, or the free one where it belongs."""
    slot = home_of(slots, v)
    while slots[slot] != ZERO and slots[slot] >> HALF_BITS != np.uint64(v):
        slot = (slot + 1) & (slots.size - 1)
    return slot


@inlined
def entry_of(word):
    """Return the entry that a slot leads to; -1 if it is free."""
    return np.int64((word & LOW_HALF) >> ONE) - 1


@inlined
def side_of(word):
    """Return the side from which the entry was found that a slot leads to."""
    return np.int64(word & ONE)


@inlined
def find(reach, v):
    """Return the entry of a vertex; -1 if it has none."""
    return entry_of(reach.slots[slot_of(reach.slots, v)])


@inlined
def enter(reach, slot, v, owner, level, side):
    """Make an entry of a vertex that has none, in the free slot where it belongs."""
    entry = reach.control[words.ENTRIES]
    reach.slots[slot] = np.uint64(v) << HALF_BITS | np.uint64(entry + 1) << ONE | np.uint64(side)
    reach.queue[entry] = v
    reach.owners[entry] = owner
    reach.levels[entry] = level
    reach.control[words.ENTRIES] = entry + 1
    return entry


@inlined
def has_room(reach, count):
    """Return whether so many more vertices can be entered."""
    return reach.control[words.ENTRIES] + count <= reach.queue.size


@kernel
def clear(reach):
    """Free all slots that are taken, and forget the entries.

    An entry lies in an unbroken run of slots that begins at its home or before. So who frees all
    from each entry's home to the next free slot frees every entry's.
    """
    slots, entries = reach.slots, reach.control[words.ENTRIES]
    if 4 * entries > slots.size:
        slots[:] = ZERO
    else:
        for entry in range(entries):
            slot = home_of(slots, reach.queue[entry])
            while slots[slot] != ZERO:
                slots[slot] = ZERO
                slot = (slot + 1) & (slots.size - 1)
    reach.control[words.ENTRIES] = 0

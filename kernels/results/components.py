"""From labels of stored vertices to names of components (their smallest ids) and their sizes."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U32, READ_U64, U32, U64
from oocbfs.kernels.atomics import atomic_add, atomic_min
from oocbfs.kernels.cache import compiled

_I64 = types.int64


@compiled(types.void(U32, READ_U32, READ_U32, _I64, _I64))
def find_least(least, labels, order, first, stop):
    """Find the smallest natural position among the vertices of each label, while others do too."""
    for v in range(first, stop):
        if order[v] < least[labels[v]]:
            atomic_min(least, np.int64(labels[v]), order[v])


@compiled(types.void(U32, READ_U32, _I64, _I64))
def replace_labels(labels, least, first, stop):
    """Make labels of the smallest natural positions."""
    for v in range(first, stop):
        labels[v] = least[labels[v]]


@compiled(types.void(U32, READ_U32, _I64, _I64))
def count_members(counts, labels, first, stop):
    """Count the vertices of each label, while others do too."""
    run = 0
    for v in range(first, stop):
        run += 1
        # Most vertices have the label of the one before, and one addition is enough for all of
        # them.
        if v + 1 == stop or labels[v + 1] != labels[v]:
            if labels[v] < counts.size:
                atomic_add(counts, np.int64(labels[v]), np.uint32(run))
            run = 0


@compiled(types.void(U64, _I64, READ_U32, READ_U32, READ_U64, types.uint64, _I64, _I64))
def components_to_ids(out, base, labels, order, ids, first_id, first, stop):
    """Write the ids at the natural positions that label first … stop-1 to their natural positions.

    An empty ``order`` is the natural one; empty ``ids`` are consecutive from ``first_id``. ``out``
    is a range that begins at position ``base``; what lies outside is left out.
    """
    for v in range(first, stop):
        position = (np.int64(order[v]) if order.size else v) - base
        label = labels[v]
        if 0 <= position < out.size and label < labels.size:
            out[position] = ids[label] if ids.size else np.uint64(label) + first_id

"""Joining trees of labels, as all engines of connected components do it.

A label names a vertex of the same component that is not larger; a vertex whose label is itself is a
*root*. Labels only lead to smaller vertices, so that there are no cycles, in whatever order threads
write, and the root of a finished component is its smallest vertex. A root is hooked below another
by an atomic minimum: a thread that finds another was faster goes on with the label that was there,
so that no edge is lost. (Hooking and compressing as in Afforest: Sutton, Ben-Nun and Barak, IPDPS
2018.)
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import atomic_min, inlined


@inlined
def link(labels, a, b):
    """Join two vertices' trees; return a vertex of the joint one: its root, unless others write."""
    while a != b:
        high = max(a, b)
        low = min(a, b)
        above = np.int64(labels[high])
        if above == high:
            above = np.int64(atomic_min(labels, high, np.uint32(low)))
            if above == high:
                return low
        else:
            # Halve the way for those that follow.
            parent = above
            above = np.int64(labels[parent])
            if above != parent:
                labels[high] = np.uint32(above)
        a = above
        b = low
    return a


@inlined
def compress(labels, v):
    """Let a vertex point to its root, and return that."""
    parent = np.int64(labels[v])
    root = np.int64(labels[parent])
    if root == parent:
        return root
    while root != parent:
        parent = root
        root = np.int64(labels[parent])
    labels[v] = np.uint32(root)
    return root


@inlined
def find(labels, v):
    """Return the root of a vertex."""
    root = np.int64(labels[v])
    while root != v:
        v = root
        root = np.int64(labels[v])
    return root

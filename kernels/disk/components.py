"""The tails of connected components, read from disk.

A stream reads the rows of vertices outside the largest component (see
``kernels.components.steps``). It grows meanwhile, so that the further the threads get, the less
they read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import inlined, kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.components.forest import compress, find
from oocbfs.kernels.components.steps import link_tail
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.stream import make_stream, part_in_buffer
from oocbfs.kernels.rows import row_begin


class DiskForestState(NamedTuple):
    """What the threads share; its control words are those of ``kernels.disk.state``."""

    labels: NDArray[np.uint32]
    buffers: NDArray[np.uint8]
    control: NDArray[np.int64]


@inlined
def _find_largest(state):
    """Return the root of the largest component, which changes when it joins a smaller one."""
    return find(state.labels, state.control[words.LARGEST])


@kernel
def _next_outsider(rows, state, largest, u, end):
    """Find the next vertex outside the largest component that has a tail."""
    while u < end:
        if row_begin(rows, u) < row_begin(rows, u + 1) and compress(state.labels, u) != largest:
            break
        u += 1
    return u


@kernel
def _link_extent(rows, state, largest, extent, buffer, thread):
    """Join the rows of one read outside the largest component; return edges and bytes, or -1.

    A vertex of the largest component may seem to be outside, because its root has changed since
    the read. It does not matter: its row lies between others that were read, and so was read.
    """
    labels = state.labels
    edges = 0
    num_bytes = 0
    for u in range(extent.first, extent.end):
        begin, end = part_in_buffer(rows, u, extent)
        if begin >= end:
            continue
        root = compress(labels, u)
        if root == largest:
            continue
        more_edges, more_bytes = link_tail(buffer, labels, root, largest, begin, end)
        if more_edges < 0:
            return more_edges, num_bytes
        edges += more_edges
        num_bytes += more_bytes
    return edges, num_bytes


_stream = make_stream(_find_largest, _next_outsider, _link_extent)


@compiled(_nrt=False)
def link_tails(rows, disk, state, thread):
    """Join what the tails on disk join."""
    _stream(rows, disk, state, thread)

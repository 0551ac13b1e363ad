"""The tails of connected components, read from disk.

The threads go through the tails in the order of the file, in chunks as wide levels do, and read what holds rows
of vertices outside the giant, with small gaps between them. The giant grows meanwhile, so that the further
they get, the less they read. There are many more threads than cores: each waits for one read at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import atomic_add, kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.components.forest import compress, find
from oocbfs.kernels.components.steps import link_span
from oocbfs.kernels.disk.large_level import CHUNK_BYTES, GAP_PAGES, row_at, row_part
from oocbfs.kernels.disk.read import PAGE_BYTES, read_pages
from oocbfs.kernels.disk.state import CURSOR, EDGES, FAILED, MALFORMED, TAIL_BYTES


class State(NamedTuple):
    """What the threads share; buffers have one row a thread, control has the places of disk_state."""

    labels: NDArray[np.uint32]
    buffers: NDArray[np.uint8]
    control: NDArray[np.int64]


@kernel
def _next_extent(rows, labels, giant, u, stop, low, high):
    """Find the next rows outside the giant that one read brings.

    Gives the first row, the one behind the last, the first page and the page behind the last. Whatever
    rows lie between are read too, so that it does not matter if somebody finds them outside later on:
    the root of the giant may change at any time.
    """
    first = end_row = stop
    begin = end = np.int64(-1)
    while u < stop:
        place, last = row_part(rows, u, low, high)
        if place < last and compress(labels, u) != giant:
            if begin < 0:
                first = u
                begin = place // PAGE_BYTES
            elif place // PAGE_BYTES > end + GAP_PAGES:
                break
            end = max(end, (last - 1) // PAGE_BYTES + 1)
            end_row = u + 1
        u += 1
    return first, end_row, begin, end


@kernel
def _link_extent(rows, state, giant, first, stop, low, high, buffer, shift):
    """Join the rows of one read that are outside the giant; give edges and bytes, or -1."""
    labels = state.labels
    edges = 0
    num_bytes = 0
    for u in range(first, stop):
        at, end = row_part(rows, u, low, high)
        if at >= end:
            continue
        root = compress(labels, u)
        if root == giant:
            continue
        root, more_edges, more_bytes = link_span(
            buffer, labels, root, giant, at - shift, end - shift
        )
        if more_edges < 0:
            return more_edges, num_bytes
        edges += more_edges
        num_bytes += more_bytes
    return edges, num_bytes


@compiled(_nrt=False)
def stream(rows, disk, state, giant_vertex, thread):
    """Take chunks of the tails until none are left, read what they hold of wanted rows, and use it."""
    labels, control, buffer = state.labels, state.control, state.buffers[thread]
    edges = 0
    num_bytes = 0
    while control[FAILED] == 0:
        low = atomic_add(control, CURSOR, CHUNK_BYTES)
        if low >= disk.tail_bytes:
            break
        high = min(low + CHUNK_BYTES, disk.tail_bytes)
        u, stop = row_at(rows, low), row_at(rows, high - 1) + 1
        while control[FAILED] == 0:
            giant = find(labels, giant_vertex)
            first, u, begin, end = _next_extent(rows, labels, giant, u, stop, low, high)
            if first >= stop:
                break
            shift = begin * PAGE_BYTES
            if not read_pages(buffer, 0, (end - begin) * PAGE_BYTES, disk, shift, control):
                break
            more_edges, more_bytes = _link_extent(
                rows, state, giant, first, u, low, high, buffer, shift
            )
            if more_edges < 0:
                control[FAILED] = MALFORMED
                break
            edges += more_edges
            num_bytes += more_bytes
    atomic_add(control, EDGES, edges)
    atomic_add(control, TAIL_BYTES, num_bytes)

"""The steps of connected components in memory, each for one chunk of the vertices.

This is Afforest, with the heads for its first sample. The *giant* is what the driver takes for the largest
component so far. Its vertices need not be looked at: an edge that leaves it is seen from its other end, and
one that does not joins nothing. For the same reason a row is read no further once its vertex is in the giant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.atomics import kernel, load_acquire, prefetch, store_release
from oocbfs.kernels.components.forest import compress, find, link
from oocbfs.kernels.constants import SAMPLE_STRIDE, SEGMENT_BYTES
from oocbfs.kernels.rows import row_begin, take_varint

# Places in State.control. What several threads write has a cache line (8 words) of its own; the first is
# the gate of those who help (see workers).
CURSOR, SETTLED = 8, 16
# Sums over the threads; FAILED is set when a tail holds what no converter wrote.
EDGES, BYTES, FAILED = range(24, 27)
# A vertex of the giant.
GIANT = 32
CONTROL_WORDS = 40

# How many vertices ahead a label is asked for; a tail twice as far.
_AHEAD = 8


class State(NamedTuple):
    """What the threads share."""

    labels: NDArray[np.uint32]
    control: NDArray[np.int64]


@kernel
def point_to_heads(heads, state, first, stop):
    """Give every vertex its head for a label where that is smaller, and else itself.

    The vertices of the first chunk are the most connected in most orders, and so the heads of most: their
    own labels are taken as soon as they are known, which leaves next to nothing to compress.
    """
    labels = state.labels
    settled = np.uint32(load_acquire(state.control, SETTLED))
    for v in range(first, stop):
        label = min(heads[v], np.uint32(v))
        labels[v] = labels[label] if label < settled else label
    if first == 0:
        store_release(state.control, SETTLED, stop)


@kernel
def link_heads(rows_out, rows_in, both, state, first, stop):
    """Join vertices with their heads where no label says so yet, and compress."""
    labels = state.labels
    heads, in_heads = rows_out.heads, rows_in.heads
    for v in range(first, stop):
        ahead = min(v + _AHEAD, labels.size - 1)
        prefetch(labels, np.int64(heads[ahead]))
        head = np.int64(heads[v])
        if v < head < labels.size:
            link(labels, v, head)
        if both:
            head = np.int64(in_heads[v])
            if head < labels.size:
                link(labels, v, head)
        compress(labels, v)


@kernel
def link_firsts(rows, state, first, stop):
    """Join some vertices outside the giant with the first neighbours in their tails; give edges and bytes.

    Some, because this is only to show which component will be the giant: the tails come next anyway.
    """
    labels, tails = state.labels, rows.tails
    n = labels.size
    giant = find(labels, state.control[GIANT])
    edges = 0
    num_bytes = 0
    for v in range(first, stop, SAMPLE_STRIDE):
        at, end = row_begin(rows, v), row_begin(rows, v + 1)
        if at >= end or labels[v] == giant:
            continue
        prefetch(tails, row_begin(rows, min(v + 2 * _AHEAD * SAMPLE_STRIDE, n)))
        prefetch(labels, take_varint(tails, row_begin(rows, min(v + _AHEAD * SAMPLE_STRIDE, n)))[0])
        w, behind = take_varint(tails, at)
        if w >= n or behind > end:
            state.control[FAILED] = 1
            break
        edges += 1
        num_bytes += behind - at
        link(labels, v, w)
    return edges, num_bytes


@kernel
def link_span(tails, labels, root, giant, at, end):
    """Join a tree with the neighbours in (part of) a tail until it is the giant.

    Gives its root, and the edges and bytes looked at; -1 edges if the tail is malformed.
    """
    n = labels.size
    begin = at
    edges = 0
    while at < end:
        segment_end = min(at + SEGMENT_BYTES, end)
        w = np.int64(-1)
        while at < segment_end:
            delta, at = take_varint(tails, at)
            w += delta + 1
            edges += 1
            if w >= n:
                return root, -1, at - begin
            root = link(labels, root, np.int64(labels[w]))
            if root == giant:
                return root, edges, at - begin
        if at > segment_end:
            return root, -1, at - begin
    return root, edges, at - begin


@kernel
def link_tails(rows, state, first, stop):
    """Join vertices outside the giant with all their neighbours; give edges and bytes."""
    labels = state.labels
    giant = find(labels, state.control[GIANT])
    edges = 0
    num_bytes = 0
    for v in range(first, stop):
        root = compress(labels, v)
        if root == giant:
            continue
        at, end = row_begin(rows, v), row_begin(rows, v + 1)
        root, more_edges, more_bytes = link_span(rows.tails, labels, root, giant, at, end)
        if more_edges < 0:
            state.control[FAILED] = 1
            break
        edges += more_edges
        num_bytes += more_bytes
    return edges, num_bytes


@kernel
def compress_all(state, first, stop):
    """Let vertices point to their roots."""
    for v in range(first, stop):
        compress(state.labels, v)

"""The steps of connected components in memory, each for one chunk of the vertices.

This is Afforest (Sutton, Ben-Nun and Barak, Optimizing Parallel Graph Connectivity Computation via
Subgraph Sampling, IPDPS 2018), with the heads for its first sample. The driver guesses which
component is the largest so far. Its vertices need not be looked at: an edge that leaves it is seen
from its other end, and one that does not joins nothing. For the same reason a row is read no
further once its vertex is in the largest component.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined, kernel, load_acquire, prefetch, store_release
from oocbfs.kernels.components import state as words
from oocbfs.kernels.components.forest import compress, find, link
from oocbfs.kernels.constants import SAMPLE_STRIDE
from oocbfs.kernels.gather import make_tail_walk, take_varint
from oocbfs.kernels.rows import row_begin

# How many vertices ahead a label is prefetched; a tail twice as far.
_AHEAD = 8


@kernel
def point_to_heads(heads, state, first, stop):
    """Label every vertex with its head where that is smaller, and else itself.

    The vertices of the first chunk are the most connected in most orders, and so the heads of most
    others: their own labels are taken as soon as they are known, which leaves almost nothing to
    compress.
    """
    labels = state.labels
    num_labeled = np.uint32(load_acquire(state.control, words.NUM_LABELED))
    for v in range(first, stop):
        label = min(heads[v], np.uint32(v))
        labels[v] = labels[label] if label < num_labeled else label
    if first == 0:
        store_release(state.control, words.NUM_LABELED, stop)


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
    """Join some vertices outside the largest component with the first of their tails.

    Returns edges and bytes.

    Some, because this is only to show which component will be the largest: the tails come next
    anyway.
    """
    labels, tails = state.labels, rows.tails
    n = labels.size
    largest = find(labels, state.control[words.LARGEST])
    edges = 0
    num_bytes = 0
    for v in range(first, stop, SAMPLE_STRIDE):
        begin, end = row_begin(rows, v), row_begin(rows, v + 1)
        if begin >= end or labels[v] == largest:
            continue
        prefetch(tails, row_begin(rows, min(v + 2 * _AHEAD * SAMPLE_STRIDE, n)))
        prefetch(labels, take_varint(tails, row_begin(rows, min(v + _AHEAD * SAMPLE_STRIDE, n)))[0])
        w, next_varint = take_varint(tails, begin)
        if w >= n or next_varint > end:
            state.control[words.FAILED] = 1
            break
        edges += 1
        num_bytes += next_varint - begin
        link(labels, v, w)
    return edges, num_bytes


@inlined
def _link_neighbour(root, context, v):
    """Join a tree with that of a neighbour, until it is the largest component."""
    labels, largest = context
    root = link(labels, root, np.int64(labels[v]))
    return root, root == largest


_link_walk = make_tail_walk(_link_neighbour)


@kernel
def link_tail(tails, labels, root, largest, begin, end):
    """Join a tree with the neighbours in (part of) a tail until it is the largest component.

    Returns the edges and bytes looked at; -1 edges if the tail is malformed.
    """
    _, edges, num_bytes = _link_walk(tails, begin, end, labels.size, root, (labels, largest))
    return edges, num_bytes


@kernel
def link_tails(rows, state, first, stop):
    """Join vertices outside the largest component with all neighbours; return edges and bytes."""
    labels = state.labels
    largest = find(labels, state.control[words.LARGEST])
    edges = 0
    num_bytes = 0
    for v in range(first, stop):
        root = compress(labels, v)
        if root == largest:
            continue
        begin, end = row_begin(rows, v), row_begin(rows, v + 1)
        more_edges, more_bytes = link_tail(rows.tails, labels, root, largest, begin, end)
        if more_edges < 0:
            state.control[words.FAILED] = 1
            break
        edges += more_edges
        num_bytes += more_bytes
    return edges, num_bytes


@kernel
def compress_all(state, first, stop):
    """Let vertices point to their roots."""
    for v in range(first, stop):
        compress(state.labels, v)

"""Connected components of a sharded graph: forests of its shards, and how they are united.

Labels are those of ``kernels.components.forest``: trees that lead to smaller vertices. First the
heads of all rows are joined. What holds most vertices then is the largest component: only vertices
outside of it look at their tails, because an edge that leaves it is seen from its other end.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U8, READ_U32, READ_U64, U32
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.components.forest import compress, link
from oocbfs.kernels.constants import ONE, ZERO
from oocbfs.kernels.gather import make_tail_walk
from oocbfs.kernels.varint import row_span

_I64 = types.int64
_DEAL = types.UniTuple(_I64, 2)


@inlined
def _vertex(cut, row):
    """Return the vertex of a row; ``cut`` is the shard and the number of shards."""
    shard, num_shards = cut
    return ((row >> 6) * num_shards + shard << 6) | (row & 63)


@compiled(types.void(U32, READ_U32, _DEAL, _I64, _I64))
def link_heads(labels, heads, cut, first, stop):
    """Join the vertices of a shard's rows with their heads."""
    for row in range(first, stop):
        head = np.int64(heads[row])
        if head < labels.size:
            link(labels, _vertex(cut, row), head)


@inlined
def _link_neighbour(root, labels, v):
    """Join a tree with that of a neighbour."""
    return link(labels, root, np.int64(labels[v])), False


_link_walk = make_tail_walk(_link_neighbour)


@compiled(
    types.UniTuple(_I64, 2)(
        U32, READ_U64, READ_U32, READ_U64, READ_U32, _I64, READ_U8, _DEAL, _I64, _I64
    )
)
def link_rows(labels, largest, heads, bases, starts, shift, tails, cut, first, stop):
    """Join vertices outside the largest component with all their neighbours.

    Returns the edges looked at, or -1 if a row is malformed, and the tail bytes.
    """
    edges = np.int64(0)
    num_bytes = np.int64(0)
    for row in range(first, stop):
        u = _vertex(cut, row)
        head = np.int64(heads[row])
        if head >= labels.size or largest[u >> 6] >> np.uint64(u & 63) & ONE != ZERO:
            continue
        root = link(labels, u, head)
        begin, end = row_span(bases, starts, shift, tails.size, row)
        _, more_edges, more_bytes = _link_walk(tails, begin, end, labels.size, root, labels)
        if more_edges < 0:
            return np.int64(-1), num_bytes
        edges += more_edges + 1
        num_bytes += more_bytes
    return edges, num_bytes


@compiled(types.void(U32, READ_U32, READ_U32, _I64, _I64))
def link_pairs(labels, vertices, roots, first, stop):
    """Join the trees of another forest: each vertex with its root there."""
    for i in range(first, stop):
        link(labels, np.int64(vertices[i]), np.int64(roots[i]))


@compiled(types.void(U32, _I64, _I64))
def compress_range(labels, first, stop):
    """Let vertices point to their roots."""
    for v in range(first, stop):
        compress(labels, v)

"""Checks of what a search found, by positions and ids as it is handed out: arc by arc."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from oocbfs.kernels.array_types import (
    READ_I32,
    READ_I64,
    READ_U8,
    READ_U32,
    READ_U64,
    U8,
    U32,
)
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.varint import make_fold, row_span

_I64 = types.int64
_PAIR = types.UniTuple(_I64, 2)
# An order, ids, and the first of consecutive ids; empty ones are natural and consecutive.
_NAMES = READ_U32, READ_U64, _I64
# Heads, bases, starts, their shift, and tails; which shard of how many shards the rows are of.
_ROWS = READ_U32, READ_U64, READ_U32, _I64, READ_U8, _PAIR

# What can be wrong with a search, as these kernels report it.
PROBLEMS = (
    "",
    "an edge leaves the reached set",
    "an edge spans more than one level",
    "its row is damaged",
)
FINE, LEAVES, SPANS, DAMAGED = range(len(PROBLEMS))


@njit(inline="always")
def _position(order, vertex):
    return np.int64(order[vertex]) if order.size else vertex


@njit(inline="always")
def _vertex(cut, row):
    """Return the stored vertex of a row of a shard."""
    return ((row >> 6) * cut[1] + cut[0] << 6) | (row & 63)


def _make_walk(look):
    """Make the walk over the arcs of rows, until ``look(context, u, v)`` returns a problem."""

    @inlined
    def look_at(about, problem, v):
        context, order, u = about
        problem = np.int64(look(context, u, _position(order, v)))
        return problem, problem == FINE

    look_at_all = make_fold(look_at)

    @njit(inline="always")
    def walk(context, n, order, heads, bases, starts, shift, tails, cut, first, stop):
        """Look at the arcs of rows first … stop-1; return a problem, or FINE, and a position."""
        for row in range(first, stop):
            head = np.int64(heads[row])
            if head >= n:
                continue
            vertex = _vertex(cut, row)
            if vertex >= n:
                return DAMAGED, 0
            u = _position(order, vertex)
            problem = look(context, u, _position(order, head))
            if problem != FINE:
                return problem, u
            begin, end = row_span(bases, starts, shift, tails.size, row)
            problem, is_sound = look_at_all(
                (context, order, u), np.int64(FINE), tails, begin, end, n
            )
            if not is_sound:
                return DAMAGED, u
            if problem != FINE:
                return problem, u
        return FINE, 0

    return walk


@njit(inline="always")
def _check_arc(context, u, v):
    """Check one arc between positions, and confirm v if u is its parent or could be."""
    confirmed, levels, parents, ids, first_id, last_level, undirected = context
    if levels[u] < 0:
        return FINE
    if levels[v] < 0:
        return LEAVES if levels[u] < last_level else FINE
    if levels[v] > levels[u] + 1 or (undirected and levels[u] > levels[v] + 1):
        return SPANS
    if levels[v] == levels[u] + 1:
        u_id = np.int64(ids[u]) if ids.size else u + first_id
        if parents.size == 0 or parents[v] == u_id:
            confirmed[v] = 1
    return FINE


_check_arcs = _make_walk(_check_arc)


@compiled(_PAIR(U8, READ_I32, READ_I64, *_NAMES, *_ROWS, _I64, types.boolean, _I64, _I64))
def check_levels(
    confirmed, levels, parents, order, ids, first_id, heads, bases, starts, shift, tails, cut,
    last_level, undirected, first, stop
):  # fmt: skip
    """Check the arcs of rows first … stop-1; returns (problem, position).

    ``confirmed[v]`` becomes 1 when an arc leads to v from its parent, one level up; without
    parents, from any vertex one level up. Vertices at ``last_level`` were not expanded.
    """
    context = (confirmed, levels, parents, ids, first_id, last_level, undirected)
    n = levels.size
    return _check_arcs(context, n, order, heads, bases, starts, shift, tails, cut, first, stop)


@njit(inline="always")
def _root(forest, v):
    while forest[v] != v:
        forest[v] = forest[forest[v]]
        v = np.int64(forest[v])
    return v


@njit(inline="always")
def _join(context, u, v):
    """Make one tree of two, by the smaller root."""
    (forest,) = context
    u, v = _root(forest, u), _root(forest, v)
    forest[max(u, v)] = min(u, v)
    return FINE


_join_arcs = _make_walk(_join)


@compiled(_PAIR(U32, READ_U32, *_ROWS, _I64, _I64))
def join_rows(forest, order, heads, bases, starts, shift, tails, cut, first, stop):
    """Join the ends of the arcs of rows first … stop-1, plainly; returns (problem, position).

    The root of a tree is its smallest position. Only one thread may do so.
    """
    n = forest.size
    return _join_arcs((forest,), n, order, heads, bases, starts, shift, tails, cut, first, stop)


@compiled(_I64(U32, U32, READ_U64, READ_U64, types.uint64))
def check_labels(forest, counts, labels, ids, first_id):
    """Find the first position whose label is not the id of its root, -1 if there is none.

    ``counts`` gains the sizes of the trees.
    """
    for v in range(forest.size):
        root = np.int64(forest[forest[v]])  # which precedes it, and is final
        forest[v] = root
        counts[root] += np.uint32(1)
        if labels[v] != (ids[root] if ids.size else np.uint64(root) + first_id):
            return v
    return -1

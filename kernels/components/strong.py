"""Strongly connected components on heads and tails: trimming, and what is left in memory.

Every vertex that is not done yet has a *part*, a small number: two vertices of one component are in
the same part. A vertex without a neighbour in its part, outward or inward, is a component of its
own and is done (part 0). What trimming and the search around the largest component leave is copied,
without edges between parts, and finished by Tarjan's algorithm (SIAM Journal on Computing 1(2),
1972) with a stack of its own, as Pearce arranges it (Information Processing Letters 116(1), 2016).
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, READ_I64, READ_U8, READ_U32, READ_U64, U8, U32
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.gather import make_tail_walk
from oocbfs.kernels.varint import row_span

_I64 = types.int64
_ROWS = (READ_U32, READ_U64, READ_U32, _I64, READ_U8)
DONE = 0


@inlined
def _is_fellow(found, context, v):
    """Stop at the first neighbour in the same part."""
    parts, part = context
    found = parts[v] == part
    return found, found


@inlined
def _count_fellow(count, context, v):
    """Count the neighbours in the same part."""
    parts, part = context
    return count + np.int64(parts[v] == part), False


@inlined
def _keep_fellow(end, context, v):
    """Write down the neighbours in the same part, by their new numbers."""
    parts, part, numbers, targets = context
    if parts[v] == part and end < targets.size:
        targets[end] = numbers[v]
        end += 1
    return end, False


def _make_row_walk(look):
    """Make a walk over the fellows of a vertex, its head first; see ``make_tail_walk``."""
    walk_tail = make_tail_walk(look)

    @inlined
    def walk(heads, bases, starts, shift, tails, v, carry, context):
        """Return the last carry, and the bytes looked at; -1 if the tail is malformed."""
        head, n = np.int64(heads[v]), context[0].size
        enough = False
        if head < n:
            carry, enough = look(carry, context, head)
        if enough:
            return carry, np.int64(0)
        begin, end = row_span(bases, starts, shift, tails.size, v)
        carry, count, num_bytes = walk_tail(tails, begin, end, n, carry, context)
        return carry, np.int64(-1) if count < 0 else num_bytes

    return walk


_find_fellow = _make_row_walk(_is_fellow)
_count_fellows = _make_row_walk(_count_fellow)
_keep_fellows = _make_row_walk(_keep_fellow)


@compiled(types.UniTuple(_I64, 2)(U8, *_ROWS, _I64, _I64))
def trim(parts, heads, bases, starts, shift, tails, first, stop):
    """Be done with the vertices of some rows that have no neighbour in their part.

    Returns how many that were, -1 if a tail is malformed, and the bytes of tails looked at. Other
    threads do the same: a vertex that is done meanwhile is a component of its own either way.
    """
    trimmed = total_bytes = np.int64(0)
    for v in range(first, stop):
        part = parts[v]
        if part != DONE:
            context = (parts, part)
            found, num_bytes = _find_fellow(heads, bases, starts, shift, tails, v, False, context)
            if num_bytes < 0:
                return np.int64(-1), total_bytes
            total_bytes += num_bytes
            if not found:
                parts[v] = DONE
                trimmed += 1
    return trimmed, total_bytes


@compiled(types.UniTuple(_I64, 2)(I64, READ_U32, READ_U8, *_ROWS, _I64, _I64))
def count(counts, numbers, parts, heads, bases, starts, shift, tails, first, stop):
    """Count the out-neighbours in the same part, at ``counts`` by new numbers.

    Returns 0, or -1 if a tail is malformed, and the bytes of tails looked at.
    """
    total_bytes = np.int64(0)
    for v in range(first, stop):
        if parts[v] != DONE:
            context = (parts, parts[v])
            counts[numbers[v]], num_bytes = _count_fellows(
                heads, bases, starts, shift, tails, v, np.int64(0), context
            )
            if num_bytes < 0:
                return np.int64(-1), total_bytes
            total_bytes += num_bytes
    return np.int64(0), total_bytes


@compiled(types.UniTuple(_I64, 2)(U32, READ_I64, READ_U32, READ_U8, *_ROWS, _I64, _I64))
def copy(targets, firsts, numbers, parts, heads, bases, starts, shift, tails, first, stop):
    """Copy the out-neighbours in the same part; return as ``count`` does."""
    total_bytes = np.int64(0)
    for v in range(first, stop):
        if parts[v] != DONE:
            context = (parts, parts[v], numbers, targets)
            end, num_bytes = _keep_fellows(
                heads, bases, starts, shift, tails, v, firsts[numbers[v]], context
            )
            if num_bytes < 0 or end != firsts[numbers[v] + 1]:
                return np.int64(-1), total_bytes
            total_bytes += num_bytes
    return np.int64(0), total_bytes


@compiled(types.void(U32, U32, READ_I64, READ_U32, I64, U32, U32))
def join(labels, lowest, firsts, targets, cursors, stack, path):
    """Label every vertex of a graph in memory with one of its component.

    ``cursors`` are a copy of ``firsts``, ``lowest`` are zeros, the rest is scratch. Until it is
    labeled, a vertex has its number in the order of visits for a label, from 1 on, and ``lowest``
    is the smallest number that it is known to reach.
    """
    never = np.uint32(0xFFFFFFFF)
    num_visited = 0
    num_stacked = 0
    for source in range(labels.size):
        if lowest[source] != 0:
            continue
        v = source
        length = 0
        while True:
            if lowest[v] == 0:
                num_visited += 1
                labels[v] = num_visited
                lowest[v] = num_visited
                stack[num_stacked] = v
                path[length] = v
                num_stacked += 1
                length += 1
            below = v
            while cursors[v] < firsts[v + 1]:
                w = np.int64(targets[cursors[v]])
                if lowest[w] == 0:
                    below = w
                    break
                # A vertex that is labeled has ``never``, which changes nothing.
                lowest[v] = min(lowest[v], lowest[w])
                cursors[v] += 1
            if below != v:
                v = below
                continue
            if lowest[v] == labels[v]:
                w = np.int64(-1)
                while w != v:
                    num_stacked -= 1
                    w = np.int64(stack[num_stacked])
                    labels[w] = v
                    lowest[w] = never
            length -= 1
            if length == 0:
                break
            # Its neighbour, the one at the cursor, is looked at again: now it has been visited.
            v = np.int64(path[length - 1])

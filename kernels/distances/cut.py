"""Searches for a centrality that end as soon as it cannot be large enough.

After level d, whose rows have so many neighbours in all, no more vertices than those can be at
distance d + 1, and all others are at least d + 2 away (Bergamini, Borassi, Crescenzi, Marino and
Meyerhenke, 2019: NBCut). Each row that was looked at narrows that.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, READ_I64, READ_U8, READ_U32, READ_U64, U32
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.gather import make_tail_walk
from oocbfs.kernels.varint import row_span

_I64 = types.int64
_F64 = types.Array(types.float64, 1, "C", readonly=True)
_BOOLS = types.Array(types.boolean, 1, "C", readonly=True)


@inlined
def _visit(end, context, v):
    """Put a vertex into the queue if it is new."""
    queue, seen, stamp = context
    queue[end] = v
    is_new = seen[v] != stamp
    seen[v] = stamp
    return end + np.int64(is_new), False


_visit_all = make_tail_walk(_visit)


@compiled(
    types.UniTuple(_I64, 2)(
        I64, READ_I64, _BOOLS, READ_U32, U32, U32, _I64, _F64, types.boolean,
        READ_U32, READ_U64, READ_U32, _I64, READ_U8, _I64, _I64,
    )
)  # fmt: skip
def cut_searches(
    kept, sources, inside, degrees, queue, seen, back, limits, harmonic,
    heads, bases, starts, shift, tails, first, stop,
):  # fmt: skip
    """Search from sources[first:stop] until they are cut; ``kept`` marks those that are not.

    ``limits`` are the number of vertices, and a cap: a centrality that cannot be above it is cut.
    For closeness it is minus the sum of distances. ``inside`` says which vertices count; it is
    empty where all do. ``back`` is 1 if every vertex but the source leads back to where it was
    found from. ``seen`` has no stamp above ``first``. Returns 0, or -1 if a tail is malformed, and
    the edges looked at.
    """
    num_vertices, least = np.int64(limits[0]), limits[1]
    edges = np.int64(0)
    for number in range(first, stop):
        stamp = np.uint32(number + 1)
        context = queue, seen, stamp
        queue[0] = sources[number]
        seen[sources[number]] = stamp
        begin, end, next_end = np.int64(0), np.int64(1), np.int64(1)
        depth, rest, total = np.int64(0), num_vertices - 1, 0.0
        leads = np.int64(degrees[sources[number]])
        is_cut = False
        while begin < end and rest > 0 and not is_cut:
            found, next_leads = np.int64(0), np.int64(0)
            for place in range(begin, end):
                u = np.int64(queue[place])
                first_new = next_end
                head = np.int64(heads[u])
                if head < heads.size:
                    next_end, _ = _visit(next_end, context, head)
                    edges += 1
                    begin_tail, end_tail = row_span(bases, starts, shift, tails.size, u)
                    next_end, looked, _ = _visit_all(
                        tails, begin_tail, end_tail, heads.size, next_end, context
                    )
                    if looked < 0:
                        return np.int64(-1), edges
                    edges += looked
                leads -= np.int64(degrees[u]) - (back if depth > 0 else 0)
                for new in range(first_new, next_end):
                    v = np.int64(queue[new])
                    found += inside[v] if inside.size else 1
                    next_leads += np.int64(degrees[v]) - back
                near = min(found + leads, rest)
                if harmonic:
                    cap = total + near / (depth + 1) + (rest - near) / (depth + 2)
                else:
                    cap = total - float((depth + 1) * near) - float((depth + 2) * (rest - near))
                if cap <= least:
                    is_cut = True
                    break
            total += found / (depth + 1) if harmonic else -float((depth + 1) * found)
            rest -= found
            begin, end = end, next_end
            depth += 1
            leads = next_leads
        kept[number] = not is_cut
    return np.int64(0), edges

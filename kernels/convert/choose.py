"""Which edges are in a sample: by hashes of their ids, so that it does not matter where they are.

The hash of an edge is the same from both ends: an edge is chosen in all its copies and directions.
"""

from __future__ import annotations

from numba import types

from oocbfs.kernels.array_types import READ_U64, U64
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.convert.generate import draw, mix

_CHOSEN = types.Array(types.boolean, 1, "C")
_LIMIT = types.uint64


@compiled(types.void(U64, READ_U64, types.uint64))
def hash_ids(out, ids, key):
    """Draw a number for each id, which is random but for the key."""
    for i in range(ids.size):
        out[i] = draw(key, ids[i])


@compiled(types.void(_CHOSEN, READ_U64, READ_U64, _LIMIT, _LIMIT))
def mark_chosen(chosen, sources, targets, edge_limit, vertex_limit):
    """Mark edges whose hash, and whose ends' hashes, are at most the limits."""
    for i in range(chosen.size):
        ends = max(sources[i], targets[i]) <= vertex_limit
        chosen[i] = ends and mix(sources[i] + targets[i]) <= edge_limit

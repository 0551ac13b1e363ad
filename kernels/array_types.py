"""Types of arrays for the signatures of compiled functions; READ_ ones are read-only."""

from __future__ import annotations

from numba import types

_KINDS = types.uint8, types.uint32, types.uint64

U8, U32, U64 = (types.Array(kind, 1, "C") for kind in _KINDS)
READ_U8, READ_U32, READ_U64 = (types.Array(kind, 1, "C", readonly=True) for kind in _KINDS)

"""Types of arrays for the signatures of compiled functions; READ_ ones are read-only."""

from __future__ import annotations

from numba import types

_SIGNED = types.int8, types.int32, types.int64
_UNSIGNED = types.uint8, types.uint16, types.uint32, types.uint64

I8, I32, I64 = (types.Array(kind, 1, "C") for kind in _SIGNED)
U8, U16, U32, U64 = (types.Array(kind, 1, "C") for kind in _UNSIGNED)
READ_I8, READ_I32, READ_I64 = (types.Array(kind, 1, "C", readonly=True) for kind in _SIGNED)
READ_U8, READ_U16, READ_U32, READ_U64 = (
    types.Array(kind, 1, "C", readonly=True) for kind in _UNSIGNED
)
U32_2D, U64_2D, I64_2D = (
    types.Array(kind, 2, "C") for kind in (types.uint32, types.uint64, types.int64)
)

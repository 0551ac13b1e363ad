"""Types of the arrays that loops over results take, and of plain numbers."""

from __future__ import annotations

from numba import types


def _array(dtype, *, readonly=False):
    return types.Array(dtype, 1, "C", readonly=readonly)


I64 = types.int64
I64_TABLE = types.Array(types.int64, 2, "C")

I8_ARRAY, READ_I8 = _array(types.int8), _array(types.int8, readonly=True)
I32_ARRAY, READ_I32 = _array(types.int32), _array(types.int32, readonly=True)
I64_ARRAY, READ_I64 = _array(types.int64), _array(types.int64, readonly=True)
U8_ARRAY, READ_U8 = _array(types.uint8), _array(types.uint8, readonly=True)
U32_ARRAY, READ_U32 = _array(types.uint32), _array(types.uint32, readonly=True)
U64_ARRAY, READ_U64 = _array(types.uint64), _array(types.uint64, readonly=True)

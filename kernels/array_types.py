"""Types of arrays: for the signatures of compiled functions, and for the fields of structs.

READ_ ones are read-only. A field of a named tuple that compiled code sees as a struct has a type
that says both what Python sees and what compiled code does.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

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

U8Array = Annotated[NDArray[np.uint8], U8]
I32Array = Annotated[NDArray[np.int32], I32]
I64Array = Annotated[NDArray[np.int64], I64]
U32Array = Annotated[NDArray[np.uint32], U32]
U64Array = Annotated[NDArray[np.uint64], U64]
ReadI64Array = Annotated[NDArray[np.int64], READ_I64]
ReadU8Array = Annotated[NDArray[np.uint8], READ_U8]
ReadU32Array = Annotated[NDArray[np.uint32], READ_U32]
ReadU64Array = Annotated[NDArray[np.uint64], READ_U64]
U32Grid = Annotated[NDArray[np.uint32], U32_2D]
U64Grid = Annotated[NDArray[np.uint64], U64_2D]
I64Grid = Annotated[NDArray[np.int64], I64_2D]

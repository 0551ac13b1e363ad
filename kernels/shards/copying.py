"""Copy the rows of a graph into shards: bytes are copied, nothing is decoded."""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U8, READ_U64, U8
from oocbfs.kernels.cache import compiled

_I64 = types.int64


@compiled(_I64(U8, READ_U8, READ_U64, _I64, _I64))
def copy_ranges(out, source, bounds, first, step):
    """Copy source[bounds[i] : bounds[i + 1]] for i = first, first + step, …; return the bytes."""
    size = np.int64(0)
    for i in range(first, bounds.size - 1, step):
        begin, end = np.int64(bounds[i]), np.int64(bounds[i + 1])
        out[size : size + end - begin] = source[begin:end]
        size += end - begin
    return size

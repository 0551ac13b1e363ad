"""Reading a few bytes of a file without Python, with the reads that follow already under way."""

from __future__ import annotations

import sys

import numpy as np
from numba import types
from numba.extending import intrinsic

from oocbfs.kernels.atomics import kernel
from oocbfs.kernels.disk.read import PAGE_BYTES, read_at
from oocbfs.kernels.internals import cgutils, ir
from oocbfs.kernels.point import state as words

_INTERRUPTED = -4
# POSIX_FADV_WILLNEED, the same wherever there is the call.
_WILL_NEED = 3
_CAN_ADVISE = sys.platform == "linux"
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


@intrinsic
def _advise(typingctx, descriptor, offset, count):
    """Tell the system that bytes will be read; where it cannot be told, do nothing."""

    def codegen(context, builder, signature, args):
        if _CAN_ADVISE:
            kind = ir.FunctionType(_I32, [_I32, _I64, _I64, _I32])
            call = cgutils.get_or_insert_function(builder.module, kind, "posix_fadvise")
            descriptor = builder.trunc(args[0], _I32)
            builder.call(call, [descriptor, args[1], args[2], ir.Constant(_I32, _WILL_NEED)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@kernel
def expect_bytes(descriptor, offset, count):
    """Have the system begin to read some bytes, without waiting for them."""
    _advise(np.int64(descriptor), np.int64(offset), np.int64(count))


@kernel
def read_bytes(descriptor, out, count, offset, control):
    """Read bytes at an offset of the file to the begin of ``out``; tell whether that worked."""
    done = np.int64(0)
    while done < count:
        got = read_at(np.int64(descriptor), out, done, count - done, np.int64(offset) + done)
        if got == _INTERRUPTED:
            continue
        if got <= 0:
            control[words.SYSTEM_ERROR] = -got
            return False
        done += got
    first, last = offset // PAGE_BYTES, (offset + count - 1) // PAGE_BYTES
    control[words.PAGES] += last - first + 1
    return True

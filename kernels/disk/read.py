"""Reading from a file without Python: the system call, and whole pages of the tails through it."""

from __future__ import annotations

import sys
from typing import NamedTuple

from numba import types
from numba.extending import intrinsic

from oocbfs.kernels.atomics import atomic_add, kernel
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.internals import cgutils, ir

PAGE_BYTES = 4096
_ERRNO = "__error" if sys.platform == "darwin" else "__errno_location"
_INTERRUPTED = 4
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


class Disk(NamedTuple):
    """Where the tails of one direction lie: an open file, the offset in it, and their size."""

    descriptor: int
    offset: int
    tail_bytes: int


# No tails, on which kernels are compiled before they are needed.
NO_TAILS = Disk(descriptor=0, offset=0, tail_bytes=0)


@intrinsic
def read_at(typingctx, descriptor, out, index, count, offset):
    """Read up to count bytes at an offset into out[index:]; return their number, or -errno."""

    def codegen(context, builder, signature, args):
        byte_pointer = ir.IntType(8).as_pointer()
        view = context.make_array(signature.args[1])(context, builder, args[1])
        pointer = cgutils.get_item_pointer(
            context, builder, signature.args[1], view, [args[2]], wraparound=False
        )
        kind = ir.FunctionType(_I64, [_I32, byte_pointer, _I64, _I64])
        read = cgutils.get_or_insert_function(builder.module, kind, "pread")
        descriptor = builder.trunc(args[0], _I32)
        count = builder.call(
            read, [descriptor, builder.bitcast(pointer, byte_pointer), args[3], args[4]]
        )
        where = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I32.as_pointer(), []), _ERRNO
        )
        error = builder.sext(builder.load(builder.call(where, [])), _I64)
        failed = builder.icmp_signed("<", count, ir.Constant(_I64, 0))
        return builder.select(failed, builder.neg(error), count)

    kinds = (types.int64, out, types.intp, types.int64, types.int64)
    return types.int64(*kinds), codegen


@kernel
def read_pages(out, index, count, disk, begin, control):
    """Read count bytes of the tails, whole pages from ``begin`` on; tell whether that worked.

    The count is one of whole pages too: after the tails, the file goes on with the chunk table.
    """
    done = 0
    while done < count:
        got = read_at(disk.descriptor, out, index + done, count - done, disk.offset + begin + done)
        if got == -_INTERRUPTED:
            continue
        if got <= 0:
            control[words.SYSTEM_ERROR] = -got
            control[words.FAILED] = words.READ_FAILED
            return False
        done += got
    atomic_add(control, words.DISK_BYTES, count)
    return True

"""Reading from a file without Python: the system call, and whole pages of the tails through it.

Tails in frames are read in the frames that hold the pages, and unpacked by the thread that reads.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from oocbfs.kernels.array_types import I64, U8
from oocbfs.kernels.atomics import atomic_add, kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import FRAME_BYTES
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.frames import FRAME_SHIFT, READ_AT, ROOM_AT, unpack_bytes
from oocbfs.kernels.internals import cgutils, ir

PAGE_BYTES = 4096
_ERRNO = "__error" if sys.platform == "darwin" else "__errno_location"
_INTERRUPTED = 4
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


class Disk(NamedTuple):
    """Where the tails of one direction lie: an open file, the offset in it, and their size.

    Of tails in frames, ``frames`` says where each begins behind the offset, and where the last one
    ends; ``decompress`` is the address of zstd, and ``damaged`` how a step fails that finds a frame
    damaged.
    """

    descriptor: int
    offset: int
    tail_bytes: int
    frames: NDArray[np.int64]
    decompress: int = 0
    damaged: int = words.DAMAGED


NO_FRAMES = np.empty(0, np.int64)
NO_FRAMES.flags.writeable = False
# No tails, on which kernels are compiled before they are needed.
NO_TAILS = Disk(descriptor=0, offset=0, tail_bytes=0, frames=NO_FRAMES)


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
def _read(out, index, count, disk, begin, control):
    """Read bytes from an offset of the section on; tell whether that worked."""
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


@kernel
def _unpack(out, index, begin, end, disk, frame, scratch, at, count):
    """Unpack a frame at scratch[at:] and copy what it has of the bytes begin … end-1 to out."""
    first = frame << FRAME_SHIFT
    size = min(disk.tail_bytes - first, FRAME_BYTES)
    if begin <= first and first + size <= end:
        place = index + first - begin
        return unpack_bytes(out, place, size, scratch, at, count, scratch, disk.decompress)
    if not unpack_bytes(scratch, ROOM_AT, size, scratch, at, count, scratch, disk.decompress):
        return False
    for i in range(max(first, begin), min(first + size, end)):
        out[index + i - begin] = scratch[ROOM_AT + i - first]
    return True


@kernel
def _read_frames(out, index, count, disk, begin, control, scratch):
    """Read the frames that hold some pages in one read, and unpack these pages of them."""
    end = min(begin + count, disk.tail_bytes)
    first, last = begin >> FRAME_SHIFT, (end - 1) >> FRAME_SHIFT
    page = disk.frames[first] // PAGE_BYTES * PAGE_BYTES
    size = (disk.frames[last + 1] - page + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES
    if not _read(scratch, READ_AT, size, disk, page, control):
        return False
    for frame in range(first, last + 1):
        at = READ_AT + disk.frames[frame] - page
        stored = disk.frames[frame + 1] - disk.frames[frame]
        if not _unpack(out, index, begin, end, disk, frame, scratch, at, stored):
            control[words.FRAME] = frame
            control[words.FAILED] = disk.damaged
            return False
    return True


@kernel
def read_pages(out, index, count, disk, begin, control, scratch):
    """Read count bytes of the tails, whole pages from ``begin`` on; tell whether that worked.

    The count is one of whole pages too: after the tails, the file goes on with the chunk table.
    Scratch is that of the thread, and used for frames only.
    """
    if disk.frames.size != 0:
        return _read_frames(out, index, count, disk, begin, control, scratch)
    return _read(out, index, count, disk, begin, control)


@compiled(types.void(U8, typeof(NO_TAILS), types.int64, I64, U8), _nrt=False)
def read_frames(out, disk, begin, control, scratch):
    """Fill an array with whole pages of tails in frames; control words say how that failed."""
    _read_frames(out, 0, out.size, disk, begin, control, scratch)

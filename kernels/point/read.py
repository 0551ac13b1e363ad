"""Reading a few bytes of a file without Python, with the reads that follow already under way.

Of sections in frames, whole frames are read and unpacked, and some of them kept.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import types
from numba.extending import intrinsic

from oocbfs.kernels.atomics import apart, kernel
from oocbfs.kernels.constants import BYTES, FRAME_BYTES
from oocbfs.kernels.disk.read import PAGE_BYTES, read_at
from oocbfs.kernels.frames import FRAME_SHIFT, READ_AT, unpack_bytes, unpack_numbers
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
def expect_contents(rows, section, offset, count):
    """Have the system begin to read contents of a section, without waiting for them."""
    at, first = rows.places[section, words.AT], rows.places[section, words.FIRST_FRAME]
    if first >= 0:
        begin = rows.frames[first + (offset >> FRAME_SHIFT)]
        count = rows.frames[first + ((offset + count - 1) >> FRAME_SHIFT) + 1] - begin
        offset = begin
    _advise(np.int64(rows.descriptor), np.int64(at + offset), np.int64(count))


@kernel
def _read_bytes(descriptor, out, count, offset, control):
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


@kernel
def _find_frame(rows, reach, section, frame):
    """Return where a frame is kept, which is read if it is not; or what went wrong, negative."""
    slot = section * words.KEPT_FRAMES + frame % words.KEPT_FRAMES
    tag = np.int64(rows.first_section + section) << 48 | frame
    at = slot << FRAME_SHIFT
    if reach.tags[slot] == tag:
        return at
    reach.tags[slot] = -1
    places, scratch, control = rows.places, reach.scratch, reach.control
    entry = places[section, words.FIRST_FRAME] + frame
    begin = rows.frames[entry]
    count = rows.frames[entry + 1] - begin
    offset = places[section, words.AT] + begin
    if not _read_bytes(rows.descriptor, scratch[READ_AT:], count, offset, control):
        return -np.int64(words.READ_FAILED)
    size = min(places[section, words.RAW_BYTES] - (frame << FRAME_SHIFT), FRAME_BYTES)
    coding, frames, zstd = places[section, words.CODING], reach.unpacked, rows.decompress
    if coding == BYTES:
        is_sound = unpack_bytes(frames, at, size, scratch, READ_AT, count, scratch, zstd)
    else:
        is_sound = unpack_numbers(
            frames, reach.numbers, at, size, scratch, READ_AT, count, coding, scratch, zstd
        )
    if not is_sound:
        control[words.SYSTEM_ERROR] = tag
        return -np.int64(words.DAMAGED)
    reach.tags[slot] = tag
    control[words.FRAMES] += 1
    return at


@apart
def read_contents(rows, reach, section, offset, count):
    """Read contents of a section to the begin of the buffer; say how that ended."""
    buffer = reach.buffer
    if rows.places[section, words.FIRST_FRAME] < 0:
        at = rows.places[section, words.AT] + offset
        is_read = _read_bytes(rows.descriptor, buffer, count, at, reach.control)
        return np.int64(words.WHOLE if is_read else words.READ_FAILED)
    done = np.int64(0)
    while done < count:
        frame = (offset + done) >> FRAME_SHIFT
        place = _find_frame(rows, reach, section, frame)
        if place < 0:
            return -place
        within = offset + done - (frame << FRAME_SHIFT)
        size = min(count - done, FRAME_BYTES - within)
        for i in range(size):
            buffer[done + i] = reach.unpacked[place + within + i]
        done += size
    return np.int64(words.WHOLE)

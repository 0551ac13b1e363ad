"""Ranges of the bytes of the tails: which of them the device holds, and which must be mapped."""

from __future__ import annotations

from oocbfs.kernels.constants import SEGMENT_BYTES

# Offset of the first byte, and the end.
ByteRange = tuple[int, int]

# A device range begins and ends at lines, so that a sector lies wholly inside or outside.
LINE_BYTES = 128
# Host memory is pinned by pages.
PAGE_BYTES = 4096


def align_range(device_range: ByteRange, tail_bytes: int) -> ByteRange:
    """Move the edges of a device range to lines; one that reaches the last line takes it whole."""
    begin, end = (edge // LINE_BYTES * LINE_BYTES for edge in device_range)
    if device_range[0] < device_range[1] and end >= tail_bytes // LINE_BYTES * LINE_BYTES:
        end = -(-tail_bytes // LINE_BYTES) * LINE_BYTES
    return min(begin, end), end


def slow_range(device_range: ByteRange, host_range: ByteRange, tail_bytes: int) -> ByteRange:
    """Return the smallest range of pages that must be mapped: what only the host holds lies in it.

    A segment that begins in the host range may end after it.
    """
    host_begin, host_end = host_range
    if host_begin == host_end:
        return 0, 0
    begin, end = device_range if device_range[0] < device_range[1] else (host_begin, host_begin)
    stop = min(host_end + SEGMENT_BYTES, tail_bytes)
    last = stop if end < stop else begin
    first = host_begin if host_begin < begin else min(end, last)
    return first // PAGE_BYTES * PAGE_BYTES if first < last else last, last

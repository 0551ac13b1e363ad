"""How much of a file is in the page cache of the kernel."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable

# So many windows of a file are looked at, each of so many bytes.
_WINDOWS = 64
_WINDOW_BYTES = 64 * mmap.ALLOCATIONGRANULARITY


def cached_share(descriptor: int, begin: int, end: int) -> float | None:
    """Estimate how much of a part of a file is in the page cache; None if nobody tells.

    The kernel tells only who may write to the file; to others, all of it seems to be there.
    """
    try:
        mincore = ctypes.CDLL(None, use_errno=True).mincore
        end = min(end, os.fstat(descriptor).st_size)
        pages = [_cached_pages(mincore, descriptor, offset, end) for offset in _offsets(begin, end)]
    except (AttributeError, OSError, ValueError):
        return None
    total = sum(count for _, count in pages)
    return sum(cached for cached, _ in pages) / total if total else None


def _offsets(begin: int, end: int) -> list[int]:
    """Return the offsets of windows all over a part of a file."""
    step = max(_WINDOW_BYTES, (end - begin) // _WINDOWS // _WINDOW_BYTES * _WINDOW_BYTES)
    return list(range(begin // _WINDOW_BYTES * _WINDOW_BYTES, end, step))


def _cached_pages(
    mincore: Callable[..., int], descriptor: int, offset: int, end: int
) -> tuple[int, int]:
    """Count the pages of a window that are in the cache, and all of them."""
    length = min(_WINDOW_BYTES, end - offset)
    # A private mapping, because ctypes gives the address only of one that could be written to.
    with mmap.mmap(descriptor, length, access=mmap.ACCESS_COPY, offset=offset) as window:
        there = (ctypes.c_ubyte * (-(-length // mmap.PAGESIZE)))()
        first = ctypes.c_char.from_buffer(window)
        failed = mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(length), there)
        del first
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in there), len(there)

"""Find zstd as a C function, which compiled code calls without the GIL.

The wheels of zstandard have it in a library of their own; other builds use that of the system.
Where neither is found, Python decompresses, one thread at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import zstandard
from numpy.typing import NDArray

from oocbfs.formats.io.direct import page_aligned
from oocbfs.kernels.frames import READ_AT

# What a context takes.
CONTEXT_BYTES = 160 << 10
# Negative as a number with a sign, as all errors of zstd.
_FAILED = -1
_Decompress = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t,
    ctypes.c_void_p,
    *(ctypes.c_void_p, ctypes.c_size_t),
    *(ctypes.c_void_p, ctypes.c_size_t),
)


class Zstd(NamedTuple):
    """Where zstd is.

    decompress
        The address of a function (context, out, capacity, packed, count), which returns the size of
        what it wrote, or a negative number.
    create, free
        Make a context, of which a thread needs one of its own, and end it.
    """

    decompress: int
    create: Callable[[], int]
    free: Callable[[int], object]


@cache
def find_zstd() -> Zstd:
    """Return zstd as it is found on this machine."""
    return in_wheel() or in_system() or in_python()


def in_wheel() -> Zstd | None:
    """Return what the library of zstandard has."""
    folder = Path(zstandard.__file__).parent
    found = (_load(str(path)) for path in sorted(folder.glob("_cffi*.so")))
    return next(filter(None, found), None)


def in_system() -> Zstd | None:
    """Return what the system's library has."""
    name = find_library("zstd")
    return None if name is None else _load(name)


def in_python() -> Zstd:
    """Return a function that asks Python."""
    return Zstd(_address(_python_function()), lambda: 0, lambda context: None)


def make_scratch(
    num_threads: int, read_bytes: int = 0, *, buffer_bytes: int = 0, zstd: Zstd | None = None
) -> NDArray[np.uint8]:
    """Return scratch for each thread, with room for so many bytes as they are read.

    It is behind a buffer of so many bytes, if any; both are whole pages.
    """
    zstd = find_zstd() if zstd is None else zstd
    row = buffer_bytes + READ_AT + read_bytes
    memory = page_aligned(num_threads * row)
    scratch = memory.reshape(num_threads, row)
    for i in range(num_threads):
        context = zstd.create()
        scratch[i, buffer_bytes : buffer_bytes + 8].view(np.uint64)[0] = context
        # The context goes with the memory that names it.
        finalize(memory, zstd.free, context)
    return scratch


@cache
def _load(library: str) -> Zstd | None:
    """Load a library, which stays: its code may be running at the end of the process."""
    try:
        loaded = ctypes.CDLL(library)
        create, free = loaded.ZSTD_createDCtx, loaded.ZSTD_freeDCtx
        decompress = _address(loaded.ZSTD_decompressDCtx)
    except (OSError, AttributeError):
        return None
    create.restype = ctypes.c_void_p
    free.argtypes = [ctypes.c_void_p]

    def made() -> int:
        context: int | None = create()
        if context is None:
            raise MemoryError("zstd gets no memory")
        return context

    return Zstd(decompress, made, free)


@cache
def _python_function() -> Any:
    def decompress(context: int, out: int, capacity: int, packed: int, count: int) -> int:
        data = ctypes.string_at(packed, count)
        try:
            # A frame may say that it becomes larger than there is memory.
            if zstandard.get_frame_parameters(data).content_size > capacity:
                return _FAILED
            contents = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
        except zstandard.ZstdError:
            return _FAILED
        ctypes.memmove(out, contents, len(contents))
        return len(contents)

    return _Decompress(decompress)


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address

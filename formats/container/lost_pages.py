"""Notice that a mapped file cannot be read any more, instead of ending with a bus error.

A page that another program cut off, or that the disk cannot read, raises SIGBUS when it is touched.
The handler maps zeros from this page on and sets a flag; the reader of the mapping checks the flag
afterwards and drops its result. Faults elsewhere are handled as before. Only Linux has this; on
other systems nothing is noticed.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import sys
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np

# In siginfo_t, on all 64-bit Linux machines.
_ADDRESS_OFFSET = 16
_SA_SIGINFO = 4
_MAP_FIXED = 16
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    """``struct sigaction``."""

    _fields_ = (
        ("handler", _Handler),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class PageWatch:
    """Whether all that was read from a mapping was really there."""

    def __init__(self, mapping: mmap.mmap) -> None:
        self.begin = np.frombuffer(mapping, np.uint8).ctypes.data
        self.end = self.begin + len(mapping)
        self.lost = False
        if sys.platform == "linux":
            _install()
            _watches.add(self)
            finalize(mapping, _watches.discard, self)


# Each stays as long as its mapping lives, which may be longer than the file was open.
_watches: set[PageWatch] = set()


@cache
def _install() -> tuple[Any, ...]:
    """Handle SIGBUS from now on; returns what must stay alive."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    previous = _Action()

    # The fault comes from an instruction that reads a mapping, never from inside the interpreter's
    # own data, so that Python code may run here.
    def handle(number: int, info: int, context: int) -> None:
        address = ctypes.c_uint64.from_address(info + _ADDRESS_OFFSET).value
        page = address // mmap.PAGESIZE * mmap.PAGESIZE
        for watch in list(_watches):
            if watch.begin <= address < watch.end:
                watch.lost = True
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
                libc.mmap(page, watch.end - page, mmap.PROT_READ, flags, -1, 0)
                return
        libc.sigaction(signal.SIGBUS, ctypes.byref(previous), None)

    action = _Action(_Handler(handle), (ctypes.c_ubyte * 128)(), _SA_SIGINFO, None)
    libc.sigaction(signal.SIGBUS, ctypes.byref(action), ctypes.byref(previous))
    return action, previous, libc

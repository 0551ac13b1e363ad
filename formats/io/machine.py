"""What this machine gives a process: cores, memory, reads at an offset.

The only module that knows what operating systems lack. macOS has neither ``sched_getaffinity`` nor
``SC_AVPHYS_PAGES``, and ``preadv`` only since version 11.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from io import FileIO
from pathlib import Path

# If nothing tells how much memory there is.
_MIN_BYTES = 1 << 30
_MEMINFO = Path("/proc/meminfo")


def usable_cores() -> int:
    """Count the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_bytes() -> int:
    """Return how much memory the machine has."""
    return _sysconf_bytes("SC_PHYS_PAGES") or _MIN_BYTES


def free_bytes() -> int:
    """Return how much memory the machine has free; half of all if the system does not tell."""
    try:
        match = re.search(r"MemAvailable:\s+(\d+) kB", _MEMINFO.read_text())
    except OSError:
        match = None
    if match is not None:
        return int(match[1]) * 1024
    return _sysconf_bytes("SC_AVPHYS_PAGES") or total_bytes() // 2


def _sysconf_bytes(name: str) -> int:
    """Ask for a number of pages; 0 if the system does not know it."""
    try:
        return max(0, os.sysconf(name)) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def open_regular(path: str | os.PathLike[str]) -> FileIO:
    """Open a file for reading, and nothing else: opening a pipe would wait for a writer.

    It comes as an object, because Ctrl-C can lose a descriptor before anybody has noted it.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "is a folder, a pipe or a device; name a file")
    return FileIO(path)


def read_at(descriptor: int, view: memoryview, offset: int) -> int:
    """Fill a view from an offset of a file; return the number of bytes, which may be fewer."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [view], offset)
    data = os.pread(descriptor, len(view), offset)
    view[: len(data)] = data
    return len(data)

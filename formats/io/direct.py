"""Read a file past the page cache, so that it takes no memory but the reader's own."""

from __future__ import annotations

import fcntl
import mmap
import os
from contextlib import ExitStack
from io import FileIO
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.io.closing import release
from oocbfs.formats.io.machine import open_regular, read_at
from oocbfs.formats.io.ordered import ordered_map

_PAGE_BYTES = 4096
_PIECE_BYTES = 4 << 20
# Reads in flight at a time; more do not make a sequential scan faster.
_READERS = 8


def page_aligned(size: int) -> NDArray[np.uint8]:
    """Allocate zeros at a page boundary, in huge pages where there are some."""
    whole = -(-max(1, size) // _PAGE_BYTES) * _PAGE_BYTES
    # Private, because shared memory gets no huge pages.
    memory = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def unread(size: int) -> NDArray[np.uint8]:
    """Return an array of so many bytes that takes no memory, because nobody reads it."""
    if not size:
        return np.empty(0, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ), np.uint8)


class DirectFile:
    """An open file that is read in whole pages by many threads.

    If the file system has no direct reads, they go through the page cache, which the kernel takes
    back when memory is short; ``direct`` tells which.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._open = ExitStack()
        # Closed also if a graph is dropped without close().
        finalize(self, self._open.close)
        try:
            self.descriptor = self._keep(open_regular(self.path))
            self.direct = _read_directly(self.descriptor)
            # The same file, for reads that are likely to come again soon.
            self.cached_descriptor = self._keep(open_regular(f"/dev/fd/{self.descriptor}"))
        except OSError as error:
            self._open.close()
            raise FormatError.like(
                error, f"{self.path}: cannot be opened: {error.strerror}"
            ) from error

    def _keep(self, file: FileIO) -> int:
        """Keep a file open until this is closed; return its descriptor. It is read at random."""
        self._open.callback(release, file)
        descriptor = file.fileno()
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        return descriptor

    def explain(self, error: int) -> FormatError:
        """Return why a read failed, by the system's error number; 0 is the end of the file."""
        reason = os.strerror(error) if error else "it was cut short by another program"
        return FormatError(
            f"{self.path}: cannot be read: {reason}; copy or convert the graph again"
        )

    def read_into(self, out: NDArray[np.uint8], offset: int) -> None:
        """Fill a page-aligned array of whole pages, or up to the end of the file."""
        view = memoryview(out)
        while len(view):
            try:
                count = read_at(self.descriptor, view, offset)
            except OSError as error:
                raise self.explain(error.errno or 0) from error
            if count == 0 or (count < len(view) and count % _PAGE_BYTES):
                raise self.explain(0)
            view, offset = view[count:], offset + count

    def read(self, offset: int, size: int) -> NDArray[np.uint8]:
        """Read from a page boundary on, several reads in flight, into memory of its own."""
        out = page_aligned(size)

        def work(first: int) -> None:
            self.read_into(out[first : first + _PIECE_BYTES], offset + first)

        for _ in ordered_map(work, range(0, out.size if size else 0, _PIECE_BYTES), _READERS):
            pass
        return out[:size]

    def close(self) -> None:
        """Close the file."""
        self._open.close()
        self.descriptor = self.cached_descriptor = -1


def _read_directly(descriptor: int) -> bool:
    """Let reads go past the page cache; returns whether the file system can do that."""
    if not hasattr(os, "O_DIRECT"):
        return False
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
        read_at(descriptor, memoryview(page_aligned(_PAGE_BYTES)), 0)
    except OSError:  # some file systems refuse only now
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
        return False
    return True

"""Read a file past the page cache, so that it takes no memory but the reader's own."""

from __future__ import annotations

import mmap
import os
from contextlib import ExitStack
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.io.machine import read_at
from oocbfs.formats.io.ordered import ordered_map

# If a pipe has replaced the file, opening it does not wait for a writer.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
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
            direct = _open_direct(self.path)
            self.direct = direct is not None
            self.descriptor = self._keep(os.open(self.path, _FLAGS) if direct is None else direct)
            # The same file, for reads that are likely to come again soon.
            self.cached_descriptor = self._keep(os.open(f"/dev/fd/{self.descriptor}", _FLAGS))
        except OSError as error:
            self._open.close()
            raise FormatError(f"{self.path}: cannot be opened: {error.strerror}") from error

    def _keep(self, descriptor: int) -> int:
        """Keep a descriptor until this is closed; it is read at random."""
        self._open.callback(os.close, descriptor)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        return descriptor

    def explain(self, error: int) -> FormatError:
        """Say why a read failed, by the system's error number; 0 is the end of the file."""
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


def _open_direct(path: str) -> int | None:
    """Open a file for direct reads; None if the file system has none."""
    if not hasattr(os, "O_DIRECT"):
        return None
    try:
        descriptor = os.open(path, _FLAGS | os.O_DIRECT)
    except OSError:
        return None
    try:
        read_at(descriptor, memoryview(page_aligned(_PAGE_BYTES)), 0)
    except OSError:  # some file systems refuse only now
        os.close(descriptor)
        return None
    return descriptor

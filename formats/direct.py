"""Read a file past the page cache, so that what it holds costs no memory but the reader's own."""

from __future__ import annotations

import mmap
import os

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.machine import read_at
from oocbfs.formats.ordered import ordered_map

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

    Where the file system knows no direct reads, they go through the page cache, which the kernel takes
    back when memory is short; ``direct`` says which.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        flags = os.O_RDONLY | os.O_CLOEXEC
        self.direct = hasattr(os, "O_DIRECT")
        try:
            try:
                self.descriptor = os.open(self.path, flags | getattr(os, "O_DIRECT", 0))
                self.first_page = self._read_page()
            except OSError:
                if not self.direct:
                    raise
                self.direct = False
                self.descriptor = os.open(self.path, flags)
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_RANDOM)
                self.first_page = self._read_page()
            # The same file, for reads that are likely to come again soon.
            self.cached_descriptor = os.open(f"/dev/fd/{self.descriptor}", flags)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(self.cached_descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be opened: {error.strerror}") from error

    def _read_page(self) -> bytes:
        page = page_aligned(_PAGE_BYTES)
        count = read_at(self.descriptor, memoryview(page), 0)
        return page[:count].tobytes()

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
        if self.descriptor >= 0:
            os.close(self.descriptor)
            os.close(self.cached_descriptor)
            self.descriptor = self.cached_descriptor = -1

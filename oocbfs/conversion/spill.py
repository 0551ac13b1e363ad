"""Data that waits in memory as long as it fits its budget, and in a temporary file after that."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oocbfs.conversion.disk import Disk
from oocbfs.errors import OutputError
from oocbfs.formats.io.machine import read_at
from oocbfs.formats.io.temporary import explained_writes, unnamed_file
from oocbfs.kernels.threads import renewed_after_fork


class SpillFile:
    """A temporary file without a name, so that nothing remains however the process ends."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._disk = folder if isinstance(folder, Disk) else Disk(folder)
        self._folder = os.fspath(folder)
        self._file: Any = None
        self._lock = renewed_after_fork(Lock())
        self.size = 0

    def append(self, data: NDArray[Any]) -> int:
        """Write an array's bytes at the end; returns the offset where they begin."""
        start = self.reserve(data.nbytes)
        self.write_at(data, start)
        return start

    def reserve(self, num_bytes: int) -> int:
        """Leave room for bytes that are written later; returns the offset where it begins."""
        with self._lock:  # several threads may write
            start = self.size
            self.size += num_bytes
            self._disk.take(num_bytes)
            return start

    def write_at(self, data: NDArray[Any], start: int) -> None:
        """Write an array's bytes from offset ``start`` on."""
        view = memoryview(np.ascontiguousarray(data).view(np.uint8).reshape(-1))
        with self._lock:
            if self._file is None:
                self._file = unnamed_file(self._folder)
        with explained_writes(self._folder):
            while len(view):
                written = os.pwrite(self._file.fileno(), view, start)
                start += written
                view = view[written:]

    def read_into(self, out: NDArray[Any], start: int) -> None:
        """Fill an array with the bytes from offset ``start`` on."""
        view = memoryview(out.view(np.uint8).reshape(-1))
        while len(view):
            count = read_at(self._file.fileno(), view, start)
            if count == 0:
                raise OutputError(
                    f"{self._folder}: temporary data was cut short by another program"
                )
            view, start = view[count:], start + count

    @contextmanager
    def mapped(self, dtype: DTypeLike) -> Iterator[tuple[NDArray[Any], Callable[[], None]]]:
        """Map all that was written; also gives a function that releases its pages."""
        if self.size == 0:
            yield np.empty(0, dtype), lambda: None
            return
        view = mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ)
        yield np.frombuffer(view, dtype), lambda: view.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Release the space."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._disk.take(-self.size)


class BlockLog:
    """Arrays in the order they came: in memory up to a budget, the others in a spill file."""

    def __init__(self, folder: str | os.PathLike[str], budget_bytes: int) -> None:
        self._spill = SpillFile(folder)
        self._budget_bytes = budget_bytes
        self._blocks: list[NDArray[Any] | tuple[int, int, np.dtype[Any]]] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def append(self, block: NDArray[Any]) -> None:
        """Add an array, which the log keeps: hand over a copy of anything that changes."""
        if block.nbytes <= self._budget_bytes:
            self._budget_bytes -= block.nbytes
            self._blocks.append(block)
        else:
            self._budget_bytes = 0  # keeps the blocks on disk together
            self._blocks.append((self._spill.append(block), block.size, block.dtype))

    def take(self, index: int, *, keep: bool) -> NDArray[Any]:
        """Read the array at a position, and unless it is to be kept, release its memory."""
        block = self._blocks[index]
        if isinstance(block, tuple):
            start, size, dtype = block
            array = np.empty(size, dtype)
            self._spill.read_into(array, start)
            return array
        if not keep:
            self._blocks[index] = np.empty(0, block.dtype)
        return block

    @property
    def resident_bytes(self) -> int:
        """Bytes held in memory."""
        return sum(block.nbytes for block in self._blocks if not isinstance(block, tuple))

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._spill.size

    def close(self) -> None:
        """Release memory and disk space."""
        self._blocks.clear()
        self._spill.close()

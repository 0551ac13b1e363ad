"""The arrays of results: in memory as far as a budget allows, and else in mapped files."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OutputError

# What debugging fills fresh results with: no level, no vertex and no likely id.
_POISON = 0xAA
# Smaller results are not worth pooling; more than this many are not kept.
_LEAST_POOLED = 1 << 16
_MOST_POOLED = 4


def fresh(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:  # noqa: ANN401
    """Allocate an array of results; with OOCBFS_POISON=1 what is never set in it shows."""
    return _poison(np.empty(shape, dtype))


def _poison(array: NDArray[Any]) -> NDArray[Any]:
    if os.environ.get("OOCBFS_POISON") == "1":
        array.reshape(-1).view(np.uint8)[:] = _POISON
    return array


class ResultPool:
    """Memory of results that nobody holds any more, for the next ones.

    Asking the system for memory and touching it for the first time can take longer than a search.
    """

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def allocate(self, size: int, dtype: Any) -> NDArray[Any]:  # noqa: ANN401
        """Allocate an array; its memory comes back when the last view of it is gone."""
        num_bytes = size * np.dtype(dtype).itemsize
        if num_bytes < _LEAST_POOLED:
            return fresh(size, dtype)
        memory = self._take(num_bytes)
        lease = (ctypes.c_char * num_bytes).from_buffer(memory)
        weakref.finalize(lease, self._give_back, memory).atexit = False
        return _poison(np.frombuffer(lease, dtype))

    def _take(self, num_bytes: int) -> mmap.mmap:
        """Take memory that came back, or new memory; other threads may do so at the same time."""
        others = []
        try:
            # One operation finds and removes, so that no two threads take the same.
            while len(memory := self._free.pop()) != num_bytes:
                others.append(memory)
            return memory
        except IndexError:
            pass
        finally:
            self._free.extend(others)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        memory = mmap.mmap(-1, num_bytes, flags=flags)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        return memory

    def _give_back(self, memory: mmap.mmap) -> None:
        """Keep memory for the next result."""
        if len(self._free) < _MOST_POOLED:
            self._free.append(memory)


class ResultArrays:
    """Memory that may still be taken; None is without bound, and then may come from a pool."""

    def __init__(
        self,
        free_bytes: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        pool: ResultPool | None = None,
    ) -> None:
        self._free_bytes = free_bytes
        self._pool = pool
        self._folder = tempfile.gettempdir() if folder is None else os.fspath(folder)

    def allocate(self, size: int, dtype: Any) -> NDArray[Any]:  # noqa: ANN401
        """Allocate an array, in memory or else in a file without a name that is mapped."""
        num_bytes = size * np.dtype(dtype).itemsize
        if self._free_bytes is None:
            return fresh(size, dtype) if self._pool is None else self._pool.allocate(size, dtype)
        if num_bytes <= self._free_bytes:
            self._free_bytes -= num_bytes
            return fresh(size, dtype)
        return self._mapped(size, num_bytes, dtype)

    def release(self, array: NDArray[Any]) -> None:
        """Give back an array that is not used any more."""
        if self._free_bytes is not None and not is_mapped(array):
            self._free_bytes += array.nbytes

    def _mapped(self, size: int, num_bytes: int, dtype: Any) -> NDArray[Any]:  # noqa: ANN401
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                # Reserved, because a disk that fills up later would be a bus error.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, num_bytes)
                return _poison(np.memmap(file, dtype, "r+", shape=(size,)))
        except OSError as error:
            raise OutputError(
                f"{self._folder}: no place for {num_bytes:,} bytes of results ({error.strerror}): "
                "free some space, name another folder with --tmp, or allow more --memory"
            ) from error


def is_mapped(array: NDArray[Any]) -> bool:
    """Tell whether an array lives in a file."""
    return isinstance(array, np.memmap)

"""The arrays of results: in memory as far as a budget allows, and else in mapped files."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OutputError
from oocbfs.formats.io.ordered import over_ranges

# What debugging fills fresh results with: no level, no vertex and no likely id.
_POISON = 0xAA
# Smaller results are not worth pooling; more than this many are not kept.
_LEAST_POOLED = 1 << 16
_MOST_POOLED = 4
# Elements of arrays that are looked at at a time.
PIECE = 1 << 20


def fresh(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Allocate an array of results; with OOCBFS_POISON=1 what is never set in it shows."""
    return _poison(np.empty(shape, dtype))


@cache
def _is_debugging() -> bool:
    return os.environ.get("OOCBFS_POISON") == "1"


def _poison(array: NDArray[Any]) -> NDArray[Any]:
    if _is_debugging():
        array.reshape(-1).view(np.uint8)[:] = _POISON
    return array


class _Block:
    """Memory of the system's own, for arrays of any type."""

    def __init__(self, num_bytes: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.num_bytes = num_bytes
        self._memory = mmap.mmap(-1, num_bytes, flags=flags)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        self.address: int = np.frombuffer(self._memory, np.uint8).__array_interface__["data"][0]


class _Returned(ref["_Lease"]):
    """A block that comes back when its lease ends, by a call into C that nothing interrupts."""

    __slots__ = ("block",)
    block: _Block


class _Lease:
    """A block while there are arrays of it; NumPy keeps it for them."""

    __slots__ = ("__array_interface__", "__weakref__", "_returned")

    def __init__(
        self, block: _Block, free: deque[_Returned], size: int, dtype: np.dtype[Any]
    ) -> None:
        self._returned = _Returned(self, free.append)
        self._returned.block = block
        self.__array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": dtype.str,
            "data": (block.address, False),
        }


class ResultPool:
    """Memory of results that nobody holds any more, for the next ones.

    Asking the system for memory and touching it for the first time can take longer than a search.
    """

    def __init__(self) -> None:
        self._free: deque[_Returned] = deque(maxlen=_MOST_POOLED)

    def allocate(self, size: int, dtype: Any) -> NDArray[Any]:
        """Allocate an array; its memory comes back when the last view of it is gone."""
        dtype = np.dtype(dtype)
        num_bytes = size * dtype.itemsize
        if num_bytes < _LEAST_POOLED:
            return fresh(size, dtype)
        return _poison(np.asarray(_Lease(self._take(num_bytes), self._free, size, dtype)))

    def _take(self, num_bytes: int) -> _Block:
        """Take memory that came back, or new memory; other threads may do so at the same time."""
        others = []
        try:
            # One operation finds and removes, so that no two threads take the same.
            while (returned := self._free.pop()).block.num_bytes != num_bytes:
                others.append(returned)
            return returned.block
        except IndexError:
            return _Block(num_bytes)
        finally:
            self._free.extend(others)


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
        self._folder = folder

    def allocate(self, size: int, dtype: Any) -> NDArray[Any]:
        """Allocate an array, in memory or else in a file without a name that is mapped."""
        if self._free_bytes is None:
            return fresh(size, dtype) if self._pool is None else self._pool.allocate(size, dtype)
        num_bytes = size * np.dtype(dtype).itemsize
        if num_bytes <= self._free_bytes:
            self._free_bytes -= num_bytes
            return fresh(size, dtype)
        return self._mapped(size, num_bytes, dtype)

    def release(self, array: NDArray[Any]) -> None:
        """Release an array that is not used any more."""
        if self._free_bytes is not None and not is_mapped(array):
            self._free_bytes += array.nbytes

    def _mapped(self, size: int, num_bytes: int, dtype: Any) -> NDArray[Any]:
        folder = tempfile.gettempdir() if self._folder is None else os.fspath(self._folder)
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                # Reserved, because a disk that fills up later would be a bus error.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, num_bytes)
                array = _poison(np.memmap(file, dtype, "r+", shape=(size,)))
                let_go(array)
                return array
        except OSError as error:
            raise OutputError(
                f"{folder}: no place for {num_bytes:,} bytes of results ({error.strerror}): "
                "free some space, name another folder with --tmp, or allow more --memory"
            ) from error


def let_go(array: NDArray[Any]) -> None:
    """Let go of the pages of an array that lives in a file: they count as memory no more."""
    if is_mapped(array) and hasattr(mmap, "MADV_DONTNEED"):
        array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def is_mapped(array: object) -> bool:
    """Return whether an array lives in a file."""
    return isinstance(array, np.memmap) and array._mmap is not None  # type: ignore[attr-defined]


def pieces_of(*arrays: NDArray[Any], size: int = PIECE) -> Iterator[slice]:
    """Yield the pieces of the first of some arrays, and let go of all that are in files."""
    for first in range(0, arrays[0].size, size):
        yield slice(first, min(first + size, arrays[0].size))
        for array in arrays:
            let_go(array)


def over_pieces(
    kernel: Callable[..., Any], size: int, threads: int, *arguments: object
) -> list[Any]:
    """Run a kernel as ``over_ranges`` does, and let go of arrays in files as it goes along them."""
    mapped = [one for one in arguments if isinstance(one, np.ndarray) and is_mapped(one)]
    # Kernels know only plain arrays, mapped or not.
    plain = [np.asarray(one) if is_mapped(one) else one for one in arguments]

    def work(*some: Any) -> Any:
        found = kernel(*some)
        for array in mapped:
            let_go(array)
        return found

    return over_ranges(work if mapped else kernel, size, threads, *plain)

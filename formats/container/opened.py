"""A file that is open and mapped: who reads it, and whether it is still what was opened.

All reading is done inside a block ``with file.reading()``. It refuses a closed file and, at its
end, a file that another program changed in the meantime. If a file is closed while it
is read, the last reader closes it.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import get_ident
from typing import Self, TypeVar
from weakref import WeakMethod, finalize

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError, FormatError, QueryError
from oocbfs.formats.container.lost_pages import PageWatch
from oocbfs.formats.io.closing import release
from oocbfs.formats.io.machine import open_regular, read_at
from oocbfs.kernels.threads import renewed_after_fork

Item = TypeVar("Item")
Bytes = NDArray[np.uint8]
# Of a file whose bytes are in memory.
_NO_DESCRIPTOR = -1


def what_to_do(path: Path, why: str) -> str:
    """Return a message that a file is no graph, and how to make one of it if it is an input."""
    stem = re.sub(r"(\.\w+)?(\.(gz|zst|zstd|xz|bz2|zip))?$", "", path.name) or path.name
    made = path.with_name(f"{stem}.ocg")
    if made == path:
        return f"not an .ocg file ({why})"
    command = shlex.join(["oocbfs", "convert", str(path), "-o", str(made)])
    return f"not an .ocg file; convert an edge list first: {command}"


class Opened:
    """A file at a path, one of an open descriptor, or one that never was: bytes in memory.

    Bytes take no descriptor, and nobody else changes them; their path is for messages only.
    """

    def __init__(
        self, path: str | os.PathLike[str], source: int | Bytes | None, min_bytes: int
    ) -> None:
        self.path = Path(path)
        # Whether another process finds it by its path.
        self.is_named = source is None
        self.mapping: mmap.mmap | None = None
        if isinstance(source, np.ndarray):
            self.bytes = source
            self.descriptor, self.stamp = _NO_DESCRIPTOR, (0, 0, source.size, 0)
        else:
            self._map(source, min_bytes)
        # How often each thread has entered ``reading``. No lock guards this, since all questions
        # would wait for it: a reader is noted before it looks whether the file is closed, and who
        # closes it looks for readers afterwards.
        self._readers: dict[int, int] = {}
        # Called when the last reader is out; weak, so that who drops a graph has closed it, even
        # if Ctrl-C kept a reader from leaving.
        self._release: WeakMethod[Callable[[], object]] | None = None
        # Taken by who releases it. Reentrant, because a signal handler may close the file that it
        # interrupts.
        self._releasing = renewed_after_fork(threading.RLock())
        self._is_released = False
        # For shards that are loaded at their first use, once for all threads.
        self.loading = renewed_after_fork(threading.RLock())

    def _map(self, descriptor: int | None, min_bytes: int) -> None:
        try:
            place = self.path if descriptor is None else f"/dev/fd/{descriptor}"
            file = open_regular(place)
            # Closed also if a graph is dropped without close().
            self._close_descriptor = finalize(self, release, file)
            self.descriptor = file.fileno()
            self.stamp = stamp(self.descriptor)
            if self.size < min_bytes:
                raise FormatError(f"{self.path}: {what_to_do(self.path, 'too short to be one')}")
            mapping = mmap.mmap(self.descriptor, self.size, access=mmap.ACCESS_READ)
        except OSError as error:
            if error.errno == errno.ENOMEM:
                raise BudgetError(
                    f"{self.path}: this process may not take as much memory as to map the file: "
                    "allow it more, or cut the graph into more shards"
                ) from error
            raise FormatError.like(
                error, f"{self.path}: cannot be opened: {error.strerror}"
            ) from error
        self.mapping = mapping
        self.bytes = np.frombuffer(mapping, np.uint8)
        self._watch = PageWatch(mapping)

    @property
    def source(self) -> int | Bytes:
        """What opens it once more."""
        return self.bytes if self.descriptor == _NO_DESCRIPTOR else self.descriptor

    def read(self, offset: int, size: int) -> Bytes:
        """Read bytes without touching the mapping, which would bring what is around them, too."""
        if self.descriptor == _NO_DESCRIPTOR:
            return self.bytes[offset : offset + size]
        data = np.empty(size, np.uint8)
        done = 0
        while done < size:
            count = read_at(self.descriptor, data[done:].data, offset + done)
            if count == 0:
                raise FormatError(f"{self.path}: was cut short by another program")
            done += count
        return data

    @property
    def size(self) -> int:
        """Bytes that the file had when it was opened."""
        return self.stamp[2]

    def reading(self) -> Self:
        """Read inside a block, which ends in an error if the file is not what was opened.

        That error replaces one of the block itself, because a changed file often looks damaged.

        Raises
        ------
        QueryError
            If the file is closed.
        FormatError
            If another program changed the file, or it cannot be read any more.
        """
        return self

    def __enter__(self) -> None:
        """Let a reader in, unless the file is closed."""
        thread, readers = get_ident(), self._readers
        depth = readers.get(thread, 0)
        readers[thread] = depth + 1
        # A thread that is reading already may continue.
        if self._release is not None and not depth:
            self._leave()
            raise QueryError(f"{self.path}: is closed: open it again")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Let a reader out; the last one closes the file, if close() was called."""
        try:
            if error is None or isinstance(error, Exception):
                self._check(error)
        finally:
            self._leave()

    def _leave(self) -> None:
        thread, readers = get_ident(), self._readers
        depth = readers[thread] - 1
        if depth:
            readers[thread] = depth
            return
        del readers[thread]
        if self._release is not None:
            self._release_if_unread()

    def _release_if_unread(self) -> None:
        """Release a closed file once, if nobody reads it."""
        with self._releasing:
            if self._readers or self._is_released:
                return
            self._is_released = True
        assert self._release is not None
        if (release := self._release()) is not None:
            release()

    def each(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield items that are made by reading, each checked before it is given out."""
        while True:
            with self.reading():
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    def _check(self, cause: Exception | None) -> None:
        """Refuse a file that is not what was opened."""
        if self.descriptor == _NO_DESCRIPTOR:
            return
        problem = None
        try:
            now = stamp(self.descriptor)
            if now == self.stamp and not self._watch.lost:
                return
        except OSError as error:
            now, cause = self.stamp, error
            problem = f"cannot be read any more: {error.strerror}; open it again"
        if self._watch.lost or now[:3] != self.stamp[:3]:
            problem = (
                "cannot be read any more: another program changed its size, or the disk failed; "
                "copy or convert the graph again"
            )
        elif now != self.stamp:
            problem = "was changed by another program while it was open: open it again"
        raise FormatError(f"{self.path}: {problem}") from cause

    def close(self, release: Callable[[], object]) -> None:
        """Refuse new readers; call ``release`` when the last one is out, which may be now."""
        if self._release is None:
            self._release = WeakMethod(release)
            self._release_if_unread()

    def drop(self) -> None:
        """Release the descriptor and the mapping, which views that were given out keep alive."""
        self.mapping = None
        self.bytes = np.empty(0, np.uint8)
        if self.descriptor != _NO_DESCRIPTOR:
            self._close_descriptor()


def stamp(descriptor: int) -> tuple[int, int, int, int]:
    """Identify the state of an open file: device, inode, size, and time of the last write."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

"""Temporary files without a name: nothing remains of them, however the process ends."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from oocbfs.errors import InputError, OocbfsError, OutputError
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.machine import read_at

if TYPE_CHECKING:
    from oocbfs.formats.io.streams import Stream

_PIECE_BYTES = 1 << 20
# What to do where a command says where its temporary data go, and where only the system does.
_NAME_ANOTHER = "name another folder with --tmp"
_SET_ANOTHER = "name another folder in TMPDIR"


@contextmanager
def explained_writes(folder: str | os.PathLike[str], remedy: str = _NAME_ANOTHER) -> Iterator[None]:
    """Raise an error in writing as one about temporary data, with what to do."""
    try:
        yield
    except OocbfsError:
        raise  # which may be an OSError, and is explained
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = f"free some space or {remedy}" if is_full else remedy
        raise OutputError.like(
            error, f"{os.fspath(folder)}: cannot write temporary data ({error.strerror}): {hint}"
        ) from error


def unnamed_file(folder: str | os.PathLike[str], remedy: str = _NAME_ANOTHER) -> BinaryIO:
    """Open a temporary file without a name, which disappears with the process."""
    with explained_writes(folder, remedy):
        return tempfile.TemporaryFile(dir=folder)


def unnamed_beside(path: Path, num_bytes: int, remedy: str) -> BinaryIO:
    """Open such a file with room for so many bytes, beside another that is only read.

    If its folder cannot be written to, it is where the system has its own. No command says where.
    """
    folder = path.parent
    if not os.access(folder, os.W_OK):
        folder = Path(tempfile.gettempdir())
    file = unnamed_file(folder, remedy)
    try:
        with explained_writes(folder, remedy):
            os.ftruncate(file.fileno(), num_bytes)
            # A mapping that the disk has no room for ends the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)
    except BaseException:
        file.close()
        raise
    return file


class Copy(Closing):
    """The bytes of a stream in an unnamed file, which can be opened as often as needed.

    It takes no more than ``most`` bytes, if that is given, and leaves a little of the disk free: an
    input may have no end.
    """

    def __init__(
        self, stream: Stream, name: str, folder: str | None, most: int | None = None
    ) -> None:
        remedy = _NAME_ANOTHER if folder else _SET_ANOTHER
        folder = folder or tempfile.gettempdir()
        self._file = unnamed_file(folder, remedy)
        room = _room_bytes(self._file.fileno())
        try:
            if most is not None and most > room:
                raise _too_large(f"has {most >> 20:,} MB by its header", name, folder, room, remedy)
            left = room if most is None else most
            while piece := stream.read(min(_PIECE_BYTES, left)):
                left -= len(piece)
                with explained_writes(folder, remedy):
                    while piece:
                        piece = piece[os.write(self._file.fileno(), piece) :]
            if most is None and stream.read(1):
                raise _too_large("does not end", name, folder, room, remedy)
        except BaseException:
            self.close()
            raise

    def open(self) -> CopyReader:
        """Open the bytes at their beginning."""
        return CopyReader(os.dup(self._file.fileno()))

    def close(self) -> None:
        """Release the disk space, as soon as all readers are closed, too."""
        self._file.close()


class CopyReader(io.RawIOBase):
    """A file that is read from a position of its own, by whomever else it is read."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._position = 0

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: it can be read from anywhere."""
        return True

    def fileno(self) -> int:
        """Return the descriptor, to map the file."""
        return self._descriptor

    def readinto(self, buffer: object, /) -> int:
        """Fill a buffer; returns the number of bytes, 0 at the end."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        count = read_at(self._descriptor, view, self._position)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a position, counted as for any file."""
        base = (0, self._position, os.fstat(self._descriptor).st_size)[whence]
        self._position = base + offset
        return self._position

    def close(self) -> None:
        """Close the descriptor."""
        if not self.closed:
            super().close()
            os.close(self._descriptor)


def _room_bytes(descriptor: int) -> int:
    """Return how much a file may hold, so that a sixteenth of what is free now stays free."""
    status = os.fstatvfs(descriptor)
    # Some file systems do not tell.
    return status.f_bavail * status.f_frsize // 16 * 15 if status.f_blocks else 2**63 - 1


def _too_large(what: str, name: str, folder: str, room: int, remedy: str) -> InputError:
    return InputError(
        f"{what}, and must be copied before it is read: {folder} has room for {room >> 20:,} MB, "
        f"so name a file, or {remedy}",
        path=name,
    )

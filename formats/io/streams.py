"""Inputs and the bytes in them: files and pipes, decompressed as their first bytes say.

A truncated or damaged stream raises InputError; it never ends early as if it were complete.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError, InputError, OocbfsError
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.decompress import HEADER_BYTES, Codec, Decoder, WindowError, codec_of
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.io.temporary import Copy

STORED_PIECE_BYTES = 1 << 18
PLAIN_PIECE_BYTES = 1 << 20
ZIP_MAGIC = b"PK\x03\x04"
_EMPTY_ZIP_MAGIC = b"PK\x05\x06"
_MAGIC_BYTES = 6
# Tapes and block devices fill up what compressed data leaves of a block.
_MAX_PADDING_BYTES = 1 << 20


def plain_name(name: str) -> str:
    """Return a file name without the suffix of its compression, in small letters."""
    return re.sub(r"\.(gz|zst|zstd|xz|bz2|zip)$", "", name.lower())


class Readable(Protocol):
    """What a stream needs of the file below it."""

    def read(self, size: int = ..., /) -> bytes | None:
        """Return up to size bytes, none at the end."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn what the system and the decompressors raise into one line."""
    try:
        yield
    except OocbfsError:
        raise  # which may be an OSError, and is explained
    except OSError as error:
        reason = {FileNotFoundError: "no such file", PermissionError: "permission denied"}.get(
            type(error), error.strerror or str(error)
        )
        raise InputError.like(error, f"cannot read: {reason}", path=name) from error
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        message = f"damaged or truncated zip ({str(error) or 'ends early'})"
        raise InputError(message, path=name) from error
    except (NotImplementedError, RuntimeError) as error:
        raise InputError(f"cannot unpack: {error}", path=name) from error


class Stream(Closing):
    """The decompressed bytes of a source, from beginning to end."""

    def __init__(self, source: Source, file: Readable, *, compressed: bool = True) -> None:
        self._source = source
        self._file = file
        self._stored = 0
        self._front = memoryview(b"")
        self._undecoded = b""
        self._decoder: Decoder | None = None
        self._codec: Codec | None = None
        if compressed:
            head = b""
            while len(head) < _MAGIC_BYTES and (piece := self._read_stored(_MAGIC_BYTES)):
                head += piece
            self._codec = codec_of(head)
            if self._codec is None:
                self._front = memoryview(head)
            else:
                self._undecoded = head

    def read(self, size: int) -> bytes:
        """Return exactly size bytes, or fewer at the end."""
        pieces = []
        while size > 0 and (piece := self._piece(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def readinto(self, view: memoryview) -> int:
        """Fill the beginning of a view and give the number of bytes, 0 only at the end."""
        if not self._front and self._codec is None and isinstance(self._file, io.RawIOBase):
            with explained(self._source.name):
                return self._count(self._file.readinto(view) or 0)
        piece = self._piece(len(view))
        view[: len(piece)] = piece
        return len(piece)

    def skip(self, size: int) -> None:
        """Pass over size bytes, all of which must be there."""
        kept = min(size, len(self._front))
        self._front = self._front[kept:]
        size -= kept
        if self._codec is None and self._source.regular and isinstance(self._file, io.RawIOBase):
            with explained(self._source.name):
                end = os.fstat(self._file.fileno()).st_size
                step = min(size, end - self._file.tell())
                self._file.seek(step, io.SEEK_CUR)
            size -= self._count(step)
        while size > 0 and (piece := self._piece(min(size, PLAIN_PIECE_BYTES))):
            size -= len(piece)
        if size:
            raise InputError("ends early: the file is truncated", path=self._source.name)

    def read_items(self, kind: np.dtype[Any], count: int) -> NDArray[Any]:
        """Read ``count`` items of a fixed size, all of which must be there."""
        data = self.read(count * kind.itemsize)
        if len(data) < count * kind.itemsize:
            raise InputError("ends early: the file is truncated", path=self._source.name)
        return np.frombuffer(data, kind)

    def expect_end(self) -> None:
        """Refuse bytes that follow; also checks the end of compressed data."""
        if self.read(1):
            raise InputError("more bytes than the format has room for", path=self._source.name)

    @property
    def compressed(self) -> bool:
        """Whether the bytes are decompressed on the way."""
        return self._codec is not None

    def unread(self, data: bytes) -> None:
        """Put bytes back, to be read again."""
        self._front = memoryview(data + bytes(self._front))

    def close(self) -> None:
        """Release the file below, whose bytes were read: an error says nothing about them."""
        with suppress(OSError):
            self._file.close()

    def _piece(self, size: int) -> memoryview:
        if not self._front:
            self._front = memoryview(self._decode() if self._codec else self._read_stored(size))
        piece = self._front[:size]
        self._front = self._front[size:]
        return piece

    def _read_stored(self, size: int) -> bytes:
        with explained(self._source.name):
            piece = self._file.read(size) or b""
        self._count(len(piece))
        return piece

    def _count(self, size: int) -> int:
        self._stored += size
        self._source.progress(self._stored)
        return size

    def _decode(self) -> bytes:
        """Return the next decompressed bytes, none only after the end of the last member."""
        codec = self._codec
        assert codec is not None
        while True:
            if self._decoder is None:
                self._find_member(codec)
                if not self._undecoded:
                    return b""
                if codec_of(self._undecoded) is not codec:
                    raise InputError(
                        f"bytes after the end of the {codec.name} data that do not belong to it",
                        path=self._source.name,
                    )
                self._decoder = self._new_decoder(codec)
            elif not self._undecoded and self._decoder.needs_input:
                self._undecoded = self._read_stored(STORED_PIECE_BYTES)
                if not self._undecoded:
                    raise InputError(f"truncated {codec.name} data", path=self._source.name)
            try:
                data = self._decoder.decompress(self._undecoded, PLAIN_PIECE_BYTES)
            except WindowError as error:
                raise self._too_large(codec) from error
            except codec.errors as error:
                message = f"damaged {codec.name} data ({error})"
                raise InputError(message, path=self._source.name) from error
            self._undecoded = b""
            if self._decoder.eof:
                self._undecoded = self._decoder.unused_data
                self._decoder = None
            if data:
                return data

    def _find_member(self, codec: Codec) -> None:
        """Read enough to tell the next member, and pass over zeros that stand before it."""
        padding, more = 0, b"\0"
        while more:
            if codec.padded:
                data = self._undecoded.lstrip(b"\0")
                padding += len(self._undecoded) - len(data)
                self._undecoded = data
            if padding > _MAX_PADDING_BYTES:
                raise InputError(
                    f"nothing but zeros after the end of the {codec.name} data",
                    path=self._source.name,
                )
            if len(self._undecoded) >= HEADER_BYTES:
                break
            self._undecoded += (more := self._read_stored(4096))

    def _new_decoder(self, codec: Codec) -> Decoder:
        try:
            return codec.new(self._undecoded, self._source.limits.window_bytes)
        except WindowError as error:
            raise self._too_large(codec) from error

    def _too_large(self, codec: Codec) -> BudgetError:
        allowed = self._source.limits.window_bytes >> 20
        return BudgetError(
            f"{self._source.name}: unpacking this {codec.name} data takes a window of more than "
            f"{allowed:,} MB, the limit: allow more --memory, or unpack it before"
        )


class Source:
    """One input: a file, which may be opened many times, or a pipe, which may not."""

    def __init__(self, path: str | os.PathLike[str], limits: InputLimits | None = None) -> None:
        self.path = os.fspath(path)
        self.limits = limits or InputLimits()
        self.name = "<stdin>" if self.path == "-" else self.path
        self.done = 0
        self.compressed = False
        self.size: int | None = None
        self._copy: Copy | None = None
        self._peeked: Stream | None = None
        self.regular = False
        if self.path != "-":
            with explained(self.name):
                status = os.stat(self.path)
            if stat.S_ISDIR(status.st_mode):
                raise InputError("is a directory, not a file", path=self.name)
            if stat.S_ISREG(status.st_mode):
                self.regular = True
                self.size = status.st_size

    def open(self) -> Stream:
        """Open the decompressed bytes; of a pipe only once."""
        stream, self._peeked = self._peeked, None
        return stream or Stream(self, self.open_stored())

    def peek(self, size: int) -> bytes:
        """Return the first decompressed bytes; they will be read again."""
        stream = self.open()
        self.compressed = stream.compressed
        try:
            head = stream.read(size)
        except BaseException:
            stream.close()
            raise
        if self.regular:
            stream.close()
        else:
            stream.unread(head)
            self._peeked = stream
        return head

    def plain_size(self) -> int | None:
        """Return the number of decompressed bytes, after a peek, if it is known by then."""
        return None if self.compressed else self.size

    def plain_path(self) -> str | None:
        """Return the path of the bytes themselves, after a peek, if a file holds nothing else."""
        return self.path if self.size is not None and not self.compressed else None

    def make_regular(self, most: int | None = None) -> None:
        """Copy a pipe to a temporary file, so that it can be opened more than once.

        Of more than ``most`` bytes, the rest is left out.
        """
        if not self.regular:
            with self.open() as stream:
                self._copy = Copy(stream, self.name, self.limits.folder, most)
            self.regular = True

    def progress(self, stored: int) -> None:
        """Note how many stored bytes a stream has read."""
        self.done = max(self.done, stored)

    def close(self) -> None:
        """Drop the copy, and close a pipe that was peeked into but never read."""
        if self._peeked is not None:
            self._peeked.close()
            self._peeked = None
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def is_zip(self) -> bool:
        """Return whether this is a zip archive, compressed by nothing else."""
        head = self.peek(len(ZIP_MAGIC))
        return head in (ZIP_MAGIC, _EMPTY_ZIP_MAGIC) and not self.compressed

    def open_stored(self) -> io.RawIOBase | Kept:
        """Open the bytes as they are stored."""
        with explained(self.name):
            if self._copy is not None:
                return self._copy.open()
            if self.path != "-":
                return io.FileIO(self.path)
            if sys.stdin is None:
                raise InputError("is not open", path=self.name)
            try:
                return io.FileIO(os.dup(sys.stdin.fileno()))
            except io.UnsupportedOperation:
                return Kept(sys.stdin.buffer)


class Kept:
    """A file that belongs to someone else and stays open."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """Return up to size bytes, none at the end."""
        return self._file.read(size)

    def close(self) -> None:
        """Leave the file as it is."""

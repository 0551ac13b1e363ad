"""Zip archives: each file in one is a source of its own."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from contextlib import suppress

from oocbfs.errors import BudgetError
from oocbfs.formats.io.streams import Source, Stream, explained

# Memory for the list of an archive: for each file, and for copies of the list itself.
_FILE_BYTES = 2 << 10
_LIST_COPIES = 6
_FILE_MAGIC = b"PK\x01\x02"
_PIECE_BYTES = 1 << 20
# The end of an archive tells the size of its list; a comment of up to 64 KiB may follow.
_END, _END_MAGIC, _MAX_END_BYTES = struct.Struct("<4s4H2LH"), b"PK\x05\x06", (1 << 16) + 22
# If that is all ones, there is a larger end before it, and between them a pointer to it.
_LARGE_END, _LOCATOR = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
# Before the data of a file: fixed fields, of which the last two are the lengths of what follows.
_LOCAL = struct.Struct("<26x2H")
# How LZMA data begins: version, length of the properties, and these, the last being the window.
_LZMA = struct.Struct("<2HBL")


class Member(Source):
    """One file in a zip archive."""

    def __init__(self, archive: Archive, info: zipfile.ZipInfo) -> None:
        self.archive = archive
        self.info = info
        self.limits = archive.source.limits
        self.path = info.filename
        self.name = f"{archive.source.name}({info.filename})"
        self.size = info.compress_size
        self.done = 0
        self.regular = True
        self.compressed = False
        self._peeked = None

    def plain_size(self) -> int:
        """Return the unpacked size."""
        return self.info.file_size

    def plain_path(self) -> None:
        """Return None: no file holds the bytes alone."""

    def open(self) -> Stream:
        """Open the unpacked bytes."""
        with explained(self.name):
            return Stream(self, self.archive.open(self.info), compressed=False)

    def progress(self, stored: int) -> None:
        """Estimate the packed bytes from the unpacked ones."""
        share = min(1.0, stored / max(1, self.info.file_size))
        done = int(share * self.info.compress_size)
        if done > self.done:
            self.archive.source.done += done - self.done
            self.done = done

    def close(self) -> None:
        """Do nothing: the archive is closed by its owner."""


class Archive:
    """A zip archive, opened once for all of its files, until it is closed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._zip: zipfile.ZipFile | None = None
        self._file: io.BufferedReader | None = None

    def members(self) -> list[Member]:
        """List the files by name, without what macOS adds to them."""
        with explained(self.source.name):
            infos = sorted(self._opened().infolist(), key=lambda info: info.filename)
        return [
            Member(self, info)
            for info in infos
            if not info.is_dir() and not info.filename.startswith("__MACOSX/")
        ]

    def open(self, info: zipfile.ZipInfo) -> zipfile.ZipExtFile:
        """Open the unpacked bytes of a file; several may be open at a time."""
        if info.compress_type == zipfile.ZIP_LZMA:
            self._check_window(info)
        return self._opened().open(info)  # type: ignore[return-value]

    def close(self) -> None:
        """Close the archive until a file in it is opened again."""
        with suppress(OSError):  # its bytes were read
            if self._zip is not None:
                self._zip.close()
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        self._zip = self._file = None

    def _opened(self) -> zipfile.ZipFile:
        if self._zip is None:
            if self._file is None:
                self._file = self._open_file()
            needed = _list_bytes(self._file)
            if needed > self.source.limits.window_bytes:
                raise BudgetError(
                    f"{self.source.name}: the list of files in this archive takes "
                    f"{needed >> 20:,} MB: allow more --memory, or unpack it and join the files"
                )
            self._zip = zipfile.ZipFile(self._file)
        return self._zip

    def _open_file(self) -> io.BufferedReader:
        file = self.source.open_stored()
        assert isinstance(file, io.RawIOBase)  # an archive is a file, or a copy
        return io.BufferedReader(file)

    def _check_window(self, info: zipfile.ZipInfo) -> None:
        with self._open_file() as file:
            file.seek(info.header_offset)
            lengths = _LOCAL.unpack(_exactly(file.read(_LOCAL.size), _LOCAL.size))
            file.seek(sum(lengths), os.SEEK_CUR)
            window = _LZMA.unpack(_exactly(file.read(_LZMA.size), _LZMA.size))[-1]
        if window > self.source.limits.window_bytes:
            raise BudgetError(
                f"{self.source.name}({info.filename}): unpacking takes a window of "
                f"{window >> 20:,} MB: allow more --memory, or unpack it before"
            )


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise zipfile.BadZipFile("ends early")
    return data


def _list_bytes(file: io.BufferedReader) -> int:
    """Estimate the memory for the list of an archive before reading it; 0 if it is damaged."""
    size = file.seek(0, os.SEEK_END)
    tail = max(0, size - _MAX_END_BYTES)
    file.seek(tail)
    data = file.read()
    offset = data.rfind(_END_MAGIC)
    if offset < 0 or offset + _END.size > len(data):
        return 0
    end, list_bytes = tail + offset, _END.unpack_from(data, offset)[5]
    if list_bytes == 2**32 - 1 and offset >= _LOCATOR.size:
        file.seek(_LOCATOR.unpack_from(data, offset - _LOCATOR.size)[2])
        large = file.read(_LARGE_END.size)
        if len(large) < _LARGE_END.size:
            return 0
        end, list_bytes = end - _LOCATOR.size - _LARGE_END.size, _LARGE_END.unpack(large)[8]
    file.seek(max(0, end - list_bytes))
    count, rest, before = 0, min(list_bytes, end), b""
    while rest > 0 and (piece := file.read(min(rest, _PIECE_BYTES))):
        count += (before + piece).count(_FILE_MAGIC)
        before = piece[1 - len(_FILE_MAGIC) :]
        rest -= len(piece)
    return _FILE_BYTES * count + _LIST_COPIES * min(int(list_bytes), end)

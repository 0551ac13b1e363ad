"""Zip archives: each file in one is a source of its own."""

from __future__ import annotations

import zipfile

from oocbfs.formats.streams import Source, Stream, explained


class Member(Source):
    """One file in a zip archive."""

    def __init__(self, archive: Source, info: zipfile.ZipInfo) -> None:
        self.archive = archive
        self.info = info
        self.path = info.filename
        self.name = f"{archive.name}({info.filename})"
        self.size = info.compress_size
        self.done = 0
        self.regular = True
        self.compressed = False
        self._peeked = None

    def plain_size(self) -> int:
        """Give the unpacked size."""
        return self.info.file_size

    def open(self) -> Stream:
        """Open the unpacked bytes."""
        with explained(self.name):
            return Stream(self, _MemberFile(self.archive, self.info), compressed=False)

    def progress(self, stored: int) -> None:
        """Estimate the packed bytes from the unpacked ones."""
        share = min(1.0, stored / max(1, self.info.file_size))
        done = int(share * self.info.compress_size)
        if done > self.done:
            self.archive.done += done - self.done
            self.done = done

    def close(self) -> None:
        """Do nothing: the archive is closed by its owner."""


class _MemberFile:
    """A member of an archive, together with the handles it is read through."""

    def __init__(self, archive: Source, info: zipfile.ZipInfo) -> None:
        self._archive = open_archive(archive)
        try:
            self._member = self._archive.open(info)
        except BaseException:
            self._archive.close()
            raise

    def read(self, size: int = -1, /) -> bytes:
        return self._member.read(size)

    def close(self) -> None:
        self._member.close()
        self._archive.close()


def open_archive(source: Source) -> zipfile.ZipFile:
    """Open a zip archive that can be opened again."""
    return zipfile.ZipFile(source.stored_path())


def members(source: Source) -> list[Member]:
    """List the files in a zip archive by name, without what macOS adds to them."""
    with explained(source.name), open_archive(source) as archive:
        infos = sorted(archive.infolist(), key=lambda info: info.filename)
    return [
        Member(source, info)
        for info in infos
        if not info.is_dir() and not info.filename.startswith("__MACOSX/")
    ]

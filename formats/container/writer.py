"""Write a container section by section, each from beginning to end, the first page last."""

from __future__ import annotations

import os
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import CHUNK_BYTES, PAGE_BYTES, Encoding, Kind


class SectionWriter:
    """A raw section that grows at its end and computes the checksums of its chunks."""

    def __init__(self, descriptor: int, kind: Kind, offset: int) -> None:
        self.kind, self.offset, self.size = kind, offset, 0
        self._descriptor = descriptor
        self._checksums: list[int] = []

    def write(self, data: NDArray[Any]) -> None:
        """Append an array's bytes."""
        view = memoryview(np.ascontiguousarray(data).view(np.uint8).reshape(-1))
        end = self.offset + self.size
        written = 0
        while written < len(view):
            written += os.pwrite(self._descriptor, view[written:], end + written)
        summed = 0
        while summed < len(view):
            filled = self.size % CHUNK_BYTES
            piece = view[summed : summed + CHUNK_BYTES - filled]
            if filled == 0:
                self._checksums.append(0)
            self._checksums[-1] = zlib.crc32(piece, self._checksums[-1])
            summed += len(piece)
            self.size += len(piece)

    def chunks(self) -> NDArray[np.void]:
        """Chunk records of what was written."""
        records = np.zeros(len(self._checksums), layout.CHUNK)
        starts = np.arange(records.size, dtype=np.uint64) * np.uint64(CHUNK_BYTES)
        records["offset"] = starts + np.uint64(self.offset)
        records["stored_bytes"] = np.minimum(np.uint64(self.size) - starts, CHUNK_BYTES)
        records["checksum"] = self._checksums
        return records


class ContainerWriter:
    """Lay out raw sections in a new file, in the order in which they were begun.

    All but the last must know their size when they begin, so that several can be filled side by
    side while the last one grows.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = PAGE_BYTES
        self._sections: list[SectionWriter] = []

    def begin(self, kind: Kind, size: int | None = None) -> SectionWriter:
        """Begin a section of the given size, or one that grows until the next begins."""
        if self._sections and self._end < 0:
            last = self._sections[-1]
            self._end = last.offset + layout.pages(last.size)
        writer = SectionWriter(self._file.fileno(), kind, self._end)
        self._sections.append(writer)
        self._end = -1 if size is None else self._end + layout.pages(size)
        return writer

    def finish(self, **fields: int) -> int:
        """Write the tables and the first page; returns the file's size."""
        table = np.zeros(len(self._sections), layout.SECTION)
        chunks: list[NDArray[np.void]] = []
        for record, section in zip(table, self._sections, strict=True):
            records = section.chunks()
            record["kind"], record["encoding"] = section.kind, Encoding.RAW
            record["offset"] = section.offset
            record["stored_bytes"] = record["raw_bytes"] = section.size
            record["first_chunk"] = sum(map(len, chunks))
            record["num_chunks"] = records.size
            chunks.append(records)
        last = self._sections[-1]
        end = last.offset + layout.pages(last.size)
        return write_tables(self._file, end, table, np.concatenate(chunks), fields)


def write_tables(
    file: BinaryIO,
    end: int,
    sections: NDArray[np.void],
    chunks: NDArray[np.void],
    fields: dict[str, int],
) -> int:
    """Write the chunk table at ``end`` and the first page; returns the file's size."""
    header = np.zeros((), layout.HEADER)
    for name, value in fields.items():
        header[name] = value
    header["magic"] = layout.MAGIC
    header["version"] = layout.version_for(header, sections["kind"].tolist())
    header["file_bytes"] = end + chunks.nbytes
    header["num_sections"] = sections.size
    header["chunk_table_offset"], header["num_chunks"] = end, chunks.size
    header["chunk_table_checksum"] = zlib.crc32(chunks.tobytes())
    os.ftruncate(file.fileno(), end + chunks.nbytes)
    file.seek(end)
    file.write(chunks.tobytes())
    file.seek(0)
    file.write(layout.pack_page(header, sections))
    file.flush()
    return end + chunks.nbytes

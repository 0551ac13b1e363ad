"""Containers as an attacker would make them: changed, then signed again with valid checksums."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard
from numpy.typing import NDArray

from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.container.writer import write_tables

_SHIFT = 12  # of the bases of archives


def section_place(data: bytes, kind: Kind) -> tuple[int, int]:
    """Offset and stored size of a section, as the table says."""
    count = int(np.frombuffer(data, layout.HEADER, 1)[0]["num_sections"])
    table = np.frombuffer(data, layout.SECTION, count, layout.SECTION_TABLE_OFFSET)
    record = table[table["kind"] == kind][0]
    return int(record["offset"]), int(record["stored_bytes"])


def sign(data: bytearray) -> bytearray:
    """Recompute every checksum that can be reached; leaves a nonsensical layout as it is."""
    header = np.frombuffer(data, layout.HEADER, 1)[0].copy()
    offset, count = int(header["chunk_table_offset"]), int(header["num_chunks"])
    if offset + count * layout.CHUNK.itemsize <= len(data):
        chunks = np.frombuffer(data, layout.CHUNK, count, offset).copy()
        for chunk in chunks:
            start, size = int(chunk["offset"]), int(chunk["stored_bytes"])
            chunk["checksum"] = zlib.crc32(data[start : start + size])
        data[offset : offset + chunks.nbytes] = chunks.tobytes()
        header["chunk_table_checksum"] = zlib.crc32(chunks.tobytes())
    data[: layout.HEADER.itemsize] = header.tobytes()
    header["checksum"] = layout.header_checksum(bytes(data[: layout.PAGE_BYTES]))
    data[: layout.HEADER.itemsize] = header.tobytes()
    return data


def set_header(data: bytearray, **fields: int) -> bytearray:
    """Change header fields and sign."""
    header = np.frombuffer(data, layout.HEADER, 1)[0].copy()
    for name, value in fields.items():
        header[name] = value
    data[: layout.HEADER.itemsize] = header.tobytes()
    return sign(data)


def overwrite(path: Path, kind: Kind, place: int, num_bytes: bytes) -> None:
    """Overwrite bytes of a section, as far as it reaches, and sign the file."""
    data = bytearray(path.read_bytes())
    offset, size = section_place(bytes(data), kind)
    num_bytes = num_bytes[: size - place]
    data[offset + place : offset + place + len(num_bytes)] = num_bytes
    path.write_bytes(sign(data))


def rewrite(path: Path, kind: Kind, index: int, value: int) -> None:
    """Change one number of a section and sign the file."""
    data = bytearray(path.read_bytes())
    offset, size = section_place(bytes(data), kind)
    section = np.frombuffer(data, np.uint8)[offset : offset + size].view(layout.DTYPES[kind])
    section[index] = value
    path.write_bytes(sign(data))


def make_archive(path: Path) -> None:
    """Write a raw file again as older versions compressed it: every section, by a frame a chunk."""
    with Container(path) as source:
        table = np.zeros(len(source.sections), layout.SECTION)
        contents = [source.stored(kind).tobytes() for kind in source.sections]
        table["kind"] = [int(kind) for kind in source.sections]
        header = source.header.copy()
    table["encoding"] = layout.Encoding.ZSTD
    pack = zstandard.ZstdCompressor(1).compress
    all_chunks: list[NDArray[np.void]] = []
    with path.open("w+b") as file:
        end = layout.PAGE_BYTES
        for record, data in zip(table, contents, strict=True):
            pieces = range(0, len(data), layout.CHUNK_BYTES)
            frames = [pack(data[first : first + layout.CHUNK_BYTES]) for first in pieces]
            end = _put_frames(file, record, frames, end, all_chunks)
            record["raw_bytes"] = len(data)
        write_tables(file, end, table, np.concatenate(all_chunks), _kept_fields(header))


def _kept_fields(header: np.void) -> dict[str, int]:
    """Return what the tables of a changed file leave as it is in the header."""
    kept = set(layout.HEADER.names or ()) - {"magic", "version", "checksum", "file_bytes"}
    return {name: int(header[name]) for name in kept}


def _put_frames(
    file: BinaryIO,
    record: np.void,
    frames: list[bytes],
    offset: int,
    all_chunks: list[NDArray[np.void]],
) -> int:
    """Write the chunks of a section, each a frame; return where the next section begins."""
    chunks = np.zeros(len(frames), layout.CHUNK)
    chunks["stored_bytes"] = [len(frame) for frame in frames]
    chunks["offset"] = offset + np.cumsum(chunks["stored_bytes"]) - chunks["stored_bytes"]
    chunks["checksum"] = [zlib.crc32(frame) for frame in frames]
    record["offset"], record["stored_bytes"] = offset, chunks["stored_bytes"].sum()
    record["first_chunk"] = sum(map(len, all_chunks))
    record["num_chunks"] = chunks.size
    file.seek(offset)
    file.write(b"".join(frames))
    all_chunks.append(chunks)
    return offset + layout.pages(int(record["stored_bytes"]))


def spread(path: Path, hole_bytes: int) -> None:
    """Put holes of the file behind the last out-row of the first block, and in-row of the second.

    They belong to these rows, which nobody may decode; all later rows lie behind them. The file
    takes no more room on disk; chunks have no checksums, which only ``verify`` looks at.
    """
    with Container(path) as source:
        contents = {kind: bytearray(source.stored(kind)) for kind in source.sections}
        fields = _kept_fields(source.header)
    firsts: dict[Kind, int] = {}
    for block, (kind, tails) in enumerate(
        ((Kind.BASES, Kind.TAILS), (Kind.IN_BASES, Kind.IN_TAILS)), 1
    ):
        bases = np.frombuffer(contents[kind], np.uint64)
        firsts[tails] = int(bases[block])
        bases[block:] += np.uint64(hole_bytes)
    table = np.zeros(len(contents), layout.SECTION)
    all_chunks: list[np.void] = []
    with path.open("w+b") as file:
        end = layout.PAGE_BYTES
        for record, (kind, data) in zip(table, contents.items(), strict=True):
            size = len(data) + (hole_bytes if kind in firsts else 0)
            first = firsts.get(kind, size)
            chunks = np.zeros(-(-size // layout.CHUNK_BYTES), layout.CHUNK)
            begins = np.arange(chunks.size) * layout.CHUNK_BYTES
            chunks["offset"] = end + begins
            chunks["stored_bytes"] = np.minimum(size - begins, layout.CHUNK_BYTES)
            record["kind"], record["offset"], record["first_chunk"] = kind, end, len(all_chunks)
            record["raw_bytes"] = record["stored_bytes"] = size
            record["num_chunks"] = chunks.size
            for place, part in ((0, data[:first]), (size - len(data[first:]), data[first:])):
                file.seek(end + place)
                file.write(part)
            all_chunks += list(chunks)
            end += layout.pages(size)
        write_tables(file, end, table, np.array(all_chunks, layout.CHUNK), fields)


def write_archive(path: Path, num_vertices: int) -> None:
    """Write a compressed graph of many vertices and no edges: a small file that becomes large."""
    sizes = {kind: layout.raw_bytes(kind, num_vertices, _SHIFT) or 0 for kind in layout.ROW_KINDS}
    table = np.zeros(len(sizes), layout.SECTION)
    all_chunks: list[NDArray[np.void]] = []
    with path.open("w+b") as file:
        end = layout.PAGE_BYTES
        for record, (kind, size) in zip(table, sizes.items(), strict=True):
            fill = b"\xff" if kind is Kind.HEADS else b"\0"
            whole, rest = divmod(size, layout.CHUNK_BYTES)
            pack = zstandard.ZstdCompressor().compress
            frames = [pack(fill * layout.CHUNK_BYTES)] * whole + [pack(fill * rest)] * (rest > 0)
            record["kind"], record["encoding"] = kind, layout.Encoding.ZSTD
            record["raw_bytes"] = size
            end = _put_frames(file, record, frames, end, all_chunks)
        fields = {"num_vertices": num_vertices, "block_shift": _SHIFT}
        write_tables(file, end, table, np.concatenate(all_chunks), fields)

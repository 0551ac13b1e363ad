"""Put the sections of a file that was just written into frames, where it stands.

Frames are never longer than their contents, so that the file is written anew from its beginning to
its end: what is written lies before what is yet to be read. All cores compress.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import (
    CHUNK_BYTES,
    NAME_KINDS,
    PAGE_BYTES,
    TRANSPOSED,
    Encoding,
    Kind,
)
from oocbfs.formats.container.writer import SectionWriter, write_tables
from oocbfs.formats.io.machine import read_at
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels.constants import BYTES, DIFFERENCES, FRAME_BYTES, VALUES

# Higher levels took 3 to 8 times as long and saved 4 %.
_LEVEL = 3
# Frames of a section that are looked at.
_SAMPLED_FRAMES = 64
# Tails take time to unpack wherever they are searched in memory, so that this must pay: web graphs
# shrink to 0.2 … 0.45, all others to 0.74 or more. Small sections are unpacked faster than they
# are checked.
_MOST_TAILS, _MOST_SMALL = 0.6, 0.8
# Files that are small, or become no smaller than that, stay as they are: sections begin at whole
# pages.
LEAST_BYTES = 256 << 10
_MOST_FILE = 0.95
# Where tails stay as they are, the file maps into memory as it is, takes none besides, and is open
# at once. What unpacks takes both: roads shrink to 0.32, which is worth it, networks of people and
# Kronecker graphs to 0.5 … 0.93.
_MOST_WITH_RAW_TAILS = 0.4
# What is searched in place, wherever a file is large.
_SEARCHED = {Kind.IDS, *NAME_KINDS}


class Framing(NamedTuple):
    """What became of a file: its size, whether anything of it is in frames, and why."""

    file_bytes: int
    codec: str
    why: str


class _Choice(NamedTuple):
    """How a section is best packed, and how large it becomes by its sample."""

    coding: int
    share: float


class _Section(NamedTuple):
    """A section that may be packed: how it would be, its size, and by how much the file shrinks."""

    choice: _Choice
    size: float
    saved: float


class _Source:
    """The sections of a file, as its tables say."""

    def __init__(self, file: BinaryIO) -> None:
        self._descriptor = file.fileno()
        self.header = np.frombuffer(self.read(0, layout.HEADER.itemsize), layout.HEADER)[0]
        count = int(self.header["num_sections"])
        table = self.read(layout.SECTION_TABLE_OFFSET, count * layout.SECTION.itemsize)
        self.sections = {
            Kind(int(record["kind"])): record for record in np.frombuffer(table, layout.SECTION)
        }

    def read(self, offset: int, size: int) -> bytearray:
        """Read some bytes of the file."""
        data = bytearray(size)
        view = memoryview(data)
        while len(view):
            count = read_at(self._descriptor, view, offset)
            if count == 0:
                raise OSError("the file ends too soon")
            view, offset = view[count:], offset + count
        return data

    def contents(self, kind: Kind, first: int, size: int) -> NDArray[np.uint8]:
        """Read contents of a section from a byte on, as far as it reaches."""
        record = self.sections[kind]
        size = min(size, int(record["raw_bytes"]) - first)
        return np.frombuffer(self.read(int(record["offset"]) + first, size), np.uint8)

    def judge(self, kind: Kind) -> _Section:
        """Choose how a section would be packed, by frames from everywhere in it."""
        size = int(self.sections[kind]["raw_bytes"])
        count = layout.num_frames(size)
        numbers = np.unique(np.linspace(0, count - 1, min(count, _SAMPLED_FRAMES)).astype(np.int64))
        frames = [self.contents(kind, FRAME_BYTES * int(i), FRAME_BYTES) for i in numbers]
        choice = _best(frames, kind)
        # Sections are whole pages.
        saved = layout.pages(size) - layout.pages(int(size * choice.share))
        return _Section(choice, size, saved)


def frame_file(
    file: BinaryIO,
    codec: str,
    threads: int,
    advance: Callable[[int], object] = lambda num_bytes: None,
) -> Framing:
    """Put sections of a file into frames: all of them, or with ``auto`` those where that pays."""
    source = _Source(file)
    file_bytes = int(source.header["file_bytes"])
    if codec == "raw":
        return Framing(file_bytes, "raw", "as asked for")
    if codec == "auto" and file_bytes < LEAST_BYTES:
        return Framing(file_bytes, "raw", "the file is small")
    sections = {
        kind: source.judge(kind)
        for kind, record in source.sections.items()
        if int(record["raw_bytes"])
    }
    why = "as asked for"
    if codec == "auto":
        sections, why = _worthwhile(sections, file_bytes)
    if not sections:
        return Framing(file_bytes, "raw", why)
    choices = {kind: section.choice for kind, section in sections.items()}
    return Framing(_rewrite(file, source, choices, threads, advance), "zstd", why)


def _worthwhile(
    sections: dict[Kind, _Section], file_bytes: float
) -> tuple[dict[Kind, _Section], str]:
    """Return the sections that should be in frames, if any, and why."""
    all_tails = [one for kind, one in sections.items() if _is_tails(kind)]
    raw_bytes = sum(one.size for one in all_tails)
    tails = sum(one.choice.share * one.size for one in all_tails) / raw_bytes if raw_bytes else 1.0
    has_tails = tails <= _MOST_TAILS
    found = {
        kind: one
        for kind, one in sections.items()
        if one.saved > 0
        and kind not in _SEARCHED
        and (has_tails if _is_tails(kind) else one.choice.share <= _MOST_SMALL)
    }
    file = 1 - sum(one.saved for one in found.values()) / (file_bytes or 1)
    only = "" if has_tails else " without them"
    why = f"a sample of the tails shrinks to {tails:.0%}, the file{only} to {file:.0%}"
    return (found if file <= (_MOST_FILE if has_tails else _MOST_WITH_RAW_TAILS) else {}), why


def _is_tails(kind: Kind) -> bool:
    return kind % TRANSPOSED == Kind.TAILS


class Sample(NamedTuple):
    """Contents of a section, what all that is like them takes, and the section, raw.

    What is not like them, such as rows without arcs, takes nothing in frames.
    """

    contents: NDArray[Any]
    like_bytes: float
    raw_bytes: float


def written_bytes(samples: dict[Kind, Sample], codec: str) -> float:
    """Return what sections take in a file."""
    sections = {}
    raw_bytes = sum(sample.raw_bytes for sample in samples.values())
    for kind, sample in samples.items():
        data = np.ascontiguousarray(sample.contents).view(np.uint8)
        if data.size and codec != "raw":
            starts = range(0, data.size, FRAME_BYTES)
            choice = _best([data[first : first + FRAME_BYTES] for first in starts], kind)
            size = sample.raw_bytes
            sections[kind] = _Section(choice, size, size - choice.share * sample.like_bytes)
    if codec == "auto":
        sections, _ = _worthwhile(sections, raw_bytes)
    return raw_bytes - sum(one.saved for one in sections.values())


def _best(frames: list[NDArray[np.uint8]], kind: Kind) -> _Choice:
    """Choose how some frames of a section are packed."""
    codings = (VALUES, DIFFERENCES) if layout.DTYPES[kind] == "<u4" else (BYTES,)
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    total = sum(frame.size for frame in frames)
    shares = {
        coding: sum(len(_pack(frame, coding, compressor)) for frame in frames) / total
        for coding in codings
    }
    coding = min(shares, key=shares.__getitem__)
    return _Choice(coding, shares[coding])


def _pack(contents: NDArray[np.uint8], coding: int, compressor: zstandard.ZstdCompressor) -> bytes:
    """Return a frame: compressed, or as it is where that is no longer."""
    data = contents
    if coding != BYTES:
        from oocbfs.kernels.frames import MOST_PACKED_BYTES, pack_numbers

        data = np.empty(MOST_PACKED_BYTES, np.uint8)
        data = data[: pack_numbers(data, contents.view(np.uint32), coding)]
    packed = compressor.compress(data.data)
    return packed if len(packed) < contents.size else contents.tobytes()


class _PackedChunk(NamedTuple):
    """A chunk of a section: its frames, and how long each is."""

    stored: bytes
    lengths: NDArray[np.uint16]
    raw_bytes: int


def _packed_chunks(
    source: _Source, kind: Kind, coding: int, threads: int
) -> Iterator[_PackedChunk]:
    """Yield the chunks of a section, packed in parallel."""

    def work(contents: NDArray[np.uint8]) -> _PackedChunk:
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        frames = [
            _pack(contents[first : first + FRAME_BYTES], coding, compressor)
            for first in range(0, contents.size, FRAME_BYTES)
        ]
        lengths = np.array([len(frame) for frame in frames])
        # 0 is a frame as it is, which may be longer than 16 bits can say.
        lengths[lengths == layout.frame_sizes(contents.size)] = 0
        return _PackedChunk(b"".join(frames), lengths.astype(np.uint16), contents.size)

    # Read by this thread, and so before anything is written over it.
    size = int(source.sections[kind]["raw_bytes"])
    chunks = (source.contents(kind, first, CHUNK_BYTES) for first in range(0, size, CHUNK_BYTES))
    yield from ordered_map(work, chunks, threads)


def _rewrite(
    file: BinaryIO,
    source: _Source,
    choices: dict[Kind, _Choice],
    threads: int,
    advance: Callable[[int], object],
) -> int:
    """Write all sections anew, those that were chosen in frames; return the file's size."""
    table = np.zeros(len(source.sections) + 1, layout.SECTION)
    all_chunks: list[NDArray[np.void]] = []
    all_lengths: list[NDArray[np.uint16]] = []
    end = PAGE_BYTES
    for record, (kind, old) in zip(table, source.sections.items(), strict=False):
        size, offset = int(old["raw_bytes"]), end
        record["kind"], record["raw_bytes"], record["offset"] = kind, size, end
        if kind in choices:
            record["encoding"], record["coding"] = Encoding.FRAMES, choices[kind].coding
            record["first_frame"] = sum(map(len, all_lengths))
            sizes, sums = [], []
            for chunk in _packed_chunks(source, kind, choices[kind].coding, threads):
                _write_at(file, chunk.stored, offset)
                offset += len(chunk.stored)
                sizes.append(len(chunk.stored))
                sums.append(zlib.crc32(chunk.stored))
                all_lengths.append(chunk.lengths)
                advance(chunk.raw_bytes)
            chunks = _chunk_records(end, sizes, sums)
        else:
            section = SectionWriter(file.fileno(), kind, end)
            for first in range(0, size, CHUNK_BYTES):
                section.write(source.contents(kind, first, CHUNK_BYTES))
                advance(min(CHUNK_BYTES, size - first))
            chunks, offset = section.chunks(), end + size
        end = _finish_section(file, record, chunks, offset, all_chunks)
    lengths = SectionWriter(file.fileno(), Kind.FRAMES, end)
    lengths.write(np.concatenate(all_lengths))
    record = table[-1]
    record["kind"], record["raw_bytes"], record["offset"] = Kind.FRAMES, lengths.size, end
    end = _finish_section(file, record, lengths.chunks(), end + lengths.size, all_chunks)
    kept = set(layout.HEADER.names or ()) - {"magic", "version", "checksum", "file_bytes"}
    fields = {name: int(source.header[name]) for name in kept}
    return write_tables(file, end, table, np.concatenate(all_chunks), fields)


def _finish_section(
    file: BinaryIO,
    record: np.void,
    chunks: NDArray[np.void],
    offset: int,
    all_chunks: list[NDArray[np.void]],
) -> int:
    """Note where a section lies that ends at an offset, and return where the next one begins."""
    record["stored_bytes"] = offset - int(record["offset"])
    record["first_chunk"] = sum(map(len, all_chunks))
    record["num_chunks"] = chunks.size
    all_chunks.append(chunks)
    # Where another section was.
    end = layout.pages(offset)
    _write_at(file, bytes(end - offset), offset)
    return end


def _chunk_records(offset: int, sizes: list[int], sums: list[int]) -> NDArray[np.void]:
    records = np.zeros(len(sizes), layout.CHUNK)
    records["stored_bytes"], records["checksum"] = sizes, sums
    records["offset"] = offset + np.cumsum([0, *sizes])[:-1]
    return records


def _write_at(file: BinaryIO, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while len(view):
        count = os.pwrite(file.fileno(), view, offset)
        view, offset = view[count:], offset + count

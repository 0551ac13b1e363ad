"""Open a container: check everything that is cheap to check, and give out its sections."""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError, FormatError
from oocbfs.formats.container import layout
from oocbfs.formats.container.cut import read_shard
from oocbfs.formats.container.frame_table import FrameTable
from oocbfs.formats.container.layout import CHUNK_BYTES, PAGE_BYTES, Encoding, Flag, Kind, Order
from oocbfs.formats.container.opened import Bytes, Opened, what_to_do
from oocbfs.formats.container.unpacking import unpack, unpack_frames
from oocbfs.formats.io.closing import Closing
from oocbfs.kernels.constants import FRAME_BYTES


class Container(Closing):
    """A mapped ``.ocg`` file whose first page and tables have been checked.

    Raw sections are read-only views of the mapping; others are unpacked at their first use, by all
    cores.
    """

    def __init__(self, path: str | os.PathLike[str], source: int | Bytes | None = None) -> None:
        """Open the file at ``path``, or ``source``: an open descriptor, or all of its bytes."""
        self.file = Opened(path, source, PAGE_BYTES)
        self.path = self.file.path
        self._loaded: dict[Kind, NDArray[Any]] = {}
        self._offsets: dict[Kind, NDArray[np.int64]] = {}
        self.bytes = self.file.bytes
        # Called before the first section is unpacked, with the bytes that all of them take; raises
        # if that is too much.
        self.before_unpacking: Callable[[int], object] | None = None
        try:
            with self.file.reading():
                self._read_header(self.file.size)
                self._read_chunks()
                self._read_sections()
        except BaseException:
            self.close()
            raise

    def error(self, message: str) -> FormatError:
        """Return what is wrong with the file."""
        return FormatError(f"{self.path}: {message}")

    def damaged_frame(self, kind: Kind, number: int) -> FormatError:
        """Return that a frame of a section cannot be unpacked."""
        return self.error(damaged_frame(kind, number))

    def _require(self, condition: object, message: str) -> None:
        if not condition:
            raise self.error(message)

    def _read_header(self, size: int) -> None:
        page = self.bytes[:PAGE_BYTES].tobytes()
        header = np.frombuffer(page, layout.HEADER, 1)[0]
        self._require(page[:8] == layout.MAGIC, what_to_do(self.path, "wrong magic bytes"))
        version = int(header["version"])
        *versions, newest = layout.VERSIONS
        self._require(
            version in layout.VERSIONS,
            f"is format version {version}, this oocbfs reads versions "
            f"{', '.join(map(str, versions))} and {newest}: "
            "convert the graph again, or install the oocbfs that wrote it",
        )
        self._require(
            int(header["checksum"]) == layout.header_checksum(page),
            "header checksum does not match: the file is damaged",
        )
        self._require(
            int(header["file_bytes"]) == size,
            f"is {size:,} bytes long but should be {int(header['file_bytes']):,}: truncated or "
            "still being copied",
        )
        self.header = header
        self.version = version
        self.num_vertices = int(header["num_vertices"])
        self.num_arcs = int(header["num_arcs"])
        self.first_id = int(header["first_id"])
        self.block_shift = int(header["block_shift"])
        self._require(self.num_vertices <= layout.MAX_VERTICES, "impossible number of vertices")
        self._require(self.num_arcs <= layout.MAX_EDGES, "impossible number of edges")
        problem, self.shard = read_shard(header)
        self._require(not problem, problem)
        # Rows of a shard name vertices of the whole graph.
        self.num_ids = self.num_vertices if self.shard is None else self.shard.cut.num_vertices
        self._require(
            self.num_arcs <= self.num_vertices * max(0, self.num_ids - 1),
            "more edges than its vertices can have",
        )
        self._require(self.first_id + self.num_vertices <= 2**64, "impossible first id")
        self._require(self.block_shift <= layout.MAX_BLOCK_SHIFT, "impossible block shift")
        self._require(int(header["flags"]) & ~int(Flag.DIRECTED) == 0, "unknown flags are set")
        self._require(int(header["order"]) in set(Order), "unknown vertex order")
        self._require(int(header["max_degree"]) < max(1, self.num_ids), "impossible degree")
        self._require(int(header["reserved"]) == 0, "reserved header bytes are not zero")
        self._require(int(header["num_sections"]) <= layout.MAX_SECTIONS, "too many sections")
        table_end = layout.SECTION_TABLE_OFFSET + layout.SECTION.itemsize * int(
            header["num_sections"]
        )
        rest = page[layout.HEADER.itemsize : layout.SECTION_TABLE_OFFSET] + page[table_end:]
        self._require(not any(rest), "reserved header bytes are not zero")
        self._table = np.frombuffer(
            page, layout.SECTION, int(header["num_sections"]), layout.SECTION_TABLE_OFFSET
        )

    def _needed_kinds(self) -> set[Kind]:
        """List the sections that must be there; ids may be besides where vertices are named."""
        if self.shard is not None and self.shard.is_names:
            needed = {Kind.DEGREES}
        else:
            needed = set(layout.ROW_KINDS)
            if self.directed:
                needed |= {Kind(kind + layout.TRANSPOSED) for kind in layout.ROW_KINDS}
        if self._names_vertices and self.order is not Order.NATURAL:
            needed.add(Kind.ORDER)
        return needed

    @property
    def _names_vertices(self) -> bool:
        """Whether this knows the ids of its vertices; rows of a shard have a file for it."""
        return self.shard is None or self.shard.is_names

    def _read_chunks(self) -> None:
        offset, count = int(self.header["chunk_table_offset"]), int(self.header["num_chunks"])
        end = offset + count * layout.CHUNK.itemsize
        self._require(
            offset % PAGE_BYTES == 0 and offset >= PAGE_BYTES and end == self.bytes.size,
            "the chunk table is not where it belongs",
        )
        table = self.bytes[offset:]
        self._require(
            zlib.crc32(table) == int(self.header["chunk_table_checksum"]),
            "chunk table checksum does not match: the file is damaged",
        )
        self.chunks = table.view(layout.CHUNK)

    def _read_sections(self) -> None:
        self.sections: dict[Kind, np.void] = {}
        offset, chunk = PAGE_BYTES, 0
        for record in self._table:
            self._require(int(record["kind"]) in set(Kind), "unknown section kind")
            kind = Kind(int(record["kind"]))
            name = kind.name.lower()
            self._require(kind not in self.sections, f"section {name} appears twice")
            encoding = int(record["encoding"])
            self._require(encoding in set(Encoding), f"{name}: unknown encoding")
            self._require(not record["reserved"], f"{name}: reserved bytes are not zero")
            raw, stored = int(record["raw_bytes"]), int(record["stored_bytes"])
            expected = layout.raw_bytes(kind, self.num_vertices, self.block_shift)
            self._require(expected in (None, raw), f"{name}: wrong size for the number of vertices")
            self._require(
                int(record["offset"]) == offset
                and int(record["first_chunk"]) == chunk
                and int(record["num_chunks"]) == -(-raw // CHUNK_BYTES)
                and offset + stored <= int(self.header["chunk_table_offset"]),
                f"{name}: is not where it belongs",
            )
            chunks = self.chunks[chunk : chunk + int(record["num_chunks"])]
            self._check_chunks(name, record, chunks)
            self.sections[kind] = record
            offset, chunk = offset + layout.pages(stored), chunk + chunks.size
        self._require(
            offset == int(self.header["chunk_table_offset"]) and chunk == self.chunks.size,
            "sections and chunk table do not meet",
        )
        self._read_frames()
        id_kinds = set(self.sections) & {Kind.IDS, *layout.NAME_KINDS}
        self._require(
            set(self.sections) - id_kinds - {Kind.FRAMES} == self._needed_kinds()
            and id_kinds in (set(), {Kind.IDS}, set(layout.NAME_KINDS))
            and (self._names_vertices or not id_kinds),
            "sections are missing or superfluous",
        )
        self._require(not id_kinds or self.first_id == 0, "two ways of naming its vertices")
        self._require(
            layout.version_for(self.header, self.sections) <= self.version,
            f"holds names, frames or an order that version {self.version} does not have",
        )

    def _read_frames(self) -> None:
        """Read how long frames are, and see that they lie where their chunks do."""
        record = self.sections.get(Kind.FRAMES)
        self._frames = FrameTable()
        if record is not None:
            self._require(int(record["encoding"]) == Encoding.RAW, "frames: unknown encoding")
            begin, size = int(record["offset"]), int(record["raw_bytes"])
            self._require(size % 2 == 0, "frames: has half a number")
            table = self.file.read(begin, size)
            for chunk in self.section_chunks(Kind.FRAMES):
                stored = table[int(chunk["offset"]) - begin :][: int(chunk["stored_bytes"])]
                self._check_sum(Kind.FRAMES, chunk, stored)
            self._frames = FrameTable(table.view(layout.DTYPES[Kind.FRAMES]))
        for kind, record in self.sections.items():
            problem = self._frames.check(kind, record, self.section_chunks(kind))
            self._require(not problem, f"{kind.name.lower()}: {problem}")
        problem = self._frames.check_end()
        self._require(not problem, f"frames: {problem}")

    def _check_chunks(self, name: str, record: np.void, chunks: NDArray[np.void]) -> None:
        """Chunks follow each other without gaps and cover the section."""
        stored = chunks["stored_bytes"].astype(np.uint64)
        offsets = int(record["offset"]) + np.concatenate(
            ([np.uint64(0)], np.cumsum(stored, dtype=np.uint64))
        )
        self._require(
            np.array_equal(chunks["offset"], offsets[:-1])
            and int(stored.sum()) == int(record["stored_bytes"]),
            f"{name}: its chunks do not cover it",
        )
        if int(record["encoding"]) == Encoding.RAW:
            self._require(
                int(record["stored_bytes"]) == int(record["raw_bytes"])
                and (stored[:-1] == CHUNK_BYTES).all(),
                f"{name}: its chunks have the wrong sizes",
            )

    @cached_property
    def directed(self) -> bool:
        """Whether rows are out-neighbours and a transpose is stored."""
        return bool(int(self.header["flags"]) & Flag.DIRECTED)

    @cached_property
    def order(self) -> Order:
        """How stored vertices are arranged."""
        return Order(int(self.header["order"]))

    @cached_property
    def is_archive(self) -> bool:
        """Whether sections are of an older kind, and must be unpacked before they can be used."""
        return any(int(record["encoding"]) == Encoding.ZSTD for record in self.sections.values())

    def is_framed(self, kind: Kind) -> bool:
        """Return whether a section is in frames, which unpack by themselves."""
        return int(self.sections[kind]["encoding"]) == Encoding.FRAMES

    def has_unpacked(self, kind: Kind) -> bool:
        """Return whether a section is in memory already."""
        return kind in self._loaded

    @property
    def unpacked_bytes(self) -> int:
        """Size of the contents of all sections that do not map."""
        return sum(
            int(record["raw_bytes"])
            for record in self.sections.values()
            if int(record["encoding"]) != Encoding.RAW
        )

    @property
    def has_frames(self) -> bool:
        """Whether any section is in frames."""
        return any(map(self.is_framed, self.sections))

    @property
    def has_framed_tails(self) -> bool:
        """Whether tails are in frames, which are unpacked before they are searched."""
        kinds = (Kind.TAILS, Kind.IN_TAILS)
        return any(kind in self.sections and self.is_framed(kind) for kind in kinds)

    @property
    def offsets_bytes(self) -> int:
        """Bytes that tell in memory where frames begin."""
        return sum(
            8 * (layout.num_frames(int(record["raw_bytes"])) + 1)
            for kind, record in self.sections.items()
            if self.is_framed(kind)
        )

    def raw_bytes(self, *kinds: Kind) -> int:
        """Size of the contents of sections of these kinds, the transpose's included."""
        return sum(
            int(record["raw_bytes"])
            for kind, record in self.sections.items()
            if kind in kinds or kind - layout.TRANSPOSED in kinds
        )

    @property
    def bits_per_arc(self) -> float:
        """Bits of the whole file for each arc, both sides of a directed graph counted."""
        return bits_per_arc(int(self.header["file_bytes"]), self.num_arcs, directed=self.directed)

    def section_chunks(self, kind: Kind) -> NDArray[np.void]:
        """Chunk records of a section."""
        record = self.sections[kind]
        first = int(record["first_chunk"])
        return self.chunks[first : first + int(record["num_chunks"])]

    def stored(self, kind: Kind) -> NDArray[np.uint8]:
        """Return the stored bytes of a section."""
        record = self.sections[kind]
        return self.bytes[int(record["offset"]) :][: int(record["stored_bytes"])]

    def frame_offsets(self, kind: Kind) -> NDArray[np.int64]:
        """Return where the frames of a section begin in it, and where the last one ends."""
        if kind not in self._offsets:
            self._offsets[kind] = self._frames.offsets(self.sections[kind])
        return self._offsets[kind]

    def chunk_bytes(self, chunk: np.void) -> NDArray[np.uint8]:
        """Return the stored bytes of one chunk."""
        return self.bytes[int(chunk["offset"]) :][: int(chunk["stored_bytes"])]

    def section(self, kind: Kind) -> NDArray[Any]:
        """Return the contents of a section: a view of the mapping, or unpacked once."""
        with self.file.loading, self.file.reading():
            if kind not in self._loaded:
                if int(self.sections[kind]["encoding"]) == Encoding.RAW:
                    data = self.stored(kind)
                else:
                    data = unpack(self, kind, to_file=not self._has_room(kind))
                self._loaded[kind] = data.view(layout.DTYPES[kind])
            return self._loaded[kind]

    def part(self, kind: Kind, first: int, stop: int) -> NDArray[Any]:
        """Return some items of a section, of which no others are unpacked."""
        if kind in self._loaded or not self.is_framed(kind):
            return self.section(kind)[first:stop]
        dtype = np.dtype(layout.DTYPES[kind])
        begin, end = first * dtype.itemsize, stop * dtype.itemsize
        frame = begin // FRAME_BYTES
        size = min(-(-end // FRAME_BYTES) * FRAME_BYTES, int(self.sections[kind]["raw_bytes"]))
        with self.file.reading():
            contents = np.empty(size - frame * FRAME_BYTES, np.uint8)
            unpack_frames(self, kind, contents, frame, is_read=True)
        return contents.view(dtype)[first - frame * FRAME_BYTES // dtype.itemsize :][: stop - first]

    def items(self, kind: Kind, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return a few items of a section, of each chunk in one part."""
        if kind in self._loaded or not self.is_framed(kind):
            found: NDArray[Any] = self.section(kind)[numbers]
            return found
        found = np.empty(numbers.size, layout.DTYPES[kind])
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order].astype(np.int64)
        cuts = np.flatnonzero(np.diff(ascending // (CHUNK_BYTES // found.itemsize))) + 1
        for here, wanted in zip(np.split(order, cuts), np.split(ascending, cuts), strict=True):
            if wanted.size:
                first = int(wanted[0])
                found[here] = self.part(kind, first, int(wanted[-1]) + 1)[wanted - first]
        return found

    def _has_room(self, kind: Kind) -> bool:
        """Return whether a section may be unpacked into memory."""
        try:
            # Small sections are counted by whoever asks for them.
            if self.is_archive or kind % layout.TRANSPOSED == Kind.TAILS:
                self.expect_unpacking()
        except BudgetError:
            if self.is_archive:
                raise
            return False
        return True

    def expect_unpacking(self) -> None:
        """Refuse a graph that does not fit unpacked, before other memory is taken; asks once."""
        if self.before_unpacking is not None and self.unpacked_bytes:
            self.before_unpacking(self.unpacked_bytes)
            self.before_unpacking = None

    def check_chunk(self, kind: Kind, chunk: np.void) -> None:
        """Compare one chunk with its checksum."""
        self._check_sum(kind, chunk, self.chunk_bytes(chunk))

    def _check_sum(self, kind: Kind, chunk: np.void, stored: NDArray[np.uint8]) -> None:
        self._require(
            zlib.crc32(stored) == int(chunk["checksum"]),
            f"section {kind.name.lower()} is damaged at byte {int(chunk['offset']):,}: "
            "copy or convert the graph again",
        )

    def expect(self, kind: Kind) -> None:
        """Have the system read ahead a raw section that is about to be used as a whole."""
        record = self.sections[kind]
        if (
            self.file.mapping is not None
            and int(record["encoding"]) == Encoding.RAW
            and hasattr(mmap, "MADV_WILLNEED")
        ):
            # The system's pages may be larger than those of the format.
            offset = int(record["offset"])
            begin = offset // mmap.PAGESIZE * mmap.PAGESIZE
            size = offset - begin + int(record["stored_bytes"])
            self.file.mapping.madvise(mmap.MADV_WILLNEED, begin, size)

    def release(self) -> None:
        """Release mapped pages, and small sections that were unpacked, to be read again at need."""
        for kind in [kind for kind in self._loaded if self.is_framed(kind)]:
            if kind % layout.TRANSPOSED != Kind.TAILS:
                del self._loaded[kind]
        if self.file.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.file.mapping.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Drop the mapping; views that were given out keep it alive until they are gone."""
        self.file.close(self.drop)

    def drop(self) -> None:
        """Release everything, when the last reader is out."""
        self._loaded.clear()
        self.bytes = np.empty(0, np.uint8)
        self.chunks = np.empty(0, layout.CHUNK)
        self.file.drop()


def damaged_frame(kind: Kind, number: int) -> str:
    """Say that a frame of a section cannot be unpacked."""
    return f"{kind.name.lower()}: frame {number:,} is damaged: copy or convert the graph again"


def bits_per_arc(file_bytes: int, num_arcs: int, *, directed: bool) -> float:
    """Return how many bits of a graph's files there are for each arc that they store.

    A directed graph stores each arc twice, once in the row of its source and once in the row of
    its target; an undirected edge is two arcs.
    """
    stored = num_arcs * (2 if directed else 1)
    return 8 * file_bytes / stored if stored else 0.0

"""Open a container: check everything that is cheap to check, and give out its sections."""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container import layout
from oocbfs.formats.container.cut import read_shard
from oocbfs.formats.container.layout import CHUNK_BYTES, PAGE_BYTES, Encoding, Flag, Kind, Order
from oocbfs.formats.container.opened import Bytes, Opened, what_to_do
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.kernels.constants import SLACK_BYTES


class Container(Closing):
    """A mapped ``.ocg`` file whose first page and tables have been checked.

    Raw sections are read-only views of the mapping; zstd sections are decompressed at their first
    use, by all cores.
    """

    def __init__(self, path: str | os.PathLike[str], source: int | Bytes | None = None) -> None:
        """Open the file at ``path``, or ``source``: an open descriptor, or all of its bytes."""
        self.file = Opened(path, source, PAGE_BYTES)
        self.path = self.file.path
        self._loaded: dict[Kind, NDArray[Any]] = {}
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

    def _error(self, message: str) -> FormatError:
        return FormatError(f"{self.path}: {message}")

    def _require(self, condition: object, message: str) -> None:
        if not condition:
            raise self._error(message)

    def _read_header(self, size: int) -> None:
        page = self.bytes[:PAGE_BYTES].tobytes()
        header = np.frombuffer(page, layout.HEADER, 1)[0]
        self._require(page[:8] == layout.MAGIC, what_to_do(self.path, "wrong magic bytes"))
        version = int(header["version"])
        self._require(
            version in layout.VERSIONS,
            f"is format version {version}, this oocbfs reads versions "
            f"{' and '.join(map(str, layout.VERSIONS))}: "
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
            self._require(int(record["encoding"]) in set(Encoding), f"{name}: unknown encoding")
            self._require(not record["reserved"].any(), f"{name}: reserved bytes are not zero")
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
        id_kinds = set(self.sections) & {Kind.IDS, *layout.NAME_KINDS}
        self._require(
            set(self.sections) - id_kinds == self._needed_kinds()
            and id_kinds in (set(), {Kind.IDS}, set(layout.NAME_KINDS))
            and (self._names_vertices or not id_kinds),
            "sections are missing or superfluous",
        )
        self._require(not id_kinds or self.first_id == 0, "two ways of naming its vertices")
        self._require(
            layout.version_for(self.header, self.sections) <= self.version,
            f"holds names, which version {self.version} does not have",
        )

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
    def is_compressed(self) -> bool:
        """Whether sections must be decompressed before they can be used."""
        return any(int(record["encoding"]) != Encoding.RAW for record in self.sections.values())

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

    def chunk_bytes(self, chunk: np.void) -> NDArray[np.uint8]:
        """Return the stored bytes of one chunk."""
        return self.bytes[int(chunk["offset"]) :][: int(chunk["stored_bytes"])]

    def section(self, kind: Kind) -> NDArray[Any]:
        """Return the contents of a section: a view of the mapping, or decompressed once."""
        with self.file.loading, self.file.reading():
            if kind not in self._loaded:
                record = self.sections[kind]
                if int(record["encoding"]) == Encoding.RAW:
                    offset, size = int(record["offset"]), int(record["raw_bytes"])
                    data = self.bytes[offset : offset + size]
                else:
                    self.expect_unpacking()
                    data = self._decompress(kind, int(record["raw_bytes"]))
                self._loaded[kind] = data.view(layout.DTYPES[kind])
            return self._loaded[kind]

    def expect_unpacking(self) -> None:
        """Refuse a graph that does not fit unpacked, before other memory is taken; asks once."""
        if self.before_unpacking is not None and self.is_compressed:
            self.before_unpacking(self.raw_bytes(*Kind))
            self.before_unpacking = None

    def _decompress(self, kind: Kind, size: int) -> NDArray[np.uint8]:
        # The frames must add up to the size before it is allocated: a crafted one could be absurd.
        chunks = self.section_chunks(kind)
        sizes = np.full(chunks.size, CHUNK_BYTES)
        if chunks.size:
            sizes[-1] = size - CHUNK_BYTES * (chunks.size - 1)
        for chunk, expected in zip(chunks, sizes, strict=True):
            self._check_frame(kind, self.chunk_bytes(chunk), int(expected))
        # It begins at a page and fills whole pages, so that a GPU's driver can pin it as it is.
        allocated = np.empty(layout.pages(size + SLACK_BYTES) + PAGE_BYTES, np.uint8)
        data = allocated[-allocated.ctypes.data % PAGE_BYTES :][: size + SLACK_BYTES]

        def work(i: int) -> None:
            self.check_chunk(kind, chunks[i])
            start = i * CHUNK_BYTES
            data[start : start + int(sizes[i])] = self.decompress_chunk(
                kind, chunks[i], int(sizes[i])
            )

        for _ in ordered_map(work, range(chunks.size), available_threads()):
            pass
        data[size:] = 0
        data.flags.writeable = False
        return data[:size]

    def _check_frame(self, kind: Kind, frame: NDArray[np.uint8], expected: int) -> None:
        try:
            size = zstandard.get_frame_parameters(frame[:32].tobytes()).content_size
        except zstandard.ZstdError as error:
            raise self._error(f"{kind.name.lower()}: damaged zstd frame") from error
        self._require(size == expected, f"{kind.name.lower()}: a zstd frame has the wrong size")

    def decompress_chunk(self, kind: Kind, chunk: np.void, size: int) -> NDArray[np.uint8]:
        """Contents of one zstd chunk whose frame declares ``size`` bytes."""
        try:
            raw = zstandard.ZstdDecompressor().decompress(
                memoryview(self.chunk_bytes(chunk)), max_output_size=size, allow_extra_data=False
            )
        except zstandard.ZstdError as error:
            raise self._error(f"{kind.name.lower()}: damaged zstd frame") from error
        self._require(len(raw) == size, f"{kind.name.lower()}: a zstd frame has the wrong size")
        return np.frombuffer(raw, np.uint8)

    def check_chunk(self, kind: Kind, chunk: np.void) -> None:
        """Compare one chunk with its checksum."""
        self._require(
            zlib.crc32(self.chunk_bytes(chunk)) == int(chunk["checksum"]),
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
        """Release mapped pages; when touched again, they come from the page cache or the disk."""
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


def bits_per_arc(file_bytes: int, num_arcs: int, *, directed: bool) -> float:
    """Return how many bits of a graph's files there are for each arc that they store.

    A directed graph stores each arc twice, once in the row of its source and once in the row of
    its target; an undirected edge is two arcs.
    """
    stored = num_arcs * (2 if directed else 1)
    return 8 * file_bytes / stored if stored else 0.0

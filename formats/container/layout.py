"""The byte layout of a container: header, section table and chunk table. FORMAT.md is its prose."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.constants import FRAME_BYTES

MAGIC = b"\x89OCG\r\n\x1a\n"
# Files with frames, or in the order by communities, are of version 3, others with names for
# vertices, and other parts of graphs, of version 2, all others of version 1.
VERSIONS = (1, 2, 3)
PAGE_BYTES = 4096
CHUNK_BYTES = 1 << 20
FRAMES_PER_CHUNK = CHUNK_BYTES // FRAME_BYTES
MAX_VERTICES = 2**32 - 2
MAX_EDGES = 2**48
MAX_BLOCK_SHIFT = 16


class Flag(IntFlag):
    """Bits of the header's ``flags``."""

    DIRECTED = 1


class Order(IntEnum):
    """How stored vertices are arranged."""

    NATURAL = 0
    DEGREE = 1
    DBG = 2
    LOCAL = 3
    COMMUNITIES = 4


class Encoding(IntEnum):
    """How a section's bytes are stored."""

    RAW = 0
    # One zstd frame a chunk: read, and not written any more.
    ZSTD = 1
    # Frames of FRAME_BYTES of contents each, which unpack by themselves.
    FRAMES = 2


class Kind(IntEnum):
    """What a section holds; a transposed kind is the plain one plus TRANSPOSED."""

    IDS = 1
    ORDER = 2
    DEGREES = 3
    HEADS = 4
    BASES = 5
    STARTS = 6
    TAILS = 7
    NAMES = 8
    NAME_STARTS = 9
    FRAMES = 12
    IN_DEGREES = 19
    IN_HEADS = 20
    IN_BASES = 21
    IN_STARTS = 22
    IN_TAILS = 23


TRANSPOSED = 16
NAME_KINDS = (Kind.NAMES, Kind.NAME_STARTS)
# Names that are stored in one block.
NAMES_PER_BLOCK = 16
ROW_KINDS = (Kind.DEGREES, Kind.HEADS, Kind.BASES, Kind.STARTS, Kind.TAILS)
DTYPES: dict[Kind, str] = {
    Kind.IDS: "<u8",
    Kind.ORDER: "<u4",
    Kind.NAMES: "u1",
    Kind.NAME_STARTS: "<u8",
    Kind.FRAMES: "<u2",
    **{
        Kind(kind + side): dtype
        for side in (0, TRANSPOSED)
        for kind, dtype in zip(ROW_KINDS, ("<u4", "<u4", "<u8", "<u4", "u1"), strict=True)
    },
}

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("checksum", "<u4"),
        ("file_bytes", "<u8"),
        ("num_vertices", "<u8"),
        ("num_arcs", "<u8"),
        ("first_id", "<u8"),
        ("flags", "<u4"),
        ("order", "<u4"),
        ("block_shift", "<u4"),
        ("num_sections", "<u4"),
        ("max_degree", "<u8"),
        ("chunk_table_offset", "<u8"),
        ("num_chunks", "<u8"),
        ("chunk_table_checksum", "<u4"),
        ("reserved", "<u4"),
        ("input_edges", "<u8"),
        ("input_duplicates", "<u8"),
        ("input_loops", "<u8"),
        ("input_vertices", "<u8"),
        # From here on, zero in version 1.
        ("part", "<u4"),
        ("parts", "<u4"),
        ("total_vertices", "<u8"),
        ("total_arcs", "<u8"),
        ("graph_checksum", "<u4"),
        ("reserved_parts", "<u4"),
    ]
)
SHARD_FIELDS = ("part", "parts", "total_vertices", "total_arcs", "graph_checksum")
SECTION = np.dtype(
    [
        ("kind", "<u4"),
        ("encoding", "<u4"),
        ("offset", "<u8"),
        ("stored_bytes", "<u8"),
        ("raw_bytes", "<u8"),
        ("first_chunk", "<u8"),
        ("num_chunks", "<u8"),
        # From here on, zero in versions 1 and 2.
        ("first_frame", "<u8"),
        ("coding", "<u4"),
        ("reserved", "<u4"),
    ]
)
CHUNK = np.dtype([("offset", "<u8"), ("stored_bytes", "<u4"), ("checksum", "<u4")])
SECTION_TABLE_OFFSET = 256
MAX_SECTIONS = len(Kind)


def pages(num_bytes: int) -> int:
    """Round up to whole pages."""
    return -(-num_bytes // PAGE_BYTES) * PAGE_BYTES


def num_blocks(num_vertices: int, block_shift: int) -> int:
    """Entries of the bases section: one per block of rows, the end of the last row included."""
    return (num_vertices >> block_shift) + 1


def raw_bytes(kind: Kind, num_vertices: int, block_shift: int) -> int | None:
    """Size that the vertex count dictates for a section; None for tails, names and frames."""
    plain = Kind(kind % TRANSPOSED)
    if plain in (Kind.TAILS, Kind.NAMES, Kind.FRAMES):
        return None
    if plain is Kind.NAME_STARTS:
        return 8 * (-(-num_vertices // NAMES_PER_BLOCK) + 1)
    if plain is Kind.BASES:
        return 8 * num_blocks(num_vertices, block_shift)
    if plain is Kind.STARTS:
        return 4 * (num_vertices + 1)
    return np.dtype(DTYPES[plain]).itemsize * num_vertices


def num_frames(raw_bytes: int) -> int:
    """Count the frames that contents are cut into."""
    return -(-raw_bytes // FRAME_BYTES)


def frame_sizes(raw_bytes: int) -> NDArray[np.int64]:
    """Return how much of the contents each frame holds."""
    sizes = np.full(num_frames(raw_bytes), FRAME_BYTES, np.int64)
    sizes[-1:] -= sizes.size * FRAME_BYTES - raw_bytes
    return sizes


def version_for(header: NDArray[np.void] | np.void, kinds: Iterable[int]) -> int:
    """Return the lowest version that knows what a header says, and has these sections."""
    found = set(kinds)
    if Kind.FRAMES in found or int(header["order"]) == Order.COMMUNITIES:
        return 3
    return 2 if int(header["parts"]) or found & set(NAME_KINDS) else 1


def header_checksum(page: bytes) -> int:
    """CRC-32 of the first page with its own checksum field taken as zero."""
    offset = HEADER.fields["checksum"][1]  # type: ignore[index]
    return zlib.crc32(page[:offset] + b"\0\0\0\0" + page[offset + 4 :])


def pack_page(header: NDArray[np.void], sections: NDArray[np.void]) -> bytes:
    """Assemble the first page: header, section table, zeros, and the checksum over it all."""
    page = bytearray(PAGE_BYTES)
    page[: HEADER.itemsize] = header.tobytes()
    page[SECTION_TABLE_OFFSET : SECTION_TABLE_OFFSET + sections.nbytes] = sections.tobytes()
    header = header.copy()
    header["checksum"] = header_checksum(bytes(page))
    page[: HEADER.itemsize] = header.tobytes()
    return bytes(page)

"""Small graph files of every sort, and ways to change them that leave their checksums right."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Encoding, Kind
from oocbfs.kernels.constants import FRAME_BYTES
from oocbfs.kernels.frames import MOST_PACKED_BYTES, pack_numbers
from tests.support.crafting import make_archive, sign
from tests.support.fuzzing.plain import PlainGraph
from tests.support.strategies import name_edges

# Nearly every change of an index is refused when it is loaded; other changes get further.
_WEIGHTS = {Kind.TAILS: 6, Kind.HEADS: 4, Kind.DEGREES: 2, Kind.ORDER: 2, Kind.IDS: 2}
_WEIGHTS |= {Kind.NAMES: 6, Kind.NAME_STARTS: 2}


class Original(NamedTuple):
    """A graph to be changed: its edges, how to convert it, and how often it is taken."""

    edges: Callable[[], Any]
    options: dict[str, Any]
    weight: int


def _few(num_vertices: int, num_edges: int) -> Callable[[], Any]:
    return lambda: np.random.default_rng(3).integers(0, num_vertices, (num_edges, 2))


def _named(num_vertices: int, num_edges: int) -> Callable[[], Any]:
    return lambda: name_edges(_few(num_vertices, num_edges)().tolist())


def _hub(num_spokes: int, num_vertices: int, others: int, factor: int = 1) -> Callable[[], Any]:
    """Make one vertex that knows many, and some other edges."""

    def make() -> Any:
        rng = np.random.default_rng(4)
        spokes = rng.choice(num_vertices - 1, num_spokes, replace=False) + 1
        hub = np.stack((np.zeros(num_spokes, np.int64), spokes), axis=1)
        return factor * np.concatenate((hub, rng.integers(0, num_vertices, (others, 2))))

    return make


# A tail of more than 1,024 bytes has segments; threads share one of more than 16 times that.
ORIGINALS = {
    "natural": Original(_few(70, 150), {"order": "natural"}, 5),
    "degree": Original(lambda: 7 * _few(80, 200)() + 3, {"order": "degree", "ids": "compact"}, 6),
    "grouped": Original(_few(130, 130), {"order": "dbg"}, 4),
    "communities": Original(_few(70, 100), {"order": "communities"}, 2),
    "local": Original(_few(70, 100), {"order": "local"}, 4),
    "directed": Original(_few(90, 300), {"order": "dbg", "directed": True}, 6),
    "archive": Original(_few(80, 200), {"order": "degree"}, 2),
    "frames": Original(_few(80, 200), {"order": "degree", "codec": "zstd"}, 3),
    "directed frames": Original(_few(90, 300), {"directed": True, "codec": "zstd"}, 3),
    "many frames": Original(_few(9000, 30_000), {"order": "local", "codec": "zstd"}, 2),
    "segments in frames": Original(_hub(1300, 1500, 300), {"order": "degree", "codec": "zstd"}, 2),
    "names": Original(_named(90, 200), {"order": "degree", "ids": "names"}, 6),
    "names in frames": Original(
        _named(40, 60), {"order": "natural", "ids": "names", "codec": "zstd"}, 2
    ),
    "segments": Original(_hub(1300, 1500, 300, 5), {"order": "degree", "ids": "compact"}, 3),
    "natural segments": Original(_hub(1300, 9000, 100), {"order": "natural"}, 1),
    "directed segments": Original(_hub(1200, 1500, 300), {"order": "degree", "directed": True}, 2),
    "shared hub": Original(_hub(17_000, 17_100, 2000), {"order": "degree"}, 1),
}


@cache
def originals(folder: Path) -> dict[str, bytes]:
    """Convert all graphs, in a folder that others use too."""
    import oocbfs

    files = {}
    for name, original in ORIGINALS.items():
        path = folder / f"{name}.ocg"
        if not path.exists():
            made = folder / f"{name} {os.getpid()}.ocg"
            oocbfs.convert(original.edges(), made, **{"codec": "raw"} | original.options)
            if name == "archive":
                make_archive(made)
            made.rename(path)
        files[name] = path.read_bytes()
    return files


class Parts:
    """A file taken apart: what its header says, and the contents of its sections."""

    def __init__(self, data: bytes) -> None:
        self.header = np.frombuffer(data, layout.HEADER, 1)[0].copy()
        count = int(self.header["num_sections"])
        table = np.frombuffer(data, layout.SECTION, count, layout.SECTION_TABLE_OFFSET)
        self.is_archive = bool((table["encoding"] == Encoding.ZSTD).any())
        self.contents: dict[Kind, bytearray] = {}
        # How sections in frames are coded.
        self.codings: dict[Kind, int] = {}
        plain = PlainGraph(data)
        for record in table[table["kind"] != Kind.FRAMES]:
            kind = Kind(int(record["kind"]))
            self.contents[kind] = bytearray(plain.contents(kind))
            if int(record["encoding"]) == Encoding.FRAMES:
                self.codings[kind] = int(record["coding"])

    def numbers(self, kind: Kind) -> Any:
        """Return a section as numbers that can be changed."""
        dtype = np.dtype(layout.DTYPES[kind])
        return np.frombuffer(self.contents[kind], dtype, len(self.contents[kind]) // dtype.itemsize)

    def assemble(self) -> bytearray:
        """Put the file together again; no section is longer than a chunk."""
        data = bytearray(layout.PAGE_BYTES)
        all_contents, lengths = dict(self.contents), bytearray()
        if self.codings:
            all_contents[Kind.FRAMES] = lengths
        sections = np.zeros(len(all_contents), layout.SECTION)
        chunks = np.zeros(len(all_contents), layout.CHUNK)
        chunk = 0
        for record, (kind, contents) in zip(sections, all_contents.items(), strict=True):
            stored = bytes(contents)
            record["kind"] = kind
            if self.is_archive and contents:
                record["encoding"] = Encoding.ZSTD
                stored = zstandard.ZstdCompressor(1).compress(stored)
            elif kind in self.codings and contents:
                record["encoding"], record["coding"] = Encoding.FRAMES, self.codings[kind]
                record["first_frame"] = len(lengths) // 2
                stored = _in_frames(stored, self.codings[kind], lengths)
            record["offset"], record["stored_bytes"] = len(data), len(stored)
            record["raw_bytes"] = len(contents)
            record["first_chunk"], record["num_chunks"] = chunk, bool(contents)
            if contents:
                chunks[chunk]["offset"], chunks[chunk]["stored_bytes"] = len(data), len(stored)
                chunk += 1
            data += stored + bytes(-len(stored) % layout.PAGE_BYTES)
        header, chunks = self.header, chunks[:chunk]
        header["chunk_table_offset"], header["num_chunks"] = len(data), len(chunks)
        header["num_sections"] = len(sections)
        header["file_bytes"] = len(data) + chunks.nbytes
        data += chunks.tobytes()
        data[: layout.PAGE_BYTES] = layout.pack_page(header, sections)
        return sign(data)


def _in_frames(contents: bytes, coding: int, lengths: bytearray) -> bytes:
    """Return contents in frames, and append how long these are."""
    frames = []
    for first in range(0, len(contents), FRAME_BYTES):
        piece = contents[first : first + FRAME_BYTES]
        packed = piece
        if coding and len(piece) % 4 == 0:
            room = np.empty(MOST_PACKED_BYTES, np.uint8)
            numbers = np.frombuffer(piece, np.uint32)
            packed = room[: pack_numbers(room, numbers, coding)].tobytes()
        packed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(packed)
        frames.append(packed if len(packed) < len(piece) else piece)
        lengths += struct.pack("<H", len(packed) if len(packed) < len(piece) else 0)
    return b"".join(frames)


def _pick_section(parts: Parts, rng: random.Random) -> Kind:
    """Choose a section that holds something: eight bytes are a number of any kind."""
    kinds = [kind for kind, contents in parts.contents.items() if len(contents) >= 8]
    weights = [_WEIGHTS.get(Kind(kind % layout.TRANSPOSED), 1) for kind in kinds]
    return rng.choices(kinds, weights)[0]


def _odd_number(parts: Parts, rng: random.Random) -> int:
    """Choose a number that is likely to be at an edge of something."""
    n = max(1, int(parts.header["num_vertices"]))
    near = rng.choice((0, 1, 64, 128, n, 1 << 31, 1 << 32, *(rng.randrange(n) for _ in range(5))))
    return max(0, near + rng.choice((-2, -1, 0, 0, 1)))


def change_bytes(parts: Parts, rng: random.Random) -> None:
    """Change a few bytes of a section."""
    contents = parts.contents[_pick_section(parts, rng)]
    for _ in range(rng.randint(1, 4)):
        contents[rng.randrange(len(contents))] = rng.choice(
            (0, 1, 127, 128, 255, rng.randrange(256))
        )


def change_number(parts: Parts, rng: random.Random) -> None:
    """Change a few numbers of a section."""
    numbers = parts.numbers(_pick_section(parts, rng))
    for _ in range(rng.choice((1, 1, 2, 5))):
        numbers[rng.randrange(numbers.size)] = _odd_number(parts, rng) % (1 << 8 * numbers.itemsize)


def step_number(parts: Parts, rng: random.Random) -> None:
    """Change a number by one or two."""
    numbers = parts.numbers(_pick_section(parts, rng))
    place = rng.randrange(numbers.size)
    changed = int(numbers[place]) + rng.choice((-2, -1, 1, 2))
    numbers[place] = changed % (1 << 8 * numbers.itemsize)


def swap_numbers(parts: Parts, rng: random.Random) -> None:
    """Swap two numbers, which leaves a permutation one."""
    numbers = parts.numbers(_pick_section(parts, rng))
    a, b = rng.randrange(numbers.size), rng.randrange(numbers.size)
    numbers[a], numbers[b] = int(numbers[b]), int(numbers[a])


def fill_run(parts: Parts, rng: random.Random) -> None:
    """Lose a run of bytes, up to a page of them, or all."""
    contents = parts.contents[_pick_section(parts, rng)]
    begin = rng.randrange(len(contents))
    begin -= begin % rng.choice((1, 4, 8, 4096))
    size = min(rng.choice((4, 16, 64, 512, 4096, 1 << 20)), len(contents) - begin)
    octet = rng.choice((0, 255, 127, 128, None))
    contents[begin : begin + size] = rng.randbytes(size) if octet is None else bytes([octet]) * size


def copy_run(parts: Parts, rng: random.Random) -> None:
    """Copy a run of bytes to another place, perhaps of another section."""
    source, target = (parts.contents[_pick_section(parts, rng)] for _ in range(2))
    begin, place = rng.randrange(len(source)), rng.randrange(len(target))
    run = source[begin : begin + rng.choice((4, 16, 128, 4096))][: len(target) - place]
    target[place : place + len(run)] = run


def resize_section(parts: Parts, rng: random.Random) -> None:
    """Cut a section short, or add to it."""
    contents = parts.contents[_pick_section(parts, rng)]
    if rng.random() < 0.5:
        del contents[-rng.choice((1, 4, 8, len(contents))) :]
    else:
        contents += rng.randbytes(rng.choice((1, 4, 8, 2000)))


def move_ends(parts: Parts, rng: random.Random) -> None:
    """Give a row some bytes more or fewer and the rows behind it the others, all in order."""
    kind = rng.choice((Kind.STARTS, Kind.IN_STARTS))
    # What another change emptied has nothing to move.
    is_there = len(parts.contents.get(kind, b"")) >= 4
    starts = parts.numbers(kind if is_there else _pick_section(parts, rng))
    first = rng.randrange(starts.size)
    last = rng.randrange(first, starts.size)
    moved = starts[first : last + 1].astype(np.int64) + rng.choice((-3, -1, 1, 2, 1024))
    starts[first : last + 1] = np.clip(moved, 0, int(starts.max()))
    np.maximum.accumulate(starts, out=starts)


def drop_section(parts: Parts, rng: random.Random) -> None:
    """Leave a section out, or give it another name."""
    kind = _pick_section(parts, rng)
    contents = parts.contents.pop(kind)
    if rng.random() < 0.5:
        parts.contents.setdefault(rng.choice(list(Kind)), contents)


def change_header(parts: Parts, rng: random.Random) -> None:
    """Change what the header says of the graph."""
    name = rng.choice(
        ("num_vertices", "num_arcs", "first_id", "flags", "order", "block_shift", "max_degree",
         "num_arcs", "max_degree", "order", "block_shift", "reserved", "input_edges", "version")
    )  # fmt: skip
    bits = 8 * parts.header[name].itemsize
    odd = rng.choice(
        (
            _odd_number(parts, rng),
            int(parts.header[name]) + rng.choice((-1, 1)),
            rng.getrandbits(bits),
            rng.randrange(20),
        )
    )
    parts.header[name] = odd % (1 << bits)


# Those that leave much in order come more than once.
CHANGES = (
    *(4 * (change_bytes, change_number, step_number, swap_numbers)),
    *(2 * (fill_run, copy_run, move_ends, change_header)),
    resize_section,
    drop_section,
)


def change_stored(data: bytearray, rng: random.Random) -> None:
    """Change bytes of sections as they are stored: of frames, and of the table of their lengths."""
    count = int(np.frombuffer(data, layout.HEADER, 1)[0]["num_sections"])
    table = np.frombuffer(data, layout.SECTION, count, layout.SECTION_TABLE_OFFSET).copy()
    for _ in range(rng.randint(1, 3)):
        record = rng.choice(table[table["stored_bytes"] > 0])
        place = int(record["offset"]) + rng.randrange(int(record["stored_bytes"]))
        data[place] = rng.choice((0, 1, 128, 255, data[place] ^ 1 << rng.randrange(8)))


def change_tables(data: bytearray, rng: random.Random) -> None:
    """Change bytes of the header, the section table or the chunk table as they lie in the file."""
    table = int(np.frombuffer(data, layout.HEADER, 1)[0]["chunk_table_offset"])
    begin, end = rng.choice(((0, 128), (256, 256 + 12 * 64), (table, len(data))))
    for _ in range(rng.randint(1, 2)):
        place = rng.randrange(begin, end)
        data[place] = rng.choice((0, 1, 16, 128, 255, data[place] ^ 1 << rng.randrange(8)))

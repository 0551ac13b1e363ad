"""How many edges an input will give at most, and how large their ids are, from a few places of it.

Only of files that are read as they are: what is compressed, or comes through a pipe, tells nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from oocbfs.formats.io.streams import Source

# Text is looked at in so many places; of a file below their total, all of it.
_PLACES, _PLACE_BYTES = 64, 1 << 16
# What the places may differ from the rest, in how long edges are and how large ids.
_MARGIN, _ID_MARGIN = 1.05, 1.01
# Comments may hold larger numbers than ids are.
_COMMENT, _NUMBER = re.compile(rb"(?m)^[#%].*$"), re.compile(rb"\d+")
# Bytes of an edge, at least.
_BINARY = {"npy": 4, "u32": 8, "u64": 16}


@dataclass(frozen=True)
class Expected:
    """So many edges at most, and ids of so many bits."""

    num_edges: int
    id_bits: int

    def __add__(self, other: Expected) -> Expected:
        """Return what both give."""
        return Expected(self.num_edges + other.num_edges, max(self.id_bits, other.id_bits))


def expect(source: Source, format: str) -> Expected | None:
    """Look at an input that was recognised; None if it tells nothing."""
    size, path = source.plain_size(), source.plain_path()
    if size is None or path is None:
        return None
    if format in _BINARY:
        return Expected(size // _BINARY[format], 64 if format == "u64" else 32)
    if format not in ("edges", "mtx", "dimacs", "adjacency", "metis"):
        return None
    step = max(_PLACE_BYTES, (size - _PLACE_BYTES) // (_PLACES - 1))
    looked = units = largest = 0
    with open(path, "rb") as file:
        for start in [*range(0, size - _PLACE_BYTES, step), max(0, size - _PLACE_BYTES)]:
            file.seek(start)
            piece = file.read(_PLACE_BYTES)
            looked += len(piece)
            numbers = [int(number[:20]) for number in _NUMBER.findall(_COMMENT.sub(b"", piece))]
            largest = max([largest, *numbers])
            rows = format in ("adjacency", "metis")
            units += len(numbers) if rows else piece.count(b"\n") + 1
    margins = (1, 1) if looked >= size else (_MARGIN, _ID_MARGIN)
    num_edges = int(units / max(1, looked) * size * margins[0]) + 1
    return Expected(num_edges, max(1, int(largest * margins[1]).bit_length()))

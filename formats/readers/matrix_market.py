"""Matrix Market: the adjacency matrix of a graph, an entry in row u and column v for an edge u v.

Coordinate entries are edges for any value, array entries if they are not zero. A symmetric,
skew-symmetric or hermitian matrix stores each edge once and is undirected.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.chunks import Grammar, Lines, batches, open_lines, parse, whole_numbers
from oocbfs.formats.readers.detect import Sample
from oocbfs.kernels.convert.parse import PERCENT, Text

_MAGIC = b"%%matrixmarket"
_VALUES = {"pattern": 0, "real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2}
# A graph of this size has 10^12 pairs of vertices, too many for a file of all of them.
_MAX_ARRAY_ROWS = 1_000_000
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True)
class _Banner:
    array: bool
    values: int
    symmetry: str


def looks_like(sample: Sample) -> bool:
    """Recognise a Matrix Market file by its banner or its name."""
    return sample.text[: len(_MAGIC)].lower() == _MAGIC or sample.name.endswith(".mtx")


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read a Matrix Market file."""
    with open_lines(source) as lines:
        banner = _read_banner(lines)
        lines.drop()
        num_vertices, num_entries = _read_size(lines, banner)
        lines.drop()
        declared.directed = banner.symmetry == "general"
        declared.directed_why = f"the matrix is {banner.symmetry}"
        declared.first_id, declared.num_vertices = 1, num_vertices
        if banner.array:
            yield from _read_array(lines, banner, num_vertices)
            return
        grammar = Grammar(PERCENT, columns=2 + banner.values, low=1, high=num_vertices)
        count = 0
        for parsed in parse(lines, grammar, threads):
            count += parsed.sources.size
            if count > num_entries:
                break
            yield from parsed.batches()
    if count != num_entries:
        found = "more" if count > num_entries else count
        raise InputError(
            f"{found} entries where the size line declares {num_entries}", path=source.name
        )


def _read_banner(lines: Lines) -> _Banner:
    line = lines.first() or b""
    words = line.decode("utf-8", "replace").lower().split()
    if not words or words[0] != _MAGIC.decode():
        raise lines.error("the %%MatrixMarket banner is missing", line)
    if len(words) != 5 or words[1] != "matrix":
        raise lines.error("need: %%MatrixMarket matrix <layout> <field> <symmetry>", line)
    layout, field, symmetry = words[2:]
    if layout not in ("coordinate", "array"):
        raise lines.error(f"unknown layout {layout!r}: need coordinate or array", line)
    if field not in _VALUES:
        raise lines.error(f"unknown field {field!r}: need one of {', '.join(_VALUES)}", line)
    if symmetry == "skew":
        symmetry = "skew-symmetric"
    if symmetry not in _SYMMETRIES:
        known = ", ".join(_SYMMETRIES)
        raise lines.error(f"unknown symmetry {symmetry!r}: need one of {known}", line)
    if layout == "array" and field == "pattern":
        raise lines.error("an array cannot be a pattern: it would hold nothing", line)
    return _Banner(layout == "array", _VALUES[field], symmetry)


def _read_size(lines: Lines, banner: _Banner) -> tuple[int, int]:
    """Return the number of vertices and, of a coordinate matrix, the number of entries."""
    line = lines.skip_comments(b"%")
    words = (line or b"").split()
    numbers = whole_numbers(words)
    if len(words) != (2 if banner.array else 3) or numbers is None:
        wanted = "rows columns" if banner.array else "rows columns entries"
        raise lines.error(f"the size line needs: {wanted}", line)
    num_rows, num_columns = numbers[:2]
    if num_rows != num_columns:
        raise lines.error(
            "the matrix is not square, so it is not the adjacency matrix of a graph", line
        )
    if banner.array and num_rows > _MAX_ARRAY_ROWS:
        raise lines.error(f"an array of more than {_MAX_ARRAY_ROWS} rows", line)
    if banner.array:
        return num_rows, 0
    return num_rows, numbers[2]


def _read_array(lines: Lines, banner: _Banner, size: int) -> Iterator[Edges]:
    """Read all entries, column by column; of a symmetric matrix from the diagonal down."""
    # starts[c] is the number of the first entry of column c, counted from the first of all.
    above = int(banner.symmetry == "skew-symmetric")
    columns = np.arange(size + 1, dtype=np.int64)
    if banner.symmetry == "general":
        starts, tops = columns * size, np.zeros(size + 1, np.int64)
    else:
        tops = columns + above
        starts = columns * size - columns * (columns - 1) // 2 - above * columns
    total = int(starts[-1])
    seen = 0
    for chunk in lines.chunks():
        nonzero, count = _nonzero(lines, chunk, banner.values)
        if seen + count > total:
            raise InputError(f"more than the {total} entries that fit", path=lines.name)
        positions = nonzero + seen
        seen += count
        column = np.searchsorted(starts, positions, side="right") - 1
        row = positions - starts[column] + tops[column]
        yield from batches((row + 1).astype(np.uint64), (column + 1).astype(np.uint64))
    lines.finish()
    if seen != total:
        raise InputError(f"{seen} entries where the size line needs {total}", path=lines.name)


def _nonzero(lines: Lines, chunk: Text, values: int) -> tuple[NDArray[np.int64], int]:
    """Return which entries of a chunk are not zero, as positions, and the number of all entries."""
    positions = []
    count = 0
    for line in chunk.tobytes().split(b"\n")[:-1]:
        words = line.split()
        if words and not words[0].startswith(b"%"):
            try:
                numbers = [float(word) for word in words]
            except ValueError:
                raise lines.error("an entry is not a number", line) from None
            if len(numbers) != values:
                raise lines.error(f"{len(numbers)} numbers where {values} make an entry", line)
            if any(numbers):
                positions.append(count)
            count += 1
        lines.number += 1
    return np.array(positions, np.int64), count

"""Names of vertices on their way in and out: bytes of UTF-8, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class PackedNames(NamedTuple):
    """Names to be looked up: name k is ``text[starts[k] : starts[k] + lengths[k]]``."""

    text: NDArray[np.uint8]
    starts: NDArray[np.uint32]
    lengths: NDArray[np.uint16]


def pack(names: list[bytes]) -> PackedNames:
    """Put names, none longer than a name may be, one after the other."""
    lengths = np.fromiter(map(len, names), np.uint16, len(names))
    starts = np.zeros(len(names), np.uint32)
    np.cumsum(lengths[:-1], out=starts[1:], dtype=np.uint32)
    return PackedNames(np.frombuffer(b"".join(names), np.uint8), starts, lengths)


class NameColumn:
    """Names as a column of a table: name i is ``text[bounds[i] : bounds[i + 1]]``.

    No name is empty: where there are no bytes, the row has no name, which is None.
    """

    dtype = np.dtype(object)

    def __init__(self, text: NDArray[np.uint8], bounds: NDArray[np.int64]) -> None:
        self.text, self.bounds = text, bounds

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.bounds.size - 1

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> str | None:
        number = range(self.size)[number]
        begin, end = self.bounds[number : number + 2].tolist()
        return self.text[begin:end].tobytes().decode() or None

    def __iter__(self) -> Iterator[str | None]:
        text, bounds = self.text.tobytes(), self.bounds.tolist()
        if text.isascii():
            decoded = text.decode("ascii")
            for begin, end in pairwise(bounds):
                yield decoded[begin:end] or None
        else:
            for begin, end in pairwise(bounds):
                yield text[begin:end].decode() or None

    def keep(self, wanted: NDArray[np.bool_]) -> NameColumn:
        """Return the rows that are wanted."""
        lengths = np.diff(self.bounds)
        bounds = np.zeros(int(np.count_nonzero(wanted)) + 1, np.int64)
        np.cumsum(lengths[wanted], out=bounds[1:])
        first, last = int(self.bounds[0]), int(self.bounds[-1])
        return NameColumn(self.text[first:last][np.repeat(wanted, lengths)], bounds)

    def tolist(self) -> list[str | None]:
        """Return all names as strings."""
        return list(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = np.empty(self.size, object)
        array[:] = self.tolist()
        return array

    def __arrow_array__(self, type: Any = None) -> Any:
        """Return the names as an array of pyarrow, without making strings of Python."""
        import pyarrow

        missing = self.bounds[1:] == self.bounds[:-1]
        bits = pyarrow.py_buffer(np.packbits(~missing, bitorder="little"))
        offsets = pyarrow.py_buffer(self.bounds.astype(np.int64))
        text = pyarrow.py_buffer(self.text)
        array = pyarrow.LargeStringArray.from_buffers(
            self.size, offsets, text, bits if missing.any() else None
        )
        return array if type is None else array.cast(type)


def join_columns(columns: Iterable[NameColumn]) -> NameColumn:
    """Put columns together, one below the other."""
    texts, bounds, size = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)], 0
    for column in columns:
        texts.append(column.text)
        bounds.append(column.bounds[1:] + size)
        size += int(column.bounds[-1])
    return NameColumn(np.concatenate(texts), np.concatenate(bounds))


_FIELD = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]*?))\s*(?:,|$)', re.DOTALL)


def split_names(line: str) -> list[str]:
    """Split a line at its commas, but for those in quotes."""
    names, place = [], 0
    while place <= len(line) and (match := _FIELD.match(line, place)):
        in_quotes, plain = match.groups()
        names.append(plain if in_quotes is None else in_quotes.replace('""', '"'))
        place = match.end() if line[match.end() - 1 : match.end()] == "," else len(line) + 1
    return names


_QUOTED = ('"', "\n", "\r", "\t", ",", ";", "|")


def quoted(name: str, separator: str = ",") -> str:
    """Write a name as a field of a table, in quotes where it would be taken for something else."""
    plain = (
        not any(mark in name for mark in (*_QUOTED, separator))
        and name == name.strip(" ")
        and not name.startswith(("#", "%", "//"))
    )
    return name if plain else '"' + name.replace('"', '""') + '"'

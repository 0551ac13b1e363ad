"""The names of a graph's vertices, as its file stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.names import NameColumn, join_columns, pack

# Names that are decoded at a time.
_PIECE = 1 << 16
# Room for each name that is taken from any place, at first.
_ROOM = 32


class Names(Sequence[str]):
    """All names in ascending order, by code points; results are aligned with them.

    A sequence that decodes what it is asked for: ``names[5]``, ``names[2:7]``, ``"bob" in names``,
    ``names.index("bob")``.
    """

    def __init__(self, container: Container) -> None:
        self._container = container

    def __len__(self) -> int:
        return self._container.num_vertices

    def __repr__(self) -> str:
        some = ", ".join(map(repr, self[:3]))
        return f"<{len(self):,} names: {some}{', …' if len(self) > 3 else ''}>"

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        wanted = range(len(self))[number]
        if isinstance(wanted, int):
            return str(self.take(np.array([wanted], np.int64))[0])
        if wanted.step == 1:
            return list(map(str, self.column(wanted.start, max(wanted.start, wanted.stop))))
        return list(map(str, self.take(np.array(wanted, np.int64))))

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _PIECE):
            yield from self[first : first + _PIECE]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find([name])[0] >= 0

    def index(self, name: Any, start: int = 0, stop: int | None = None) -> int:
        """Find the position of a name.

        Raises
        ------
        ValueError
            If no vertex has this name.
        """
        position = int(self.find([name])[0]) if isinstance(name, str) else -1
        if position not in range(*slice(start, stop).indices(len(self))):
            raise ValueError(f"{name!r} is not among the names")
        return position

    def count(self, value: Any) -> int:
        """Return how often a name occurs: once or never."""
        return int(value in self)

    def to_arrow(self) -> Any:
        """Return all names as an array of pyarrow."""
        return self.column(0, len(self)).__arrow_array__()

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Find the positions of names, -1 where no vertex has the name."""
        from oocbfs.kernels.names.words import MAX_NAME_BYTES

        # What is no Unicode text, or too long, is the name of no vertex; nor is "".
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        encoded = [name if len(name) <= MAX_NAME_BYTES else b"" for name in encoded]
        return self.find_packed(*pack(encoded))

    def find_packed(
        self, text: NDArray[np.uint8], starts: NDArray[np.uint32], lengths: NDArray[np.uint16]
    ) -> NDArray[np.int64]:
        """Find the positions of names that lie one after the other, as ``formats.names.pack``."""
        from oocbfs.kernels.names import stored as kernels

        found = np.empty(starts.size, np.int64)
        with self._container.file.reading():
            kernels.find_names(found, text, starts, lengths, *self._sections(), len(self))
            self._refuse_if((found == kernels.DAMAGED).any())
        return found

    def column(self, first: int, stop: int) -> NameColumn:
        """Decode the names at positions first … stop-1."""
        from oocbfs.kernels.names import stored as kernels

        with self._container.file.reading():
            sections = self._sections()
            size = kernels.count_bytes(*sections, first, stop)
            self._refuse_if(size < 0)
            text, bounds = np.empty(size, np.uint8), np.zeros(stop - first + 1, np.int64)
            kernels.decode_names(text, bounds, *sections, first, stop)
            self._refuse_if(not kernels.are_names(text, bounds, False))
        return NameColumn(text, bounds)

    def take(self, positions: NDArray[Any]) -> NameColumn:
        """Decode the names at any positions; one below 0 has none."""
        positions = np.ascontiguousarray(positions, np.int64)
        from oocbfs.kernels.names import stored as kernels
        from oocbfs.kernels.names.words import MAX_NAME_BYTES

        if positions.max(initial=-1) >= len(self):
            raise IndexError(f"there are {len(self)} names")
        columns, done = [], 0
        with self._container.file.reading():
            sections = self._sections()
            while done < positions.size:
                part = positions[done : done + _PIECE]
                text = np.empty(_ROOM * part.size, np.uint8)
                bounds = np.zeros(part.size + 1, np.int64)
                count = 0
                while True:
                    count = kernels.take_names(text, bounds, *sections, part, count)
                    self._refuse_if(count < 0)
                    if count == part.size:
                        break
                    longer = np.empty(2 * text.size + MAX_NAME_BYTES, np.uint8)
                    longer[: text.size] = text
                    text = longer
                self._refuse_if(not kernels.are_names(text, bounds, True))
                columns.append(NameColumn(text[: int(bounds[-1])], bounds))
                done += part.size
        return columns[0] if len(columns) == 1 else join_columns(columns)

    def _sections(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        return self._container.section(Kind.NAMES), self._container.section(Kind.NAME_STARTS)

    def _refuse_if(self, damaged: object) -> None:
        if damaged:
            raise FormatError(f"{self._container.path}: its names are damaged: run 'oocbfs verify'")

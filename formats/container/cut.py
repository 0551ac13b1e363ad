"""The cut of a graph into parts: words of 64 stored vertices are dealt to the parts in turn.

In the order of degrees, ranges of vertices would give one part all the hubs. A word of 64 vertices
is a word of every bitmap too, so that a part's share of a bitmap is every parts-th word of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container import layout
from oocbfs.formats.io.limits import MAX_PARTS

WORD = 64


class Cut(NamedTuple):
    """How many stored vertices there are, and how many parts they are dealt to."""

    num_vertices: int
    parts: int

    @property
    def num_words(self) -> int:
        """Words of a bitmap of all vertices."""
        return -(-self.num_vertices // WORD)

    def words_of(self, part: int) -> int:
        """Count the words of a part."""
        return max(0, -(-(self.num_words - part) // self.parts))

    def rows_of(self, part: int) -> int:
        """Count the vertices of a part; all its words are full, but for the last of the graph."""
        rows = self.words_of(part) * WORD
        if self.num_words and (self.num_words - 1) % self.parts == part:
            rows -= self.num_words * WORD - self.num_vertices
        return rows

    def part_of(self, vertices: NDArray[Any]) -> NDArray[Any]:
        """Return the part of each stored vertex."""
        return (vertices >> 6) % self.parts

    def row_of(self, vertices: NDArray[Any]) -> NDArray[Any]:
        """Return the row that each stored vertex has in its part."""
        return ((vertices >> 6) // self.parts << 6) | (vertices & 63)

    def vertex_of(self, part: int, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the stored vertices of rows of a part."""
        rows = rows.astype(np.int64)
        return ((rows >> 6) * self.parts + part << 6) | (rows & 63)

    def own(self, words: NDArray[Any], part: int) -> NDArray[Any]:
        """View a part's words of a bitmap of all vertices."""
        return words[: self.num_words][part :: self.parts]


class Part(NamedTuple):
    """Which part of which graph a container holds.

    The last number is no part of the rows: it holds what the vertices of all parts are called.
    """

    cut: Cut
    number: int
    total_arcs: int
    graph_checksum: int

    @property
    def is_names(self) -> bool:
        """Whether this holds the names and degrees of all vertices, and no rows."""
        return self.number == self.cut.parts

    @property
    def num_vertices(self) -> int:
        """Vertices that this holds something about."""
        return self.cut.num_vertices if self.is_names else self.cut.rows_of(self.number)


def read_part(header: np.void) -> tuple[str, Part | None]:
    """Read off a header what part it is of, None of a whole graph; or give what is wrong."""
    number, parts, total_vertices, total_arcs, checksum = (
        int(header[name]) for name in layout.PARTS_FIELDS
    )
    if int(header["version"]) == 1 or not parts:
        rest = number, parts, total_vertices, total_arcs, checksum, int(header["reserved_parts"])
        return "reserved header bytes are not zero" if any(rest) else "", None
    part = Part(Cut(total_vertices, parts), number, total_arcs, checksum)
    if int(header["reserved_parts"]):
        return "reserved header bytes are not zero", None
    if number > parts or parts > MAX_PARTS or total_vertices > layout.MAX_VERTICES:
        return "impossible part", None
    if part.num_vertices != int(header["num_vertices"]):
        return "wrong number of vertices for a part", None
    if not int(header["num_arcs"]) <= total_arcs <= layout.MAX_EDGES:
        return "impossible number of edges", None
    return "", part

"""The cut of a graph into shards: a block-cyclic distribution of words of 64 stored vertices.

In the order of degrees, ranges of vertices would give one shard all the hubs. A word of 64 vertices
is a word of every bitmap too: a shard has every num_shards-th word of a bitmap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container import layout
from oocbfs.formats.io.limits import MAX_SHARDS

WORD = 64


class Cut(NamedTuple):
    """How many stored vertices there are, and how many shards they are in."""

    num_vertices: int
    num_shards: int

    @property
    def num_words(self) -> int:
        """Words of a bitmap of all vertices."""
        return -(-self.num_vertices // WORD)

    def words_of(self, shard: int) -> int:
        """Count the words of a shard."""
        return max(0, -(-(self.num_words - shard) // self.num_shards))

    def rows_of(self, shard: int) -> int:
        """Count the vertices of a shard; all its words are full, but for the last of the graph."""
        rows = self.words_of(shard) * WORD
        if self.num_words and (self.num_words - 1) % self.num_shards == shard:
            rows -= self.num_words * WORD - self.num_vertices
        return rows

    def shard_of(self, vertices: NDArray[Any]) -> NDArray[Any]:
        """Return the shard of each stored vertex."""
        return (vertices >> 6) % self.num_shards

    def row_of(self, vertices: NDArray[Any]) -> NDArray[Any]:
        """Return the row that each stored vertex has in its shard."""
        return ((vertices >> 6) // self.num_shards << 6) | (vertices & 63)

    def vertex_of(self, shard: int, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the stored vertices of rows of a shard."""
        rows = rows.astype(np.int64)
        return ((rows >> 6) * self.num_shards + shard << 6) | (rows & 63)

    def own(self, words: NDArray[Any], shard: int) -> NDArray[Any]:
        """View a shard's words of a bitmap of all vertices."""
        return words[: self.num_words][shard :: self.num_shards]


class ShardHeader(NamedTuple):
    """Which shard of which graph a container holds.

    The last number is no part of the rows: it holds what the vertices of all shards are called.
    """

    cut: Cut
    number: int
    total_arcs: int
    graph_checksum: int

    @property
    def is_names(self) -> bool:
        """Whether this holds the names and degrees of all vertices, and no rows."""
        return self.number == self.cut.num_shards

    @property
    def num_vertices(self) -> int:
        """Vertices that this holds something about."""
        return self.cut.num_vertices if self.is_names else self.cut.rows_of(self.number)


def read_shard(header: np.void) -> tuple[str, ShardHeader | None]:
    """Read off a header what shard it is of, None of a whole graph; or give what is wrong."""
    number, num_shards, total_vertices, total_arcs, checksum = (
        int(header[name]) for name in layout.SHARD_FIELDS
    )
    if int(header["version"]) == 1 or not num_shards:
        rest = (
            number,
            num_shards,
            total_vertices,
            total_arcs,
            checksum,
            int(header["reserved_parts"]),
        )
        return "reserved header bytes are not zero" if any(rest) else "", None
    shard = ShardHeader(Cut(total_vertices, num_shards), number, total_arcs, checksum)
    if int(header["reserved_parts"]):
        return "reserved header bytes are not zero", None
    if number > num_shards or num_shards > MAX_SHARDS or total_vertices > layout.MAX_VERTICES:
        return "impossible part", None
    if shard.num_vertices != int(header["num_vertices"]):
        return "wrong number of vertices for a part", None
    if not int(header["num_arcs"]) <= total_arcs <= layout.MAX_EDGES:
        return "impossible number of edges", None
    return "", shard

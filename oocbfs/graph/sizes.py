"""How large the parts of a graph are, as a memory budget is divided among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container


@dataclass(frozen=True)
class Sizes:
    """Bytes of a graph, both directions included unless it says otherwise.

    ``fast_bytes`` are heads, starts and bases, which a search from disk keeps in memory, and where
    the frames of tails begin;
    ``ids_bytes`` are listed ids; ``tail_bytes`` are the tails; ``graph_bytes`` heads and tails of
    out-neighbours; ``unpacked_bytes`` what those sections take in memory that do not map.
    """

    file_bytes: int
    fast_bytes: int
    ids_bytes: int
    tail_bytes: int
    graph_bytes: int
    unpacked_bytes: int

    @classmethod
    def of(cls, container: Container) -> Self:
        """Read the sizes off the section table."""
        return cls(
            file_bytes=int(container.header["file_bytes"]),
            fast_bytes=container.raw_bytes(Kind.HEADS, Kind.STARTS, Kind.BASES)
            + container.offsets_bytes,
            ids_bytes=container.raw_bytes(Kind.IDS),
            tail_bytes=container.raw_bytes(Kind.TAILS),
            graph_bytes=sum(
                int(container.sections[kind]["raw_bytes"]) for kind in (Kind.HEADS, Kind.TAILS)
            ),
            unpacked_bytes=container.unpacked_bytes,
        )

"""How large the parts of a graph are, as a memory budget is divided among them, and how packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container


@dataclass(frozen=True)
class Sizes:
    """Bytes of a graph, both directions included unless it says otherwise.

    ``fast_bytes`` are heads, starts and bases, which a search from disk keeps in memory, and where
    frames begin; ``ids_bytes`` are listed ids; ``tail_bytes`` are the tails; ``graph_bytes`` heads
    and tails of out-neighbours; ``unpacked_bytes`` what those sections take in memory that do not
    map.

    ``is_archive``: sections are of an older kind, searched only if all of it is unpacked;
    ``has_frames``: anything is in frames; ``has_framed_tails``: tails are, which are unpacked
    before they are searched.
    """

    file_bytes: int
    fast_bytes: int
    ids_bytes: int
    tail_bytes: int
    graph_bytes: int
    unpacked_bytes: int
    is_archive: bool
    has_frames: bool
    has_framed_tails: bool

    @classmethod
    def of(cls, *files: Container) -> Self:
        """Read the sizes off the section tables of a file, or of all shards."""
        return cls(
            file_bytes=sum(int(file.header["file_bytes"]) for file in files),
            fast_bytes=sum(
                file.raw_bytes(Kind.HEADS, Kind.STARTS, Kind.BASES) + file.offsets_bytes
                for file in files
            ),
            ids_bytes=sum(file.raw_bytes(Kind.IDS) for file in files),
            tail_bytes=sum(file.raw_bytes(Kind.TAILS) for file in files),
            graph_bytes=sum(
                int(file.sections[kind]["raw_bytes"])
                for file in files
                for kind in (Kind.HEADS, Kind.TAILS)
            ),
            unpacked_bytes=sum(file.unpacked_bytes for file in files),
            is_archive=any(file.is_archive for file in files),
            has_frames=any(file.has_frames for file in files),
            has_framed_tails=any(file.has_framed_tails for file in files),
        )

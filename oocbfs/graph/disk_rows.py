"""The part of a graph that stays in memory while its tails stay on disk."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.formats.container.opened import stamp
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.direct import DirectFile
from oocbfs.graph.rows import check_index
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.disk.read import Disk
from oocbfs.kernels.rows import Rows, read_only
from oocbfs.lazy import lazy

_NO_DEGREES = np.empty(0, np.uint32)
_PIECE = 1 << 18
_FAST_KINDS = (Kind.HEADS, Kind.BASES, Kind.STARTS)


class DiskRows:
    """Heads and starts of a graph in memory, and where on disk to find its tails."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self.file = DirectFile(container.path)
        if stamp(self.file.descriptor) != container.file.stamp:
            self.close()
            raise FormatError(f"{container.path}: was replaced while it was open: open it again")
        # One traversal at a time, because each would take the budget for itself.
        self.lock = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        """Whether heads and starts are in memory."""
        return "out_rows" in self.__dict__ and "in_rows" in self.__dict__

    @lazy
    def out_rows(self) -> Rows:
        """Out-neighbours; only the size of the tails is used."""
        return self._load(0)

    @lazy
    def in_rows(self) -> Rows:
        """In-neighbours; the same as ``out_rows`` if the graph is undirected."""
        return self._load(TRANSPOSED) if self._container.directed else self.out_rows

    @lazy
    def out_disk(self) -> Disk:
        """Where the tails of ``out_rows`` are."""
        return self._locate(0)

    @lazy
    def in_disk(self) -> Disk:
        """Where the tails of ``in_rows`` are."""
        return self._locate(TRANSPOSED) if self._container.directed else self.out_disk

    @lazy
    def cached_disk(self) -> Disk:
        """The tails of ``out_rows``, read through the page cache."""
        return self.out_disk._replace(descriptor=self.file.cached_descriptor)

    @lazy
    def num_linked(self) -> int:
        """Vertices up to the last one with an edge; orders by degree put all others at the end."""
        last = -1
        for rows in (self.out_rows, self.in_rows):
            for first in range(0, rows.heads.size, _PIECE):
                heads = rows.heads[first : first + _PIECE]
                linked = np.flatnonzero(heads != NO_HEAD)
                # Heads are looked at too: in a damaged file they may be anything.
                if linked.size:
                    last = max(last, first + int(linked[-1]), int(heads[linked].max()))
        return last + 1

    def load(self) -> None:
        """Read heads and starts into memory, unless they are there."""
        _ = self.out_rows, self.in_rows

    def _locate(self, side: int) -> Disk:
        record = self._container.sections[Kind(Kind.TAILS + side)]
        return Disk(self.file.descriptor, int(record["offset"]), int(record["raw_bytes"]))

    def _load(self, side: int) -> Rows:
        container = self._container
        heads, bases, starts = (self._section(Kind(kind + side)) for kind in _FAST_KINDS)
        tails = container.section(Kind(Kind.TAILS + side))
        check_index(container, heads, bases, starts, tails.size)
        rows = Rows(
            heads=heads,
            bases=bases,
            starts=starts,
            tails=tails,
            degrees=_NO_DEGREES,
            shift=container.block_shift,
            num_edges=container.num_edges,
            max_degree=int(container.header["max_degree"]),
            num_ids=container.num_ids,
        )
        return read_only(rows)

    def _section(self, kind: Kind) -> NDArray[Any]:
        """Read a section into memory of its own."""
        record = self._container.sections[kind]
        data = self.file.read(int(record["offset"]), int(record["raw_bytes"]))
        section = data.view(layout.DTYPES[kind])
        section.flags.writeable = False
        return section

    def close(self) -> None:
        """Close the file."""
        self.file.close()

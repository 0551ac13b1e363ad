"""The part of a graph that stays in memory while its tails stay on disk."""

from __future__ import annotations

import threading
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.formats.container.opened import stamp
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.direct import DirectFile, unread
from oocbfs.formats.io.zstd_library import find_zstd
from oocbfs.graph.rows import checked, no_rows
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import NO_FRAMES, Disk
from oocbfs.kernels.rows import Rows, read_only
from oocbfs.kernels.threads import renewed_after_fork
from oocbfs.lazy import lazy

_FAST_KINDS = (Kind.HEADS, Kind.BASES, Kind.STARTS)


class DiskRows:
    """Heads and starts of a graph in memory, and where on disk to find its tails."""

    is_turned = False

    def __init__(self, container: Container, num_non_isolated: int | None = None) -> None:
        self._container = container
        # Rows behind the last non-isolated vertex are left where they are.
        self.num_non_isolated = (
            container.num_vertices if num_non_isolated is None else num_non_isolated
        )
        self._num_ids = container.num_ids if num_non_isolated is None else num_non_isolated
        self.file = DirectFile(container.path)
        try:
            is_same = stamp(self.file.descriptor) == container.file.stamp
        except OSError as error:
            self.close()
            raise self.file.explain(error.errno or 0) from error
        if not is_same:
            self.close()
            raise FormatError(f"{container.path}: was replaced while it was open: open it again")
        # One search at a time, because each would take the budget for itself.
        self.lock = renewed_after_fork(threading.Lock())

    @property
    def is_framed(self) -> bool:
        """Whether tails of a direction are in frames, which readers need scratch for."""
        return bool(self.out_disk.frames.size or self.in_disk.frames.size)

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

    def load(self) -> None:
        """Read heads and starts into memory, unless they are there."""
        _ = self.out_rows, self.in_rows

    def _locate(self, side: int) -> Disk:
        kind = Kind(Kind.TAILS + side)
        record = self._container.sections[kind]
        place = (self.file.descriptor, int(record["offset"]), int(record["raw_bytes"]))
        if not self._container.is_framed(kind):
            return Disk(*place, NO_FRAMES)
        frames, decompress = self._container.frame_offsets(kind), find_zstd().decompress
        return Disk(*place, frames, decompress, words.DAMAGED_IN if side else words.DAMAGED)

    def _load(self, side: int) -> Rows:
        container = self._container
        sizes = (self.num_non_isolated, None, self.num_non_isolated + 1)
        heads, bases, starts = (
            self._section(Kind(kind + side), size)
            for kind, size in zip(_FAST_KINDS, sizes, strict=True)
        )
        tails = unread(int(container.sections[Kind(Kind.TAILS + side)]["raw_bytes"]))
        rows = no_rows(container)._replace(
            heads=heads, bases=bases, starts=starts, tails=tails, num_ids=self._num_ids
        )
        return read_only(checked(rows, container.path))

    def _section(self, kind: Kind, size: int | None) -> NDArray[Any]:
        """Read the first items of a section into memory of its own, or all of them."""
        record, dtype = self._container.sections[kind], layout.DTYPES[kind]
        if self._container.is_framed(kind):
            num_items = int(record["raw_bytes"]) // np.dtype(dtype).itemsize
            items = self._container.part(kind, 0, num_items if size is None else size)
            items.flags.writeable = False
            return items
        num_bytes = int(record["raw_bytes"])
        if size is not None:
            num_bytes = min(num_bytes, size * np.dtype(dtype).itemsize)
        section = self.file.read(int(record["offset"]), num_bytes).view(dtype)
        section.flags.writeable = False
        return section

    def turned(self) -> DiskRows:
        """Return the same rows with every edge turned around; they are closed with these."""
        self.load()
        other: DiskRows = copy(self)
        parts = {"out_rows": self.in_rows, "in_rows": self.out_rows}
        places = {"out_disk": self.in_disk, "in_disk": self.out_disk}
        other.__dict__.pop("cached_disk", None)
        other.__dict__.update(parts | places)
        other.is_turned = True
        return other

    def close(self) -> None:
        """Close the file."""
        if not self.is_turned:
            self.file.close()

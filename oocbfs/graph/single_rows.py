"""Single rows of a graph, from the mapped file or read from disk: nothing is loaded beforehand."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError, FormatError
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.formats.container.reader import Container, damaged_frame
from oocbfs.formats.io.zstd_library import find_zstd, make_scratch
from oocbfs.graph.rows import no_rows
from oocbfs.kernels.constants import FRAME_BYTES
from oocbfs.kernels.disk.read import NO_FRAMES
from oocbfs.kernels.point import state as words
from oocbfs.kernels.point.listing import list_rows
from oocbfs.kernels.point.pairs import Pairs
from oocbfs.kernels.point.state import (
    Reach,
    SingleRows,
    grown,
    make_reach,
    num_bytes,
    with_more_found,
)
from oocbfs.kernels.structs import Struct

# In the order in which kernels number them, those of the transpose behind them.
_ROW_SECTIONS = (Kind.HEADS, Kind.STARTS, Kind.TAILS)
_SECTIONS = [Kind(kind + side) for side in (0, TRANSPOSED) for kind in _ROW_SECTIONS]
_NO_PLACES = np.zeros((0, 0), np.int64)
_PAGE_BYTES = 4096


class RowsReader:
    """Both directions of a graph, as kernels for small reaches read them; see ``kernels.point``.

    ``from_disk`` reads what is asked for by itself, through the page cache, and takes no memory for
    it; otherwise the file is mapped, and its pages count as memory. Sections in frames are read by
    themselves, too, until that was as much work as to unpack all of them. Whoever reads does so
    inside ``graph.reading()``.
    """

    def __init__(self, container: Container, *, from_disk: bool) -> None:
        self.path = str(container.path)
        self.from_disk = from_disk
        self._container = container
        kinds = [kind for kind in _SECTIONS if kind in container.sections]
        framed = [kind for kind in kinds if container.is_framed(kind)]
        # Whether frames are unpacked; without a file, nothing is read by itself.
        self.is_framed = bool(framed) and container.file.descriptor >= 0
        self._num_frames = sum(container.frame_offsets(kind).size - 1 for kind in framed)
        self._unpacked_frames = 0
        # Structs that others may be using.
        self._given: list[Struct] = []
        is_there = all(map(container.has_unpacked, framed))
        self._open(from_disk=from_disk or (self.is_framed and not is_there))

    def _open(self, *, from_disk: bool) -> None:
        container = self._container
        out_rows = in_rows = Struct(_single_rows(container, 0, from_disk=from_disk))
        if container.directed:
            in_rows = Struct(_single_rows(container, TRANSPOSED, from_disk=from_disk))
        self.out_rows, self.in_rows = out_rows, in_rows
        self._given += [out_rows, in_rows]
        self._reads_frames = self.is_framed and from_disk

    def count_frames(self, number: int) -> None:
        """Count frames that a question has unpacked; unpack all when that is as much work."""
        self._unpacked_frames += number
        if not self._reads_frames or self.from_disk or self._unpacked_frames < self._num_frames:
            return
        try:
            self._open(from_disk=False)
        except BudgetError:
            self._unpacked_frames = 0  # there may be room later

    @staticmethod
    def can_read_disk(container: Container) -> bool:
        """Return whether a file's rows can be read one by one: it is one, and not compressed."""
        return container.file.descriptor >= 0 and not container.is_archive

    def list_rows(
        self, vertices: NDArray[np.uint32], work: Work, *, inward: bool = False
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the neighbours of stored vertices, row after row, and where each row ends.

        A row is its head and its tail, and so not in order.
        """
        rows = self.in_rows if inward else self.out_rows
        ends = np.empty(vertices.size, np.int64)
        work.control[words.FOUND] = 0
        done = 0
        while True:
            done = list_rows(rows.address, work.address, vertices, ends, done)
            if done == vertices.size:
                return work.found(), ends
            work.make_room(self.path)


class Work:
    """What one thread needs to search small reaches, kept from one search to the next."""

    def __init__(self, *, framed: bool = False) -> None:
        self._set(make_reach(scratch=make_scratch(1, FRAME_BYTES)[0] if framed else None))
        # One pair, which is asked for again and again, and its path is found with it.
        ends, distance = np.zeros(2, np.uint32), np.zeros(1, np.int32)
        self.pair = Struct(Pairs(ends[:1], ends[1:], distance, np.zeros(1, np.int64)))
        self.pair_ends, self.pair_distance = memoryview(ends), memoryview(distance)

    def _set(self, reach: Reach) -> None:
        self.reach = reach
        self.control = reach.control
        # The same, as Python reads and writes single words of it fastest.
        self.words = memoryview(reach.control)
        self._struct = Struct(reach)
        self.address = self._struct.address

    @property
    def num_bytes(self) -> int:
        """The memory that this takes."""
        return num_bytes(self.reach)

    @property
    def disk_bytes(self) -> int:
        """Bytes of the pages that were read from disk, or copied from the page cache."""
        return self.words[words.PAGES] * _PAGE_BYTES

    def found(self) -> NDArray[np.uint32]:
        """Return what was listed: paths, or rows."""
        return self.reach.found[: self.words[words.FOUND]].copy()

    def make_room(self, path: str) -> None:
        """Make what a call had too little of larger, so that it can be made again.

        Raises
        ------
        FormatError
            If that is not why the call ended: a row is damaged, or cannot be read.
        """
        outcome = self.words[words.OUTCOME]
        if outcome == words.NO_ENTRY_ROOM:
            self._set(grown(self.reach))
        elif outcome == words.NO_ROOM:
            self._set(with_more_found(self.reach))
        else:
            raise explain(path, self.control)


def explain(path: str, control: NDArray[np.int64]) -> FormatError:
    """Return why rows of a file could not be read."""
    outcome, error = int(control[words.OUTCOME]), int(control[words.SYSTEM_ERROR])
    if outcome == words.MALFORMED:
        return FormatError(f"{path}: a row is damaged: run 'oocbfs verify'")
    if outcome == words.DAMAGED:
        section, frame = divmod(error, 1 << 48)
        return FormatError(f"{path}: {damaged_frame(_SECTIONS[section], frame)}")
    reason = os.strerror(error) if error else "it was cut short by another program"
    return FormatError(f"{path}: cannot be read: {reason}; copy or convert the graph again")


def _single_rows(container: Container, side: int, *, from_disk: bool) -> SingleRows:
    """Return where the rows of one direction are."""
    kinds = [Kind(kind + side) for kind in _ROW_SECTIONS]
    tail_bytes = int(container.sections[kinds[words.TAILS]]["raw_bytes"])
    # A number for 2^block_shift rows; mapped, of which only pages that are used count.
    rows = no_rows(container)._replace(bases=container.section(Kind(Kind.BASES + side)))
    if not from_disk:
        heads, starts, tails = map(container.section, kinds)
        degrees = container.section(Kind(Kind.DEGREES + side))
        rows = rows._replace(heads=heads, starts=starts, tails=tails, degrees=degrees)
        return SingleRows(rows, tail_bytes, _NO_PLACES, NO_FRAMES)
    places, offsets = np.zeros((len(kinds), 4), np.int64), [NO_FRAMES]
    for place, kind in zip(places, kinds, strict=True):
        record = container.sections[kind]
        place[:] = (*(int(record[name]) for name in ("offset", "raw_bytes", "coding")), -1)
        if container.is_framed(kind):
            place[words.FIRST_FRAME] = sum(map(len, offsets))
            offsets.append(container.frame_offsets(kind))
    return SingleRows(
        rows,
        tail_bytes,
        places,
        np.concatenate(offsets),
        descriptor=container.file.descriptor,
        decompress=find_zstd().decompress if len(offsets) > 1 else 0,
        first_section=len(kinds) if side else 0,
    )

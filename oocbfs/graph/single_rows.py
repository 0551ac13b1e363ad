"""Single rows of a graph, from the mapped file or read from disk: nothing is loaded beforehand."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.formats.container.reader import Container
from oocbfs.graph.rows import no_rows
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

_PAGE_BYTES = 4096


class RowsReader:
    """Both directions of a graph, as kernels for small reaches read them; see ``kernels.point``.

    ``from_disk`` reads what is asked for by itself, through the page cache, and takes no memory for
    it; otherwise the file is mapped, and its pages count as memory. Whoever reads does so inside
    ``graph.reading()``.
    """

    def __init__(self, container: Container, *, from_disk: bool) -> None:
        self.path = str(container.path)
        self.from_disk = from_disk
        out_rows = _single_rows(container, 0, from_disk=from_disk)
        self.out_rows = self.in_rows = Struct(out_rows)
        if container.directed:
            in_rows = _single_rows(container, TRANSPOSED, from_disk=from_disk)
            self.in_rows = Struct(in_rows)

    @staticmethod
    def can_read_disk(container: Container) -> bool:
        """Return whether a file's rows can be read one by one: it is one, and not compressed."""
        return container.file.descriptor >= 0 and not container.is_compressed

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
                return work.reach.found[: int(work.control[words.FOUND])].copy(), ends
            work.make_room(self.path)


class Work:
    """What one thread needs to search small reaches, kept from one search to the next."""

    def __init__(self) -> None:
        self._set(make_reach())
        # One pair, which is asked for again and again.
        one = np.zeros(1, np.uint32)
        self.pair = Pairs(one, one.copy(), np.zeros(1, np.int32), np.empty(0, np.int64))
        self.pair_struct = Struct(self.pair)

    def _set(self, reach: Reach) -> None:
        self.reach = reach
        self.num_entries = reach.queue.size
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
    if int(control[words.OUTCOME]) == words.MALFORMED:
        return FormatError(f"{path}: a row is damaged: run 'oocbfs verify'")
    error = int(control[words.SYSTEM_ERROR])
    reason = os.strerror(error) if error else "it was cut short by another program"
    return FormatError(f"{path}: cannot be read: {reason}; copy or convert the graph again")


def _single_rows(container: Container, side: int, *, from_disk: bool) -> SingleRows:
    """Return where the rows of one direction are."""
    heads, starts, tails, degrees = (
        Kind(kind + side) for kind in (Kind.HEADS, Kind.STARTS, Kind.TAILS, Kind.DEGREES)
    )
    tail_bytes = int(container.sections[tails]["raw_bytes"])
    # A number for 2^block_shift rows; mapped, of which only pages that are used count.
    rows = no_rows(container)._replace(bases=container.section(Kind(Kind.BASES + side)))
    if not from_disk:
        rows = rows._replace(
            heads=container.section(heads),
            starts=container.section(starts),
            tails=container.section(tails),
            degrees=container.section(degrees),
        )
        return SingleRows(rows, tail_bytes)
    places = (int(container.sections[kind]["offset"]) for kind in (heads, starts, tails))
    return SingleRows(rows, tail_bytes, container.file.descriptor, *places)

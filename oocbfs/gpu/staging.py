"""Bring tails from disk to a device, level by level, through a ring of pinned memory.

The tails outside of the host ranges are divided into pieces no larger than a slot of the ring. A
kernel marks the blocks that a level needs. Those of a piece are read into a slot, with many reads
in flight, while kernels work on the pieces before it. Kernels read slots in place, as they read
all pinned memory, so that only the sectors of needed rows cross the bus.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.disk.step import check_read
from oocbfs.formats.io.direct import DirectFile
from oocbfs.formats.io.zstd_library import make_scratch
from oocbfs.gpu.device import Device, Memory
from oocbfs.gpu.rows import ResidentRows
from oocbfs.graph.rows import rows_before
from oocbfs.kernels.constants import FRAME_BYTES
from oocbfs.kernels.cuda.source import DISK_BLOCK_BYTES
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import Disk, read_frames
from oocbfs.kernels.threads import Pool, Task
from oocbfs.plan.device import NUM_SLOTS, slot_bytes
from oocbfs.plan.ranges import PAGE_BYTES, ByteRange

# Threads that read, each with one read in flight.
_READERS = 16
# Longer reads are cut, so that all readers take part.
_READ_BYTES = 512 << 10

# Starts kernels on a piece: rows that show it in a slot, its first vertex, and how many it has.
Launch = Callable[[NDArray[Any], int, int], None]


class DiskTails:
    """The tails of one direction, in a file."""

    def __init__(self, file: DirectFile, disk: Disk) -> None:
        self.file, self.disk = file, disk
        self._scratch: deque[NDArray[np.uint8]] = deque()

    def read_into(self, out: NDArray[np.uint8], begin: int) -> None:
        """Fill whole pages with the tails from a page on."""
        disk = self.disk
        if not disk.frames.size:
            self.file.read_into(out, disk.offset + begin)
            return
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = make_scratch(1, _READ_BYTES + 2 * FRAME_BYTES + 2 * PAGE_BYTES)[0]
        control = np.zeros(words.CONTROL_WORDS, np.int64)
        read_frames(out, disk, begin, control, scratch)
        check_read(self.file, control)
        self._scratch.append(scratch)

    def stored_bytes(self, begin: int, end: int) -> int:
        """Return how many bytes of the file are read for some of the tails."""
        frames = self.disk.frames
        if not frames.size:
            return end - begin
        last = min(-(-end // FRAME_BYTES), frames.size - 1)
        pages = frames[last] // -PAGE_BYTES * -PAGE_BYTES, frames[begin // FRAME_BYTES]
        return int(pages[0] - pages[1] // PAGE_BYTES * PAGE_BYTES)


class _Piece(NamedTuple):
    """Tails from ``begin`` to ``end``, and the vertices with segments that begin there."""

    begin: int
    end: int
    first_vertex: int
    num_vertices: int

    @property
    def base(self) -> int:
        """The byte at the start of the slot: that of the first block."""
        return self.begin // DISK_BLOCK_BYTES * DISK_BLOCK_BYTES


@dataclass
class _Slot:
    """A part of the ring, the device's address of it, and a mark after its last kernel."""

    memory: NDArray[np.uint8]
    address: int
    used: Any = None


class _Filling(NamedTuple):
    """A piece on its way into a slot."""

    piece: _Piece
    slot: _Slot
    reads: list[Task[None]]


class StagedSide:
    """One direction's tails on disk, in pieces, and which blocks of them a kernel marked."""

    def __init__(
        self, rows: ResidentRows, marks: Memory, disk: DiskTails, largest_piece: int
    ) -> None:
        self.rows, self.marks, self.disk = rows, marks, disk
        self.marked = np.zeros(32 * marks.size, np.uint8)
        host_range = rows.host_range
        edges = np.unique([*range(0, rows.tail_bytes, largest_piece), rows.tail_bytes, *host_range])
        before = rows_before(rows.host, edges)
        # The row that begins before a piece may have segments that begin in it.
        firsts = np.maximum(before[:-1] - 1, 0)
        parts = (edges[:-1], edges[1:], firsts, before[1:] - firsts)
        self.pieces = [
            _Piece(*part)
            for part in np.stack(parts, axis=1).tolist()
            if not host_range[0] <= part[0] < host_range[1]
        ]

    @property
    def marked_bytes(self) -> int:
        """Bytes of the blocks that the kernel marked."""
        return int(self.marked.sum()) * DISK_BLOCK_BYTES

    def reads_of(self, piece: _Piece) -> list[ByteRange]:
        """Cut the marked blocks of a piece into reads, none if it has none.

        A segment may end on the page after the piece that it begins in, which is then marked too.
        """
        first = piece.base // DISK_BLOCK_BYTES
        blocks = self.marked[first : -(-piece.end // DISK_BLOCK_BYTES) + 1]
        if not blocks[:-1].any():
            return []
        last = _whole_pages(min(piece.end + PAGE_BYTES, self.rows.tail_bytes))
        edges = piece.base + DISK_BLOCK_BYTES * np.flatnonzero(np.diff(blocks, prepend=0, append=0))
        return [
            (offset, min(offset + _READ_BYTES, end, last))
            for begin, end in edges.reshape(-1, 2).tolist()
            for offset in range(begin, min(end, last), _READ_BYTES)
        ]


def _whole_pages(offset: int) -> int:
    return -(-offset // PAGE_BYTES) * PAGE_BYTES


class Staging:
    """The ring, its readers, and its two sides; the stack takes it down."""

    def __init__(
        self,
        device: Device,
        rows: tuple[ResidentRows, ResidentRows],
        marks: tuple[Memory, Memory],
        disks: tuple[DiskTails, ...],
        stack: ExitStack,
        largest_slot: int,
    ) -> None:
        self._device = device
        size = min(largest_slot, slot_bytes(max(side.tail_bytes for side in rows)))
        self.out_side, self.in_side = (
            StagedSide(*side, size) for side in zip(rows, marks, (disks[0], disks[-1]), strict=True)
        )
        slots = []
        for _ in range(NUM_SLOTS):
            # The last segment of a piece may end on the page that follows.
            pinned = stack.enter_context(device.allocate_host(size + PAGE_BYTES))
            slots.append(_Slot(*pinned))
        self._slots = cycle(slots)
        # Entered after the slots, so left before them: reads end before memory is given back.
        self._pool = Pool(_READERS)
        stack.callback(self._pool.close)
        self._bytes_read = 0

    def clear_marks(self) -> None:
        """Forget what the last level needed."""
        for side in (self.out_side, self.in_side):
            self._device.upload(side.marks, np.zeros(side.marks.size, np.uint32))

    def read_marks(self) -> None:
        """Learn what the level needs."""
        for side in (self.out_side, self.in_side):
            words = self._device.download(side.marks)
            side.marked = np.unpackbits(words.view(np.uint8), bitorder="little")

    def take_bytes(self) -> int:
        """Return what was read since the last call."""
        taken, self._bytes_read = self._bytes_read, 0
        return taken

    def stream_all(self, side: StagedSide, launch: Launch) -> None:
        """Read all that is on disk, whatever is marked; it counts for no level."""
        side.marked = np.ones(32 * side.marks.size, np.uint8)
        self.stream(side, launch)
        self.take_bytes()

    def stream(self, side: StagedSide, launch: Launch) -> None:
        """Read the marked blocks piece by piece, and start kernels on each piece as it arrives."""
        filling: deque[_Filling] = deque()
        try:
            for piece in side.pieces:
                reads = side.reads_of(piece)
                if not reads:
                    continue
                # The slot that is filled next is the one whose kernels were started longest ago.
                if len(filling) == NUM_SLOTS - 1:
                    self._finish(side, filling.popleft(), launch)
                filling.append(self._begin(side, piece, reads))
            while filling:
                self._finish(side, filling.popleft(), launch)
        finally:
            for left in filling:
                for read in left.reads:
                    read.cancel()

    def _begin(self, side: StagedSide, piece: _Piece, reads: list[ByteRange]) -> _Filling:
        slot = next(self._slots)
        if slot.used is not None:
            self._device.wait_for(slot.used)
        submitted = []
        for begin, end in reads:
            out = slot.memory[begin - piece.base : end - piece.base]
            submitted.append(self._pool.submit(side.disk.read_into, out, begin))
            self._bytes_read += side.disk.stored_bytes(begin, end)
        return _Filling(piece, slot, submitted)

    def _finish(self, side: StagedSide, filling: _Filling, launch: Launch) -> None:
        piece, slot, reads = filling
        for read in reads:
            read.result()
        rows = side.rows.struct.copy()
        # Modulo 2^64, as kernels add to it.
        rows["slow"] = (slot.address - piece.base) % (1 << 64)
        rows["readable_begin"], rows["readable_end"] = piece.begin, piece.end
        launch(rows, piece.first_vertex, piece.num_vertices)
        slot.used = self._device.mark()

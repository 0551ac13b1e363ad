"""Breadth-first search on a device: the host's part, one loop for every device.

A level begins with the heads pass, which reads device memory only; it skips itself on the device if
the frontier's rows are cheap to read. One small read-back then says what the level costs in slow
bytes: searching the tails of what the heads left, or reading the rows of the frontier. Frontiers
that one block can handle run many levels in one launch.

Tails that neither device nor host can hold stay on disk. The level is then chosen by what it reads from
there too, and kernels run once more for each piece of it (see staging).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.device import Device, Memory
from oocbfs.errors import FormatError
from oocbfs.gpu_result import Direction, GpuResult, Limits, Step
from oocbfs.gpu_rows import OnDevice, ResidentRows
from oocbfs.kernels.bfs_rows import Rows
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda_source import (
    BLOCK_THREADS,
    CONTROL_WORDS,
    MAX_SMALL_LEVELS,
    SEARCH_STRUCT,
    SMALL_BLOCK_THREADS,
    SMALL_BYTES_PER_VERTEX,
    Control,
)
from oocbfs.plan import DISK_COST, SLOT_BYTES, Window, search_arrays
from oocbfs.staging import DiskTails, Staging


def _number(value: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    return np.array(value % (1 << (8 * np.dtype(dtype).itemsize)), dtype)


class GpuBfs(OnDevice):
    """Traversals of one graph on one device."""

    def __init__(
        self,
        device: Device,
        rows: Rows,
        in_rows: Rows | None = None,
        *,
        with_parents: bool = True,
        windows: tuple[Window, ...] = ((0, 0),),
        homes: tuple[Window | None, ...] = (None,),
        disks: tuple[DiskTails, ...] = (),
        slot_bytes: int = SLOT_BYTES,
        limits: Limits | None = None,
        copied: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.device = device
        self.limits = limits or Limits()
        with ExitStack() as stack:
            self.out_rows = ResidentRows(device, rows, stack, windows[0], homes[0], copied)
            self.in_rows = self.out_rows
            if in_rows is not None and in_rows is not rows:
                self.in_rows = ResidentRows(device, in_rows, stack, windows[-1], homes[-1], copied)
            tail_bytes = (self.out_rows.tail_bytes, self.in_rows.tail_bytes)
            arrays = search_arrays(
                self.out_rows.num_vertices, tail_bytes, with_parents=with_parents
            )
            self.memory: dict[str, Memory] = {
                name: device.allocate(size, dtype) for name, (size, dtype) in arrays.items()
            }
            self.staging = None
            if disks:
                marks = (self.memory["expanded_blocks"], self.memory["searched_blocks"])
                sides = (self.out_rows, self.in_rows)
                self.staging = Staging(device, sides, marks, disks, stack, slot_bytes)
            self._stack = stack.pop_all()
        self.with_parents = with_parents

    def run(
        self,
        sources: NDArray[np.uint32],
        direction: Direction = Direction.AUTO,
        *,
        max_depth: int | None = None,
        target: int | None = None,
    ) -> GpuResult:
        """Traverse from stored vertices; stop behind a level, or behind the one with a vertex."""
        return _Traversal(self, sources, direction, max_depth, target).run()


class _Traversal:
    """What the host keeps between two levels."""

    def __init__(
        self,
        bfs: GpuBfs,
        sources: NDArray[np.uint32],
        direction: Direction,
        max_depth: int | None,
        target: int | None,
    ) -> None:
        self._device = bfs.device
        self._memory = bfs.memory
        self._bfs = bfs
        self._limits = bfs.limits
        self._staging = bfs.staging
        self._out, self._in = bfs.out_rows.struct, bfs.in_rows.struct
        self._num_vertices = bfs.out_rows.num_vertices
        self._direction = direction
        self._max_depth = self._num_vertices if max_depth is None else max_depth
        self._target = None if target is None else self._memory["levels"].part(target, target + 1)
        self._sources = np.unique(np.asarray(sources, np.uint32))
        self._search = np.zeros((), SEARCH_STRUCT)
        for name, memory in self._memory.items():
            self._search[name] = memory.address
        self._search["level_ends"] = self._memory["control"].address + 8 * CONTROL_WORDS
        self._visited, self._spare = (self._memory[name].address for name in ("visited", "claimed"))
        self._control = np.zeros(CONTROL_WORDS, np.uint64)
        # The frontier is queue[begin:end], and its rows hold so many slow bytes.
        self._begin, self._end = 0, self._sources.size
        self._bytes = 0
        self._level = 1
        self._ends = [self._end]
        # Slow bytes of the rows that the last heads pass found: they belong to the next frontier.
        self._heads_bytes = 0
        self._steps: list[Step] = []
        # What the device counted over the bus before.
        self._moved = bfs.device.usage.slow_bytes or 0
        self._marks: list[Any] = []

    def run(self) -> GpuResult:
        """Run level after level until a frontier is empty, or what was asked for is found."""
        self._start()
        self._marks.append(self._device.mark())
        # Whether the frontier has been read back; the sources are known without that.
        known = True
        if self._direction is not Direction.BOTTOM_UP and self._staging is None:
            self._run_small_levels()
        while not known or self._begin < self._end:
            stopped = self._is_done()
            if known and stopped:
                break
            if known and self._is_small():
                self._run_small_levels()
                continue
            growth = self._look(known, with_heads=not stopped)
            known = True
            if stopped or self._begin == self._end:
                break
            if growth[Control.HEADS_RAN]:
                self._finish_after_heads(growth)
            elif self._is_small():
                continue
            else:
                self._expand("top-down")
            self._level += 1
            known = False
        return self._result()

    def _is_done(self) -> bool:
        """Tell whether the levels found so far are all that was asked for."""
        return self._level > self._max_depth or self._target_level() >= 0

    def _target_level(self) -> int:
        return -1 if self._target is None else int(self._device.download(self._target)[0])

    def _start(self) -> None:
        n = _number(self._num_vertices, np.uint64)
        self._launch("initialise", n, units=self._num_vertices // 32)
        self._device.upload(self._memory["queue"], self._sources)
        count = _number(self._sources.size, np.uint64)
        self._launch("visit_sources", self._out, count, units=self._sources.size // 32)

    def _is_small(self) -> bool:
        count, limits = self._end - self._begin, self._limits
        return (
            self._direction is not Direction.BOTTOM_UP
            and self._staging is None
            and count <= limits.small_vertices
            and self._bytes <= limits.small_bytes + count * SMALL_BYTES_PER_VERTEX
        )

    def _look(self, known: bool, *, with_heads: bool) -> NDArray[np.uint64]:
        """Run the heads pass unless it is not worth it; read back what the level needs to know."""
        # What rows cost that are on disk is known behind the heads pass only.
        cheap = 0 if self._staging else self._limits.heads_bytes
        worthwhile = int(cheap * self._num_vertices)
        if not with_heads:
            pass
        elif self._direction is Direction.BOTTOM_UP or (
            self._direction is Direction.AUTO and known and self._bytes >= worthwhile
        ):
            self._launch_heads(known, skip_bytes=0)
        elif self._direction is Direction.AUTO and not known:
            self._launch_heads(known, skip_bytes=worthwhile)
        if self._staging:
            self._launch_marks(self._staging)
        found_before = int(self._control[Control.FOUND_BYTES])
        growth = self._read()
        if self._staging:
            self._staging.read_marks()
        if not known:
            self._begin = self._end
            self._end = int(self._control[Control.QUEUE_END] - growth[Control.HEADS_FOUND])
            self._bytes = int(self._control[Control.FOUND_BYTES]) - found_before + self._heads_bytes
            self._ends.append(self._end)
        self._heads_bytes = int(growth[Control.HEADS_FOUND_BYTES])
        return growth

    def _launch_heads(self, known: bool, skip_bytes: int) -> None:
        found_bytes = int(self._control[Control.FOUND_BYTES])
        frontier_base = found_bytes - (self._bytes if known else self._heads_bytes)
        self._search["visited"], self._search["claimed"] = self._visited, self._spare
        self._launch(
            "bottom_up_heads",
            self._in,
            self._out,
            _number(self._level, np.uint32),
            _number(int(self._control[Control.PENDING]), np.uint64),
            _number(frontier_base, np.uint64),
            _number(skip_bytes, np.uint64),
            _number(self._bfs.out_rows.tail_bytes, np.uint64),
            units=self._num_vertices // 1024 + 1,
        )

    def _launch_marks(self, staging: Staging) -> None:
        """Find out which blocks the level needs from disk."""
        staging.clear_marks()
        self._launch(
            "mark_blocks",
            self._out,
            self._in,
            _number(self._level, np.uint32),
            units=self._num_vertices // 32 + 1,
        )

    def _finish_after_heads(self, growth: NDArray[np.uint64]) -> None:
        """Find what the heads left, in the direction that moves fewer bytes."""
        pending, pending_bytes, found = (
            int(growth[word])
            for word in (Control.PENDING, Control.PENDING_BYTES, Control.HEADS_FOUND)
        )
        self._visited, self._spare = self._spare, self._visited
        search_cost, expand_cost = pending_bytes, self._bytes
        if self._staging:
            search_cost += DISK_COST * self._staging.in_side.marked_bytes
            expand_cost += DISK_COST * self._staging.out_side.marked_bytes
        upward = self._direction is Direction.BOTTOM_UP or search_cost <= expand_cost
        if not pending:
            self._note("heads", heads_found=found)
        elif upward:
            self._search["visited"], self._search["claimed"] = self._spare, self._visited
            self._launch(
                "bottom_up_tails",
                self._in,
                self._out,
                _number(pending, np.uint64),
                _number(self._level, np.uint32),
                units=pending // 32 + 1,
            )
            if self._staging:
                self._staging.stream(self._staging.in_side, self._search_piece)
            self._note("bottom-up", pending, pending_bytes, found)
        else:
            self._expand("heads, top-down", pending, pending_bytes, found)

    def _expand(self, kind: str, pending: int = 0, pending_bytes: int = 0, found: int = 0) -> None:
        """Reach for the neighbours of the frontier."""
        self._search["visited"] = self._search["claimed"] = self._visited
        level = _number(self._level, np.uint32)
        begin, end = _number(self._begin, np.uint64), _number(self._end, np.uint64)
        units = (self._end - self._begin) // 32 + 1
        self._launch("top_down", self._out, begin, end, level, units=units)
        hubs_base = _number(int(self._control[Control.HUBS]), np.uint64)
        self._launch("top_down_hubs", self._out, hubs_base, level)
        if self._staging:
            self._staging.stream(self._staging.out_side, self._expand_piece)
        self._note(kind, pending, pending_bytes, found)

    def _search_piece(self, rows: NDArray[Any], first_vertex: int, num_vertices: int) -> None:
        """Search a piece of the tails that came from disk."""
        piece = (_number(first_vertex, np.uint64), _number(num_vertices, np.uint64))
        level = _number(self._level, np.uint32)
        units = num_vertices // 32 + 1
        self._launch("bottom_up_staged", rows, self._out, *piece, level, units=units)

    def _expand_piece(self, rows: NDArray[Any], first_vertex: int, num_vertices: int) -> None:
        """Expand a piece of the tails that came from disk; its hubs begin the list anew."""
        piece = (_number(first_vertex, np.uint64), _number(num_vertices, np.uint64))
        level, none = _number(self._level, np.uint32), _number(0, np.uint64)
        hubs = self._memory["control"].part(Control.HUBS, Control.HUBS + 1)
        self._device.upload(hubs, none.reshape(1))
        self._launch("top_down_staged", rows, *piece, level, units=num_vertices // 32 + 1)
        self._launch("top_down_hubs", rows, none, level)

    def _run_small_levels(self) -> None:
        """Run levels on the device for as long as they stay small, and learn where they ended."""
        self._search["visited"] = self._search["claimed"] = self._visited
        bytes_base = int(self._control[Control.FOUND_BYTES]) - self._bytes
        self._launch(
            "small_levels",
            self._out,
            _number(self._begin, np.uint64),
            _number(bytes_base, np.uint64),
            _number(self._level, np.uint32),
            _number(min(MAX_SMALL_LEVELS, self._max_depth + 1 - self._level), np.uint32),
            _number(self._limits.small_vertices, np.uint64),
            _number(self._limits.small_bytes, np.uint64),
            units=1,
        )
        self._read(CONTROL_WORDS + MAX_SMALL_LEVELS // 2)
        num_levels = int(self._control[Control.LEVELS_RUN])
        self._note("small", num_levels=num_levels)
        self._ends.extend(int(end) for end in self._level_ends[:num_levels])
        if num_levels:
            self._begin, self._end = ([0, *self._ends])[-2:]
        self._bytes = int(
            self._control[Control.FOUND_BYTES] - self._control[Control.FRONTIER_BYTES_BASE]
        )
        self._heads_bytes = 0
        self._level += num_levels

    def _read(self, words: int = CONTROL_WORDS) -> NDArray[np.uint64]:
        """Read the control words back; give how much each grew."""
        before = self._control
        read = self._device.download(self._memory["control"], words)
        self._control, self._level_ends = read[:CONTROL_WORDS], read[CONTROL_WORDS:].view(np.uint32)
        if self._control[Control.DAMAGED]:
            raise FormatError("a row is damaged: run 'oocbfs verify'")
        return self._control - before

    def _note(
        self,
        kind: str,
        pending: int = 0,
        pending_bytes: int = 0,
        heads_found: int = 0,
        num_levels: int = 1,
    ) -> None:
        self._marks.append(self._device.mark())
        frontier = self._end - self._begin
        self._steps.append(
            Step(
                kind,
                self._level,
                num_levels,
                frontier,
                self._bytes,
                pending,
                pending_bytes,
                heads_found,
                self._take_slow_bytes(),
            )
        )

    def _take_slow_bytes(self) -> dict[str, int]:
        """Tell what was moved since the last call, by tier."""
        taken = {"disk": self._staging.take_bytes()} if self._staging else {}
        moved = self._device.usage.slow_bytes
        if moved is not None:
            taken["host"] = moved - self._moved
            self._moved = moved
        return taken

    def _launch(self, kernel: str, *arguments: NDArray[Any], units: int | None = None) -> None:
        """Launch with no more blocks than there are warps' worth of work."""
        small = kernel == "small_levels"
        threads = SMALL_BLOCK_THREADS if small else BLOCK_THREADS
        blocks = self._device.num_blocks
        if units is not None:
            blocks = min(blocks, units * 32 // threads + 1)
        self._device.launch(kernel, 1 if small else blocks, threads, (self._search, *arguments))

    def _result(self) -> GpuResult:
        ends = np.array([0, *self._ends])
        sizes = [int(size) for size in np.diff(ends) if size]
        depth = len(sizes) - (self._begin < self._end)
        levels = self._device.download(self._memory["levels"])
        parents = self._device.download(self._memory["parents"]) if self._bfs.with_parents else None
        last = self._target_level()
        if last >= 0:
            # One launch may have run many levels, also behind the target's.
            depth, sizes = last, sizes[: last + 1]
            if parents is not None:
                parents[levels > last] = NO_HEAD
            levels[levels > last] = -1
        for step, begin, end in zip(self._steps, self._marks, self._marks[1:], strict=False):
            step.seconds = self._device.seconds_between(begin, end)
        return GpuResult(levels, parents, sizes, depth, self._steps, self._control)

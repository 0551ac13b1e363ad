"""Breadth-first search on a device: the host's part, one loop for every device.

A level begins with the heads pass, which reads device memory only; it skips itself on the device if
the frontier's rows are cheap to read. One small read-back then says what the level costs in slow
bytes: searching the tails of what the heads left, reading the rows of the frontier, or both, for the
vertices before and behind a cut (see split). Frontiers that one block can handle run many levels in one
launch.

Tails that neither device nor host can hold stay on disk. The level is then chosen by what it reads from
there too, and kernels run once more for each piece of it (see staging).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.gpu.result import Direction, GpuResult, Step
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import (
    BLOCK_THREADS,
    CONTROL_WORDS,
    COST_STRUCT,
    MAX_SMALL_LEVELS,
    PARTS,
    SEARCH_STRUCT,
    SMALL_BLOCK_THREADS,
    SMALL_BYTES_PER_VERTEX,
    Control,
)
from oocbfs.plan.device import DISK_COST

if TYPE_CHECKING:
    from oocbfs.gpu.bfs import GpuBfs
    from oocbfs.gpu.staging import Staging


def _number(value: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    return np.array(value % (1 << (8 * np.dtype(dtype).itemsize)), dtype)


class Traversal:
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
        # The frontier is queue[begin:end], and its rows hold so many slow bytes, of which a cut may
        # save some.
        self._begin, self._end = 0, self._sources.size
        self._cost = np.zeros(2, np.int64)
        self._level = 1
        self._ends = [self._end]
        # The same of the rows that the last heads pass found: they belong to the next frontier.
        self._heads_cost = np.zeros(2, np.int64)
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
        if (
            self._direction is not Direction.BOTTOM_UP
            and self._staging is None
            and not self._is_done()
        ):
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

    @property
    def _bytes(self) -> int:
        return int(self._cost[0])

    def _pair(self, first: Control) -> NDArray[np.int64]:
        """Give bytes from the control words, and what a cut may save of them."""
        return self._control[first : first + 2].astype(np.int64)

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
            self._direction is not Direction.TOP_DOWN and known and self._bytes >= worthwhile
        ):
            self._launch_heads(known, skip_bytes=0)
        elif self._direction is not Direction.TOP_DOWN and not known:
            self._launch_heads(known, skip_bytes=worthwhile)
        if self._staging:
            self._launch_marks(self._staging)
        found_before = self._pair(Control.FOUND_BYTES)
        growth = self._read()
        if self._staging:
            self._staging.read_marks()
        if not known:
            self._begin = self._end
            self._end = int(self._control[Control.QUEUE_END] - growth[Control.HEADS_FOUND])
            self._cost = self._pair(Control.FOUND_BYTES) - found_before + self._heads_cost
            self._ends.append(self._end)
        words = slice(Control.HEADS_FOUND_BYTES, Control.HEADS_FOUND_BYTES + 2)
        self._heads_cost = growth[words].astype(np.int64)
        return growth

    def _launch_heads(self, known: bool, skip_bytes: int) -> None:
        cost = self._cost if known else self._heads_cost
        frontier_base = int((self._pair(Control.FOUND_BYTES) - cost)[0])
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
        pending, found = int(growth[Control.PENDING]), int(growth[Control.HEADS_FOUND])
        by_part = growth[Control.PENDING_BYTES :].astype(np.int64)
        pending_bytes = int(by_part.sum())
        self._visited, self._spare = self._spare, self._visited
        cut = self._bfs.cuts.vertex(self._choose_parts(by_part)) if pending else 0
        if not pending:
            self._note("heads", heads_found=found)
        elif 0 < cut < self._num_vertices:
            self._search_and_expand(pending, cut)
            self._note("split", pending, pending_bytes, found)
        elif cut:
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

    def _choose_parts(self, pending_bytes: NDArray[np.int64]) -> int:
        """Tell how many parts of the vertices should search."""
        if self._direction is Direction.BOTTOM_UP:
            return PARTS
        if self._staging:
            search_cost = int(pending_bytes.sum()) + DISK_COST * self._staging.in_side.marked_bytes
            expand_cost = self._bytes + DISK_COST * self._staging.out_side.marked_bytes
            return PARTS if search_cost <= expand_cost else 0
        if self._direction is Direction.SPLIT:
            return 3 * PARTS // 4
        return self._bfs.cuts.choose(pending_bytes, self._cost)

    def _search_and_expand(self, pending: int, cut: int) -> None:
        """Let pending vertices before a cut search, and reach for the others."""
        self._search["visited"], self._search["claimed"] = self._spare, self._visited
        self._search["first_target"] = cut
        level = _number(self._level, np.uint32)
        self._launch(
            "split_level",
            self._in,
            self._out,
            _number(pending, np.uint64),
            _number(self._begin, np.uint64),
            _number(self._end, np.uint64),
            level,
            units=max(pending, self._end - self._begin) // 32 + 1,
        )
        self._launch_hubs(level)
        self._search["first_target"] = 0

    def _launch_hubs(self, level: NDArray[Any]) -> None:
        hubs_base = _number(int(self._control[Control.HUBS]), np.uint64)
        self._launch("top_down_hubs", self._out, hubs_base, level)

    def _expand(self, kind: str, pending: int = 0, pending_bytes: int = 0, found: int = 0) -> None:
        """Reach for the neighbours of the frontier."""
        self._search["visited"] = self._search["claimed"] = self._visited
        level = _number(self._level, np.uint32)
        begin, end = _number(self._begin, np.uint64), _number(self._end, np.uint64)
        units = (self._end - self._begin) // 32 + 1
        self._launch("top_down", self._out, begin, end, level, units=units)
        self._launch_hubs(level)
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
        base = (self._pair(Control.FOUND_BYTES) - self._cost).astype(np.uint64)
        self._launch(
            "small_levels",
            self._out,
            _number(self._begin, np.uint64),
            base.view(COST_STRUCT).reshape(()),
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
        self._cost = self._pair(Control.FOUND_BYTES) - self._pair(Control.FRONTIER_BYTES_BASE)
        self._heads_cost[:] = 0
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
        blocks = self._device.num_blocks(kernel, threads)
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

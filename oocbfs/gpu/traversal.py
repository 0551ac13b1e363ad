"""Breadth-first search on a device: the level loop, which is the same for every device.

A level begins with the heads pass, which reads device memory only. It skips itself on the device
if the frontier's rows are cheap to read. One small read-back then says what the level costs in
slow bytes: searching the tails of what the heads left, reading the rows of the frontier, or both,
for the vertices before and after a cut (see cuts). Frontiers that one block can handle run many
levels in one launch.

Tails that neither device nor host can hold stay on disk. What a level reads from there then counts
too, and kernels run once more for each piece of it (see staging).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.gpu.result import DeviceDirection, DeviceStep, GpuResult
from oocbfs.gpu.search_kernels import SearchKernels
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import (
    CONTROL_WORDS,
    MAX_SMALL_LEVELS,
    PARTS,
    SMALL_BYTES_PER_VERTEX,
    Control,
)
from oocbfs.plan.device import DISK_COST
from oocbfs.results.counts import Counts, sum_counts

if TYPE_CHECKING:
    from oocbfs.gpu.bfs import GpuBfs


class LevelLoop:
    """One traversal: what the host keeps between two levels."""

    def __init__(
        self,
        bfs: GpuBfs,
        sources: NDArray[np.uint32],
        direction: DeviceDirection,
        max_depth: int | None,
        target: int | None,
    ) -> None:
        self._bfs = bfs
        self._device = bfs.device
        self._memory = bfs.memory
        self._limits = bfs.limits
        self._staging = bfs.staging
        self._kernels = SearchKernels(bfs, bfs.memory)
        self._num_vertices = bfs.num_vertices
        self._direction = direction
        self._max_depth = self._num_vertices if max_depth is None else max_depth
        self._target = None if target is None else self._memory["levels"].part(target, target + 1)
        self._sources = np.unique(np.asarray(sources, np.uint32))
        self._control = np.zeros(CONTROL_WORDS, np.uint64)
        # The frontier is queue[begin:end]. Its cost are the slow bytes of its rows, and how many
        # of them a cut can save.
        self._begin, self._end = 0, self._sources.size
        self._cost = np.zeros(2, np.int64)
        self._level = 1
        self._ends = [self._end]
        # The same of the rows that the last heads pass found: they belong to the next frontier.
        self._heads_cost = np.zeros(2, np.int64)
        self._steps: list[DeviceStep] = []
        # What the device counted over the bus before.
        self._moved = bfs.device.usage.slow_bytes or 0
        self._marks: list[Any] = []

    def run(self) -> GpuResult:
        """Run level after level until a frontier is empty, or what was asked for is found."""
        self._device.take_counts()
        self._kernels.start(self._sources)
        self._start_counts = self._device.take_counts()
        self._marks.append(self._device.mark())
        # Whether the frontier has been read back; the sources are known without that.
        known = True
        if self._may_be_small() and not self._is_done():
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

    @property
    def num_expanded(self) -> int:
        """How many levels were expanded so far: all but the last that was found."""
        return self._level - 1

    def _is_done(self) -> bool:
        """Tell whether the levels found so far are all that was asked for."""
        return self._level > self._max_depth or self._target_level() >= 0

    def _target_level(self) -> int:
        return -1 if self._target is None else int(self._device.download(self._target)[0])

    def _may_be_small(self) -> bool:
        return self._direction is not DeviceDirection.BOTTOM_UP and self._staging is None

    def _is_small(self) -> bool:
        count, limits = self._end - self._begin, self._limits
        return (
            self._may_be_small()
            and count <= limits.small_vertices
            and self._bytes <= limits.small_bytes + count * SMALL_BYTES_PER_VERTEX
        )

    @property
    def _bytes(self) -> int:
        return int(self._cost[0])

    def _look(self, known: bool, *, with_heads: bool) -> NDArray[np.uint64]:
        """Run the heads pass unless it is not worth it; read back what the level needs to know."""
        # What rows cost that are on disk is known after the heads pass only.
        cheap = 0 if self._staging else self._limits.heads_bytes
        worthwhile = int(cheap * self._num_vertices)
        if not with_heads:
            pass
        elif self._direction is DeviceDirection.BOTTOM_UP or (
            self._direction is not DeviceDirection.TOP_DOWN and known and self._bytes >= worthwhile
        ):
            self._ask_heads(known, skip_bytes=0)
        elif self._direction is not DeviceDirection.TOP_DOWN and not known:
            self._ask_heads(known, skip_bytes=worthwhile)
        if self._staging:
            self._staging.clear_marks()
            self._kernels.mark_blocks(self._level)
        found_before = _cost_from(self._control, Control.FOUND_BYTES)
        growth = self._read()
        if self._steps:  # the last of them has been read back only now
            self._steps[-1].edges_examined += int(growth[Control.EDGES])
            self._steps[-1].claims_lost += int(growth[Control.CLAIMS_LOST])
        if self._staging:
            self._staging.read_marks()
        if not known:
            found_after = _cost_from(self._control, Control.FOUND_BYTES)
            self._begin = self._end
            self._end = int(self._control[Control.QUEUE_END] - growth[Control.HEADS_FOUND])
            self._cost = found_after - found_before + self._heads_cost
            self._ends.append(self._end)
        self._heads_cost = _cost_from(growth, Control.HEADS_FOUND_BYTES)
        return growth

    def _ask_heads(self, known: bool, skip_bytes: int) -> None:
        cost = self._cost if known else self._heads_cost
        self._kernels.ask_heads(
            self._level,
            pending_base=int(self._control[Control.PENDING]),
            bytes_base=int((_cost_from(self._control, Control.FOUND_BYTES) - cost)[0]),
            skip_bytes=skip_bytes,
        )

    def _finish_after_heads(self, growth: NDArray[np.uint64]) -> None:
        """Find what the heads left, in the direction that moves fewer bytes."""
        pending = int(growth[Control.PENDING])
        by_part = growth[Control.PENDING_BYTES :].astype(np.int64)
        counted = {
            "pending": pending,
            "pending_bytes": int(by_part.sum()),
            "heads_found": int(growth[Control.HEADS_FOUND]),
            "edges_examined": int(growth[Control.HEADS_TESTED]),
        }
        self._kernels.swap_bitmaps()
        cut = self._bfs.cuts.vertex(self._choose_parts(by_part)) if pending else 0
        if not pending:
            self._note("heads", **counted)
        elif 0 < cut < self._num_vertices:
            frontier = (self._begin, self._end)
            self._kernels.split(self._level, pending, frontier, cut, self._hubs_base)
            self._note("split", **counted)
        elif cut:
            self._kernels.search(self._level, pending)
            if self._staging:
                search = partial(self._kernels.search_piece, self._level)
                self._staging.stream(self._staging.in_side, search)
            self._note("bottom-up", **counted)
        else:
            self._expand("heads, top-down", **counted)

    def _choose_parts(self, pending_bytes: NDArray[np.int64]) -> int:
        """Tell how many parts of the vertices should search."""
        if self._direction is DeviceDirection.BOTTOM_UP:
            return PARTS
        if self._staging:
            search_cost = int(pending_bytes.sum()) + DISK_COST * self._staging.in_side.marked_bytes
            expand_cost = self._bytes + DISK_COST * self._staging.out_side.marked_bytes
            return PARTS if search_cost <= expand_cost else 0
        if self._direction is DeviceDirection.SPLIT:
            return 3 * PARTS // 4
        return self._bfs.cuts.choose(pending_bytes, self._cost)

    def _expand(self, kind: str, **counted: int) -> None:
        """Expand the frontier."""
        self._kernels.expand(self._level, (self._begin, self._end), self._hubs_base)
        if self._staging:
            expand = partial(self._kernels.expand_piece, self._level)
            self._staging.stream(self._staging.out_side, expand)
        self._note(kind, **counted)

    @property
    def _hubs_base(self) -> int:
        """The hubs that levels before this one listed."""
        return int(self._control[Control.HUBS])

    def _run_small_levels(self) -> None:
        """Run levels on the device for as long as they stay small, and read where they ended."""
        self._kernels.run_small_levels(
            self._level,
            begin=self._begin,
            cost_base=_cost_from(self._control, Control.FOUND_BYTES) - self._cost,
            max_levels=min(MAX_SMALL_LEVELS, self._max_depth + 1 - self._level),
            limits=self._limits,
        )
        growth = self._read(CONTROL_WORDS + MAX_SMALL_LEVELS // 2)
        num_levels = int(self._control[Control.LEVELS_RUN])
        self._note(
            "small",
            num_levels=num_levels,
            edges_examined=int(growth[Control.EDGES]),
            claims_lost=int(growth[Control.CLAIMS_LOST]),
        )
        self._ends.extend(int(end) for end in self._level_ends[:num_levels])
        if num_levels:
            self._begin, self._end = ([0, *self._ends])[-2:]
        before = _cost_from(self._control, Control.FRONTIER_BYTES_BASE)
        self._cost = _cost_from(self._control, Control.FOUND_BYTES) - before
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

    def _note(self, kind: str, num_levels: int = 1, **counted: int) -> None:
        """Record a step; ``counted`` are fields of it."""
        self._marks.append(self._device.mark())
        self._steps.append(
            DeviceStep(
                kind=kind,
                level=self._level,
                num_levels=num_levels,
                frontier=self._end - self._begin,
                frontier_bytes=self._bytes,
                slow_bytes=self._take_slow_bytes(),
                counts=self._device.take_counts(),
                link_bytes={},  # of several devices
                **counted,
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

    def _result(self) -> GpuResult:
        ends = np.array([0, *self._ends])
        sizes = [int(size) for size in np.diff(ends) if size]
        depth = len(sizes) - (self._begin < self._end)
        levels = self._device.download(self._memory["levels"])
        parents = self._device.download(self._memory["parents"]) if self._bfs.with_parents else None
        last = self._target_level()
        around = self._count_work(sizes)
        if last >= 0:
            # One launch may have run many levels, also some after the target's.
            depth, sizes = last, sizes[: last + 1]
            if parents is not None:
                parents[levels > last] = NO_HEAD
            levels[levels > last] = -1
        for step, begin, end in zip(self._steps, self._marks, self._marks[1:], strict=False):
            step.seconds = self._device.seconds_between(begin, end)
        return GpuResult(
            levels=levels,
            parents=parents,
            level_sizes=sizes,
            depth=depth,
            steps=self._steps,
            control=self._control,
            around=around,
        )

    def _count_work(self, sizes: list[int]) -> Counts:
        """Complete the counts of all steps; give those of what belongs to no level."""
        around = [with_work(self._start_counts, found=sizes[0])]
        for step in self._steps:
            found = sum(sizes[step.level : step.level + step.num_levels])
            step.counts = with_work(step.counts, step.edges_examined, step.claims_lost, found)
            if not step.num_levels:
                around.append(step.counts)
        # Among them a heads pass that saw an empty frontier.
        examined = int(self._control[Control.HEADS_TESTED] + self._control[Control.EDGES])
        left = examined - sum(step.edges_examined for step in self._steps)
        around.append(with_work(self._device.take_counts(), edges=left))
        return sum_counts(around)


def with_work(counts: Counts, edges: int = 0, lost: int = 0, found: int = 0) -> Counts:
    """Add what kernels counted; a vertex that was found is in the queue once."""
    return replace(
        counts,
        edges_examined=edges,
        claims_won=found,
        claims_lost=lost,
        queue_writes=found,
        duplicates=0,
    )


def _cost_from(words: NDArray[np.uint64], first: Control) -> NDArray[np.int64]:
    """Give bytes from the control words, and how many of them a cut can save."""
    return words[first : first + 2].astype(np.int64)

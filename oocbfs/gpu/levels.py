"""Breadth-first search on a device: the level loop, which is the same for every device.

A level begins with the heads pass, which reads device memory only. It skips itself on the device
if the frontier's rows are cheap to expand. One small read-back then says how many sectors the level
would read in which memory, and so what it costs (see costs): searching the tails of what the heads
left, expanding the rows of the frontier, or both, for the vertices before and after a cut (see
cuts). Frontiers that one block can handle run many levels in one launch.

Tails that neither device nor host can hold stay on disk. What a level reads from there then counts
too, and kernels run once more for each piece of it (see staging).
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.control import bytes_of, pending_bytes_from, read_control, sectors_from
from oocbfs.gpu.result import NOT_REACHED, DeviceDirection, GpuResult
from oocbfs.gpu.results import Into
from oocbfs.gpu.search_kernels import SearchKernels
from oocbfs.kernels.cuda.source import (
    CONTROL_WORDS,
    LEVEL_PERIOD,
    MAX_SMALL_LEVELS,
    NUM_RANGES,
    SECTOR_WORDS,
    SMALL_BYTES_PER_VERTEX,
    Control,
)
from oocbfs.plan.passes import HeadsPasses
from oocbfs.results.counts import Counts, sum_counts, with_work
from oocbfs.results.levels import Beside, LevelLog

if TYPE_CHECKING:
    from oocbfs.gpu.bfs import GpuBfs


class LevelLoop:
    """One search: what the host keeps between two levels."""

    def __init__(
        self,
        bfs: GpuBfs,
        sources: NDArray[np.uint32],
        direction: DeviceDirection,
        max_depth: int | None,
        target: int | None,
        into: Into,
    ) -> None:
        self._bfs, self._into = bfs, into
        self._device = bfs.device
        self._memory = bfs.memory
        self._limits = bfs.limits
        self._staging = bfs.staging
        self._kernels = SearchKernels(bfs, bfs.memory)
        self._num_vertices = bfs.num_vertices
        self._direction = direction
        self._max_depth = self._num_vertices if max_depth is None else max_depth
        self._target = target
        self._sources = np.unique(np.asarray(sources, np.uint32))
        self._control = np.zeros(CONTROL_WORDS, np.uint64)
        # The frontier is queue[begin:end]. The sectors of its rows are slow, fast, and what of each
        # a cut can save.
        self._begin, self._end = 0, self._sources.size
        self._sectors = np.zeros(SECTOR_WORDS, np.int64)
        self._level = 1
        self._ends = [self._end]
        # At least; of a level that has not been read back, what its heads pass found is known.
        self._num_visited = self._end
        # The same of the rows that the last heads pass found: they belong to the next frontier.
        self._heads_sectors = np.zeros(SECTOR_WORDS, np.int64)
        self._passes = HeadsPasses(
            bfs.costs, bfs.limits, bfs.out_rows.tail_bytes, self._num_vertices
        )
        # Whether this frontier is known to be more than one block should do: small_levels left it,
        # or the unvisited are cheaper to ask.
        self._is_large = False
        # What the device counted over the bus before, if it can.
        self._moved = bfs.device.usage.slow_bytes
        tiers = {"disk": self._staging is not None, "host": self._moved is not None}
        self._log = LevelLog([tier for tier, counted in tiers.items() if counted])
        self._claims_lost: list[int] = []
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
            known = bool(growth[Control.HEADS_RAN] and not growth[Control.PENDING])
            if known:
                self._advance(self._num_visited, self._heads_sectors)
                self._is_large = self._expand_cost[0] >= self._worthwhile
        return self._result()

    def _is_done(self) -> bool:
        """Return whether the levels found so far are all that was asked for."""
        return self._level > self._max_depth or self._finds_target()

    def _finds_target(self) -> bool:
        return self._target is not None and self._at("levels", self._target) != NOT_REACHED

    def _at(self, name: str, vertex: int) -> int:
        return int(self._device.download(self._memory[name].slice(vertex, vertex + 1))[0])

    def _may_be_small(self) -> bool:
        return self._direction is not DeviceDirection.BOTTOM_UP and self._staging is None

    def _is_small(self) -> bool:
        count, limits = self._end - self._begin, self._limits
        # A row touches at most 62 bytes more than it has; small_levels knows its own.
        most = limits.small_bytes + count * (SMALL_BYTES_PER_VERTEX + 62)
        return (
            self._may_be_small()
            and not self._is_large
            and count <= limits.small_vertices
            and self._bytes <= most
        )

    @property
    def _bytes(self) -> int:
        """The sectors of the frontier's rows, in any memory."""
        return bytes_of(self._sectors)

    @property
    def _expand_cost(self) -> NDArray[np.int64]:
        """What expanding the frontier costs, and how much of that a cut can save."""
        return self._bfs.costs.expand(self._sectors)

    def _look(self, known: bool, *, with_heads: bool) -> NDArray[np.uint64]:
        """Run the heads pass unless it is not worth it; read back what the level needs to know."""
        worthwhile = self._worthwhile
        may_ask = with_heads and self._direction is not DeviceDirection.TOP_DOWN
        if may_ask and not (known and self._expand_cost[0] < worthwhile):
            self._ask_heads(known, skip_cost=worthwhile)
        if self._staging:
            self._staging.clear_marks()
            self._kernels.mark_blocks(self._level)
        found_before = sectors_from(self._control, Control.FOUND_SECTORS)
        growth = self._read()
        if len(self._log):  # the last of them has been read back only now
            self._log.last["edges"] += int(growth[Control.EDGES])
            self._claims_lost[-1] += int(growth[Control.CLAIMS_LOST])
        if self._staging:
            self._staging.read_marks()
        if not known:
            found_after = sectors_from(self._control, Control.FOUND_SECTORS)
            end = int(self._control[Control.QUEUE_END] - growth[Control.HEADS_FOUND])
            self._advance(end, found_after - found_before + self._heads_sectors)
        self._num_visited = self._end + int(growth[Control.HEADS_FOUND])
        self._heads_sectors = sectors_from(growth, Control.HEADS_FOUND_SECTORS)
        return growth

    @property
    def _worthwhile(self) -> int:
        """What expanding the frontier costs at least where heads are asked first."""
        # What rows cost that are on disk is known after the heads pass only.
        if self._staging or self._direction is DeviceDirection.BOTTOM_UP:
            return 0
        return self._passes.worth_asking(self._num_vertices - self._num_visited)

    def _advance(self, end: int, sectors: NDArray[np.int64]) -> None:
        """Take what was found for the frontier: the queue up to an end."""
        self._passes.learn(end - self._num_visited)
        self._begin, self._end = self._end, end
        self._sectors, self._is_large = sectors, False
        self._heads_sectors = np.zeros_like(sectors)
        self._ends.append(end)

    def _ask_heads(self, known: bool, skip_cost: int) -> None:
        sectors = self._sectors if known else self._heads_sectors
        self._kernels.ask_heads(
            self._level,
            pending_base=int(self._control[Control.PENDING]),
            sectors_base=sectors_from(self._control, Control.FOUND_SECTORS) - sectors,
            costs=self._bfs.costs,
            skip_cost=skip_cost,
            search_bytes=self._passes.search_bytes,
        )

    def _finish_after_heads(self, growth: NDArray[np.uint64]) -> None:
        """Find what the heads left, in the direction that costs less."""
        pending = int(growth[Control.PENDING])
        tested, found = int(growth[Control.HEADS_TESTED]), int(growth[Control.HEADS_FOUND])
        counted = {"heads": found, "edges": tested}
        self._kernels.swap_bitmaps()
        search_costs = self._passes.search_costs(
            pending_bytes_from(growth),
            pending=pending,
            frontier=self._end - self._begin,
            frontier_bytes=self._bytes,
            expand_cost=int(self._expand_cost[0]),
            tested=tested,
            found=found,
        )
        cut = self._bfs.cuts.vertex(self._choose_ranges(search_costs)) if pending else 0
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

    def _choose_ranges(self, search_costs: NDArray[np.int64]) -> int:
        """Return how many ranges of vertices should search."""
        if self._direction is DeviceDirection.BOTTOM_UP:
            return NUM_RANGES
        if self._staging:
            disk_byte = self._bfs.costs.disk_byte
            search_cost = search_costs.sum() + disk_byte * self._staging.in_side.marked_bytes
            expand_cost = self._expand_cost[0] + disk_byte * self._staging.out_side.marked_bytes
            return NUM_RANGES if search_cost <= expand_cost else 0
        if self._direction is DeviceDirection.SPLIT:
            return 3 * NUM_RANGES // 4
        return self._bfs.cuts.choose(search_costs, self._expand_cost)

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
        max_levels = self._kernels.run_small_levels(
            self._level,
            begin=self._begin,
            max_levels=min(MAX_SMALL_LEVELS, self._max_depth + 1 - self._level),
            limits=self._limits,
        )
        growth = self._read(CONTROL_WORDS + MAX_SMALL_LEVELS // 2)
        num_levels = int(self._control[Control.LEVELS_RUN])
        self._note(
            "small",
            num_levels=num_levels,
            edges=int(growth[Control.EDGES]),
        )
        self._claims_lost[-1] = int(growth[Control.CLAIMS_LOST])
        self._ends.extend(int(end) for end in self._level_ends[:num_levels])
        if num_levels:
            self._begin, self._end = ([0, *self._ends])[-2:]
        self._num_visited = self._end
        self._sectors = sectors_from(self._control, Control.FRONTIER_SECTORS)
        self._heads_sectors[:] = 0
        self._is_large = num_levels < max_levels
        self._level += num_levels

    def _read(self, words: int = CONTROL_WORDS) -> NDArray[np.uint64]:
        """Read the control words back; give how much each grew."""
        before = self._control
        read = read_control(self._device, self._memory["control"], words)
        self._control, self._level_ends = read[:CONTROL_WORDS], read[CONTROL_WORDS:].view(np.uint32)
        return self._control - before

    def _note(self, kind: str, **counted: int) -> None:
        """Record the launches that finished a level, or several; ``counted`` are columns."""
        self._marks.append(self._device.mark())
        if self._staging:
            counted["disk_bytes"] = self._staging.take_bytes()
        before, self._moved = self._moved, self._device.usage.slow_bytes
        if before is not None and self._moved is not None:
            counted["host_bytes"] = self._moved - before
        beside = Beside(self._device.take_counts())
        self._log.add(kind, self._end - self._begin, beside, tail_bytes=self._bytes, **counted)
        self._claims_lost.append(0)

    def _result(self) -> GpuResult:
        ends = np.array([0, *self._ends])
        sizes = [int(size) for size in np.diff(ends) if size]
        depth = len(sizes) - (self._begin < self._end)
        deep = self._level >= LEVEL_PERIOD - 1  # from then on, levels from disk lose their bytes
        found = sizes
        start = time.perf_counter()
        if deep:
            self._kernels.find_deep_levels(self._ends)
        if self._target is not None and self._finds_target():
            # One launch may have run many levels, also some after the target's.
            depth = self._at("pending" if deep else "levels", self._target)
            sizes = sizes[: depth + 1]
            self._kernels.forget(self._ends[depth], self._ends[-1])
        self._bfs.results.fill(self._kernels.struct, self._into, deep=deep)
        visited = self._kernels.visited_words
        to_ids_seconds = time.perf_counter() - start
        records = self._log.records
        around = self._count_work(found, records)
        records["seconds"] = list(
            map(self._device.seconds_between, self._marks, self._marks[1:]),
        )
        return GpuResult(
            levels=self._into.levels,
            parents=self._into.parents,
            level_sizes=sizes,
            depth=depth,
            records=records,
            tiers=self._log.tiers,
            beside=self._log.beside,
            control=self._control,
            around=around,
            to_ids_seconds=to_ids_seconds,
            visited=visited,
        )

    def _count_work(self, sizes: list[int], records: NDArray[np.void]) -> Counts:
        """Complete the counts of all records; return those of what belongs to no level."""
        around = [with_work(self._start_counts, found=sizes[0])]
        level = 1
        for record, beside, lost in zip(records, self._log.beside, self._claims_lost, strict=True):
            count = int(record["num_levels"])
            found = sum(sizes[level : level + count])
            beside.counts = with_work(beside.counts or Counts(), int(record["edges"]), lost, found)
            if not count:
                around.append(beside.counts)
            level += count
        # Among them a heads pass that saw an empty frontier.
        examined = int(self._control[Control.HEADS_TESTED] + self._control[Control.EDGES])
        left = examined - int(records["edges"].sum())
        around.append(with_work(self._device.take_counts(), edges=left))
        return sum_counts(around)

"""Breadth-first search on several devices: the level loop, which is the same for all of them.

Words of 64 vertices are dealt to the devices in turn. A level goes up or down, by what it costs on
all devices together, as on one device (see ``gpu.traversal``).

Up: every device gets the visited words of all, by which it knows the frontier, and its own vertices
search for it, first by their heads. Down: every device marks the neighbours of its own frontier in
a bitmap of all vertices, and gives each owner its words of it. What somebody marked and the owner
has not visited is found. Marks stay: all that is marked is visited when the level ends.

A mark does not say whose neighbour a vertex is. Where parents are wanted, devices tell each other
what is visited before they go down, and what is found looks for its parent itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.devices.links import Links
from oocbfs.devices.part import DevicePart, PartKernels
from oocbfs.errors import FormatError
from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.control import pending_bytes_from, sectors_from
from oocbfs.gpu.device import Device
from oocbfs.gpu.result import NOT_REACHED, DeviceDirection, GpuResult
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import CONTROL_WORDS, LEVEL_PERIOD, SECTOR_WORDS, Control
from oocbfs.plan.limits import StepLimits
from oocbfs.plan.rates import SECTOR_BYTES
from oocbfs.results.counts import Counts, sum_counts, with_work
from oocbfs.results.levels import Beside, LevelLog


class DevicesBfs:
    """Traversals of one graph on several devices; a context manager, because tails are mapped."""

    def __init__(
        self,
        parts: Sequence[DevicePart],
        links: Links,
        stack: ExitStack,
        *,
        limits: StepLimits | None = None,
    ) -> None:
        self.parts, self.links = parts, links
        self.limits = limits or StepLimits()
        self._stack = stack

    @property
    def devices(self) -> list[Device]:
        """The devices, in the order of their parts."""
        return [part.device for part in self.parts]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def run(
        self,
        sources: NDArray[np.uint32],
        direction: DeviceDirection = DeviceDirection.AUTO,
        *,
        max_depth: int | None = None,
        target: int | None = None,
    ) -> GpuResult:
        """Traverse from stored vertices; stop after a level, or after the one with a vertex."""
        return DevicesLoop(self, sources, direction, max_depth, target).run()


class DevicesLoop:
    """One traversal: what the host keeps between two levels."""

    def __init__(
        self,
        bfs: DevicesBfs,
        sources: NDArray[np.uint32],
        direction: DeviceDirection,
        max_depth: int | None,
        target: int | None,
    ) -> None:
        self._parts, self._links = bfs.parts, bfs.links
        self._cut: Cut = bfs.parts[0].cut
        self._with_parents = bfs.parts[0].with_parents
        self._kernels = [PartKernels(part) for part in bfs.parts]
        self._direction = direction
        self._heads_passes = bfs.limits.heads_passes
        self._max_depth = self._cut.num_vertices if max_depth is None else max_depth
        self._target = target
        self._sources = np.unique(np.asarray(sources, np.uint32))
        # The frontier of each device is queue[begin:end]; the sectors of its rows are as there.
        self._frontiers = [(0, 0)] * len(bfs.parts)
        # Where each level ends in the queue of each device.
        self._ends: list[list[int]] = [[] for _ in bfs.parts]
        self._sectors = np.zeros((len(bfs.parts), SECTOR_WORDS), np.int64)
        self._level = 1
        self._sizes: list[int] = []
        self._moved = self._slow_bytes()
        self._log = LevelLog(() if self._moved is None else ("host",))
        self._claims_lost: list[int] = []
        self._marks: list[list[Any]] = []

    def run(self) -> GpuResult:
        """Run level after level until no device has a frontier, or what was asked for is found."""
        self._take_counts()
        self._links.take_bytes()
        owners, rows = self._cut.part_of(self._sources), self._cut.row_of(self._sources)
        for part, kernels in enumerate(self._kernels):
            kernels.start(rows[owners == part])
        around = [with_work(self._take_counts(), found=self._sources.size)]
        self._mark()
        self._finish_level(self._read())
        while self._frontier and self._level <= self._max_depth and not self._finds_target():
            growth = self._run_level()
            after = self._read()
            edges, lost = (
                sum(int(one[word]) for one in after)
                for word in (Control.EDGES, Control.CLAIMS_LOST)
            )
            self._log.last["edges"] += edges
            self._claims_lost.append(lost)
            self._finish_level([first + last for first, last in zip(growth, after, strict=True)])
            self._level += 1
        around.append(with_work(self._take_counts()))
        return self._result(around)

    @property
    def _expand_cost(self) -> int:
        """What expanding the frontiers costs."""
        pairs = zip(self._parts, self._sectors, strict=True)
        return sum(int(part.costs.expand(sectors)[0]) for part, sectors in pairs)

    @property
    def _heads_cost(self) -> float:
        """What the frontiers must cost, so that heads passes pay."""
        return self._heads_passes * sum(
            part.costs.heads(part.num_vertices - end)
            for part, (_, end) in zip(self._parts, self._frontiers, strict=True)
        )

    @property
    def _frontier(self) -> int:
        return sum(end - begin for begin, end in self._frontiers)

    def _run_level(self) -> list[NDArray[np.uint64]]:
        """Find the next level; gives what its first half counted on each device."""
        nothing = [np.zeros(CONTROL_WORDS, np.uint64) for _ in self._kernels]
        if self._direction is DeviceDirection.TOP_DOWN or (
            self._direction is DeviceDirection.AUTO and self._expand_cost < self._heads_cost
        ):
            if self._with_parents:
                self._tell_visited()
            self._go_down("top-down")
            return nothing
        self._tell_visited()
        for kernels, sectors in zip(self._kernels, self._sectors, strict=True):
            kernels.look(self._level, sectors)
        growth = self._read()
        pending = [int(one[Control.PENDING]) for one in growth]
        pending_bytes = [pending_bytes_from(one).sum(axis=1) for one in growth]
        search_cost = sum(
            int(part.costs.search(*by_memory))
            for part, by_memory in zip(self._parts, pending_bytes, strict=True)
        )
        counted = {
            "heads": sum(int(one[Control.HEADS_FOUND]) for one in growth),
            "edges": sum(int(one[Control.HEADS_TESTED]) for one in growth),
        }
        for kernels in self._kernels:
            kernels.swap_bitmaps()
        if not any(pending):
            self._note("heads", **counted)
        elif self._direction is DeviceDirection.BOTTOM_UP or search_cost <= self._expand_cost:
            for kernels, count in zip(self._kernels, pending, strict=True):
                kernels.search(self._level, count)
            self._note("bottom-up", **counted)
        else:
            self._go_down("heads, top-down", **counted)
        return growth

    def _tell_visited(self) -> None:
        """Let every device know what all have visited."""
        received = [part.messages["received"] for part in self._parts]
        self._links.gather([kernels.visited for kernels in self._kernels], received)
        for kernels in self._kernels:
            kernels.gather_words()

    def _go_down(self, kind: str, **counted: int) -> None:
        """Let every device expand its frontier, and tell the others what it found."""
        for kernels, frontier in zip(self._kernels, self._frontiers, strict=True):
            kernels.mark(self._level, frontier)
        sent, received = (
            [part.messages[name] for part in self._parts] for name in ("sent", "received")
        )
        self._links.deal(sent, received)
        for kernels in self._kernels:
            kernels.unite(self._level)
        self._note(kind, **counted)

    def _finish_level(self, growth: list[NDArray[np.uint64]]) -> None:
        """Take what was found as the next frontier."""
        self._frontiers = [
            (end, int(kernels.control[Control.QUEUE_END]))
            for (_, end), kernels in zip(self._frontiers, self._kernels, strict=True)
        ]
        for ends, (_, end) in zip(self._ends, self._frontiers, strict=True):
            ends.append(end)
        self._sectors = np.array(
            [
                sectors_from(one, Control.FOUND_SECTORS)
                + sectors_from(one, Control.HEADS_FOUND_SECTORS)
                for one in growth
            ]
        )
        if self._frontier:
            self._sizes.append(self._frontier)

    def _read(self) -> list[NDArray[np.uint64]]:
        """Read the control words back; give how much each grew on each device."""
        growth = []
        for part, kernels in zip(self._parts, self._kernels, strict=True):
            before = kernels.control
            kernels.control = part.device.download(part.memory["control"], CONTROL_WORDS)
            if kernels.control[Control.DAMAGED]:
                raise FormatError("a row is damaged: run 'oocbfs verify'")
            growth.append(kernels.control - before)
        return growth

    def _finds_target(self) -> bool:
        if self._target is None:
            return False
        vertex = np.array([self._target])
        part = self._parts[int(self._cut.part_of(vertex)[0])]
        row = int(self._cut.row_of(vertex)[0])
        level = part.device.download(part.memory["levels"].part(row, row + 1))[0]
        return bool(level != NOT_REACHED)

    def _note(self, kind: str, **counted: int) -> None:
        """Record a level; ``counted`` are columns."""
        self._mark()
        before, self._moved = self._moved, self._slow_bytes()
        if before is not None and self._moved is not None:
            counted["host_bytes"] = self._moved - before
        counted["tail_bytes"] = SECTOR_BYTES * int(self._sectors[:, :2].sum())
        beside = Beside(self._take_counts(), link_bytes=self._links.take_bytes())
        self._log.add(kind, self._frontier, beside, **counted)

    def _mark(self) -> None:
        self._marks.append([part.device.mark() for part in self._parts])

    def _slow_bytes(self) -> int | None:
        moved = [part.device.usage.slow_bytes for part in self._parts]
        return None if None in moved else sum(filter(None, moved))

    def _take_counts(self) -> Counts:
        return sum_counts([part.device.take_counts() for part in self._parts])

    def _result(self, around: list[Counts]) -> GpuResult:
        levels = self._collect(self._levels_of, np.int32, -1)
        parents = (
            self._collect(self._parents_of, np.uint32, NO_HEAD) if self._with_parents else None
        )
        if parents is not None:
            parents[self._sources] = self._sources  # by their rows, until now
        found = [*self._sizes[1:], 0]
        records = self._log.records
        for number, (record, beside) in enumerate(zip(records, self._log.beside, strict=True)):
            begin, end = self._marks[number : number + 2]
            record["seconds"] = max(
                part.device.seconds_between(*pair)
                for part, *pair in zip(self._parts, begin, end, strict=True)
            )
            work = int(record["edges"]), self._claims_lost[number], found[number]
            beside.counts = with_work(beside.counts or Counts(), *work)
        return GpuResult(
            levels=levels,
            parents=parents,
            level_sizes=self._sizes,
            depth=records.size,
            records=records,
            tiers=self._log.tiers,
            beside=self._log.beside,
            control=np.sum([kernels.control for kernels in self._kernels], axis=0),
            around=sum_counts([*around, with_work(self._take_counts())]),
        )

    def _collect(
        self,
        results_of: Callable[[DevicePart], NDArray[Any]],
        dtype: Any,  # noqa: ANN401
        none: int,
    ) -> NDArray[Any]:
        """Bring what each device has of its own vertices into the order of all."""
        whole = np.full(self._cut.num_vertices, none, dtype)
        for part in self._parts:
            rows = np.arange(part.num_vertices)
            whole[self._cut.vertex_of(part.part, rows)] = results_of(part)
        return whole

    def _parents_of(self, part: DevicePart) -> NDArray[np.uint32]:
        return part.device.download(part.memory["parents"], part.num_vertices)

    def _levels_of(self, part: DevicePart) -> NDArray[np.int32]:
        bytes_of = part.device.download(part.memory["levels"], part.num_vertices)
        levels = bytes_of.astype(np.int32)
        if len(self._sizes) > LEVEL_PERIOD:
            self._kernels[part.part].find_deep_levels(self._ends[part.part])
            levels = part.device.download(part.memory["pending"], part.num_vertices).view(np.int32)
        levels[bytes_of == NOT_REACHED] = -1
        return levels

"""Several GPUs of this host, or devices of the emulator, each with a shard: one more exchange.

Each device has a shard. Bottom-up, every device gets the visited
words of all, by which it knows the frontier, and its own vertices search for it, first by their
heads. Top-down, every device marks the neighbours of its own frontier in a bitmap of all vertices,
and gives each owner its words of it. What somebody marked and the owner has not visited is found.
Marks stay: all that is marked is visited when the level ends.

A mark does not say whose neighbour a vertex is. Where parents are wanted, devices tell each other
what is visited before they go top-down, and what is found looks for its parent itself.

Levels and parents stay on the devices until the search is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.driver import search
from oocbfs.cluster.exchange import Found, Shape, ShardQuery, Steps, Traffic
from oocbfs.cluster.results import Results
from oocbfs.cluster.shard import Work
from oocbfs.devices.links import Links
from oocbfs.devices.load import link, make_devices, place
from oocbfs.devices.shard import DeviceShard, ShardKernels
from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.control import bytes_of, pending_bytes_from, read_control, sectors_from
from oocbfs.gpu.device import Device
from oocbfs.gpu.result import NOT_REACHED, DeviceDirection, GpuResult
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import (
    CONTROL_WORDS,
    LEVEL_PERIOD,
    SECTOR_WORDS,
    Control,
    KernelOptions,
)
from oocbfs.kernels.rows import Rows
from oocbfs.plan.limits import StepLimits
from oocbfs.progress import Phases
from oocbfs.query import Query
from oocbfs.results.counts import Counts, sum_counts, with_work
from oocbfs.results.levels import Beside
from oocbfs.settings import Direction, Settings


class DevicesBfs:
    """Searches of one graph on several devices; a context manager, because tails are mapped."""

    def __init__(
        self,
        shards: Sequence[DeviceShard],
        links: Links,
        stack: ExitStack,
        *,
        limits: StepLimits | None = None,
    ) -> None:
        self.shards, self.links = shards, links
        self.limits = limits or StepLimits()
        self._stack = stack

    @property
    def devices(self) -> list[Device]:
        """The devices, in the order of their shards."""
        return [shard.device for shard in self.shards]

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
        """Search from stored vertices; stop after a level, or after the one with a vertex."""
        cut, with_parents = self.shards[0].cut, self.shards[0].with_parents
        # Devices know what their frontiers cost, so that nobody counts edges.
        shape = Shape(cut, 0, cut.num_vertices, cut.num_vertices)
        sources = np.unique(np.asarray(sources, np.uint32))
        asked = Query(sources, with_parents, cast(Direction, direction.value), max_depth, target)
        query = ShardQuery(asked, shape, 0)
        steps = _Steps(self, query)
        outcome = search(steps, query, _OnDevices())
        records = outcome.log.records
        return GpuResult(
            levels=steps.levels(),
            parents=steps.parents() if with_parents else None,
            level_sizes=outcome.sizes,
            depth=records.size,
            records=records,
            tiers=outcome.log.tiers,
            beside=outcome.log.beside,
            control=steps.control,
            around=steps.take_around(),
        )


def load_shards(
    cut: Cut,
    rows_of: Callable[[int], Sequence[Rows]],
    engine: str,
    names: Sequence[int],
    settings: Settings,
    *,
    with_parents: bool,
) -> DevicesBfs:
    """Bring the shards of a graph to the devices, one after the other; close what it gives."""
    options = KernelOptions(with_parents=with_parents, block_cyclic=True)
    phases = Phases(show=settings.progress)
    devices = make_devices(engine, names, options, phases)
    with ExitStack() as stack, phases("load", len(names), "device") as bar:
        shards = []
        for shard, device in enumerate(devices):
            placed = place(device, rows_of(shard), cut, shard, settings, options)
            shards.append(stack.enter_context(placed))
            bar.update(1)
        links = link(devices, names)
        stack.callback(links.close)
        return DevicesBfs(shards, links, stack.pop_all())


class _OnDevices(Results):
    """What stays where it is found."""

    def __init__(self) -> None:
        super().__init__(np.empty(0, np.uint8))

    def has_room(self, level: int) -> bool:
        return True


class _Steps(Steps):
    """Steps of one search, which decide on their directions by what they cost on all devices."""

    def __init__(self, bfs: DevicesBfs, query: ShardQuery) -> None:
        super().__init__(query.shape.cut)
        self._shards, self._links = bfs.shards, bfs.links
        self._query = query
        self._kernels = [ShardKernels(shard) for shard in bfs.shards]
        self._limits = bfs.limits
        # The frontier of each device is queue[begin:end]; the sectors of its rows are as there.
        self._frontiers = [(0, 0)] * len(bfs.shards)
        # Where each level ends in the queue of each device.
        self._ends: list[list[int]] = [[] for _ in bfs.shards]
        self._sectors = np.zeros((len(bfs.shards), SECTOR_WORDS), np.int64)
        # Bytes from host memory; some devices cannot count them.
        self._moved = self._slow_bytes()
        usages = [shard.device.usage for shard in bfs.shards]
        self.tiers = () if None in [usage.slow_bytes for usage in usages] else ("host",)
        self._around: list[Counts] = []

    def begin(self, query: ShardQuery, results: Results) -> None:
        """Visit the sources."""
        self._take_counts()
        self._links.take_bytes()
        owners, rows = self.cut.shard_of(query.asked.sources), self.cut.row_of(query.asked.sources)
        for shard, kernels in enumerate(self._kernels):
            kernels.start(rows[owners == shard])
        growth = self._read()
        self._around.append(with_work(self._take_counts(), found=query.asked.sources.size))
        self._finish_level(growth)

    def directions(self, query: ShardQuery) -> _Steps:
        """Decide by what a level costs on these devices."""
        return self

    def prefers_bottom_up(self, frontier: int, edges: int) -> bool:
        """Return whether the frontiers cost so much that heads passes pay."""
        heads_cost = sum(
            shard.costs.heads(shard.num_vertices - end)
            for shard, (_, end) in zip(self._shards, self._frontiers, strict=True)
        )
        return self._expand_cost >= self._limits.worth_asking(heads_cost)

    def went(self, *, bottom_up: bool, edges: int, found: int, work: Sequence[Work]) -> None:
        """Learn nothing: devices count what rows cost as they find them."""

    @property
    def _expand_cost(self) -> int:
        """What expanding the frontiers costs."""
        pairs = zip(self._shards, self._sectors, strict=True)
        return sum(int(shard.costs.expand(sectors)[0]) for shard, sectors in pairs)

    def top_down(self, level: int) -> Found:
        """Let every device expand its frontier."""
        if self._query.asked.parents:
            self._tell_visited()
        self._expand(level)
        nothing = [np.zeros(CONTROL_WORDS, np.uint64) for _ in self._kernels]
        return self._found("top-down", nothing)

    def bottom_up(self, level: int) -> Found:
        """Ask heads; then search the tails of what is pending, or expand if that is cheaper."""
        self._tell_visited()
        for kernels, sectors in zip(self._kernels, self._sectors, strict=True):
            kernels.look(level, sectors)
        growth = self._read()
        pending = [int(one[Control.PENDING]) for one in growth]
        pending_bytes = [pending_bytes_from(one).sum(axis=1) for one in growth]
        search_cost = sum(
            int(shard.costs.search(*by_memory))
            for shard, by_memory in zip(self._shards, pending_bytes, strict=True)
        )
        for kernels in self._kernels:
            kernels.swap_bitmaps()
        if not any(pending):
            return self._found("heads", growth)
        if self._query.asked.direction == "bottom-up" or search_cost <= self._expand_cost:
            for kernels, count in zip(self._kernels, pending, strict=True):
                kernels.search(level, count)
            return self._found("bottom-up", growth)
        self._expand(level)
        return self._found("heads, top-down", growth)

    def _tell_visited(self) -> None:
        """Let every device know what all have visited."""
        received = [shard.messages["received"] for shard in self._shards]
        self._links.gather([kernels.visited for kernels in self._kernels], received)
        for kernels in self._kernels:
            kernels.gather_words()

    def _expand(self, level: int) -> None:
        """Let every device mark the neighbours of its frontier, and tell the others."""
        for kernels, frontier in zip(self._kernels, self._frontiers, strict=True):
            kernels.mark(level, frontier)
        sent, received = (
            [shard.messages[name] for shard in self._shards] for name in ("sent", "received")
        )
        self._links.all_to_all(sent, received)
        for kernels in self._kernels:
            kernels.merge(level)

    def _found(self, direction: str, growth: list[NDArray[np.uint64]]) -> Found:
        """End a level; ``growth`` is what its heads pass counted on each device."""
        after = self._read()
        before, self._moved = self._moved, self._slow_bytes()
        work = [
            Work(
                edges=int(first[Control.HEADS_TESTED]) + int(last[Control.EDGES]),
                heads=int(first[Control.HEADS_FOUND]),
                tail_bytes=bytes_of(sectors),
                host_bytes=moved,
            )
            for first, last, sectors, moved in zip(
                growth, after, self._sectors, (self._moved - before).tolist(), strict=True
            )
        ]
        self._finish_level([first + last for first, last in zip(growth, after, strict=True)])
        size = sum(end - begin for begin, end in self._frontiers)
        lost = sum(int(one[Control.CLAIMS_LOST]) for one in after)
        counts = with_work(self._take_counts(), sum(one.edges for one in work), lost, size)
        beside = Beside(counts, link_bytes=self._links.take_bytes())
        return Found(size, 0, work, Traffic(), direction, beside)

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

    def _read(self) -> list[NDArray[np.uint64]]:
        """Read the control words back; return how much each grew on each device."""
        growth = []
        for shard, kernels in zip(self._shards, self._kernels, strict=True):
            before = kernels.control
            kernels.control = read_control(shard.device, shard.memory["control"])
            growth.append(kernels.control - before)
        return growth

    @property
    def control(self) -> NDArray[np.uint64]:
        """The control words of all devices, summed up."""
        total: NDArray[np.uint64] = np.sum([one.control for one in self._kernels], axis=0)
        return total

    def reached(self, vertex: int, results: Results) -> bool:
        """Ask the owner of a vertex whether it has a level."""
        one = np.array([vertex])
        shard = self._shards[int(self.cut.shard_of(one)[0])]
        row = int(self.cut.row_of(one)[0])
        level = shard.device.download(shard.memory["levels"].slice(row, row + 1))[0]
        return bool(level != NOT_REACHED)

    def _slow_bytes(self) -> NDArray[np.int64]:
        return np.array([shard.device.usage.slow_bytes or 0 for shard in self._shards])

    def _take_counts(self) -> Counts:
        return sum_counts([shard.device.take_counts() for shard in self._shards])

    def take_around(self) -> Counts:
        """Return what was counted before the first level and after the last."""
        return sum_counts([*self._around, with_work(self._take_counts())])

    def levels(self) -> NDArray[np.int32]:
        """Bring the levels of all devices into the order of stored vertices."""
        return self._collect(self._levels_of, np.int32, -1)

    def parents(self) -> NDArray[np.uint32]:
        """Bring the parents there; sources are known by their rows until now."""
        found = self._collect(self._parents_of, np.uint32, NO_HEAD)
        found[self._query.asked.sources] = self._query.asked.sources
        return found

    def _collect(
        self, results_of: Callable[[DeviceShard], NDArray[Any]], dtype: Any, none: int
    ) -> NDArray[Any]:
        whole = np.full(self.cut.num_vertices, none, dtype)
        for shard in self._shards:
            rows = np.arange(shard.num_vertices)
            whole[self.cut.vertex_of(shard.number, rows)] = results_of(shard)
        return whole

    def _parents_of(self, shard: DeviceShard) -> NDArray[np.uint32]:
        return shard.device.download(shard.memory["parents"], shard.num_vertices)

    def _levels_of(self, shard: DeviceShard) -> NDArray[np.int32]:
        bytes_of = shard.device.download(shard.memory["levels"], shard.num_vertices)
        levels = bytes_of.astype(np.int32)
        ends = self._ends[shard.number]
        if len(ends) > LEVEL_PERIOD:
            self._kernels[shard.number].find_deep_levels(ends)
            levels = shard.device.download(shard.memory["pending"], shard.num_vertices).view(
                np.int32
            )
        levels[bytes_of == NOT_REACHED] = -1
        return levels

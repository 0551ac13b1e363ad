"""Search from many sources: 64 at a time where they share their work, one per core where not."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import fresh
from oocbfs.cluster.many import ShardedSearches, check_strategy
from oocbfs.cluster.stored_shards import StoredShards
from oocbfs.engines.base import Engine
from oocbfs.engines.choice import run_on_best
from oocbfs.errors import FormatError
from oocbfs.formats.io.ordered import ordered_map, over_ranges
from oocbfs.graph.stored import StoredGraph
from oocbfs.kernels.bfs import search as single
from oocbfs.kernels.cuda.source import MOST_MANY_LEVELS
from oocbfs.kernels.many import search as kernels
from oocbfs.kernels.many import spread as many_spread
from oocbfs.kernels.results import levels as results
from oocbfs.plan.host import expect_code
from oocbfs.plan.many import DEEP, Loaders, ManyPlan, plan_many
from oocbfs.results.source import Levels, SourceResult, SourceResults, asked_for, smallest
from oocbfs.results.validation import checked
from oocbfs.search.code import many_code, search_code
from oocbfs.search.decision import load_disk
from oocbfs.search.many_disk import DiskSearches, Group
from oocbfs.settings import Emit, Settings, Strategy, check_choice

if TYPE_CHECKING:
    from oocbfs.gpu.many import GpuMany
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.vertices import Vertex

WIDTH = kernels.WIDTH
# With fewer sources, nothing is gained by sharing.
_FEW = 8
_NO_ORDER = np.empty(0, np.uint32)
_PIECE = 1 << 18


class Searches:
    """Searches of a graph from many sources, as their memory was planned.

    A context manager, because a device holds on to the graph. ``until_found`` lets a source go no
    level further when all its targets are found, so that its other figures mean nothing; on a
    device, and where results are checked, it goes on.
    """

    def __init__(
        self, graph: StoredGraph, emit: Emit, plan: ManyPlan, *, until_found: bool = False
    ) -> None:
        self._graph = graph
        self._until_found = until_found and not plan.checks
        self._asked = emit
        self._emit = emit = plan.found(emit)
        self._checks = plan.checks
        self._bounded = plan.bounded
        self._threads = plan.threads
        self._most_alone = min(plan.threads, plan.most_alone or plan.threads)
        self._rows_at_once = plan.rows_at_once
        self._disk = None
        if plan.disk is not None:
            self._disk = DiskSearches(
                graph, emit, plan.threads, plan.disk, until_found=self._until_found
            )
        self.strategy: Strategy = plan.strategy
        self.reason = plan.reason
        self.fallback: str | None = None
        self._device = self._open_device(plan)

    def _open_device(self, plan: ManyPlan) -> GpuMany | None:
        """Bring the graph to the device that was asked for, or to the GPU if there is one."""
        settings = Settings(
            # With a budget, it is decided by that.
            engine="auto" if plan.bounded else plan.engine,
            vram=plan.vram,
            resident_tails=plan.resident_tails,
        )

        def open_on(engine: Engine) -> GpuMany | None:
            if self.strategy == "one-per-core":
                return None
            device: GpuMany | None = engine.open_many(
                self._graph, settings, with_levels=self._emit != "summary"
            )
            return device

        device, choice = run_on_best(plan.engine, settings, open_on)
        self.fallback = choice.fallback
        return device

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._device is not None:
            self._device.__exit__(*exception)

    @property
    def width(self) -> int:
        """Sources that are searched at a time, if they are together."""
        return WIDTH if self._disk is None else self._disk.width

    @property
    def disk_bytes(self) -> int:
        """Bytes of tails read from disk so far."""
        return 0 if self._disk is None else self._disk.disk_bytes

    def run(
        self, sources: Sequence[Vertex], targets: Sequence[NDArray[np.int64]] | None = None
    ) -> Iterator[SourceResult]:
        """Yield the result of each source, in their order; targets are stored vertices."""
        results = self._run_groups(sources, targets)
        return self._graph.each(self._check(results, targets) if self._checks else results)

    def _check(
        self, results: Iterator[SourceResult], targets: Sequence[NDArray[np.int64]] | None
    ) -> Iterator[SourceResult]:
        """Check each result, and leave out what was found for that alone."""
        for number, result in enumerate(results):
            yield checked(
                result,
                self._asked,
                None if targets is None else targets[number],
                threads=self._threads,
                bounded=self._bounded,
            )

    def _run_groups(
        self, sources: Sequence[Vertex], targets: Sequence[NDArray[np.int64]] | None
    ) -> Iterator[SourceResult]:
        stored = self._graph.stored(sources)
        for first in range(0, len(sources), self.width):
            part = slice(first, first + self.width)
            wanted = None if targets is None else targets[part]
            yield from self._run_group(Group(list(sources[part]), stored[part], wanted))

    def _run_group(self, group: Group) -> Iterator[SourceResult]:
        many = len(group.sources) >= _FEW or self._device is not None
        if self.strategy == "together" or (self.strategy == "auto" and many):
            found = self._search_together(group)
            if found is not None:
                yield from found
                return
            self.strategy = "one-per-core"
            self.reason = f"the graph has more than {DEEP} levels"
        elif self.strategy == "auto":
            self.reason = f"{len(group.sources)} sources share too little"
        yield from self._search_alone(group)

    def _search_together(self, group: Group) -> Iterator[SourceResult] | None:
        """Search from all sources at once; None if the graph is too deep for that."""
        if self._disk is not None:
            results = self._disk.run_together(group)
        else:
            block = self._block(len(group.sources))
            if self._device is None:
                found = self._search_mapped(group, block)
            else:
                most = DEEP if self.strategy == "auto" else MOST_MANY_LEVELS
                found = self._device.run(group.stored.astype(np.uint32), max_levels=most)
            if found.malformed:
                raise self._damaged()
            results = None if found.too_deep else self._share_out(found, group, block)
        if self.strategy == "auto" and results is not None:
            self.reason = "the sources share their work"
        return results

    def _block(self, count: int) -> NDArray[np.int8]:
        """Allocate the levels of a group; none if they are not wanted, or do not all fit."""
        whole = self._emit == "levels" and count <= self._rows_at_once
        return np.zeros((count if whole else 0, self._graph.num_vertices), np.int8)

    def _search_mapped(self, group: Group, block: NDArray[np.int8]) -> kernels.ManyFound:
        """Search; the words live where levels will be, because fresh memory is expensive."""
        kernels.load()
        sets = None
        shape = kernels.num_words(self._threads), self._graph.num_vertices
        if block.nbytes >= 8 * shape[0] * shape[1]:
            sets = block.reshape(-1)[: 8 * shape[0] * shape[1]].view(np.uint64).reshape(shape)
        return kernels.search_many(
            self._graph.rows,
            self._graph.in_rows,
            group.stored.astype(np.uint32),
            levels=self._emit != "summary",
            threads=self._threads,
            max_levels=-1 if self.strategy == "together" else DEEP,
            sets=sets,
            targets=group.targets if self._until_found else None,
        )

    def _share_out(
        self,
        found: kernels.ManyFound,
        group: Group,
        block: NDArray[np.int8],
    ) -> Iterator[SourceResult]:
        """Yield each source's part of what was found together."""
        sources, targets = group.sources, group.targets
        rows: Iterator[Levels | None] = iter([None] * len(sources))
        if self._emit == "levels":
            rows = self._rows_of_levels(found, len(sources), block)
        for number, (source, row) in enumerate(zip(sources, rows, strict=True)):
            sizes = np.trim_zeros(found.sizes[:, number], "b")
            yield SourceResult(
                source,
                self._graph,
                sizes,
                "together",
                row,
                None if targets is None else _look_up(found, number, targets[number]),
            )

    def _rows_of_levels(
        self, found: kernels.ManyFound, count: int, block: NDArray[np.int8]
    ) -> Iterator[Levels]:
        """Yield the levels of each source: from the block, or as many at a time as fit."""
        assert found.planes is not None
        n = self._graph.num_vertices
        stored_at = _NO_ORDER if self._graph.order is None else self._graph.stored_at
        if found.planes.shape[0] > many_spread.BYTE_PLANES:
            for number in range(count):
                deep = fresh(n, np.int32)
                many_spread.spread_deep(deep, found.planes, stored_at, number)
                yield smallest(deep, int(deep.max(initial=0)))
            return
        spread, threads = many_spread.spread_bytes, self._threads
        if block.size:
            over_ranges(spread, n, threads, block, found.planes, stored_at, 0)
            yield from block
            return
        for source in range(0, count, self._rows_at_once):
            part = fresh((min(self._rows_at_once, count - source), n), np.int8)
            over_ranges(spread, n, threads, part, found.planes, stored_at, source)
            yield from part
            del part

    def _search_alone(self, group: Group) -> Iterator[SourceResult]:
        """Search from each source on one core, as many at a time as there are threads."""
        if self._disk is not None:
            yield from self._disk.run_alone(group)
            return
        single.load()
        graph = self._graph
        sources, stored, targets = group

        def work(number: int) -> SourceResult:
            levels = fresh(graph.num_vertices, np.int32)
            done = single.search(
                graph.rows, graph.in_rows, stored[number : number + 1].astype(np.uint32), levels
            )
            if done.malformed:
                raise self._damaged()
            sizes = np.zeros(done.depth + 2, np.int64)
            results.count_levels(sizes, levels, 0, levels.size)
            sizes = np.trim_zeros(sizes, "b")
            distances = None if targets is None else levels[targets[number]]
            row: Levels | None = None
            if self._emit == "levels":
                by_id = levels
                if graph.order is not None:
                    by_id = fresh(levels.size, levels.dtype)
                    results.levels_to_ids(by_id, 0, levels, graph.order, 0, levels.size)
                row = smallest(by_id, sizes.size - 1)
            return SourceResult(sources[number], graph, sizes, "one-per-core", row, distances)

        yield from ordered_map(work, range(len(sources)), self._most_alone)

    def _damaged(self) -> FormatError:
        return FormatError(f"{self._graph.path}: a row is damaged: run 'oocbfs verify'")


def _look_up(
    found: kernels.ManyFound, number: int, targets: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return the distances of stored vertices from one source."""
    assert found.planes is not None
    values = np.zeros(targets.size, np.int32)
    for plane, words in enumerate(found.planes):
        bits = words[targets] >> np.uint64(number) & np.uint64(1)
        values |= bits.astype(np.int32) << plane
    return values - 1


def plan_searches(
    graph: StoredGraph, emit: Emit, strategy: Strategy, settings: Settings
) -> ManyPlan:
    """Decide how searches from many sources keep within a budget; see ``plan.many``."""
    budget_bytes = settings.memory

    def load_mapped() -> None:
        expect_code(graph.path, many_code(graph, emit, settings), budget_bytes)
        kernels.load()

    def load_single() -> None:
        alone = replace(settings, engine="disk")
        expect_code(graph.path, search_code(graph, False, alone), budget_bytes)
        load_disk()

    def load_many(width: int) -> None:
        from oocbfs.disk import many as disk

        expect_code(graph.path, [disk.code(width)], budget_bytes)
        disk.load(width)

    loaders = Loaders(load_mapped, load_single, load_many)
    return plan_many(graph, emit, strategy, settings, loaders)


def bfs_many(
    graph: AnyStored,
    sources: Iterable[Vertex],
    targets: Iterable[Iterable[Vertex]] | None,
    emit: Emit,
    strategy: Strategy,
    settings: Settings,
    *,
    until_found: bool = False,
) -> SourceResults:
    """Search from each source; see ``AnyGraph.bfs_many``, and ``Searches`` for ``until_found``."""
    check_choice("emit", emit, Emit)
    settings.check()
    listed, stored_targets = asked_for(graph, sources, emit, targets)
    with graph.reading():
        searches = searches_of(graph, emit, strategy, settings, until_found=until_found)

    def run() -> Generator[SourceResult]:
        with searches() as work:
            opened.append(work)
            yield from work.run(listed, stored_targets)

    opened: list[Searches | ShardedSearches] = []
    return SourceResults(graph, run(), emit, lambda: sum(work.disk_bytes for work in opened))


def searches_of(
    graph: AnyStored,
    emit: Emit,
    strategy: Strategy,
    settings: Settings,
    *,
    until_found: bool = False,
) -> Callable[[], Searches | ShardedSearches]:
    """Decide how a graph is searched from many sources; calling what it returns begins.

    Raises
    ------
    QueryError
        If the graph cannot be searched so.
    BudgetError
        If the memory is not enough.
    """
    if isinstance(graph, StoredShards):
        graph.check_settings(settings)
        check_strategy(graph, strategy)
        return partial(ShardedSearches, graph, emit, settings)
    assert isinstance(graph, StoredGraph)
    plan = plan_searches(graph, emit, strategy, settings)
    return partial(Searches, graph, emit, plan, until_found=until_found)

"""Breadth-first search from many sources with the tails on disk: what is read, is read for all.

Sources need not be on the same level. Most of what a search reads, it reads in one or two
levels, which some sources come to sooner than others. So a source whose next level costs much waits
until all others are as far: they move alone while their frontiers are cheap to read, and then all
together.

A step first asks the heads, unless the frontiers are cheap to read. Then some sources go top-down,
and their frontier's rows are read; the others go bottom-up, and the rows still pending are read. A
row that several want is read once, so what counts is the price of all rows together; those whose
frontiers are the cheapest go top-down.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.disk.step import HEADS_WORTH, Readers, make_buffers, read_cost
from oocbfs.graph.disk_rows import DiskRows
from oocbfs.kernels.compiling import Code
from oocbfs.kernels.disk import many as kernels
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.many import DiskManyState
from oocbfs.kernels.disk.read import NO_TAILS, Disk
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.rows import Rows, one_row, read_only
from oocbfs.plan.disk import READERS, WIDTHS

# Sources of one search, and the words that hold a bit for each.
WORDS = dict(zip(WIDTHS, (np.uint64, np.uint32, np.uint16, np.uint8), strict=True))
# More levels than that are too many to share, and to be kept in a byte.
MOST_LEVELS = 127
_NO_LEVELS = np.empty((0, 0), np.int8)


class DiskManySearch(NamedTuple):
    """What a search found: vertices of each level, one row a level, one column a source.

    One mask a step says which sources went top-down, one which bottom-up. A search that is too deep
    was given up.
    """

    sizes: NDArray[np.int64]
    top_down: list[int]
    bottom_up: list[int]
    disk_bytes: int
    too_deep: bool


def search_many(
    rows: DiskRows,
    sources: NDArray[np.int64],
    levels: NDArray[np.int8] | None,
    *,
    width: int,
    threads: int,
    max_levels: int = MOST_LEVELS,
    targets: Sequence[NDArray[np.int64]] | None = None,
) -> DiskManySearch:
    """Find the distance of every vertex from each of up to ``width`` sources.

    Parameters
    ----------
    rows
        A graph that is loaded.
    sources
        Stored vertices; one may come twice.
    levels
        Where to put the levels of stored vertices, one row a source; None if they are not wanted.
    width
        Bits of a word, one of WORDS.
    threads
        Threads that compute; those that read are more.
    max_levels
        Give up a graph that has more levels.
    targets
        What each source looks for: it goes no level further when it has found them. This needs
        ``levels``.
    """
    num_threads = max(READERS, threads)
    state = _make_state(num_threads, rows.num_non_isolated, width, levels, framed=rows.is_framed)
    with Readers(rows.file, state.control, num_threads) as readers:
        search = _Search(rows, sources, state, readers, threads, max_levels)
        return search.run(dict(enumerate(targets or ())))


class _Search:
    """One search."""

    def __init__(
        self,
        rows: DiskRows,
        sources: NDArray[np.int64],
        state: DiskManyState,
        readers: Readers,
        threads: int,
        max_levels: int,
    ) -> None:
        self._rows, self._sources, self._state, self._readers = rows, sources, state, readers
        self._threads, self._max_levels = threads, max_levels
        self._control, self._masks = state.control, state.masks
        self._is_directed = rows.in_rows is not rows.out_rows
        self._heads_worth = HEADS_WORTH * rows.num_non_isolated
        # Of each source: its frontier, what that costs to read, and all frontiers so far.
        self._frontier = np.zeros(64, np.int64)
        self._costs = np.zeros(64, np.int64)
        self._sizes = np.zeros((max_levels + 1, 64), np.int64)

    def run(self, missing: dict[int, NDArray[np.int64]]) -> DiskManySearch:
        """Run step after step until no source has a frontier, or misses a target."""
        depths = self._state.depths
        went_top_down: list[int] = []
        went_bottom_up: list[int] = []
        self._start()
        self._drop_found(missing)
        too_deep = False
        while (active := self._frontier > 0).any() and not too_deep:
            cheap = active & (self._costs <= self._heads_worth)
            moving = cheap if cheap.any() else active
            depths[moving] += 1
            top_down, bottom_up = self._direct(_mask(moving))
            self._set(top_down, bottom_up)
            if top_down:
                self._run_step(kernels.VISIT_HEADS, self._rows.out_rows, self._threads)
            self._read(top_down, bottom_up)
            self._sweep(moving)
            self._drop_found(missing)
            went_top_down.append(top_down)
            went_bottom_up.append(bottom_up)
            too_deep = bool((depths[self._frontier > 0] >= self._max_levels).any())
        sizes = self._sizes[: int(depths.max()) + 1, : self._sources.size]
        sizes[0] = 1  # a source without edges has no words, and was not counted
        return DiskManySearch(
            sizes=sizes,
            top_down=went_top_down,
            bottom_up=went_bottom_up,
            disk_bytes=int(self._control[words.DISK_BYTES]),
            too_deep=too_deep,
        )

    def _drop_found(self, missing: dict[int, NDArray[np.int64]]) -> None:
        """Drop the targets that their sources have found, and sources that miss none."""
        for source, targets in list(missing.items()):
            left = targets[self._state.levels[source, targets] < 0]
            missing[source] = left
            if left.size == 0:
                self._frontier[source] = 0
                del missing[source]

    def _start(self) -> None:
        """Make the sources the frontier."""
        state = self._state
        if state.levels.size:
            state.levels[:] = -1
            state.levels[np.arange(self._sources.size), self._sources] = 0
        bits = np.left_shift(np.uint64(1), np.arange(self._sources.size, dtype=np.uint64))
        non_isolated = self._sources < state.pairs.size // 2
        marks = 2 * self._sources[non_isolated] + kernels.MARK
        np.bitwise_or.at(state.pairs, marks, bits[non_isolated].astype(state.pairs.dtype))
        self._sweep(np.ones(64, np.bool_))

    def _sweep(self, moving: NDArray[np.bool_]) -> None:
        """Make the next frontier the frontier; count it by source, and price it."""
        sums = self._state.sums
        sums[:] = 0
        self._masks[kernels.MOVING] = _mask(moving)
        self._run_step(kernels.SWEEP, self._rows.out_rows, self._threads)
        totals = sums.sum(axis=0)
        self._frontier[moving] = totals[kernels.FOUND, moving]
        self._costs[moving] = read_cost(totals[kernels.PAGES], totals[kernels.READS])[moving]
        self._sizes[self._state.depths[moving], np.flatnonzero(moving)] = self._frontier[moving]

    def _direct(self, moving: int) -> tuple[int, int]:
        """Choose which sources go top-down, after the heads pass where that is worth it."""
        if self._price(moving, 0) <= self._heads_worth:
            return moving, 0
        self._masks[kernels.MOVING] = moving
        self._run_step(kernels.HEADS_PASS, self._rows.in_rows, self._threads)
        return self._divide(moving)

    def _divide(self, moving: int) -> tuple[int, int]:
        """Let the cheapest frontiers go top-down, the other sources bottom-up, as costs least.

        How many go top-down is first tried in large steps, then in smaller ones around the best.
        """
        by_cost = [s for s in np.argsort(self._costs, kind="stable").tolist() if moving >> s & 1]

        def price(count: int) -> int:
            top_down = sum(1 << s for s in by_cost[:count])
            return self._price(top_down, moving & ~top_down)

        step = -(-len(by_cost) // 8)
        prices = {count: price(count) for count in (*range(0, len(by_cost), step), len(by_cost))}
        while step > 1:
            step = -(-step // 2)
            best = min(prices, key=prices.__getitem__)
            for count in (best - step, best + step):
                if 0 < count < len(by_cost) and count not in prices:
                    prices[count] = price(count)
        top_down = sum(1 << s for s in by_cost[: min(prices, key=prices.__getitem__)])
        return top_down, moving & ~top_down

    def _price(self, top_down: int, bottom_up: int) -> int:
        """Return what it costs to read all rows that a source wants."""
        control = self._control
        control[[words.FRONTIER_PAGES, words.FRONTIER_READS]] = 0
        for one in self._passes(top_down, bottom_up):
            self._set(*one)
            rows = self._rows.out_rows if one[0] else self._rows.in_rows
            self._run_step(kernels.PRICE, rows, self._threads)
        return int(read_cost(control[words.FRONTIER_PAGES], control[words.FRONTIER_READS]))

    def _read(self, top_down: int, bottom_up: int) -> None:
        """Read and use all rows that a source wants."""
        for one in self._passes(top_down, bottom_up):
            self._set(*one)
            rows, disk = self._rows.out_rows, self._rows.out_disk
            if not one[0]:
                rows, disk = self._rows.in_rows, self._rows.in_disk
            self._run_step(kernels.STREAM, rows, READERS, disk)

    def _passes(self, top_down: int, bottom_up: int) -> list[tuple[int, int]]:
        """Return what is read at a time: directed graphs have other rows for each direction."""
        passes = [(top_down, 0), (0, bottom_up)] if self._is_directed else [(top_down, bottom_up)]
        return [one for one in passes if any(one)]

    def _set(self, top_down: int, bottom_up: int) -> None:
        self._masks[kernels.TOP_DOWN], self._masks[kernels.BOTTOM_UP] = top_down, bottom_up

    def _run_step(self, task: int, rows: Rows, threads: int, disk: Disk | None = None) -> None:
        """Run a compiled step on so many threads."""
        arguments = (task, rows, disk or self._rows.out_disk, self._state)
        self._readers.run(threads, kernels.step, *arguments)


def _make_state(
    num_threads: int,
    num_vertices: int,
    width: int,
    levels: NDArray[np.int8] | None,
    *,
    framed: bool = False,
) -> DiskManyState:
    return DiskManyState(
        pairs=np.zeros(2 * num_vertices, WORDS[width]),
        levels=_NO_LEVELS if levels is None else levels,
        buffers=make_buffers(num_threads, framed=framed),
        ids=np.empty((num_threads, BATCH), np.uint32),
        end_pages=np.zeros((num_threads, 64), np.int64),
        sums=np.zeros((num_threads, 3, 64), np.int64),
        masks=np.zeros(3, np.uint64),
        depths=np.zeros(64, np.int64),
        control=np.zeros(words.CONTROL_WORDS, np.int64),
    )


def _mask(chosen: NDArray[np.bool_]) -> int:
    """Return the sources that are chosen as bits of a word."""
    return sum(1 << int(number) for number in np.flatnonzero(chosen))


@cache
def load(width: int) -> None:
    """Compile the kernels or load them from the cache, so that no search's time includes it."""
    kernels.step(*_example(width))


def code(width: int) -> Code:
    """Return how the code for so many sources is compiled."""
    return Code(kernels.step, __name__, "load", (width,), _example(width))


def _example(width: int) -> tuple[Any, ...]:
    """Return arguments of a step that does nothing."""
    state = _make_state(1, 0, width, None)
    return kernels.SWEEP, read_only(one_row()), NO_TAILS, state, 0

"""The shards of a graph that a process holds, and its share of a search.

Shards in memory take steps together: all threads of the process stay for the whole search, and
every shard writes its own words of one bitmap, so that nothing is merged. Others, whose tails are
on disk, take one step after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TypeVar

import numpy as np

from oocbfs.cluster.exchange import Shape, ShardQuery
from oocbfs.cluster.results import Results
from oocbfs.cluster.shard import (
    Bitmap,
    Shard,
    VertexArray,
    Work,
    clear_from,
    full_bitmap,
    sum_work,
)
from oocbfs.cluster.shards.cpu import work_of
from oocbfs.cluster.shards.file import damaged
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.shards.merge import set_bits
from oocbfs.kernels.shards.run import HeldShard, Team, list_vertices
from oocbfs.kernels.shards.state import BOTTOM_UP, CLEAR, SMALL, TAKE, TOP_DOWN, Bitmaps

Result = TypeVar("Result")


class Holder:
    """Frontier, visited, levels and parents of the shards that this process holds.

    ``frontier`` is a full bitmap. ``own`` are the words of the frontier of held shards, ``marks``
    full bitmaps of what a top-down step came across. With all shards held, ``own`` is the frontier.
    """

    def __init__(self, cut: Cut, shards: Sequence[Shard], threads: int) -> None:
        self.cut, self._shards = cut, shards
        held = [HeldShard(one.number, cut.words_of(one.number), *one.rows) for one in shards]
        self._team = Team(held, self.cut.num_shards, threads)
        self.is_together = all(shard.in_memory for shard in shards)
        self.has_all = self._team.has_all
        self.num_words = self._team.num_words
        self._turns = [np.zeros(self.num_words + 1, np.uint64) for _ in range(2)]
        self._visited = np.zeros(self.num_words + 1, np.uint64)
        self.marks = self._team.make_marks(self.cut.num_words + 1)
        self._full = self._turns[0] if self.has_all else full_bitmap(self.cut)
        # Sums of the last level, a row a shard; see ``kernels.shards.state``.
        self.counts = self._team.counts
        self._work = [Work()] * len(shards)
        self._begun = self._is_marked = False

    def begin(self, query: ShardQuery, results: Results) -> None:
        """Begin a search, which ``lead`` goes on with."""
        self._shape, self._sources, self._results = query.shape, query.sources, results
        self._turn, self._begun = 0, False

    def lead(self, levels: Callable[[], Result]) -> Result:
        """Call what takes steps, while other threads wait for them."""
        results = self._results
        known = self._visited if self.has_all else self.marks[0]
        even, odd = (
            Bitmaps(
                frontier=own if self.has_all else self._full,
                own=own,
                known=known,
                visited=self._visited,
                found=found,
                marks=self.marks,
                levels=results.levels,
                deep_levels=results.deep_levels,
                parents=results.parents,
            )
            for own, found in (self._turns, self._turns[::-1])
        )
        with ExitStack() as stack:
            for shard in self._shards:
                stack.enter_context(shard.reading())
            steps = self._start_and(levels)
            result = self._team.lead(even, odd, steps, non_isolated=self._shape.non_isolated)
        self._is_marked = False
        return result

    @property
    def _knows_parents(self) -> bool:
        """Whether top-down steps can tell parents: they see what is visited already."""
        return self.has_all and self.is_together

    def _start_and(self, levels: Callable[[], Result]) -> Callable[[], Result]:
        def run() -> Result:
            if not self._begun:
                self._start()
            return levels()

        return run

    def _start(self) -> None:
        """Visit the sources, and nothing else."""
        self._begun = True
        self._team.step(CLEAR)
        # Vertices without edges may have no levels, and so were left out.
        self._results.parents[self._results.levels.size :] = NO_HEAD
        # What has no edges is visited; other words than this one are beyond what steps look at.
        non_isolated = self._shape.non_isolated
        beyond = np.arange(non_isolated, -(-non_isolated // 64) * 64, dtype=np.uint32)
        set_bits(self._visited, self.placed(self._held(beyond)))
        if self._is_marked:  # by a search that failed
            self.marks[:] = 0
        self._is_marked = True
        sources = self._held(self._sources)
        placed = self.placed(sources)
        for bitmap in (self.own, self._visited):
            set_bits(bitmap, placed)
        self._results.start(placed, sources)

    def _held(self, vertices: VertexArray) -> VertexArray:
        """Return those vertices that belong to held shards."""
        if self.has_all:
            return vertices
        numbers = [shard.number for shard in self._shards]
        return vertices[np.isin(self.cut.shard_of(vertices), numbers)]

    def placed(self, vertices: VertexArray) -> VertexArray:
        """Return where vertices of held shards are among the levels."""
        if self.has_all:
            return vertices
        places = np.empty(vertices.size, np.uint32)
        for number, shard in enumerate(self._shards):
            own = self.cut.shard_of(vertices) == shard.number
            places[own] = 64 * self.first_word(number) + self.cut.row_of(vertices[own])
        return places

    def first_word(self, number: int) -> int:
        """Return where the words of a shard begin in placed bitmaps, if not all shards are held."""
        return sum(self.cut.words_of(shard.number) for shard in self._shards[:number])

    @property
    def own(self) -> Bitmap:
        """The frontier of held shards."""
        return self._turns[self._turn]

    @property
    def frontier(self) -> Bitmap:
        """The whole frontier, which is for others to fill where not all shards are held."""
        return self.own if self.has_all else self._full

    def own_words(self, number: int) -> Bitmap:
        """Return the words of a shard's own frontier."""
        return self._words_of(self.own, number)

    def _words_of(self, bitmap: Bitmap, number: int) -> Bitmap:
        """Return the words of a shard in a placed bitmap; a view, if not all shards are held."""
        shard = self._shards[number].number
        if self.has_all:
            return np.ascontiguousarray(self.cut.own(bitmap, shard))
        first = self.first_word(number)
        return bitmap[first : first + self.cut.words_of(shard)]

    def bottom_up(self, level: int) -> None:
        """Let held vertices that are not visited look for the frontier; they are the next one."""
        self._begin_level()
        if self.is_together:
            self._take_step(BOTTOM_UP, level)
        else:
            for shard, found in zip(self._shards, self._look_up(self._visited), strict=True):
                self.cut.own(self.marks[0], shard.number)[:] = found
            self._take_step(TAKE, level)
        self._end_level()

    def small(self, level: int) -> None:
        """Find the neighbours of a frontier with few edges, where all shards are held in memory."""
        self._begin_level()
        clear_from(self._turns[1 - self._turn], 0)
        self._take_step(SMALL, level)
        self._end_level()

    def top_down(self, level: int) -> None:
        """Mark the neighbours of the own frontier."""
        self._begin_level()
        if self.is_together:
            self._take_step(TOP_DOWN, level)
            return
        for number, shard in enumerate(self._shards):
            top_down = shard.top_down(self._words_of(self.own, number), parents=False)
            if top_down.words is not None:
                self.marks[0] |= top_down.words
            else:
                assert top_down.ids is not None
                set_bits(self.marks[0], top_down.ids)
            self._work[number] = top_down.work

    def take(self, level: int) -> None:
        """Visit what is marked and not visited yet; it is the next frontier."""
        self._take_step(TAKE, level)
        if self._results.parents.size and not self._knows_parents:
            # What was found looks for the frontier, and finds it.
            self._look_up(~self._turns[1 - self._turn])
        self._end_level()

    def work(self) -> list[Work]:
        """Return what the last level looked at on each shard."""
        counted = [work_of(row, 0.0) for row in self._team.counts]
        return [sum_work(pair) for pair in zip(counted, self._work, strict=True)]

    def _begin_level(self) -> None:
        self.counts[:] = 0
        self._work = [Work()] * len(self._shards)

    def _take_step(self, task: int, level: int) -> None:
        # Sources lead on, even if nothing but their only edge leads to them.
        useful = self._shape.non_isolated if level == 1 else self._shape.useful
        self._team.step(task, self._turn, level, useful)
        if self._team.malformed is not None:
            raise damaged(self._shards[self._team.malformed].path)

    def _look_up(self, visited: Bitmap) -> list[Bitmap]:
        """Let one shard after the other look for the frontier; returns what each found."""
        parents = self._results.parents
        found = []
        for number, shard in enumerate(self._shards):
            own = self._words_of(visited, number)
            bottom_up = shard.bottom_up(self.frontier, own, parents=bool(parents.size))
            if bottom_up.parents is not None:
                vertices = self.cut.vertex_of(shard.number, list_vertices(bottom_up.found))
                parents[self.placed(vertices.astype(np.uint32))] = bottom_up.parents
            self._work[number] = sum_work((self._work[number], bottom_up.work))
            found.append(bottom_up.found)
        return found

    def _end_level(self) -> None:
        """Make what was found the frontier, but for what leads nowhere."""
        self._turn = 1 - self._turn
        if self.has_all:
            clear_from(self.own, self._shape.useful)
            return
        for number, shard in enumerate(self._shards):
            own = self._words_of(self.own, number)
            clear_from(own, useful_of(self._shape, shard.number))


def useful_of(shape: Shape, shard: int) -> int:
    """Count the rows of a shard up to the last whose vertex may lead on."""
    return Cut(shape.useful, shape.cut.num_shards).rows_of(shard)

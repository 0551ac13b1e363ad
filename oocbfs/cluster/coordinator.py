"""A coordinator: one process holds frontier, visited and levels of all shards, and merges finds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.driver import Driven
from oocbfs.cluster.exchange import Found, ShardQuery, Traffic
from oocbfs.cluster.messages import pack, unpack
from oocbfs.cluster.results import Results
from oocbfs.cluster.shard import (
    Bitmap,
    BottomUp,
    Forest,
    ShardRef,
    TopDown,
    VertexArray,
    Work,
    bits_from,
    clear_from,
    full_bitmap,
    sum_work,
)
from oocbfs.cluster.tasks import Reply, Task, answer
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.shards.merge import leave_out, set_bits, sum_found_degrees
from oocbfs.kernels.shards.messages import count_bits
from oocbfs.kernels.shards.run import list_vertices


class LevelInput(NamedTuple):
    """What a level is expanded from: full bitmaps, of which the words of held shards count."""

    level: int
    frontier: Bitmap
    visited: Bitmap
    parents: bool


# Vertices, and a parent of each.
Pairs = list[tuple[VertexArray, VertexArray]]


class Coordinator(Driven):
    """One process holds everything and merges what shards find, however they are reached."""

    def __init__(self, cut: Cut, degrees: NDArray[np.uint32]) -> None:
        super().__init__(cut)
        self._degrees = degrees

    def begin(self, query: ShardQuery, results: Results) -> None:
        """Begin a search."""
        shape, sources = query.shape, query.sources
        self._shape, self._results = shape, results
        results.clear()
        results.start(sources, sources)
        self._frontier, self._visited = (
            full_bitmap(self.cut),
            bits_from(self.cut, shape.non_isolated),
        )
        set_bits(self._frontier, sources)
        self._visited |= self._frontier

    @abstractmethod
    def ask_bottom_up(self, step: LevelInput, traffic: Traffic) -> Iterable[tuple[int, BottomUp]]:
        """Let all shards take a bottom-up step; returns what each shard found, in any order."""

    @abstractmethod
    def ask_top_down(self, step: LevelInput, traffic: Traffic) -> Iterable[tuple[int, TopDown]]:
        """Let shards take a top-down step, those that have a part of the frontier."""

    def bottom_up(self, level: int) -> Found:
        """Let all vertices that are not visited look for the frontier."""
        step = self._current(level)
        traffic = Traffic()
        return self._take(step, *self._look_up(step, traffic), traffic)

    def _current(self, level: int) -> LevelInput:
        parents = bool(self._results.parents.size)
        return LevelInput(level, self._frontier, self._visited, parents)

    def _look_up(self, step: LevelInput, traffic: Traffic) -> tuple[Bitmap, Pairs, list[Work]]:
        """Let shards look for the frontier; returns what they found, parents, and their work."""
        cut = self.cut
        words, work = full_bitmap(cut), [Work()] * cut.num_shards
        parents = []
        for number, bottom_up in self.ask_bottom_up(step, traffic):
            cut.own(words, number)[:] = bottom_up.found
            work[number] = bottom_up.work
            if bottom_up.parents is not None:
                vertices = cut.vertex_of(number, list_vertices(bottom_up.found)).astype(np.uint32)
                parents.append((vertices, bottom_up.parents))
        return words, parents, work

    def top_down(self, level: int) -> Found:
        """Let the frontier look for all vertices that are not visited."""
        step = self._current(level)
        words, traffic, work = full_bitmap(self.cut), Traffic(), [Work()] * self.cut.num_shards
        pairs: Pairs = []
        all_known = True
        for number, top_down in self.ask_top_down(step, traffic):
            work[number] = top_down.work
            ids = top_down.ids
            if ids is not None:
                set_bits(words, ids)
            else:
                assert top_down.words is not None
                words |= top_down.words
            if ids is not None and top_down.parents is not None:
                pairs.append((ids, top_down.parents))
            else:
                all_known = False
        leave_out(words, step.visited)
        if not step.parents:
            pairs = []
        elif all_known:
            pairs = [_of_those(words, *pair) for pair in pairs]
        else:
            # The owners of what was found look for the frontier, and each finds it.
            again = Traffic()
            _, pairs, more = self._look_up(LevelInput(level, step.frontier, ~words, True), again)
            traffic += again
            work = [sum_work(pair) for pair in zip(work, more, strict=True)]
        return self._take(step, words, pairs, work, traffic)

    def _take(
        self, step: LevelInput, words: Bitmap, pairs: Pairs, work: list[Work], traffic: Traffic
    ) -> Found:
        """Take in what was found; it is the next frontier, but for what leads nowhere."""
        traffic.vertices = int(count_bits(step.frontier))
        size, edges = sum_found_degrees(words[:-1], self._degrees)
        self._visited |= words
        self._results.add(step.level, words, pairs)
        self._frontier = clear_from(words, self._shape.useful)
        return Found(size, edges, work, traffic)

    def frontier_of(self, step: LevelInput) -> Iterator[tuple[int, Bitmap]]:
        """Yield the shards that have a part of the frontier, and their own bitmaps of it."""
        for number in range(self.cut.num_shards):
            own = np.ascontiguousarray(self.cut.own(step.frontier, number))
            if own.any():
                yield number, own

    def visited_of(self, step: LevelInput, number: int) -> Bitmap:
        """Return the own bitmap of a shard's visited vertices."""
        return np.ascontiguousarray(self.cut.own(step.visited, number))


class TaskCoordinator(Coordinator):
    """Shards answer tasks, wherever they are: ``run`` brings tasks there and replies back."""

    def __init__(self, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> None:
        super().__init__(Cut(refs[0].num_vertices, len(refs)), degrees)
        self.refs = refs

    @abstractmethod
    def run(self, tasks: Sequence[Task]) -> Sequence[Reply]:
        """Do the tasks of one step, in any order.

        Raises
        ------
        ClusterError
            If a task was lost too often; names its shard.
        """

    def ask_bottom_up(self, step: LevelInput, traffic: Traffic) -> Iterable[tuple[int, BottomUp]]:
        """Send the frontier to all shards, and to each what it has visited."""
        frontier, num_words = pack(step.frontier[:-1]), self.cut.num_words
        tasks = [
            Task(
                ref=ref,
                level=step.level,
                step="bottom_up",
                frontier=frontier,
                visited=pack(self.visited_of(step, ref.number)),
                parents=step.parents,
            )
            for ref in self.refs
        ]
        traffic.plain += 8 * num_words * (len(tasks) + 2)
        for reply in self._exchange(tasks, traffic):
            found = unpack(reply.found, self.cut.words_of(reply.number))
            yield reply.number, BottomUp(found, reply.parent_array, reply.work)

    def ask_top_down(self, step: LevelInput, traffic: Traffic) -> Iterable[tuple[int, TopDown]]:
        """Send each shard its frontier."""
        tasks = [
            Task(
                ref=self.refs[number],
                level=step.level,
                step="top_down",
                frontier=pack(own),
                parents=step.parents,
            )
            for number, own in self.frontier_of(step)
        ]
        traffic.plain += 8 * self.cut.num_words * (len(tasks) + 1)
        for reply in self._exchange(tasks, traffic):
            words, parents = full_bitmap(self.cut), reply.parent_array
            words[:-1] = unpack(reply.found, self.cut.num_words)
            if parents is not None:
                yield reply.number, TopDown(list_vertices(words), None, parents, reply.work)
            else:
                yield reply.number, TopDown(None, words, None, reply.work)

    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Ask all shards for their heads."""
        for reply in self.run([Task(ref, 0, "heads") for ref in self.refs]):
            every = np.frombuffer(reply.found, np.uint32)
            rows = self.cut.rows_of(reply.number)
            for first in range(0, every.size, max(1, rows)):
                yield reply.number, every[first : first + rows]

    def forests(self, largest: Bitmap) -> Iterable[Forest]:
        """Send the largest component to all shards."""
        message = pack(largest[:-1])
        for reply in self.run([Task(ref, 0, "forest", message) for ref in self.refs]):
            vertices = np.frombuffer(reply.found, np.uint32)
            yield Forest(vertices, np.frombuffer(reply.parents or b"", np.uint32), reply.work)

    def _exchange(self, tasks: Sequence[Task], traffic: Traffic) -> Sequence[Reply]:
        """Run tasks and count what travels."""
        replies = self.run(tasks)
        traffic.sent += sum(task.num_bytes for task in tasks)
        traffic.frontier += sum(len(task.frontier) for task in tasks)
        traffic.received += sum(reply.num_bytes for reply in replies)
        traffic.plain += sum(len(reply.parents or b"") for reply in replies)
        traffic.messages += len(tasks) + len(replies)
        return replies


class Packed(TaskCoordinator):
    """All shards in this process, every message packed and unpacked as if it travelled."""

    name = "packed"

    def run(self, tasks: Sequence[Task]) -> Sequence[Reply]:
        """Do one task after the other."""
        return [answer(task) for task in tasks]


def _of_those(
    words: Bitmap, vertices: VertexArray, parents: VertexArray
) -> tuple[VertexArray, VertexArray]:
    """Keep the vertices that are in a bitmap, and their parents."""
    bits = words[vertices >> 6] >> (vertices & 63).astype(np.uint64) & np.uint64(1)
    kept = bits.astype(np.bool_)
    return vertices[kept], parents[kept]

"""How shards hear of the frontier and how what they find is merged.

The driver (``cluster.driver``) knows only ``Exchange``. In a *star*, one process holds frontier,
visited and levels of all parts; shards answer tasks that hold all they need, so that a task can be
repeated anywhere. Where every process holds its own part, it holds a full bitmap of the frontier
too, and only the words of its part count in what it is given and gives back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.messages import pack, unpack
from oocbfs.cluster.shard import (
    Bitmap,
    Down,
    Forest,
    ShardRef,
    Up,
    VertexArray,
    Work,
    full_bitmap,
)
from oocbfs.cluster.tasks import Reply, Task, answer
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.shards.merge import set_bits, weigh_found
from oocbfs.kernels.shards.messages import count_bits
from oocbfs.kernels.shards.run import list_bits


class Step(NamedTuple):
    """What a level is expanded from: full bitmaps, of which the words of held parts count."""

    level: int
    frontier: Bitmap
    visited: Bitmap
    parents: bool


@dataclass
class Traffic:
    """Bytes of messages of one level as counted, and what they would take as plain bitmaps.

    ``frontier`` are those of the frontier alone, which are among those that were sent.
    """

    sent: int = 0
    received: int = 0
    plain: int = 0
    messages: int = 0
    frontier: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Found(NamedTuple):
    """What a step found.

    ``words`` is a full bitmap of the vertices of held parts that were not visited before, ``size``
    and ``edges`` count the found vertices of all parts and their (out-)edges; many edges are
    estimated. ``parents`` are pairs of arrays, vertices and a parent of each, for all vertices of
    held parts. ``work`` has an entry for each part.
    """

    words: Bitmap
    size: int
    edges: int
    parents: list[tuple[VertexArray, VertexArray]]
    work: Sequence[Work]
    traffic: Traffic


class Exchange(ABC):
    """The shards of a graph, wherever they are."""

    # What stats call it.
    name: str
    # What a level costs besides computing.
    level_seconds: float = 0.0

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        # Parts whose frontier, visited and levels this process holds.
        self.held: Sequence[int] = range(cut.parts)

    @abstractmethod
    def up(self, step: Step) -> Found:
        """Let all vertices that are not visited look for the frontier."""

    @abstractmethod
    def down(self, step: Step) -> Found:
        """Let the frontier look for all vertices that are not visited."""

    @abstractmethod
    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Give each part and the heads of its rows; of the in-rows, too, as another entry."""

    @abstractmethod
    def forests(self, giant: Bitmap) -> Iterable[Forest]:
        """Let every part join its vertices outside the giant with their neighbours."""

    def close(self) -> None:  # noqa: B027
        """Give everything back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Star(Exchange):
    """One process holds everything and merges what shards find, however they are reached."""

    def __init__(self, cut: Cut, degrees: NDArray[np.uint32]) -> None:
        super().__init__(cut)
        self._degrees = degrees

    @abstractmethod
    def ask_up(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Up]]:
        """Let all shards take a step up; gives what each part found, in any order."""

    @abstractmethod
    def ask_down(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Down]]:
        """Let shards take a step down, those that have a part of the frontier."""

    def up(self, step: Step) -> Found:
        """Let all vertices that are not visited look for the frontier."""
        cut = self.cut
        words, traffic, work = full_bitmap(cut), Traffic(), [Work()] * cut.parts
        parents = []
        for part, up in self.ask_up(step, traffic):
            cut.own(words, part)[:] = up.found
            work[part] = up.work
            if up.parents is not None:
                vertices = cut.vertex_of(part, list_vertices(up.found)).astype(np.uint32)
                parents.append((vertices, up.parents))
        return self._found(words, parents, work, traffic)

    def down(self, step: Step) -> Found:
        """Let the frontier look for all vertices that are not visited."""
        words, traffic, work = full_bitmap(self.cut), Traffic(), [Work()] * self.cut.parts
        pairs: list[tuple[VertexArray, VertexArray]] = []
        all_known = True
        for part, down in self.ask_down(step, traffic):
            work[part] = down.work
            ids = down.ids
            if ids is not None:
                set_bits(words, ids)
            else:
                assert down.words is not None
                words |= down.words
            if ids is not None and down.parents is not None:
                pairs.append((ids, down.parents))
            else:
                all_known = False
        words &= ~step.visited
        if not step.parents:
            pairs = []
        elif all_known:
            pairs = [_of_those(words, *pair) for pair in pairs]
        else:
            # The owners of what was found look for the frontier, and each finds it.
            again = self.up(Step(step.level, step.frontier, ~words, True))
            pairs, traffic = again.parents, traffic + again.traffic
            work = [_sum_work(pair) for pair in zip(work, again.work, strict=True)]
        return self._found(words, pairs, work, traffic)

    def frontier_of(self, step: Step) -> Iterator[tuple[int, Bitmap]]:
        """Give the parts that have a part of the frontier, and their own bitmaps of it."""
        for part in range(self.cut.parts):
            own = np.ascontiguousarray(self.cut.own(step.frontier, part))
            if own.any():
                yield part, own

    def visited_of(self, step: Step, part: int) -> Bitmap:
        """Give the own bitmap of a part's visited vertices."""
        return np.ascontiguousarray(self.cut.own(step.visited, part))

    def _found(
        self,
        words: Bitmap,
        parents: list[tuple[VertexArray, VertexArray]],
        work: list[Work],
        traffic: Traffic,
    ) -> Found:
        size, edges = weigh_found(words[:-1], self._degrees)
        return Found(words, size, edges, parents, work, traffic)


class TaskStar(Star):
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

    def ask_up(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Up]]:
        """Send the frontier to all shards, and to each what it has visited."""
        frontier, num_words = pack(step.frontier[:-1]), self.cut.num_words
        tasks = [
            Task(
                ref=ref,
                level=step.level,
                step="up",
                frontier=frontier,
                visited=pack(self.visited_of(step, ref.part)),
                parents=step.parents,
            )
            for ref in self.refs
        ]
        traffic.plain += 8 * num_words * (len(tasks) + 2)
        for reply in self._exchange(tasks, traffic):
            found = unpack(reply.found, self.cut.words_of(reply.part))
            yield reply.part, Up(found, reply.parent_array, reply.work)

    def ask_down(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Down]]:
        """Send each shard its frontier."""
        tasks = [
            Task(
                ref=self.refs[part],
                level=step.level,
                step="down",
                frontier=pack(own),
                parents=step.parents,
            )
            for part, own in self.frontier_of(step)
        ]
        traffic.plain += 8 * self.cut.num_words * (len(tasks) + 1)
        for reply in self._exchange(tasks, traffic):
            words, parents = full_bitmap(self.cut), reply.parent_array
            words[:-1] = unpack(reply.found, self.cut.num_words)
            if parents is not None:
                yield reply.part, Down(list_vertices(words), None, parents, reply.work)
            else:
                yield reply.part, Down(None, words, None, reply.work)

    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Ask all shards for their heads."""
        for reply in self.run([Task(ref, 0, "heads") for ref in self.refs]):
            every = np.frombuffer(reply.found, np.uint32)
            rows = self.cut.rows_of(reply.part)
            for first in range(0, every.size, max(1, rows)):
                yield reply.part, every[first : first + rows]

    def forests(self, giant: Bitmap) -> Iterable[Forest]:
        """Send the giant to all shards."""
        message = pack(giant[:-1])
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


class Packed(TaskStar):
    """All shards in this process, every message packed and unpacked as if it travelled."""

    name = "packed"

    def run(self, tasks: Sequence[Task]) -> Sequence[Reply]:
        """Do one task after the other."""
        return [answer(task) for task in tasks]


def list_vertices(words: Bitmap) -> VertexArray:
    """List the bits of a bitmap."""
    out = np.empty(count_bits(words), np.uint32)
    list_bits(out, words, 0)
    return out


def _of_those(
    words: Bitmap, vertices: VertexArray, parents: VertexArray
) -> tuple[VertexArray, VertexArray]:
    """Keep the vertices that are in a bitmap, and their parents."""
    bits = words[vertices >> 6] >> (vertices & 63).astype(np.uint64) & np.uint64(1)
    kept = bits.astype(np.bool_)
    return vertices[kept], parents[kept]


def _sum_work(work: tuple[Work, ...]) -> Work:
    """Sum up what steps on one shard looked at."""
    return Work(*map(sum, zip(*work, strict=True)))

"""Shards on the ranks of an MPI job: a star by collectives.

Rank 0 drives the search. A step brings bitmaps from rank 0 to all, and what they found back: the
frontier goes by a broadcast, and large results of a step down are merged by OR on their way. So
rank 0 sends and receives three bitmaps a level at most, however many ranks there are. Ranks keep
nothing but their shards. A rank that is killed ends the job: that is how MPI works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.exchange import Star, Step, Traffic, list_vertices
from oocbfs.cluster.messages import pack, unpack
from oocbfs.cluster.shard import (
    Bitmap,
    Down,
    Forest,
    Shard,
    ShardRef,
    Up,
    VertexArray,
    Work,
    full_bitmap,
)
from oocbfs.cluster.tasks import forget, shard_of
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.shards.merge import set_bits
from oocbfs.workers.mpi_ranks import (
    attempt,
    cores_of_rank,
    first_rank,
    gather,
    import_mpi,
    on_all,
)

if TYPE_CHECKING:
    from mpi4py.MPI import Comm


class MpiExchange(Star):
    """The shards of a graph, dealt to the ranks of an MPI job in turn."""

    name = "mpi"
    level_seconds = 0.0005

    def __init__(self, cluster: str, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> None:
        super().__init__(Cut(refs[0].num_vertices, len(refs)), degrees)
        self._size = first_rank().Get_size()
        on_all(open_shards, refs)

    def _deal(self, messages: Iterable[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
        """Put messages to parts together by rank."""
        dealt: list[list[tuple[int, bytes]]] = [[] for _ in range(self._size)]
        for part, message in messages:
            dealt[part % self._size].append((part, message))
        return dealt

    def ask_up(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Up]]:
        """Send the frontier to all shards, and to each what it has visited."""
        frontier = pack(step.frontier[:-1], quick=True)
        parts = range(self.cut.parts)
        visited = self._deal(
            (part, pack(self.visited_of(step, part), quick=True)) for part in parts
        )
        found: list[Message] = on_all(step_up, (frontier, step.parents), visited)
        traffic.sent += len(frontier) + _bytes_of(visited)
        self._count(traffic, found, bitmaps=3)
        for part, message, parents, work in found:
            yield part, Up(unpack(message, self.cut.words_of(part)), parents, work)

    def ask_down(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Down]]:
        """Send each shard its frontier."""
        frontiers = self._deal(
            (part, pack(own, quick=True)) for part, own in self.frontier_of(step)
        )
        merged, found = on_all(step_down, (self.cut, step.parents), frontiers)
        traffic.sent += _bytes_of(frontiers)
        self._count(traffic, found, bitmaps=2)
        if merged is not None:
            traffic.received += merged.nbytes
        for number, (part, message, parents, work) in enumerate(found):
            if merged is None:
                ids = list_vertices(unpack(message, self.cut.num_words))
                yield part, Down(ids, None, parents, work)
            elif number == 0:
                yield part, Down(None, merged, None, work)
            else:
                yield part, Down(np.empty(0, np.uint32), None, None, work)

    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Ask all shards for their heads."""
        pairs: list[tuple[int, VertexArray]] = on_all(own_heads, None)
        return pairs

    def forests(self, giant: Bitmap) -> Iterable[Forest]:
        """Send the giant to all shards."""
        forests: list[Forest] = on_all(own_forests, (self.cut, pack(giant[:-1], quick=True)))
        return forests

    def _count(self, traffic: Traffic, found: Sequence[Message], *, bitmaps: int) -> None:
        """Count what came back, and what bitmaps would have taken."""
        parents = sum(message.parents.nbytes for message in found if message.parents is not None)
        traffic.received += sum(len(message.found) for message in found) + parents
        traffic.plain += 8 * self.cut.num_words * bitmaps + parents
        traffic.messages += bitmaps

    def close(self) -> None:
        """Let all ranks close their shards."""
        on_all(close_shards, None)


class Message(NamedTuple):
    """What a shard found, on its way to rank 0."""

    part: int
    found: bytes
    parents: VertexArray | None
    work: Work


def _bytes_of(dealt: list[list[tuple[int, bytes]]]) -> int:
    return sum(len(message) for messages in dealt for _, message in messages)


# The shards of this rank, by part.
_shards: dict[int, Shard] = {}
# What ranks have to tell of a step down: lists, a bitmap, or that it failed.
_LISTS, _BITMAP, _FAILED = range(3)


def open_shards(comm: Comm, refs: Sequence[ShardRef], _: None) -> None:
    """Open the shards of this rank, which shares the cores of its machine with others there."""
    cores = cores_of_rank(comm)

    def work() -> None:
        mine = refs[comm.Get_rank() :: comm.Get_size()]
        for ref in mine:
            here = replace(ref, threads=min(ref.threads, cores), shards=len(mine))
            _shards[ref.part] = shard_of(here)

    gather(comm, attempt(work))


def close_shards(comm: Comm, shared: None, _: None) -> None:
    """Close the shards of this rank."""
    _shards.clear()
    forget()


def own_heads(comm: Comm, shared: None, _: None) -> list[tuple[int, VertexArray]]:
    """Give the heads of the shards of this rank."""

    def work() -> list[tuple[int, VertexArray]]:
        return [(part, heads) for part, shard in _shards.items() for heads in shard.heads()]

    return gather(comm, attempt(work))


def own_forests(comm: Comm, shared: tuple[Cut, bytes], _: None) -> list[Forest]:
    """Join the vertices of the shards of this rank with their neighbours."""
    cut, message = shared

    def work() -> list[Forest]:
        giant = full_bitmap(cut)
        giant[:-1] = unpack(message, cut.num_words)
        return [shard.forest(giant) for shard in _shards.values()]

    return gather(comm, attempt(work))


def step_up(
    comm: Comm, shared: tuple[bytes, bool], visited: list[list[tuple[int, bytes]]] | None
) -> list[Message]:
    """Let own vertices that are not visited look for the frontier."""
    message, parents = shared
    mine = comm.scatter(visited)

    def work() -> list[Message]:
        found = []
        for part, own in mine:
            shard = _shards[part]
            frontier = full_bitmap(shard.cut)
            frontier[:-1] = unpack(message, shard.cut.num_words)
            up = shard.up(frontier, unpack(own, shard.cut.words_of(part)), parents=parents)
            found.append(Message(part, pack(up.found, quick=True), up.parents, up.work))
        return found

    return gather(comm, attempt(work))


def step_down(
    comm: Comm, shared: tuple[Cut, bool], frontiers: list[list[tuple[int, bytes]]] | None
) -> tuple[Bitmap | None, list[Message]]:
    """Let own frontiers look for their neighbours; gives a bitmap where lists would be long."""
    cut, parents = shared
    mine = comm.scatter(frontiers)

    def work() -> list[tuple[int, Down]]:
        return [
            (part, _shards[part].down(unpack(own, cut.words_of(part)), parents=parents))
            for part, own in mine
        ]

    downs, error = attempt(work)
    told = _LISTS if all(down.words is None for _, down in downs or ()) else _BITMAP
    told = comm.allreduce(_FAILED if error else told, import_mpi().MAX)
    merged = None
    words = full_bitmap(cut)
    if told == _BITMAP:
        for _, down in downs:
            _merge(words, down)
        merged = np.empty_like(words) if comm.Get_rank() == 0 else None
        comm.Reduce(words, merged, import_mpi().BOR)

    def tell() -> list[Message]:
        messages = []
        for part, down in downs:
            found = b""
            if told == _LISTS:
                words[:] = 0
                _merge(words, down)
                found = pack(words[:-1], quick=True)
            messages.append(Message(part, found, down.parents, down.work))
        return messages

    return merged, gather(comm, (None, error) if error else attempt(tell))


def _merge(words: Bitmap, down: Down) -> None:
    """Add what a shard found to a bitmap."""
    if down.ids is not None:
        set_bits(words, down.ids)
    else:
        assert down.words is not None
        words |= down.words

"""Equal ranks of an MPI job: each holds its own shards, and all drive the same search.

A level takes three collectives at most, on buffers: the frontier to all (bottom-up), or what was
found to its owners (top-down), and then the counts of every shard, from which every rank decides
how to go on.
Messages have no headers: who gets one knows how many vertices it names, and with that its length,
see ``plan.messages``. An error on one rank is among the counts, so that all end together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.exchange import Found, Result, ShardQuery, Steps, Traffic
from oocbfs.cluster.holder import Holder
from oocbfs.cluster.messages import put_set, take_set
from oocbfs.cluster.results import Results
from oocbfs.cluster.shard import Shard, Work
from oocbfs.errors import ClusterError
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.messages import count_bits
from oocbfs.plan.messages import QUICK_BITS, set_bytes

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

# What a rank tells of each of its shards after a level, after the counts of the step: bytes from
# disk, vertices of the next frontier that lead on, vertices and bytes that it told others, whether
# it failed, and whether the target was reached.
_DISK, _SENT, _NAMED, _BYTES, _FAILED, _REACHED = range(words.COUNTS, words.COUNTS + 6)
_COLUMNS = words.COUNTS + 6
# Of those, what ``Work`` has.
_WORK_COLUMNS = [words.EDGES, words.HEADS, words.TESTED, words.TAIL_BYTES, _DISK]


class PeerError(ClusterError):
    """Another rank failed, and says how."""


class Peers(Steps):
    """The shards of one rank, and what it hears of the others."""

    def __init__(self, comm: Comm, cut: Cut, shards: Sequence[Shard], threads: int) -> None:
        super().__init__(cut)
        self._comm, self._rank, self._size = comm, comm.Get_rank(), comm.Get_size()
        self._holder = Holder(cut, shards, threads)
        self._numbers = [shard.number for shard in shards]
        # Shards of the rank that has most.
        self._most = -(-cut.num_shards // self._size)
        self.num_words = self._holder.num_words

    def begin(self, query: ShardQuery, results: Results) -> None:
        """Begin a search."""
        shape, sources = query.shape, query.sources
        self._shape, self._results, self._target = shape, results, query.target
        self._error: Exception | None = None
        self._has_reached = query.target in sources.tolist()
        # Vertices of each shard's frontier that may lead on.
        self._sent = np.bincount(self.cut.shard_of(sources), minlength=self.cut.num_shards)
        # Sources are sent, even if nothing but their only edge leads to them.
        self._useful = shape.non_isolated
        if sources.size and int(sources.max()) >= shape.non_isolated:
            self._useful = self.cut.num_vertices
        self._holder.begin(query, results)

    def lead(self, levels: Callable[[], Result]) -> Result:
        """Call what takes steps, while the other threads of this rank wait for them."""
        return self._holder.lead(levels)

    def reached(self, vertex: int, results: Results) -> bool:
        """Return whether the target has a level, as its owner said."""
        return self._has_reached

    def bottom_up(self, level: int) -> Found:
        """Let all vertices that are not visited look for the frontier."""
        traffic = self._gather_frontier()
        self._attempt(lambda: self._holder.bottom_up(level))
        return self._tell(traffic)

    def top_down(self, level: int) -> Found:
        """Let the frontier look for all vertices that are not visited."""
        traffic = self._gather_frontier() if self._results.parents.size else Traffic()
        self._attempt(lambda: self._holder.top_down(level))
        told = self._send_marks()
        self._attempt(lambda: self._holder.take(level))
        return self._tell(traffic, told)

    def _attempt(self, work: Callable[[], object]) -> None:
        """Do something; the other ranks wait for this one, whatever happens."""
        if self._error is None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - raised when all ranks know
                self._error = error

    def _words(self, number: int, vertices: int) -> int:
        """Count the words of a shard that hold one of the first vertices."""
        return Cut(vertices, self.cut.num_shards).words_of(number)

    def _shards_by_rank(self) -> list[int]:
        """Return all shards, those of the first rank first."""
        return [
            number
            for rank in range(self._size)
            for number in range(rank, self.cut.num_shards, self._size)
        ]

    def _gather_frontier(self) -> Traffic:
        """Let everybody know the whole frontier; returns what went from rank to rank."""
        sent, size = self._sent.tolist(), self._size
        words_of = {number: self._words(number, self._useful) for number in self._shards_by_rank()}
        lengths = {
            number: set_bytes(64 * n, sent[number], QUICK_BITS) for number, n in words_of.items()
        }
        total = sum(lengths.values())
        traffic = Traffic(
            sent=(size - 1) * total,
            plain=(size - 1) * 8 * self.cut.num_words,
            messages=size * (size - 1),
            frontier=(size - 1) * total,
            vertices=sum(sent),
        )
        if size == 1:
            return traffic
        mine = [
            put_set(self._holder.own_words(place)[: words_of[number]], sent[number], QUICK_BITS)
            for place, number in enumerate(self._numbers)
        ]
        every = np.empty(total, np.uint8)
        by_rank = [sum(lengths[p] for p in lengths if p % size == rank) for rank in range(size)]
        self._comm.Allgatherv(_joined(mine), [every, by_rank])
        end = 0
        for number, num_words in words_of.items():
            message = every[end : end + lengths[number]]
            own = self.cut.own(self._holder.frontier, number)
            own[:num_words] = take_set(message, num_words, sent[number], QUICK_BITS)
            own[num_words:] = 0
            end += lengths[number]
        return traffic

    def _send_marks(self) -> Traffic:
        """Send the owners what was found of theirs; returns what this rank sent."""
        size, cut, marks = self._size, self.cut, self._holder.marks
        if size == 1:
            return Traffic()
        for row in marks[1:]:
            marks[0] |= row
            row[:] = 0
        words_of = {
            number: self._words(number, self._shape.non_isolated)
            for number in range(cut.num_shards)
        }
        given, got = np.zeros((2, size, self._most), np.int64)
        out, out_lengths = [], [0] * size
        for number in self._shards_by_rank():
            if number % size == self._rank:
                continue
            theirs = cut.own(marks[0], number)
            own = np.ascontiguousarray(theirs[: words_of[number]])
            theirs[:] = 0
            count = int(count_bits(own))
            given[number % size, number // size] = count
            out.append(put_set(own, count, QUICK_BITS))
            out_lengths[number % size] += out[-1].size
        self._comm.Alltoall(given, got)
        got[self._rank] = 0
        lengths = {
            (rank, number): set_bytes(
                64 * words_of[number], int(got[rank, number // size]), QUICK_BITS
            )
            for rank in range(size)
            for number in self._numbers
            if rank != self._rank
        }
        in_lengths = [
            sum(lengths[key] for key in lengths if key[0] == rank) for rank in range(size)
        ]
        found = np.empty(sum(in_lengths), np.uint8)
        self._comm.Alltoallv([_joined(out), out_lengths], [found, in_lengths])
        end = 0
        for (rank, number), length in lengths.items():
            count, message = int(got[rank, number // size]), found[end : end + length]
            own = cut.own(marks[0], number)[: words_of[number]]
            own |= take_set(message, words_of[number], count, QUICK_BITS)
            end += length
        return Traffic(sent=sum(out_lengths), named=(int(given.sum()),))

    def _tell(self, traffic: Traffic, told: Traffic | None = None) -> Found:
        """Send all ranks the counts of own shards, and hear those of theirs.

        Raises
        ------
        PeerError
            If another rank failed; what failed here is raised as it is.
        """
        mine = np.zeros((self._most, _COLUMNS), np.int64)
        mine[0, _FAILED] = self._error is not None
        if self._error is None:
            counts, holder = mine[: len(self._numbers)], self._holder
            counts[:, : words.COUNTS] = holder.counts
            for number, work in enumerate(holder.work()):
                counts[number, [words.EDGES, words.HEADS, words.TESTED]] = work[:3]
                counts[number, [words.TAIL_BYTES, _DISK]] = work[3:5]
                counts[number, _SENT] = count_bits(holder.own_words(number))
            if self._target is not None:
                mine[0, _REACHED] = self._sees_target()
        if told is not None:
            mine[0, _NAMED], mine[0, _BYTES] = sum(told.named), told.sent
        every = np.empty((self._size, *mine.shape), np.int64)
        self._comm.Allgather(mine, every)
        if self._error is not None:
            raise self._error
        if every[:, :, _FAILED].any():
            raise PeerError("another rank failed")
        self._has_reached = bool(every[:, :, _REACHED].any())
        by_shard = every.transpose(1, 0, 2).reshape(-1, _COLUMNS)[: self.cut.num_shards]
        self._sent, self._useful = by_shard[:, _SENT].copy(), self._shape.useful
        if told is not None:
            traffic.sent += int(every[:, :, _BYTES].sum())
            traffic.named = tuple(every[:, 0, _NAMED].tolist())
            traffic.plain += (self._size - 1) * 8 * self.cut.num_words
            traffic.messages += self._size * (self._size - 1)
        by_work = [Work(*row) for row in by_shard[:, _WORK_COLUMNS].tolist()]
        size, edges = (
            int(by_shard[:, column].sum()) for column in (words.FOUND, words.FRONTIER_EDGES)
        )
        return Found(size, edges, by_work, traffic)

    def _sees_target(self) -> bool:
        """Return whether the target is here, and has a level."""
        assert self._target is not None
        target = np.array([self._target], np.uint32)
        if int(self.cut.shard_of(target)[0]) not in self._numbers:
            return False
        return self._results.reached(int(self._holder.placed(target)[0]))


def _joined(messages: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Put messages one after the other."""
    return np.concatenate(messages) if messages else np.empty(0, np.uint8)

"""Shards on the ranks of an MPI job, which are equal: ``workers.mpi_peers``.

Rank 0 is the program. It tells the others what is searched for, and gets levels and parents in the
end; in between, all ranks drive the same search. A rank that is killed or interrupted ends the job:
that is how MPI works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.driver import Outcome
from oocbfs.cluster.driver import search as run_levels
from oocbfs.cluster.exchange import Exchange, ShardQuery
from oocbfs.cluster.levels import Watch
from oocbfs.cluster.messages import pack, unpack
from oocbfs.cluster.results import AllResults, Results
from oocbfs.cluster.shard import Bitmap, Forest, Shard, ShardRef, VertexArray, full_bitmap
from oocbfs.cluster.tasks import forget, shard_of
from oocbfs.errors import ClusterError, OocbfsError
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.bitmaps import UNREACHED
from oocbfs.workers.mpi_peers import PeerError, Peers
from oocbfs.workers.mpi_ranks import (
    attempt,
    cores_of_rank,
    first_rank,
    gather,
    on_all,
)

if TYPE_CHECKING:
    from mpi4py.MPI import Comm


class MpiExchange(Exchange):
    """The shards of a graph, in turn on the ranks of an MPI job, as rank 0 sees them."""

    name = "mpi"
    level_seconds = 0.0005

    def __init__(self, cluster: str, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> None:
        self._cut = Cut(refs[0].num_vertices, len(refs))
        first_rank()
        on_all(open_shards, refs)

    def search(self, query: ShardQuery, results: AllResults, watch: Watch | None) -> Outcome:
        """Let all ranks search."""
        outcome: Outcome = on_all(search, (query, watch), (results, watch))
        return outcome

    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Ask all shards for their heads."""
        pairs: list[tuple[int, VertexArray]] = on_all(own_heads, None)
        return pairs

    def forests(self, largest: Bitmap) -> Iterable[Forest]:
        """Send the largest component to all shards."""
        forests: list[Forest] = on_all(own_forests, (self._cut, pack(largest[:-1])))
        return forests

    def close(self) -> None:
        """Let all ranks close their shards."""
        with suppress(ClusterError):  # they have gone, or will end with this one
            on_all(close_shards, None)


# The shards of this rank, by shard, its side of searches, and its own levels.
_shards: dict[int, Shard] = {}
_peers: list[Peers] = []
_levels: list[NDArray[np.uint8]] = []


def open_shards(comm: Comm, refs: Sequence[ShardRef], _: None) -> None:
    """Open the shards of this rank, which shares the cores of its machine with others there."""
    cores = cores_of_rank(comm)

    def work() -> None:
        mine = refs[comm.Get_rank() :: comm.Get_size()]
        for ref in mine:
            here = replace(ref, threads=min(ref.threads, cores), held=len(mine))
            _shards[ref.number] = shard_of(here)
        cut = Cut(refs[0].num_vertices, len(refs))
        threads = min(refs[0].threads, cores)
        _peers.append(Peers(comm, cut, list(_shards.values()), threads))

    gather(comm, attempt(work))


def close_shards(comm: Comm, shared: None, _: None) -> None:
    """Close the shards of this rank."""
    _shards.clear()
    _peers.clear()
    _levels.clear()
    forget()


def own_heads(comm: Comm, shared: None, _: None) -> list[tuple[int, VertexArray]]:
    """Return the heads of the shards of this rank."""

    def work() -> list[tuple[int, VertexArray]]:
        return [(number, heads) for number, shard in _shards.items() for heads in shard.heads()]

    return gather(comm, attempt(work))


def own_forests(comm: Comm, shared: tuple[Cut, bytes], _: None) -> list[Forest]:
    """Join the vertices of the shards of this rank with their neighbours."""
    cut, message = shared

    def work() -> list[Forest]:
        largest = full_bitmap(cut)
        largest[:-1] = unpack(message, cut.num_words)
        return [shard.forest(largest) for shard in _shards.values()]

    return gather(comm, attempt(work))


def search(
    comm: Comm,
    shared: tuple[ShardQuery, Watch | None],
    rooted: tuple[AllResults, Watch | None] | None,
) -> Outcome | None:
    """Search with all other ranks; what is found goes to rank 0, or what failed."""
    query, watch = shared
    peers = _peers[-1]
    size = 64 * peers.num_words
    if not _levels:
        _levels.append(np.empty(size, np.uint8))
    parents = np.empty(size if query.parents else 0, np.uint32)
    own = Results(_levels[0], parents)
    outcome, error = None, None
    try:
        outcome = run_levels(peers, query, own, watch if rooted is None else rooted[1])
    except PeerError:
        pass  # which says itself how
    except OocbfsError as raised:
        error = raised
    gather(comm, ([], error))
    if error is not None or outcome is None:
        return None
    results = None if rooted is None else rooted[0]
    _bring(comm, own.levels, None if results is None else results.levels[:-64])
    if own.deep_levels.size:
        _bring(comm, own.deep_levels, None if results is None else _deep_levels(results))
    if query.parents:
        _bring(comm, own.parents, None if results is None else results.parents)
    if results is not None:
        results.levels[-64:] = UNREACHED
    return outcome


def _deep_levels(results: AllResults) -> NDArray[np.int32]:
    results.deepen()
    return results.deep_levels


def _bring(comm: Comm, own: NDArray[Any], whole: NDArray[Any] | None) -> None:
    """Bring numbers of vertices, which ranks have one shard after the other, to rank 0."""
    cut, size = _peers[-1].cut, comm.Get_size()
    if size == 1:
        assert whole is not None
        whole[:] = own[: whole.size]
        return
    counts = [
        64 * sum(cut.words_of(number) for number in range(rank, cut.num_shards, size))
        for rank in range(size)
    ]
    every = np.empty(0 if whole is None else sum(counts), own.dtype)
    comm.Gatherv(own, [every, counts])
    if whole is None:
        return
    # Whole words, and what is left of the last one.
    by_word, rest = np.split(whole, [whole.size // 64 * 64])
    by_word = by_word.reshape(-1, 64)
    end = 0
    for number in sorted(range(cut.num_shards), key=lambda number: number % size):
        mine = every[end : end + 64 * cut.words_of(number)].reshape(-1, 64)
        end += mine.size
        theirs = by_word[number :: cut.num_shards]
        theirs[:] = mine[: len(theirs)]
        if rest.size and len(by_word) % cut.num_shards == number:
            rest[:] = mine[len(theirs), : rest.size]

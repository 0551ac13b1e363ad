"""Groups of sources on the ranks of an MPI job.

Every rank opens the graph by its path and searches its share of the groups, which are taken in
turn: of p ranks, rank r has the groups r, r + p, r + 2p and so on.
Rank 0, which writes the records, does as the others and looks for their answers between its own
groups, so that no rank waits for another. Levels are written by the rank that found them; what
travels is a row for each source.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from oocbfs.batch.groups import GroupDone, GroupRunner, Manner, Search, SourceGroup
from oocbfs.batch.workers import SharedGraph, with_absolute_paths
from oocbfs.errors import ClusterError
from oocbfs.graph.stored import StoredGraph
from oocbfs.memory import parse_size
from oocbfs.workers.mpi_ranks import attempt, cores_of_rank, gather, on_all, raise_error, together

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

# What messages are about: an answer to rank 0, or the word of rank 0 that it needs no more.
_ANSWER, _STOP = 1, 2


@dataclass(frozen=True)
class Answer:
    """What a rank has to tell: a group that is done, what went wrong, or neither: that it ends."""

    group: int | None = None
    done: GroupDone | None = None
    error: Exception | None = None


@contextmanager
def on_ranks(
    cluster: str, shared: SharedGraph, manner: Manner, advance: Callable[[int], object]
) -> Generator[Search]:
    """Let all ranks open the graph; gives what searches groups there, as ``on_workers`` does."""
    shared, manner = with_absolute_paths(shared, manner)
    running: list[Generator[tuple[int, GroupDone]]] = []

    def search(groups: Sequence[SourceGroup]) -> Iterator[tuple[SourceGroup, GroupDone]]:
        running.append(on_all(share_groups, groups))
        for number, done in running[-1]:
            yield groups[number], done
            advance(len(groups[number].sources))

    try:
        on_all(open_graph, (shared, manner))
        yield search
    finally:
        for groups in running:
            groups.close()  # else ranks would still wait in there
        with suppress(ClusterError):  # they will end with this one
            on_all(close_graph, None)


# What this rank has open.
_open: list[tuple[StoredGraph, GroupRunner]] = []


def open_graph(comm: Comm, shared: tuple[SharedGraph, Manner], _: None) -> None:
    """Open the graph on this rank, which shares the cores of its machine with others there."""
    graph_there, manner = shared
    cores = cores_of_rank(comm)

    def work() -> None:
        memory = graph_there.memory
        graph = graph_there.open(None if memory is None else parse_size(memory))
        try:
            here = replace(manner, threads=min(manner.threads or cores, cores))
            _open.append((graph, GroupRunner(graph, here)))
        except BaseException:
            graph.close()
            raise

    gather(comm, attempt(work))


def close_graph(comm: Comm, shared: None, _: None) -> None:
    """Close the graph on this rank."""
    while _open:
        graph, runner = _open.pop()
        runner.close()
        graph.close()


def share_groups(
    comm: Comm, groups: Sequence[SourceGroup], _: None
) -> Generator[tuple[int, GroupDone]] | None:
    """Search the groups of this rank; rank 0 gives those of all, by number, as they are done."""
    if comm.Get_rank() == 0:
        return _lead(comm, groups)
    runner = _open[0][1]
    for number in range(comm.Get_rank(), len(groups), comm.Get_size()):
        if comm.Iprobe(0, _STOP):
            break
        done, error = attempt(partial(runner.run, groups[number]))
        comm.send(Answer(number, done, error), 0, _ANSWER)
        if error is not None:
            break
    comm.send(Answer(), 0, _ANSWER)
    comm.recv(source=0, tag=_STOP)
    return None


def _lead(comm: Comm, groups: Sequence[SourceGroup]) -> Generator[tuple[int, GroupDone]]:
    """Search the groups of rank 0, and take what the others answer."""
    runner = _open[0][1]
    working = set(range(1, comm.Get_size()))

    def answers(*, wait: bool) -> Iterator[tuple[int, Answer]]:
        """Take what has come from others, or wait for all that is to come."""
        while working and (wait or comm.Iprobe(tag=_ANSWER)):
            rank, answer = _receive(comm)
            if answer.group is None:
                working.remove(rank)
            else:
                yield rank, answer

    def taken(*, wait: bool) -> Iterator[tuple[int, GroupDone]]:
        for rank, answer in answers(wait=wait):
            raise_error(rank, answer.error)
            assert answer.group is not None
            assert answer.done is not None
            yield answer.group, answer.done

    try:
        for number in range(0, len(groups), comm.Get_size()):
            yield number, runner.run(groups[number])
            yield from taken(wait=False)
        yield from taken(wait=True)
    finally:
        with together():
            for rank in range(1, comm.Get_size()):
                comm.isend(None, rank, _STOP)
            for _ in answers(wait=True):
                pass  # of what was given up


def _receive(comm: Comm) -> tuple[int, Answer]:
    """Receive one answer, and tell whose it is."""
    from mpi4py.MPI import Status

    status = Status()
    answer: Answer = comm.recv(tag=_ANSWER, status=status)
    return status.Get_source(), answer

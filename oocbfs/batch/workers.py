"""Groups of sources on the workers of a Dask cluster.

Every worker opens the graph by its path, keeps it open for the next group, and runs one group at a
time, with all its threads. Levels are written by the worker that found them; what travels back is a
row for each source.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from oocbfs.batch.groups import GroupDone, GroupRunner, Manner, Search, SourceGroup
from oocbfs.errors import BudgetError, ClusterError, OocbfsError, OutputError
from oocbfs.graph.stored import StoredGraph, open_stored
from oocbfs.kernels.threads import renewed_after_fork
from oocbfs.memory import format_size
from oocbfs.workers import dask_limits as limits
from oocbfs.workers.dask_address import import_distributed
from oocbfs.workers.dask_cluster import Call, DaskCluster

_ADVICE = "workers need it under the same path: put it on a file system that all of them see"


@dataclass(frozen=True)
class SharedGraph:
    """A graph file that every worker sees, and the budget that was asked for there."""

    path: Path
    checksum: int
    memory: str | int | None

    def open(self, budget_bytes: int | None = None) -> StoredGraph:
        """Open the file, and refuse it if it is another one.

        Raises
        ------
        ClusterError
            If this process does not see it, or sees another.
        """
        try:
            graph = open_stored(self.path, memory=budget_bytes)
        except (OocbfsError, OSError) as error:
            raise ClusterError(f"{error}; {_ADVICE}") from error
        if graph.checksum != self.checksum:
            graph.close()
            raise ClusterError(f"{self.path}: is another graph there; {_ADVICE}")
        return graph


def with_absolute_paths(shared: SharedGraph, manner: Manner) -> tuple[SharedGraph, Manner]:
    """Return both as other processes find them, which may run in other folders."""
    assert manner.output is not None
    shared = replace(shared, path=Path(os.path.abspath(shared.path)))
    return shared, replace(manner, output=Path(os.path.abspath(manner.output)))


@contextmanager
def on_workers(
    cluster: str, shared: SharedGraph, manner: Manner, advance: Callable[[int], object]
) -> Generator[Search]:
    """Connect to a cluster whose workers see what they need; gives what searches groups there.

    Raises
    ------
    ClusterError
        If there is no such cluster, or a worker that cannot take part.
    """
    shared, manner = with_absolute_paths(shared, manner)
    with DaskCluster(cluster) as workers:
        workers.ask(_see_graph, shared)
        if manner.emit == "levels":
            assert manner.output is not None
            _check_folder(workers, manner.output.parent)

        def search(groups: Sequence[SourceGroup]) -> Iterator[tuple[SourceGroup, GroupDone]]:
            tasks = [
                Call(f"oocbfs-batch-group-{group.number:06d}", run_group, (shared, manner, group))
                for group in groups
            ]
            for number, done in workers.run(tasks):
                yield groups[number], done
                advance(len(groups[number].sources))

        try:
            yield search
        finally:
            with suppress(ClusterError):
                workers.finish("oocbfs-batch-close", forget, shared)


def _see_graph(shared: SharedGraph) -> None:
    shared.open().close()


def _check_folder(workers: DaskCluster, folder: Path) -> None:
    """Refuse workers that do not see the folder in which levels are to be."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".oocbfs-") as probe:
            seen = workers.ask(os.path.exists, probe.name)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from error
    for address, sees in seen.items():
        if not sees:
            raise ClusterError(f"worker {address}: does not see the folder {folder}; {_ADVICE}")


class _Open(NamedTuple):
    shared: SharedGraph
    manner: Manner
    graph: StoredGraph
    runner: GroupRunner


# What this worker has open, for the one group that it searches at a time.
_lock = renewed_after_fork(Lock())
_open: _Open | None = None


def run_group(shared: SharedGraph, manner: Manner, group: SourceGroup) -> GroupDone:
    """Search a group in this process, which is a worker's."""
    with _lock:
        return _runner(shared, manner).run(group)


def _runner(shared: SharedGraph, manner: Manner) -> GroupRunner:
    """Return what searches groups, opened for the first of them."""
    global _open
    if _open is not None and _open[:2] == (shared, manner):
        return _open.runner
    _close()
    worker = import_distributed().get_worker()
    with shared.open() as graph:
        budget = limits.budget_bytes(worker, graph.sizes.file_bytes, shared.memory)
    graph = shared.open(budget)
    try:
        here = replace(manner, threads=manner.threads or worker.state.nthreads)
        runner = GroupRunner(graph, here)
    except BudgetError as error:
        graph.close()
        limit = worker.memory_manager.memory_limit
        raise BudgetError(
            f"worker {worker.address}, which may take {format_size(limit or 0)}: {error}"
        ) from error
    except BaseException:
        graph.close()
        raise
    _open = _Open(shared, manner, graph, runner)
    return runner


def forget(shared: SharedGraph) -> None:
    """Close a graph of which there are no more groups."""
    with _lock:
        if _open is not None and _open.shared == shared:
            _close()


def _close() -> None:
    global _open
    if _open is not None:
        _open.runner.close()
        _open.graph.close()
        _open = None

"""Shards on the workers of a Dask cluster: the client coordinates and merges.

Every step is one round of tasks, each pinned softly to the worker that has the shard open. Tasks
hold all they need, so that those of a lost worker are run again on another one, which opens the
shard too. Workers never talk to each other: one that waited for a lost one would hang.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.coordinator import TaskCoordinator
from oocbfs.cluster.shard import ShardRef
from oocbfs.cluster.tasks import Reply, Task, answer, forget
from oocbfs.errors import BudgetError, ClusterError, FormatError
from oocbfs.formats.container.reader import Container
from oocbfs.kernels.shards import run as kernels
from oocbfs.kernels.threads import renewed_after_fork
from oocbfs.workers.dask_address import import_distributed
from oocbfs.workers.dask_cluster import Call, DaskCluster
from oocbfs.workers.dask_limits import allowed_bytes

# How often the client looks for workers that came or went.
_LOOK_SECONDS = 1.0


class DaskExchange(TaskCoordinator):
    """The shards of a graph on a Dask cluster whose workers see their files."""

    name = "dask"
    level_seconds = 0.02

    def __init__(self, cluster: str, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> None:
        super().__init__(refs, degrees)
        self._cluster = DaskCluster(cluster)
        self._places: list[str] = []
        self._next_look = 0.0
        try:
            self._cluster.ask(see_shards, refs)
            self._place()
        except BaseException:
            self._cluster.close()
            raise

    def _place(self) -> None:
        """Pin shards to workers anew, where workers came or went."""
        if time.monotonic() < self._next_look:
            return
        workers = sorted(self._cluster.workers())
        self._places = place(len(self.refs), workers, self._places)
        self._next_look = time.monotonic() + _LOOK_SECONDS

    def run(self, tasks: Sequence[Task]) -> Sequence[Reply]:
        """Do the tasks of one step on the workers that have the shards."""
        self._place()
        return self._cluster.map(
            [
                Call(f"oocbfs-{task.name}", answer_here, (task,), self._places[task.ref.number])
                for task in tasks
            ]
        )

    def close(self) -> None:
        """Let workers close the shards, and leave."""
        with suppress(ClusterError):
            self._cluster.finish("oocbfs-close", forget_here)
        self._cluster.close()


def place(num_shards: int, workers: Sequence[str], before: Sequence[str]) -> list[str]:
    """Place shards on workers evenly; a shard stays where it was, if it can."""
    most = -(-num_shards // len(workers))
    load: Counter[str] = Counter()
    places: list[str | None] = []
    for shard in range(num_shards):
        stays = shard < len(before) and before[shard] in workers and load[before[shard]] < most
        places.append(before[shard] if stays else None)
        load[before[shard] if stays else ""] += 1
    for shard, old in enumerate(places):
        if old is None:
            places[shard] = chosen = min(workers, key=lambda worker: (load[worker], worker))
            load[chosen] += 1
    return [str(worker) for worker in places]


def see_shards(refs: Sequence[ShardRef]) -> None:
    """Refuse shards that this worker cannot open, or that are others there."""
    for ref in refs:
        container = Container(ref.path)
        container.close()
        if int(container.header["checksum"]) != ref.checksum:
            raise FormatError(f"{ref.path}: is not the shard {ref.number} that the manifest names")


# A worker does one task at a time, with all its threads.
_lock = renewed_after_fork(Lock())
# The files of the shards that this worker has been asked for, among which it divides its memory.
_paths: set[str] = set()


def answer_here(task: Task) -> Reply:
    """Do a task on this worker, with its threads and within its limit."""
    worker = import_distributed().get_worker()
    with _lock:
        if task.ref.path not in _paths:
            _paths.add(task.ref.path)
            forget()  # the others are opened again, with what is then left for each
            kernels.load()  # before it is counted what there is room for
        limits = [b for b in (allowed_bytes(worker), task.ref.memory) if b is not None]
        ref = replace(
            task.ref,
            threads=worker.state.nthreads,
            memory=min(limits, default=None),
            held=len(_paths),
        )
        try:
            return answer(replace(task, ref=ref))
        except BudgetError as error:
            raise BudgetError(f"worker {worker.address}: {error}") from error


def forget_here() -> None:
    """Close the shards that this worker has open."""
    with _lock:
        forget()
        _paths.clear()

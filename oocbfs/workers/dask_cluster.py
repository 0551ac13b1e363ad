"""A Dask cluster whose workers run tasks.

Tasks are stateless: what a task needs travels with it, or is a file that every worker sees. So a
task of a worker that was lost is simply run again, by Dask, on another one, or by us if Dask would
wait for ever. Nothing here knows what the tasks do.
"""

from __future__ import annotations

import math
import pickle
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from oocbfs import __version__
from oocbfs.errors import ClusterError
from oocbfs.workers.dask_connection import Connection
from oocbfs.workers.dask_guard import GUARDED

# How long workers may take to come to the end of what nobody waits for.
FINISH_SECONDS = 10.0
# How long nothing may happen before we look at the state of the cluster.
_LOOK_SECONDS = 1.0
# How often a task may lose all workers before it is given up.
_MOST_TRIES = 10
# States of a task, in the words of the scheduler, in which no worker has it or will get it: where
# its worker was lost while there was no other, Dask waits for that very one.
_STRANDED = (None, "no-worker", "released", "forgotten")


class Call(NamedTuple):
    """A call of a function of oocbfs on a worker; ``name`` is what people see of it.

    ``worker`` is the one that should run it, which keeps what it opened; any other may. Calls that
    name none are run one at a time on each worker.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    worker: str | None = None


class _Running(NamedTuple):
    """A call that Dask has: its number, its worker, and Dask's future."""

    number: int
    worker: str
    future: Any


class DaskCluster(Connection):
    """A connection to a Dask cluster that runs tasks."""

    def __init__(self, cluster: str) -> None:
        self._token = secrets.token_hex(4)
        self._num_tasks = 0
        super().__init__(cluster)

    def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        """Run calls; yields number and result as they are done.

        Raises
        ------
        ClusterError
            If the workers of a call were lost again and again, or the scheduler was.
        OocbfsError
            That a call has raised.
        """
        return _Work(self, calls).results(math.inf)

    def map(self, calls: Sequence[Call]) -> list[Any]:
        """Run calls, and give their results in their order; see ``run``."""
        results = dict(self.run(calls))
        return [results[number] for number in range(len(calls))]

    def finish(self, name: str, function: Callable[..., Any], *arguments: object) -> None:
        """Call a function on every worker after the tasks that it has; waits a little for that.

        A worker may still have one that nobody waits for: it was lost, was given to another, and
        the first one came to its end after all.
        """
        calls = [Call(name, function, arguments, worker) for worker in self.workers()]
        for _ in _Work(self, calls, only_there=True).results(FINISH_SECONDS):
            pass

    def submit(self, call: Call, worker: str, *, only_there: bool) -> Any:
        """Start a call on a worker, or on another one if that is lost; returns Dask's future."""
        self.reach()
        self._num_tasks += 1
        return self.client.submit(
            GUARDED,
            __version__,
            pickle.dumps((call.function, call.arguments), protocol=5),
            key=f"{call.name}-{self._token}-{self._num_tasks:06d}",
            pure=False,
            workers=[worker],
            allow_other_workers=not only_there,
        )


class _Work:
    """Calls on their way: started, fetched as they are done, and started again if they are lost.

    With ``only_there`` a call is for its worker alone, and is dropped if that is lost.
    """

    def __init__(
        self, cluster: DaskCluster, calls: Sequence[Call], *, only_there: bool = False
    ) -> None:
        self._cluster, self._calls, self._only_there = cluster, calls, only_there
        self._waiting = deque(range(len(calls)))
        self._running: dict[str, _Running] = {}
        self._tries: Counter[int] = Counter()
        # Keys that had no worker when the cluster was looked at last.
        self._suspects: set[str] = set()
        # Key, result and error of what Dask is done with.
        self._ends: SimpleQueue[tuple[str, Any, BaseException | None]] = SimpleQueue()

    def results(self, seconds: float) -> Iterator[tuple[int, Any]]:
        """Yield number and result of each call as it is done, for so many seconds at most.

        All waiting is done here, a moment at a time, and then the state of the cluster is looked
        at.
        """
        deadline = time.monotonic() + seconds
        try:
            while (self._waiting or self._running) and time.monotonic() < deadline:
                self._start()
                try:
                    key, result, error = self._ends.get(timeout=_LOOK_SECONDS)
                except Empty:
                    self._look()
                    continue
                done = self._running.pop(key, None)
                if done is None:
                    continue  # it was stranded, and has been started again
                if error is not None:
                    self._fail(done, error)
                    continue
                done.future.release()  # else it is computed again if its worker is lost later
                found, where, value = result
                self._cluster.check_version(where, found)
                yield done.number, value
        finally:
            with suppress(Exception):
                self._drop(list(self._running.values()))

    def _start(self) -> None:
        """Start what waits and has a worker, or for which one is free."""
        while self._waiting:
            call, again = self._calls[self._waiting[0]], self._tries[self._waiting[0]]
            worker = call.worker
            if worker is None or again:
                there = self._cluster.running_workers()
                if call.worker is None and self._running and len(self._running) >= len(there):
                    return
                load = Counter(running.worker for running in self._running.values())
                worker = min(there or self._cluster.workers(), key=lambda w: (load[w], w))
            number = self._waiting.popleft()
            future = self._cluster.submit(call, worker, only_there=self._only_there)
            self._running[future.key] = _Running(number, worker, future)
            self._fetch(future)

    def _fetch(self, future: Any) -> None:
        """Let Dask's loop wait for a result, which it would for ever if the result is lost.

        It comes through the scheduler, which takes less time than asking the worker.
        """
        client, key, ends = self._cluster.client, future.key, self._ends
        self._cluster.loop.start(
            lambda: client.gather(future, direct=False),
            lambda result, error: ends.put((key, result, error)),
        )

    def _fail(self, done: _Running, error: BaseException) -> None:
        """Raise what a call has raised; what Dask cancelled or lost is started again."""
        if isinstance(error, self._cluster.distributed.KilledWorker):
            raise ClusterError(
                f"{self._cluster.name}: {self._calls[done.number].name} was given up: "
                f"{error.allowed_failures + 1} workers were lost while they ran it; the last was "
                f"{getattr(error.last_worker, 'address', error.last_worker)}: look at its log"
            ) from error
        if done.future.status == "error":
            raise error
        self._again([done])

    def _look(self) -> None:
        """Start again what no worker has, twice in a row: it may be on its way to the scheduler."""
        cluster, keys = self._cluster, list(self._running)
        states = cluster.call(lambda: cluster.scheduler.get_task_status(keys=keys))
        found = {key for key in keys if states.get(key) in _STRANDED}
        self._again([self._running.pop(key) for key in sorted(found & self._suspects)])
        self._suspects = found

    def _again(self, lost: list[_Running]) -> None:
        """Let calls wait for a worker again."""
        self._drop(lost)
        for number in () if self._only_there else sorted(run.number for run in lost):
            self._tries[number] += 1
            if self._tries[number] > _MOST_TRIES:
                raise ClusterError(
                    f"{self._cluster.name}: {self._calls[number].name} was given up: all workers "
                    f"were lost {self._tries[number]} times; look at their logs"
                )
            self._waiting.append(number)

    def _drop(self, lost: list[_Running]) -> None:
        """Forget tasks, wherever they are, which ends the waits for them."""
        client, futures = self._cluster.client, [running.future for running in lost]
        if futures:
            self._cluster.call(lambda: client.cancel(futures, force=True))

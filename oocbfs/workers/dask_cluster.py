"""A Dask cluster: connect to it, look at its workers, and let them run tasks.

Tasks are stateless: what a task needs travels with it, or is a file that every worker sees. So a
task of a worker that was lost is simply run again, by Dask, on another one. Nothing here knows what
the tasks do.
"""

from __future__ import annotations

import logging
import pickle
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple, TypeVar

from oocbfs import __version__
from oocbfs.errors import ClusterError
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.machine import usable_cores
from oocbfs.workers.dask_address import address_in, import_distributed, local_size
from oocbfs.workers.dask_guard import GUARDED

# How long a scheduler may take to answer, and a cluster without workers to get one.
CONNECT_SECONDS = 10.0
WORKER_SECONDS = 60.0
# How long workers may take to come to the end of what nobody waits for.
FINISH_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 1.0
# So many tasks may have lost all workers at once, before a cluster is given up.
_MOST_STRANDED = 100

Result = TypeVar("Result")


class Call(NamedTuple):
    """A call of a function of oocbfs on a worker; ``name`` is what people see of it.

    ``worker`` is the one that should run it, which keeps what it opened; any other may.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    worker: str | None = None


class DaskCluster(Closing):
    """A connection to a Dask cluster whose workers run this version of oocbfs.

    ``cluster`` is the address of a scheduler, the file that it writes, or ``local:N`` for N
    processes of this machine, which end with the connection.
    """

    def __init__(self, cluster: str) -> None:
        distributed = import_distributed()
        self.name = cluster
        self._token = secrets.token_hex(4)
        self._num_tasks = 0
        self._num_stranded = 0
        self._distributed = distributed
        self._closing = ExitStack()
        with ExitStack() as opened:
            # What Dask would say of lost workers and schedulers, we say in one line.
            silence = distributed.utils.silence_logging_cmgr
            opened.enter_context(silence(logging.CRITICAL))
            opened.enter_context(silence(logging.CRITICAL, root="tornado"))
            if cluster.startswith("local:"):
                target = self._start_local(local_size(cluster), opened)
            else:
                target = cluster if "://" in cluster else address_in(cluster)
            self._client = self._connect(target, opened)
            self._check_versions()
            self._closing = opened.pop_all()

    def _start_local(self, size: int, opened: ExitStack) -> Any:  # noqa: ANN401
        """Start processes of this machine, which share its cores."""
        cluster = self._distributed.LocalCluster(
            n_workers=size,
            threads_per_worker=max(1, usable_cores() // size),
            processes=True,
            memory_limit=None,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        opened.callback(cluster.close)
        return cluster

    def _connect(self, target: Any, opened: ExitStack) -> Any:  # noqa: ANN401
        try:
            client = self._distributed.Client(
                target, timeout=CONNECT_SECONDS, set_as_default=False, name="oocbfs"
            )
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            raise ClusterError(
                f"{self.name}: no Dask scheduler answers there: "
                f"{_first_line(error)}; start one with 'dask scheduler'"
            ) from error
        opened.callback(self._disconnect, client)
        return client

    @staticmethod
    def _disconnect(client: Any) -> None:  # noqa: ANN401
        """Leave, also from a scheduler that has gone already."""
        with suppress(Exception):
            client.close(timeout=2)

    def close(self) -> None:
        """Leave the cluster; processes of ``local:N`` end."""
        self._closing.close()

    def workers(self) -> dict[str, int]:
        """Give the threads of each worker that takes tasks, by address; waits until there is one.

        Raises
        ------
        ClusterError
            If none comes, or the scheduler has gone.
        """
        deadline = time.monotonic() + WORKER_SECONDS
        while True:
            found = self._call(self._client.scheduler_info)["workers"]
            threads = {
                address: int(worker["nthreads"])
                for address, worker in found.items()
                if worker["status"] == "running"
            }
            if threads:
                return threads
            if time.monotonic() > deadline:
                have = f"{len(found)} workers that take no tasks" if found else "no worker"
                raise ClusterError(
                    f"{self.name}: has {have}, and got none in {WORKER_SECONDS:.0f} s: "
                    "start some with 'dask worker', or allow those that pause more memory"
                )
            time.sleep(0.1)

    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function on every worker, and give the answers by address.

        Raises
        ------
        ClusterError
            If a worker raises an error, which is named with the worker.
        """
        self.workers()
        answers = self._call(self._client.run, function, *arguments, on_error="return")
        for address, answer in answers.items():
            if isinstance(answer, self._lost_errors):
                continue  # a worker that has just gone
            if isinstance(answer, BaseException):
                raise ClusterError(f"worker {address}: {_first_line(answer)}") from answer
        return {
            address: answer
            for address, answer in answers.items()
            if not isinstance(answer, BaseException)
        }

    def finish(self, name: str, function: Callable[..., Any], *arguments: object) -> None:
        """Call a function on every worker after the tasks that it has; waits a little for that.

        A worker may still have one that nobody waits for: it was lost, was given to another, and
        the first one came to its end after all.
        """
        deadline = time.monotonic() + FINISH_SECONDS
        places = {}
        for worker in self.workers():
            future = self.submit(Call(name, function, arguments, worker), anywhere=False)
            places[future] = worker
        while places and time.monotonic() < deadline:
            there = self.workers()
            done = self._wait(list(places))
            places = {
                f: worker for f, worker in places.items() if f not in done and worker in there
            }

    def run(self, tasks: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        """Run tasks, one at a time on each worker; yields number and result as they are done.

        Raises
        ------
        ClusterError
            If the workers of a task were lost again and again, or the scheduler was.
        OocbfsError
            That a task has raised.
        """
        waiting = deque(range(len(tasks)))
        running: dict[Any, int] = {}
        places: dict[Any, str] = {}
        try:
            while True:
                workers = self.workers()
                while waiting and len(running) < len(workers):
                    number = waiting.popleft()
                    free = set(workers).difference(places.values())
                    place = min(free or workers)
                    future = self.submit(tasks[number]._replace(worker=place))
                    running[future], places[future] = number, place
                if not running:
                    return
                done = self._wait(list(running))
                for future in done:
                    del places[future]
                    number, result = running.pop(future), self._gather([future])[0]
                    future.release()  # else it is computed again if its worker is lost later
                    yield number, result
                for future in () if done else self._stranded(places):
                    del places[future]
                    waiting.appendleft(running.pop(future))
        finally:
            with suppress(Exception):
                self._client.cancel(list(running), force=True)

    def map(self, tasks: Sequence[Call]) -> list[Any]:
        """Run tasks at the same time, and give their results in their order; see ``run``."""
        futures = {self.submit(task): number for number, task in enumerate(tasks)}
        while len(self._wait(list(futures), "ALL_COMPLETED")) < len(futures):
            self.workers()  # which are waited for, but not for ever
            places = {future: tasks[number].worker for future, number in futures.items()}
            for future in self._stranded(places):
                number = futures.pop(future)
                futures[self.submit(tasks[number]._replace(worker=None))] = number
        return self._gather(sorted(futures, key=lambda future: futures[future]))

    def submit(self, task: Call, *, anywhere: bool = True) -> Any:  # noqa: ANN401
        """Start a task, by default on another worker if its own is lost; gives Dask's future."""
        self._num_tasks += 1
        place = {} if task.worker is None else {"workers": [task.worker]}
        return self._call(
            self._client.submit,
            GUARDED,
            __version__,
            pickle.dumps((task.function, task.arguments), protocol=5),
            key=f"{task.name}-{self._token}-{self._num_tasks:06d}",
            pure=False,
            allow_other_workers=bool(place) and anywhere,
            **place,
        )

    def _gather(self, futures: list[Any]) -> list[Any]:
        """Give results through the scheduler, which takes less time than asking the workers."""
        try:
            answers = self._call(self._client.gather, futures, direct=False)
        except self._distributed.KilledWorker as error:
            name = str(error.task).split(f"-{self._token}")[0]
            raise ClusterError(
                f"{self.name}: {name} was given up: {error.allowed_failures + 1} workers were lost "
                "while they ran it; the last was "
                f"{getattr(error.last_worker, 'address', error.last_worker)}: look at its log"
            ) from error
        results = []
        for found, where, result in answers:
            self._check_version(where, found)
            results.append(result)
        return results

    def _wait(self, futures: list[Any], until: str = "FIRST_COMPLETED") -> set[Any]:
        """Wait until some are done, or for a moment, in which workers may have come or gone."""
        options = {"timeout": _LOOK_AGAIN_SECONDS, "return_when": until}
        try:
            with self._client.as_current():
                done = self._call(self._distributed.wait, futures, **options)
        except TimeoutError:
            return set()
        return set(done.done)

    def _stranded(self, places: Mapping[Any, str | None]) -> list[Any]:
        """Find and cancel tasks that no worker will get: theirs was lost while there was no other.

        Dask then waits for that very worker, although it was only to be preferred.
        """
        workers = self.workers()
        if all(place is None or place in workers for place in places.values()):
            return []
        given = {key for keys in self._call(self._client.processing).values() for key in keys}
        found = [
            future
            for future, place in places.items()
            if place not in workers and future.status == "pending" and future.key not in given
        ]
        self._num_stranded += len(found)
        if self._num_stranded > _MOST_STRANDED:
            raise ClusterError(
                f"{self.name}: all workers were lost again and again; see their logs"
            )
        self._call(self._client.cancel, found, force=True)
        return found

    def _call(self, function: Callable[..., Result], *arguments: object, **named: object) -> Result:
        """Call something of Dask's that fails if the scheduler has gone."""
        try:
            if self._client.status == "running":
                return function(*arguments, **named)
        except TimeoutError:
            raise
        except self._lost_errors as error:
            raise self._gone() from error
        raise self._gone()

    def _gone(self) -> ClusterError:
        return ClusterError(f"{self.name}: the scheduler went away")

    @property
    def _lost_errors(self) -> tuple[type[BaseException], ...]:
        distributed = self._distributed
        return distributed.comm.CommClosedError, distributed.CancelledError, ConnectionError

    def _check_versions(self) -> None:
        """Ask every worker which oocbfs it has, by code that needs none."""
        for address, (found, _, _) in self.ask(GUARDED, __version__, b"").items():
            self._check_version(address, found)

    def _check_version(self, address: str, found: str | None) -> None:
        if found != __version__:
            has = "has no oocbfs" if found is None else f"runs oocbfs {found}"
            raise ClusterError(
                f"{self.name}: worker {address} {has}, and this is {__version__}: "
                "install the same everywhere"
            )


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]

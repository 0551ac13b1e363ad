"""A connection to a Dask cluster: its workers, and calls that end, whoever is gone or silent."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from oocbfs import __version__
from oocbfs.errors import ClusterError
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.machine import usable_cores
from oocbfs.workers.dask_address import address_in, import_distributed, local_size
from oocbfs.workers.dask_guard import GUARDED
from oocbfs.workers.dask_loop import Loop

# How long a scheduler may be away, and how long one that is there may take to answer.
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
# How long workers may take to answer; those that are silent for so long are lost to Dask, too.
SILENT_SECONDS = 300.0
# How long a cluster without workers may take to get one.
WORKER_SECONDS = 60.0
# How long leaving may take, and ending processes of this machine.
_LEAVE_SECONDS = 2.0
_END_SECONDS = 30.0

Result = TypeVar("Result")


class Connection(Closing):
    """A connection to a Dask cluster whose workers run this version of oocbfs.

    ``cluster`` is the address of a scheduler, the file that it writes, or ``local:N`` for N
    processes of this machine, which end with the connection.
    """

    def __init__(self, cluster: str) -> None:
        self.name = cluster
        self.distributed = distributed = import_distributed()
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
            self.client = self._connect(target, opened)
            self.loop = Loop(self.client.loop)
            self._check_versions()
            self._closing = opened.pop_all()

    def _start_local(self, size: int, opened: ExitStack) -> Any:
        """Start processes of this machine, which share its cores."""
        cluster = self.distributed.LocalCluster(
            n_workers=size,
            threads_per_worker=max(1, usable_cores() // size),
            processes=True,
            memory_limit=None,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        opened.callback(_leave, cluster, _END_SECONDS)
        return cluster

    def _connect(self, target: Any, opened: ExitStack) -> Any:
        try:
            client = self.distributed.Client(
                target, timeout=CONNECT_SECONDS, set_as_default=False, name="oocbfs"
            )
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            raise ClusterError(
                f"{self.name}: no Dask scheduler answers there: "
                f"{_first_line(error)}; start one with 'dask scheduler'"
            ) from error
        opened.callback(_leave, client, _LEAVE_SECONDS)
        return client

    def close(self) -> None:
        """Leave the cluster; processes of ``local:N`` end."""
        self._closing.close()

    def running_workers(self) -> dict[str, int]:
        """Return the threads of each worker that takes tasks, by address; there may be none."""
        found = self.call(lambda: self.scheduler.identity())["workers"]
        return {
            address: int(worker["nthreads"])
            for address, worker in found.items()
            if worker["status"] == "running"
        }

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker that takes tasks, by address; waits until there is one.

        Raises
        ------
        ClusterError
            If none comes, or the scheduler has gone.
        """
        deadline = time.monotonic() + WORKER_SECONDS
        while not (found := self.running_workers()):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{self.name}: has no worker that takes tasks, and got none in "
                    f"{WORKER_SECONDS:.0f} s: start some with 'dask worker', or allow those that "
                    "pause more memory"
                )
            time.sleep(0.1)
        return found

    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function on every worker, and give the answers by address.

        Raises
        ------
        ClusterError
            If a worker raises an error, which is named with the worker.
        """
        self.workers()
        answers = self.call(
            lambda: self.client.run(function, *arguments, on_error="return"), SILENT_SECONDS
        )
        for address, answer in answers.items():
            if isinstance(answer, self.lost_errors):
                continue  # a worker that has just gone
            if isinstance(answer, BaseException):
                raise ClusterError(f"worker {address}: {_first_line(answer)}") from answer
        return {
            address: answer
            for address, answer in answers.items()
            if not isinstance(answer, BaseException)
        }

    def call(
        self, function: Callable[[], Awaitable[Result]], seconds: float | None = None
    ) -> Result:
        """Call something of Dask's that may be called twice; a scheduler may be away for a while.

        Raises
        ------
        ClusterError
            If the scheduler has gone, or nobody answers.
        """
        seconds = ANSWER_SECONDS if seconds is None else seconds
        deadline = time.monotonic() + CONNECT_SECONDS
        lost: tuple[type[BaseException], ...] = (OSError, *self.lost_errors)
        while True:
            self.reach()
            try:
                return self.loop.answer(function, seconds)
            except TimeoutError as error:
                raise ClusterError(
                    f"{self.name}: no answer in {seconds:.0f} s: look at the logs of its scheduler "
                    "and workers"
                ) from error
            except lost as error:
                if time.monotonic() > deadline:
                    raise self._gone() from error
            time.sleep(0.1)

    @property
    def scheduler(self) -> Any:
        """What the scheduler may be asked for, in a call."""
        if self.client.scheduler is None:
            raise self._gone()
        return self.client.scheduler

    def reach(self) -> None:
        """Wait until there is a connection to the scheduler, which may have been lost.

        Raises
        ------
        ClusterError
            If Dask has given it up.
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        while self.client.status != "running":
            if self.client.status != "connecting" or time.monotonic() > deadline:
                raise self._gone()
            time.sleep(0.1)

    def _gone(self) -> ClusterError:
        return ClusterError(f"{self.name}: the scheduler went away")

    @property
    def lost_errors(self) -> tuple[type[BaseException], ...]:
        """What Dask raises if somebody has gone."""
        cancelled = self.distributed.CancelledError, asyncio.CancelledError
        return self.distributed.comm.CommClosedError, ConnectionError, *cancelled

    def _check_versions(self) -> None:
        """Ask every worker which oocbfs it has, by code that needs none."""
        for address, (found, _, _) in self.ask(GUARDED, __version__, b"").items():
            self.check_version(address, found)

    def check_version(self, address: str, found: str | None) -> None:
        """Refuse a worker of another version."""
        if found != __version__:
            has = "has no oocbfs" if found is None else f"runs oocbfs {found}"
            raise ClusterError(
                f"{self.name}: worker {address} {has}, and this is {__version__}: "
                "install the same everywhere"
            )


def _leave(opened: Any, seconds: float) -> None:
    """Leave a scheduler or end a cluster, also one that has gone already."""
    with suppress(Exception):
        opened.close(timeout=seconds)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]

"""A Dask cluster of real processes: a scheduler in this one, workers that can be killed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import dask
from distributed import LocalCluster, SchedulerPlugin

# Nannies of a busy machine take longer to restart a worker than Dask waits for them.
_PATIENT = {
    "distributed.deploy.lost-worker-timeout": "600s",
    "distributed.comm.timeouts.connect": "120s",
}


@contextmanager
def started_cluster(folder: Path, **options: Any) -> Generator[LocalCluster]:
    """Start a scheduler and workers, which keep what they spill in the folder."""
    with (
        dask.config.set({**_PATIENT, "temporary-directory": str(folder)}),
        LocalCluster(
            **{"n_workers": 2, "threads_per_worker": 1, "memory_limit": None, **options},
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
    ):
        yield cluster


class Killer(SchedulerPlugin):  # type: ignore[misc]
    """Kills workers with SIGKILL while they have a task, and counts the tasks that were lost so.

    ``when`` is asked for every task that is sent to a worker, by its name, and gives the seconds
    after which the worker dies, or None. No task loses two workers, and one worker is left, unless
    ``all_at_once``, where every worker dies with the first. ``moment`` is the scheduler's word for
    the state of a task in which that happens: "memory" is one that is done, and not yet fetched.
    """

    name = "killer"

    def __init__(
        self,
        cluster: LocalCluster,
        when: Callable[[str], float | None],
        *,
        all_at_once: bool = False,
        moment: str = "processing",
    ) -> None:
        self._cluster = cluster
        self._all_at_once = all_at_once
        self._moment = moment
        self.killed: set[str] = set()
        self._scheduler = cluster.scheduler
        self._when = when
        self._hit: set[str] = set()
        # Tasks whose worker was lost while the scheduler waited for their results.
        self.lost: list[str] = []

    def __enter__(self) -> Self:
        self._cluster.scheduler.add_plugin(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._cluster.scheduler.remove_plugin(self.name)

    def transition(self, key: str, start: str, finish: str, *_: Any, **__: Any) -> None:
        """Is told by the scheduler whenever a task gets a new state."""
        if not key.startswith("oocbfs"):
            return
        if finish == self._moment and key not in self._hit:
            delay = self._when(key)
            if delay is not None:
                self._hit.add(key)
                if delay == 0:
                    self._kill(key)  # before the task was even sent
                else:
                    self._scheduler.loop.call_later(delay, self._kill, key)
        elif start == self._moment and finish in ("released", "waiting") and key in self._hit:
            self.lost.append(key)

    def _kill(self, key: str) -> None:
        task = self._scheduler.tasks.get(key)
        worker = task and (task.processing_on or next(iter(task.who_has or ()), None))
        others = set(self._scheduler.workers) - self.killed
        if not worker or (others <= {worker.address} and not self._all_at_once):
            self._hit.discard(key)  # it was faster, or the worker is the last one
            return
        for nanny in self._cluster.workers.values():
            if self._all_at_once or nanny.worker_address == worker.address:
                self.killed.add(nanny.worker_address)
                os.kill(nanny.pid, signal.SIGKILL)


@contextmanager
def started(folder: Path, program: str, *options: object, **environment: str) -> Generator[int]:
    """Start a scheduler or a worker as people do; returns its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{program}", *map(str, options)],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(60)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that processes do, but not for ever."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "processes of the cluster take too long"
        time.sleep(0.05)


def wait_for_workers(cluster: LocalCluster, count: int) -> None:
    """Wait until killed workers are there again."""
    wait_until(lambda: len(cluster.scheduler.workers) >= count)


def most_memory() -> int:
    """Return the most bytes that this process has occupied; getrusage counts its parent's, too."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def at_random(seed: int, share: float, longest: float) -> Callable[[str], float | None]:
    """Choose so many of the tasks, and moments of up to so many seconds."""
    rng = random.Random(seed)
    return lambda key: rng.uniform(0, longest) if rng.random() < share else None

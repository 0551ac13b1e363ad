"""A Dask cluster of real processes: a scheduler in this one, workers that can be killed."""

from __future__ import annotations

import os
import random
import re
import signal
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
    ``all_at_once``, where every worker dies with the first.
    """

    name = "killer"

    def __init__(
        self,
        cluster: LocalCluster,
        when: Callable[[str], float | None],
        *,
        all_at_once: bool = False,
    ) -> None:
        self._cluster = cluster
        self._all_at_once = all_at_once
        self._dying: set[str] = set()
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
        if finish == "processing" and key not in self._hit:
            delay = self._when(key)
            if delay is not None:
                self._hit.add(key)
                if delay == 0:
                    self._kill(key)  # before the task was even sent
                else:
                    self._scheduler.loop.call_later(delay, self._kill, key)
        elif start == "processing" and finish in ("released", "waiting") and key in self._hit:
            self.lost.append(key)

    def _kill(self, key: str) -> None:
        task = self._scheduler.tasks.get(key)
        worker = task and task.processing_on
        others = set(self._scheduler.workers) - self._dying
        if worker is None or (others <= {worker.address} and not self._all_at_once):
            self._hit.discard(key)  # it was faster, or the worker is the last one
            return
        for nanny in self._cluster.workers.values():
            if self._all_at_once or nanny.worker_address == worker.address:
                self._dying.add(nanny.worker_address)
                os.kill(nanny.pid, signal.SIGKILL)


def wait_for_workers(cluster: LocalCluster, count: int) -> None:
    """Wait until killed workers are there again."""
    deadline = time.monotonic() + 300
    while len(cluster.scheduler.workers) < count:
        assert time.monotonic() < deadline, "killed workers did not come back"
        time.sleep(0.05)


def most_memory() -> int:
    """Give the most bytes that this process has occupied; getrusage counts its parent's, too."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def at_random(seed: int, share: float, longest: float) -> Callable[[str], float | None]:
    """Choose so many of the tasks, and moments of up to so many seconds."""
    rng = random.Random(seed)
    return lambda key: rng.uniform(0, longest) if rng.random() < share else None

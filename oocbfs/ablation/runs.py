"""Run methods from several sources in several schedules, and keep what was counted.

The emulator runs on one thread. Every core therefore has a process of its own, with the graph open,
and takes one method and one source at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from statistics import median
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from oocbfs.ablation.groups import ENGINE
from oocbfs.ablation.plan import Plan, Trial
from oocbfs.errors import ClusterError, OocbfsError, QueryError, QueueError
from oocbfs.processes import PipedProcess
from oocbfs.results.bfs import BfsResult
from oocbfs.results.counts import Counts
from oocbfs.search import graph as graphs
from oocbfs.settings import Settings

# What the pictures show of each level.
LEVEL_COUNTS = ("edges_examined", "duplicates", "pcie_sectors", "device_sectors", "launches")


@dataclass(frozen=True)
class Run:
    """What one search counted: in sum, and by level as columns."""

    source: int
    seed: int
    counts: dict[str, float]
    directions: list[str]
    num_levels: NDArray[np.int64]
    by_level: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Row:
    """A method on a graph: all its runs, or why it cannot hold the graph."""

    method: str
    runs: list[Run]
    failure: str | None = None

    def median(self, count: str) -> float | None:
        """Return the median over sources and schedules, or None where it was not counted."""
        values = [run.counts[count] for run in self.runs if count in run.counts]
        return None if self.failure or not values else median(values)


def run_all(
    plan: Plan, *, processes: int, advance: Callable[[int], object] = lambda _: None
) -> Iterator[Row]:
    """Yield a row for each method in their order, as soon as those before it are done.

    Raises
    ------
    QueryError
        If a method's levels are not those of the CPU engine.
    """
    left = {method: len(plan.expected) for method in plan.methods}
    done: dict[str, list[Run | str]] = {method: [] for method in plan.methods}
    waiting = iter(plan.methods)
    method = next(waiting, None)
    for trial, found in _finished(plan, processes):
        done[trial.method] += found
        left[trial.method] -= 1
        advance(len(found))
        while method is not None and not left[method]:
            yield _row(method, done.pop(method), plan.num_runs)
            method = next(waiting, None)


def _row(method: str, found: list[Run | str], num_runs: int) -> Row:
    runs = sorted(
        (run for run in found if isinstance(run, Run)), key=lambda run: (run.source, run.seed)
    )
    failures = [failure for failure in found if isinstance(failure, str)]
    if not failures:
        return Row(method, runs)
    return Row(method, runs, f"{failures[0]} ({len(failures)} of {num_runs} runs)")


def _finished(plan: Plan, processes: int) -> Iterator[tuple[Trial, list[Run | str]]]:
    """Run all trials, in other processes unless one is enough; yields them as they end."""
    if processes == 1:
        with graphs.open_file(plan.path) as graph:
            for trial in plan.trials:
                yield trial, try_method(graph, trial, plan)
        return
    workers = [PipedProcess(run_trials) for _ in range(min(processes, len(plan.trials)))]
    try:
        yield from _shared(plan, workers)
    except BaseException:
        for worker in workers:
            worker.kill()
        raise
    finally:
        for worker in workers:
            worker.stop()
            worker.join()


def _shared(plan: Plan, workers: Sequence[PipedProcess]) -> Iterator[tuple[Trial, list[Run | str]]]:
    """Run one trial after the other in each process; yields them as they end."""
    waiting = iter(plan.trials)
    busy: dict[object, tuple[PipedProcess, Trial]] = {}

    def occupy(worker: PipedProcess) -> None:
        for trial in islice(waiting, 1):
            worker.send(trial)
            busy[worker.pipe] = worker, trial

    for worker in workers:
        worker.send(plan)
        occupy(worker)
    while busy:
        for pipe in wait([worker.pipe for worker, _ in busy.values()]):
            worker, trial = busy.pop(pipe)
            try:
                found: list[Run | str] | OocbfsError = worker.pipe.recv()
            except (EOFError, OSError) as error:
                worker.join()
                raise ClusterError(
                    f"{plan.path}: the process that ran method {trial.method} was lost "
                    f"({worker.describe_end()}): run it again with fewer --threads"
                ) from error
            if isinstance(found, OocbfsError):
                raise found
            occupy(worker)
            yield trial, found


def run_trials(pipe: Connection) -> None:
    """Run the trials that come through a pipe after their plan: what a process does."""
    plan: Plan = pipe.recv()
    with graphs.open_file(plan.path) as graph:
        while True:
            trial: Trial = pipe.recv()
            try:
                pipe.send(try_method(graph, trial, plan))
            except OocbfsError as error:
                pipe.send(error)


def try_method(graph: graphs.Graph, trial: Trial, plan: Plan) -> list[Run | str]:
    """Run a method from one source in every schedule; a queue that overflowed is its message."""
    found: list[Run | str] = []
    for schedule in plan.schedules:
        try:
            result = graph.bfs(
                trial.source,
                engine=ENGINE,
                options=Settings(method=trial.method, schedule=schedule),
            )
        except QueueError as error:
            found.append(str(error))
            continue
        if not np.array_equal(result.levels, plan.expected[trial.source]):
            raise QueryError(
                f"{plan.path}: method {trial.method} from {trial.source} with seed {schedule.seed} "
                "does not give the levels of the CPU engine: please report this"
            )
        found.append(_counted(result, trial, schedule.seed))
    return found


def _counted(result: BfsResult, trial: Trial, seed: int) -> Run:
    levels = list(result.stats.levels)
    by_level = [flat(level.counts) for level in levels]
    return Run(
        source=trial.source,
        seed=seed,
        counts=flat(result.stats.counts),
        directions=[level.direction for level in levels],
        num_levels=np.array([level.num_levels for level in levels], np.int64),
        by_level={
            name: np.array([counts.get(name, 0) for counts in by_level], np.float64)
            for name in LEVEL_COUNTS
        },
    )


def flat(counts: Counts | None) -> dict[str, float]:
    """Return numbers by name, without what was not counted; atomics also by array."""
    if counts is None:
        return {}
    listed = {name: value for name, value in counts.summary().items() if is_number(value)}
    hottest = {} if counts.hottest_word is None else {"hottest_word": counts.hottest_word.atomics}
    by_array = counts.atomics_by_array or {}
    return {**listed, **hottest, **{f"atomics.{name}": n for name, n in by_array.items()}}


def is_number(value: object) -> TypeGuard[float]:
    """Return whether something was counted."""
    return isinstance(value, int | float)

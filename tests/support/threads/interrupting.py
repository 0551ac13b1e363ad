"""Interrupt things again and again at random microseconds, and see that nothing is left behind.

``python -m tests.support.threads.interrupting disk --times 2000 --seed 1`` prints how often it was
interrupted, and threads and open files before and after. A run that hangs prints all stacks and
ends with 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

import oocbfs
from oocbfs.formats.io.ordered import ordered_map, read_ahead
from oocbfs.generate import generators
from oocbfs.progress import Lines
from oocbfs.settings import Settings

# The most seconds that one try may take, interrupted or not, on a busy machine.
LIMIT_SECONDS = 60


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C of ours."""


def _double(number: int) -> int:
    time.sleep(0)
    return 2 * number


def _count_ahead() -> int:
    with closing(read_ahead(iter(range(20)))) as items:
        return sum(items)


def _map_in_order() -> int:
    with closing(ordered_map(_double, range(40), 4)) as results:
        return sum(results)


def _watch_progress() -> int:
    with Lines("read", 10, "B") as lines:
        lines.update(3)
        return lines.n


def _searches(folder: Path) -> dict[str, Callable[[], object]]:
    path = folder / "g.ocg"
    oocbfs.convert(generators.kron(12), path, progress=False)
    graph = oocbfs.open(path)
    hub = int(graph._stored.ids_of(np.array([0]))[0])

    def open_and_search() -> object:
        with oocbfs.open(path) as mine:
            return mine.bfs(hub, engine="disk", threads=4).level_sizes.tolist()

    def search_from_disk() -> object:
        return graph.bfs(
            hub, engine="disk", threads=4, options=Settings(direction="bottom-up")
        ).level_sizes.tolist()

    def search() -> object:
        return graph.bfs(hub, engine="cpu", threads=4).level_sizes.tolist()

    return {"disk": search_from_disk, "bfs": search, "open": open_and_search}


def _things(folder: Path) -> dict[str, Callable[[], object]]:
    return {
        "ahead": _count_ahead,
        "ordered": _map_in_order,
        "progress": _watch_progress,
        **_searches(folder),
    }


THINGS = ("ahead", "ordered", "progress", "disk", "bfs", "open")


def interrupt(thing: Callable[[], object], times: int, seed: int) -> int:
    """Do a thing so often, with Ctrl-C at some moment; return how often it came in time."""
    expected = thing()
    start = time.perf_counter()
    for _ in range(5):
        thing()
    usual_seconds = (time.perf_counter() - start) / 5
    rng = random.Random(seed)
    interrupted = 0
    is_armed = False

    def handle(*_: object) -> None:
        if is_armed:
            raise _Interrupted

    before = signal.signal(signal.SIGALRM, handle)
    try:
        for _ in range(times):
            faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
            try:
                is_armed = True
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 1.2 * usual_seconds))
                found = thing()
                is_armed = False
            except _Interrupted:
                is_armed = False
                interrupted += 1
            else:
                if found != expected:
                    raise SystemExit(f"{found} instead of {expected}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()
    if thing() != expected:
        raise SystemExit("wrong after interruptions")
    return interrupted


def _counts() -> tuple[int, int]:
    """Count threads and open files of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def _settled(limit: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Look until there are no more threads than before, or for a while; yields what was seen."""
    for _ in range(100):
        gc.collect()
        counts = _counts()
        yield counts
        if counts[0] <= limit[0] and counts[1] <= limit[1]:
            return
        time.sleep(0.2)


def main() -> None:
    """Interrupt what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("things", nargs="*", help=", ".join(THINGS))
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        things = _things(Path(folder))
        for name in options.things or THINGS:
            things[name]()
            before = _counts()
            interrupted = interrupt(things[name], options.times, options.seed)
            *_, after = _settled(before)
            print(
                f"{name}: {interrupted} of {options.times} interrupted; "
                f"threads {before[0]} -> {after[0]}, files {before[1]} -> {after[1]}"
            )


if __name__ == "__main__":
    main()

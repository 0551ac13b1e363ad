"""Count searches that never end, or end wrong, when all workers of a Dask cluster are lost at once.

``python -m tests.support.clusters.dask_losses --moment memory --count 16``: workers die with the
first task that is done and not fetched, the second, and so on; ``processing`` is a task that is
being sent.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from distributed import LocalCluster

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.errors import OocbfsError
from oocbfs.generate import generators
from tests.support.clusters.dask_processes import Killer, started_cluster, wait_for_workers

# Tasks of a search in two shards that come before its end for certain.
_TASKS = 10


def search(folder: Path, cluster: str, expected: np.ndarray) -> None:
    """Search in a process that may hang; its exit code tells whether it was right."""
    try:
        with oocbfs.open(folder, cluster=cluster) as graph:
            found = graph.bfs(1, parents=True, validate=True).levels
    except OocbfsError as error:
        print(error, flush=True)
        raise SystemExit(3) from error
    raise SystemExit(0 if np.array_equal(found, expected) else 4)


def outcome(
    cluster: LocalCluster,
    moment: str,
    number: int,
    folder: Path,
    expected: np.ndarray,
    limit: float,
) -> str:
    """Search while all workers are killed at the moment of one task; returns what came of it."""
    seen: set[str] = set()

    def when(key: str) -> float | None:
        seen.add(key)
        return 0 if len(seen) == number else None

    wait_for_workers(cluster, 2)
    with Killer(cluster, when, all_at_once=True, moment=moment) as killer:
        process = multiprocessing.get_context("spawn").Process(
            target=search, args=(folder, cluster.scheduler_address, expected), daemon=True
        )
        process.start()
        process.join(limit)
        code = process.exitcode
        process.kill()
        process.join()
    if not killer.killed:
        return "nobody was killed"
    return {None: "hung", 0: "right", 3: "ended in one line"}.get(code, f"wrong ({code})")


def main() -> None:
    """Print how many searches hung, and how many were right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moment", choices=("memory", "processing"), default="memory")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--limit", type=float, default=90.0, help="seconds until it counts as hung")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        graph, folder = Path(root, "kron.ocg"), Path(root, "parts")
        oocbfs.convert(generators.kron(12), graph)
        shard(graph, folder, parts=2)
        with oocbfs.open(graph) as whole:
            expected = whole.bfs(1).levels
        found: Counter[str] = Counter()
        with started_cluster(Path(root, "workers")) as cluster:
            for number in (1 + n % _TASKS for n in range(options.count)):
                began = time.monotonic()
                what = outcome(cluster, options.moment, number, folder, expected, options.limit)
                print(f"task {number}: {what}, {time.monotonic() - began:.1f} s", flush=True)
                found[what] += 1
    print(", ".join(f"{what}: {count} of {options.count}" for what, count in found.items()))


if __name__ == "__main__":
    main()

"""What Dask workers may take: their limits are budgets, and are kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client

import oocbfs
from oocbfs.cluster.local import LocalProcesses
from oocbfs.cluster.sharding import shard
from oocbfs.errors import OocbfsError
from oocbfs.generate import generators
from oocbfs.search.sharded import ShardedGraph
from oocbfs.settings import Settings
from oocbfs.workers import dask_limits
from tests.support.clusters.dask_processes import most_memory, started_cluster
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs

MB = 1 << 20


def worker(limit: int | None, pause: float | bool = 0.8) -> SimpleNamespace:
    """Return what a task sees of a worker with such a limit."""
    manager = SimpleNamespace(memory_limit=limit, memory_pause_fraction=pause)
    return SimpleNamespace(address="tcp://10.0.0.1:1", memory_manager=manager)


def test_limits_are_kept_up_to_where_dask_would_pause() -> None:
    assert dask_limits.allowed_bytes(worker(None)) is None
    assert dask_limits.allowed_bytes(worker(1000 * MB)) == 800 * MB
    assert dask_limits.allowed_bytes(worker(1000 * MB, False)) == 900 * MB
    assert dask_limits.budget_bytes(worker(None), 10 * MB, None) is None
    assert dask_limits.budget_bytes(worker(None), 10 * MB, "1G") == 1 << 30
    # A mapped file counts; one that would fill the worker is read from disk, as its budget says.
    assert dask_limits.budget_bytes(worker(1000 * MB), 300 * MB, None) == 500 * MB
    assert dask_limits.budget_bytes(worker(1000 * MB), 300 * MB, "400M") == 400 * MB
    for file_bytes in (401 * MB, 700 * MB, 5000 * MB):
        budget = dask_limits.budget_bytes(worker(1000 * MB), file_bytes, None)
        assert budget is not None
        assert budget < file_bytes
        assert budget <= 800 * MB


@pytest.mark.long
@pytest.mark.skipif(not ALL, reason="converts a large graph, and starts four workers")
def test_four_workers_keep_their_limits(tmp_path: Path, shared_graphs: SharedGraphs) -> None:
    graph = shared_graphs.make("cluster-kron20", lambda: generators.kron(20))
    four = tmp_path / "four"
    manifest = shard(graph, four, parts=4)
    shard_bytes = max(part.bytes for part in manifest.shards)
    # A worker that has loaded all it needs counts for some 210 MB.
    limit = int((222 * MB + 5 * shard_bytes // 2) / 0.8)
    with (
        started_cluster(tmp_path, n_workers=4, memory_limit=limit) as cluster,
        Client(cluster.scheduler_address, set_as_default=False) as client,
        oocbfs.open(four, cluster=cluster.scheduler_address) as parts,
        oocbfs.open(graph) as whole,
    ):
        expected = whole.bfs(1).levels
        for _ in range(3):  # the first one may find workers that are still busy with loading
            result = parts.bfs(1)
            np.testing.assert_array_equal(result.levels, expected)
        assert "disk" not in result.stats.slow_bytes_by_tier
        peaks = client.run(most_memory)
    assert len(peaks) == 4
    most = 200 * MB + shard_bytes + 3 * manifest.num_vertices // 8
    assert max(peaks.values()) <= most


@pytest.fixture
def limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what lets processes that are started be refused more memory than so much."""
    python = tmp_path / "python"

    def limit_to(most_bytes: int) -> None:
        program = f'#!/bin/sh\nulimit -v {most_bytes >> 10}\nexec "{real}" "$@"\n'
        python.write_text(program)
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))

    real = sys.executable
    # Threads would else reserve addresses that they do not use, as long as there are some.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    return limit_to


def said_of(graph: ShardedGraph, name: str) -> list[int]:
    """Return what the kernel counted of each worker, in bytes."""
    exchange = graph._stored.exchange(Settings(threads=1))
    assert isinstance(exchange, LocalProcesses)
    found = []
    for worker in exchange._workers:
        lines = Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
        found.append(next(int(line.split()[1]) << 10 for line in lines if line.startswith(name)))
    return found


@pytest.mark.long
def test_what_one_worker_cannot_hold_four_can(
    tmp_path: Path, shared_graphs: SharedGraphs, limit: Callable[[int], None]
) -> None:
    """The limit is the kernel's: no process may map more, wherever it is from."""
    graph = shared_graphs.make("cluster-uniform", lambda: generators.uniform(21, 4))
    tiny = shared_graphs.make("batch-kron12", lambda: generators.kron(12))
    one = shard(graph, tmp_path / "one", parts=1)
    four = shard(graph, tmp_path / "four", parts=4)
    shard(tiny, tmp_path / "tiny", parts=1)
    for _ in range(2):  # the first one may compile
        with oocbfs.open(tmp_path / "tiny", cluster="local:1") as small:
            small.bfs(1, threads=1)
            (program,) = said_of(small, "VmPeak")
    # Room for the program and for two thirds of the graph.
    limit(program + one.shards[0].bytes * 2 // 3)
    with (
        oocbfs.open(tmp_path / "one", cluster="local:1") as alone,
        pytest.raises(OocbfsError, match=r"part-0\.ocg.* memory") as refused,
    ):
        alone.bfs(1, threads=1)
    assert "\n" not in str(refused.value)
    with oocbfs.open(tmp_path / "four", cluster="local:4") as parts, oocbfs.open(graph) as whole:
        result = parts.bfs(1, threads=1)
        np.testing.assert_array_equal(result.levels, whole.bfs(1).levels)
        assert result.reached > 1 << 20
        peaks = said_of(parts, "VmHWM")
    most = 200 * MB + max(part.bytes for part in four.shards) + 3 * four.num_vertices // 8
    print(f"workers took {peaks}, {most} are allowed; one shard is {one.shards[0].bytes}")
    assert len(peaks) == 4
    assert max(peaks) <= most

"""What Dask workers may take: their limits are budgets, and are kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.generate import generators
from oocbfs.workers import dask_limits
from tests.support.dask_processes import most_memory, started_cluster
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs

MB = 1 << 20


def worker(limit: int | None, pause: float | bool = 0.8) -> SimpleNamespace:
    """Give what a task sees of a worker with such a limit."""
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
    part_bytes = max(part.bytes for part in manifest.parts)
    # A worker that has loaded all it needs counts for some 210 MB.
    limit = int((222 * MB + 5 * part_bytes // 2) / 0.8)
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
    most = 200 * MB + part_bytes + 3 * manifest.num_vertices // 8
    assert max(peaks.values()) <= most

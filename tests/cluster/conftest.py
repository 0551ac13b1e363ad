"""Sharded graphs and clusters that several test modules share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.generate import generators
from tests.support.clusters.dask_processes import started_cluster, wait_for_workers
from tests.support.shared import SharedGraphs


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine take its time; tests of what never comes say how long they wait."""
    for name in ("CONNECT_SECONDS", "ANSWER_SECONDS", "WORKER_SECONDS"):
        monkeypatch.setattr(f"oocbfs.workers.dask_connection.{name}", 120.0)
    monkeypatch.setattr("oocbfs.workers.dask_cluster.FINISH_SECONDS", 120.0)


@pytest.fixture(scope="session")
def social(shared_graphs: SharedGraphs) -> Path:
    """Return a directed graph in which half of the edges lead to few vertices."""

    def edges() -> np.ndarray:
        rng = np.random.default_rng(4)
        hubs = (rng.random(20_000) ** 6 * 3000).astype(np.int64)
        return np.stack([rng.integers(0, 3000, 20_000), hubs], axis=1)

    return shared_graphs.make("cluster-social", edges, directed=True, order="degree")


@pytest.fixture
def folder(social: Path, tmp_path: Path) -> Path:
    """Return the same graph in three shards, which a test may change."""
    shard(social, tmp_path / "parts", parts=3)
    return tmp_path / "parts"


@pytest.fixture
def levels(social: Path) -> np.ndarray:
    """Return the levels of the same graph from vertex 5."""
    with oocbfs.open(social) as graph:
        return graph.bfs(5).levels


@pytest.fixture(scope="session")
def kron(shared_graphs: SharedGraphs) -> Path:
    """Return a small Kronecker graph."""
    return shared_graphs.make("batch-kron12", lambda: generators.kron(12))


@pytest.fixture(scope="session")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Return a cluster of two processes, one for the whole run."""
    with started_cluster(tmp_path_factory.mktemp("workers")) as cluster:
        yield cluster


@pytest.fixture
def dask_cluster(one_cluster: LocalCluster) -> LocalCluster:
    """Return the cluster with all its workers."""
    wait_for_workers(one_cluster, 2)
    return one_cluster

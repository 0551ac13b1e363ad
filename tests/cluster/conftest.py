"""Clusters that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from oocbfs.generate import generators
from tests.support.dask_processes import started_cluster, wait_for_workers
from tests.support.shared import SharedGraphs


@pytest.fixture(scope="session")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Give a cluster of two processes, one for the whole run."""
    with started_cluster(tmp_path_factory.mktemp("workers")) as cluster:
        yield cluster


@pytest.fixture
def dask_cluster(one_cluster: LocalCluster) -> LocalCluster:
    """Give the cluster with all its workers."""
    wait_for_workers(one_cluster, 2)
    return one_cluster


@pytest.fixture(scope="session")
def graph(shared_graphs: SharedGraphs) -> Path:
    """Give a small Kronecker graph."""
    return shared_graphs.make("batch-kron12", lambda: generators.kron(12))

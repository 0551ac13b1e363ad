"""Graphs in parts that several test modules search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.cluster.sharding import shard
from tests.support.shared import SharedGraphs


@pytest.fixture(scope="session")
def social(shared_graphs: SharedGraphs) -> Path:
    """Give a directed graph in which half of the edges lead to few vertices."""

    def edges() -> np.ndarray:
        rng = np.random.default_rng(4)
        hubs = (rng.random(20_000) ** 6 * 3000).astype(np.int64)
        return np.stack([rng.integers(0, 3000, 20_000), hubs], axis=1)

    return shared_graphs.make("cluster-social", edges, directed=True, order="degree")


@pytest.fixture
def folder(social: Path, tmp_path: Path) -> Path:
    """Give the same graph in three parts, which a test may change."""
    shard(social, tmp_path / "parts", parts=3)
    return tmp_path / "parts"


@pytest.fixture
def levels(social: Path) -> np.ndarray:
    """Give the levels of the same graph from vertex 5."""
    with oocbfs.open(social) as graph:
        return graph.bfs(5).levels

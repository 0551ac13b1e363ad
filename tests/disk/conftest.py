"""Graphs of several test modules of this folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.shared import SharedGraphs


def _hubs(num_vertices: int = 600_000) -> NDArray[np.int64]:
    """Edges of three hubs whose rows cross chunks, with some thousands of random ones."""
    rng = np.random.default_rng(3)
    spokes = [
        np.stack((np.full(num_vertices, hub), rng.integers(0, num_vertices, num_vertices)), axis=1)
        for hub in (5, 77_777, 599_000)
    ]
    return np.concatenate([*spokes, rng.integers(0, num_vertices, (30_000, 2))])


@pytest.fixture(scope="session", params=["undirected", "directed", "directed, in frames"])
def hub_graph(request: pytest.FixtureRequest, shared_graphs: SharedGraphs) -> Path:
    """Return a graph in natural order whose longest rows cross chunks."""
    directed = request.param.startswith("directed")
    codec = "zstd" if "frames" in request.param else "raw"
    options = {"directed": directed, "order": "natural", "codec": codec}
    return shared_graphs.make(f"hubs-{directed}-{codec}", _hubs, **options)

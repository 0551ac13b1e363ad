"""Graphs on which tests run whole engines of devices, as users do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oocbfs.generate import generators
from oocbfs.search.graph import Graph, open_file
from tests.support.shared import SharedGraphs


def opened_rmat(
    shared_graphs: SharedGraphs, scale: int = 11, codec: str = "raw"
) -> Iterator[Graph]:
    """Open a small directed graph, for a fixture to yield from."""
    path = shared_graphs.make(
        f"devices-rmat{scale}-{codec}",
        lambda: generators.rmat(scale, seed=5),
        directed=True,
        codec=codec,
    )
    with open_file(path) as graph:
        yield graph


def source_of(graph: Graph) -> int:
    """Return the vertex with the most neighbours."""
    return int(graph._stored.ids_of(np.argmax(graph._stored.rows.degrees, keepdims=True))[0])

"""Every method on every real graph of up to 40,000 vertices: the levels of the CPU engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oocbfs
from tests.support.exhaustive import ALL
from tests.support.gpu.method_checks import ON_DEVICES, search
from tests.support.real_graphs import real_graphs
from tests.support.shared import SharedGraphs

MOST_VERTICES = 40_000
# Larger ones take turns: each method sees some of them, in one direction and schedule.
FEW_EDGES = 20_000
SEEDS = (1, 2, 3)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_levels(path: Path, directed: bool, shared_graphs: SharedGraphs) -> None:
    number = real_graphs().index(path)
    with oocbfs.open(shared_graphs.convert(path, order="auto", directed=directed)) as graph:
        if not 0 < graph.num_vertices <= MOST_VERTICES:
            pytest.skip(f"{graph.num_vertices:,} vertices: the emulator would take long")
        source = int(np.argmax(graph.degrees))
        order = np.arange(graph.num_vertices) if graph.order is None else np.asarray(graph.order)
        expected = graph.bfs(int(graph.ids_of(np.array([source]))[0])).levels[order]
        for turn, method in enumerate(ON_DEVICES):
            seeds = SEEDS if ALL or graph.num_edges <= FEW_EDGES else (1 + turn % 3,)
            if not ALL and graph.num_edges > FEW_EDGES and (turn + number) % 4 != 2 * directed:
                continue
            for seed in seeds:
                with search(method, graph.rows, graph.in_rows, seed=seed) as made:
                    found = made.run(np.array([source], np.uint32))
                assert np.array_equal(found.levels, expected), (method, seed)

"""Every method on every real graph of up to 40,000 vertices: the levels of the CPU engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oocbfs.search.graph import open_file
from tests.support.exhaustive import ALL
from tests.support.gpu.method_checks import ON_DEVICES, search
from tests.support.real_graphs import real_graphs
from tests.support.shared import SharedGraphs

MOST_VERTICES = 40_000
# Those that have more, which would be converted in vain.
LARGER = ("FLA", "NY", "cnr-2000", "facebook100-part", "web-NotreDame", "soc-Epinions1", "p2p-31")
GRAPHS = [path for path in real_graphs() if path.name.split(".")[0] not in LARGER]
# Directions and schedules take turns over the graphs, and so do methods on graphs of more edges;
# with --all, every method meets every graph in both directions and all schedules.
FEW_EDGES = 20_000
SEEDS = (1, 2, 3)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.name)
def test_levels(path: Path, directed: bool, shared_graphs: SharedGraphs) -> None:
    number = GRAPHS.index(path)
    with open_file(shared_graphs.convert(path, order="auto", directed=directed)) as graph:
        assert graph.num_vertices <= MOST_VERTICES
        if graph.num_vertices == 0:
            pytest.skip("no vertex to start from")
        source = int(np.argmax(graph._stored.stored_degrees))
        order = (
            np.arange(graph.num_vertices)
            if graph._stored.order is None
            else np.asarray(graph._stored.order)
        )
        expected = graph.bfs(int(graph._stored.ids_of(np.array([source]))[0])).levels[order]
        for turn, method in enumerate(ON_DEVICES):
            seeds = SEEDS if ALL else (SEEDS[(turn + number) % 3],)
            every = 4 if graph.num_edges > FEW_EDGES else 2
            if not ALL and (turn + number // 3) % (2 * every) // every != directed:
                continue
            if not ALL and every == 4 and turn % 4 != number % 4:
                continue
            for seed in seeds:
                with search(method, graph._stored.rows, graph._stored.in_rows, seed=seed) as made:
                    found = made.run(np.array([source], np.uint32))
                assert np.array_equal(found.levels, expected), (method, seed)

"""Pairs of real graphs against searches of the whole graph."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs import Settings
from tests.support.real_graphs import GRAPHS, needs_graphs, order_of, real_graphs
from tests.support.shared import SharedGraphs

STORAGES: tuple[dict[str, Any], ...] = ({}, {"options": Settings(engine="disk")})


@needs_graphs
@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: str(path.relative_to(GRAPHS)))
def test_sampled_pairs_are_those_of_the_full_engine(
    shared_graphs: SharedGraphs, path: Path
) -> None:
    """Three sources, each with vertices that are near, far and anywhere."""
    converted = shared_graphs.convert(path, order=order_of(path))
    rng = np.random.default_rng(len(path.name))
    with oocbfs.open(converted) as graph:
        if graph.num_edges == 0:
            return
        ids = graph.ids()
        connected = np.flatnonzero(graph.degrees)
        for source in rng.choice(ids[connected], 3).tolist():
            levels = graph.bfs(source).levels
            depth = int(levels.max())
            wanted = sorted({0, depth // 2, depth})
            near = [rng.choice(np.flatnonzero(levels == level)) for level in wanted]
            places = np.array([*near, *rng.integers(0, ids.size, 3)])
            pairs = [(source, target) for target in ids[places].tolist()]
            expected = levels[places].tolist()
            for asked in STORAGES:
                assert graph.distances(pairs, **asked).distances.tolist() == expected
                paths = graph.paths(pairs, **asked).paths
                for (one, other), distance, found in zip(pairs, expected, paths, strict=True):
                    assert graph.distance(one, other, **asked) == distance
                    assert (-1 if found is None else len(found) - 1) == distance
                    for u, v in pairwise((found or [])[:20]):
                        assert v in graph.neighbors(u)
            farthest = ids[int(np.argmax(levels))].item()
            every = graph.all_shortest_paths(source, farthest)
            assert every.distance == depth
            assert every.count >= 1
            assert len(every.first(1)[0]) == depth + 1

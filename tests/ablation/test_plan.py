"""What every method has to do, counted before any of them runs."""

from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.ablation.plan import Plan, logical_frontiers, prepare, schedule
from oocbfs.errors import QueryError


def plan_of(edges: np.ndarray, folder: Path, *, directed: bool, sources: int = 3) -> Plan:
    oocbfs.convert(edges, folder / "g.ocg", directed=directed)
    path = str(folder / "g.ocg")
    return prepare(path, ["auto"], num_sources=sources, num_seeds=4, threads=1)


@pytest.mark.parametrize("directed", [False, True])
def test_frontiers_are_those_of_a_plain_count(tmp_path: Path, directed: bool) -> None:
    edges = np.random.default_rng(3).integers(0, 60, (150, 2))
    plan = plan_of(edges, tmp_path, directed=directed)
    arcs = {(int(a), int(b)) for a, b in edges if a != b}
    arcs |= set() if directed else {(b, a) for a, b in arcs}
    for source, levels in plan.expected.items():
        found = logical_frontiers(plan, source)
        for level in range(int(levels.max()) + 1):
            out = [(a, b) for a, b in arcs if levels[a] == level]
            assert found.vertices[level] == np.count_nonzero(levels == level)
            assert found.edges[level] == len(out)
            assert found.distinct[level] == len({b for _, b in out})
        assert found.edges.sum() == plan.reached_edges[source]


def test_sources_are_of_the_largest_component(tmp_path: Path) -> None:
    edges = np.array([(0, 1), *((7 + i, 8 + i) for i in range(9))])
    plan = plan_of(edges, tmp_path, directed=False, sources=50)
    assert sorted(plan.expected) == list(range(7, 17))
    assert all(np.count_nonzero(levels >= 0) == 10 for levels in plan.expected.values())
    assert plan.num_runs == 40
    assert len(plan.trials) == 10


def test_schedules_differ_in_what_runs_at_a_time() -> None:
    assert len({schedule(seed).resident_blocks for seed in (1, 2, 3)}) == 3
    assert schedule(1) == schedule(1) != schedule(4)


def test_a_graph_without_edges_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="no vertex to start from"):
        plan_of(np.empty((0, 2), np.int64), tmp_path, directed=False)

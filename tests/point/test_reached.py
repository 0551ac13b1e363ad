"""Searches of few levels: from tables, and over to arrays where they reach too much."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs import Settings
from oocbfs.generate import generators
from oocbfs.point import reached, search
from oocbfs.search import run
from tests.support.shared import SharedGraphs


@pytest.fixture
def graph(shared_graphs: SharedGraphs) -> Path:
    return shared_graphs.make("batch-kron12", lambda: generators.kron(12))


@pytest.mark.parametrize("most", [0, 200, 1 << 20])
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_search_that_reaches_too_much_goes_over(
    graph: Path, most: int, on_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the bound, and wherever rows are, levels and parents are those of all engines."""
    monkeypatch.setattr(reached, "REACH_SHARE", 0)
    monkeypatch.setattr(search, "LEAST_ENTRIES", most)
    monkeypatch.setattr(search, "is_cold", lambda graph: on_disk)
    used = set()
    with oocbfs.open(graph) as opened:
        for depth in (0, 1, 2, None):
            for sources in ([3], [5, 90, 1200]):
                for target in (None, 17):
                    asked: dict[str, Any] = {"max_depth": depth, "target": target, "parents": True}
                    expected = opened.bfs(sources, engine="cpu", **asked)
                    found = opened.bfs(sources, engine="point", validate=True, **asked)
                    used.add(found.stats.engine)
                    assert found.levels.tolist() == expected.levels.tolist()
                    assert found.level_sizes.tolist() == expected.level_sizes.tolist()
                    assert found.stats.edges_traversed == expected.stats.edges_traversed
                    some = [3, 17, 4000]
                    assert found.level_of(some).tolist() == expected.level_of(some).tolist()
                    for vertex in np.flatnonzero(found.levels >= 0)[:5].tolist():
                        assert len(found.path_to(vertex)) == expected.level_of(vertex) + 1
    assert ("cpu" in used) == (most < 1 << 20)
    assert "point" in used


def test_few_levels_of_many_vertices_are_searched_so_by_themselves(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_MANY_VERTICES", 0)
    with oocbfs.open(graph) as opened:
        found = opened.bfs(3, max_depth=1)
        assert found.stats.engine == "point"
        assert found.level_sizes.tolist() == [1, opened.degree(3)]
        assert sorted(np.flatnonzero(found.levels == 1)) == opened.neighbors(3).tolist()
        assert len(found.to_pandas()) == opened.num_vertices
        copy = pickle.loads(pickle.dumps(found))
        assert copy.levels.tolist() == found.levels.tolist()
        assert opened.bfs(3, max_depth=9).stats.engine != "point"
        assert opened.bfs(3).stats.engine != "point"
        with_parents = opened.bfs(3, max_depth=1, parents=True)
        assert found.parents.tolist() == with_parents.parents.tolist()
        assert opened.bfs(3, max_depth=1, engine="cpu").stats.engine == "cpu"


def test_components_need_another_engine(graph: Path) -> None:
    with (
        oocbfs.open(graph) as opened,
        pytest.raises(oocbfs.QueryError, match="components are found on"),
    ):
        opened.components(options=Settings(engine="point"))

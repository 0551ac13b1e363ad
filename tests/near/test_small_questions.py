"""The small things: how many, is it there, edges and degrees, levels and paths of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import oocbfs
from oocbfs.errors import QueryError
from tests.support.networkx_graphs import opened


@pytest.fixture(scope="module", params=["numbers", "listed", "names"])
def graph(request: pytest.FixtureRequest) -> Any:
    drawn: Any = nx.gnm_random_graph(60, 100, seed=5, directed=request.param == "listed")
    names = {"numbers": lambda n: n, "listed": lambda n: 9 * n + 4, "names": lambda n: f"n{n:02}"}
    return nx.relabel_nodes(drawn, names[request.param])


def test_what_is_there(graph: Any) -> None:
    with opened(graph, order="degree") as ours:
        assert len(ours) == 60
        assert all(node in ours for node in graph)
        strangers: list[Any] = [-1, 2**64, 3.0, "nobody", "", None, True, b"n01", [], (1, 2)]
        assert not any(stranger in ours for stranger in strangers)
    with pytest.raises(QueryError, match="is closed"):
        _ = 5 in ours


def test_edges_and_degrees(graph: Any) -> None:
    nodes = list(graph)
    one, other = [u for u in nodes for _ in nodes], [*nodes] * 60
    expected = [graph.has_edge(u, v) for u, v in zip(one, other, strict=True)]
    degrees = dict(graph.out_degree if graph.is_directed() else graph.degree)
    with opened(graph, order="degree") as ours:
        assert ours.has_edge(one, other).tolist() == expected
        assert ours.has_edge(nodes[0], nodes).tolist() == expected[:60]
        assert ours.has_edge(nodes[0], nodes[1]) is expected[1]
        assert ours.degree(nodes).tolist() == [degrees[node] for node in nodes]
        assert ours.degree(nodes[3]) == degrees[nodes[3]]
        assert ours.degree([]).size == 0
        with pytest.raises(QueryError, match="are not pairs"):
            ours.has_edge(nodes[:2], nodes[:3])
        for call in (ours.degree, lambda node: ours.has_edge(nodes[0], node)):
            with pytest.raises(QueryError):
                call("nobody")


@pytest.mark.parametrize("parents", [False, True])
def test_levels_and_paths_of_several(graph: Any, parents: bool) -> None:
    nodes = list(graph)
    expected = nx.single_source_shortest_path_length(graph, nodes[0])
    with opened(graph, order="degree") as ours:
        result = ours.bfs(nodes[0], parents=parents)
        assert result.level_of(nodes).tolist() == [expected.get(node, -1) for node in nodes]
        assert result.level_of(nodes[0]) == 0
        paths = result.paths_to(nodes)
        assert paths[0] == [nodes[0]]
        for node, path in zip(nodes, paths, strict=True):
            assert len(path) == expected.get(node, -1) + 1
            if path:
                assert path == result.path_to(node)
                assert (path[0], path[-1]) == (nodes[0], node)
                assert nx.is_path(graph, path)
        assert result.paths_to([]) == []
        alone = next(node for node in nodes if node not in expected)
        with pytest.raises(QueryError, match="was not reached"):
            result.path_to(alone)


def test_paths_of_a_closed_graph(tmp_path: Path) -> None:
    oocbfs.convert(nx.path_graph(6), tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        found, without = graph.bfs(0, parents=True), graph.bfs(0)
    assert found.path_to(5) == [0, 1, 2, 3, 4, 5]
    assert found.paths_to([2, 0]) == [[0, 1, 2], [0]]
    with pytest.raises(QueryError, match=r"is closed.*parents=True"):
        without.path_to(5)
    oocbfs.convert([("a", "b"), ("b", "c")], tmp_path / "names.ocg")
    with oocbfs.open(tmp_path / "names.ocg") as named:
        found = named.bfs("a", parents=True)
        assert found.path_to("c") == ["a", "b", "c"]
    with pytest.raises(QueryError, match="is closed"):
        found.path_to("c")


def test_an_empty_graph_is_a_graph(tmp_path: Path) -> None:
    oocbfs.convert(np.empty((0, 2), np.int64), tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        assert (len(graph), 0 in graph) == (0, False)
        assert graph.components().graph is graph

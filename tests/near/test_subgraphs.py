"""Subgraphs against networkx: of any vertices, in any form, with their ids and names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import QueryError
from oocbfs.near import subgraph
from tests.support.networkx_graphs import DISK, opened, random_graphs
from tests.support.strategies import ORDERS


def as_networkx(graph: Any, columns: dict[str, list[Any]]) -> Any:
    made: Any = nx.DiGraph() if graph.directed else nx.Graph()
    made.add_edges_from(zip(columns["source"], columns["target"], strict=True))
    return made


def check(ours: Any, expected: Any) -> None:
    """Compare all forms of a subgraph."""
    ids = ours.ids().tolist()
    assert ids == sorted(expected)
    assert len(ours) == ours.num_vertices == len(expected)
    assert ours.num_edges == expected.number_of_edges()
    assert nx.utils.graphs_equal(ours.to_networkx(), type(expected)(expected))
    matrix = nx.to_scipy_sparse_array(expected, nodelist=ids, dtype=np.int8)
    assert (ours.to_scipy() != matrix).nnz == 0
    igraph = ours.to_igraph()
    assert igraph.vs[igraph.vs.attributes()[0]] == ids
    pairs = [(ids.index(u), ids.index(v)) for u, v in expected.edges]
    pairs = pairs if ours.directed else [(min(pair), max(pair)) for pair in pairs]
    assert sorted(igraph.get_edgelist()) == sorted(pairs)
    edges = pyarrow.table(ours).to_pydict()
    assert len(edges["source"]) == ours.num_edges
    alone = type(expected)(expected)
    alone.remove_nodes_from(list(nx.isolates(alone)))
    assert nx.utils.graphs_equal(as_networkx(ours, edges), alone)


@settings(max_examples=30, deadline=None)
@given(graph=random_graphs(), order=st.sampled_from(ORDERS), data=st.data())
def test_induced_subgraphs(graph: Any, order: Any, data: st.DataObject) -> None:
    nodes = data.draw(st.lists(st.sampled_from(list(graph)), min_size=1, max_size=40))
    with opened(graph, order=order) as ours:
        for where in ({}, DISK):
            part = ours.subgraph(nodes, **where)
            check(part, graph.subgraph(nodes))
            assert nodes[0] in part
            assert "nobody" not in part
        center, depth = nodes[0], data.draw(st.integers(1, 4))
        check(ours.ego(center, depth), nx.ego_graph(graph, center, depth))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("share", [0.0, 2.0])
def test_rows_and_passes_find_the_same(
    directed: bool, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By rows of some vertices, with and without a byte for each vertex, and over all rows."""
    monkeypatch.setattr(subgraph, "_MOST_ARCS", share)
    monkeypatch.setattr(subgraph, "_ARCS_AT_ONCE", 50)
    graph = nx.gnm_random_graph(200, 2000, seed=3, directed=directed)
    for many in (0.0, 2.0):
        monkeypatch.setattr(subgraph, "_MANY_VERTICES", many)
        with opened(graph, order="degree") as ours:
            check(ours.subgraph(range(0, 200, 2)), graph.subgraph(range(0, 200, 2)))


@settings(max_examples=15, deadline=None)
@given(graph=random_graphs(), data=st.data())
def test_a_subgraph_as_a_file_keeps_what_vertices_are_called(
    graph: Any, data: st.DataObject
) -> None:
    nodes = data.draw(st.lists(st.sampled_from(list(graph)), min_size=1, max_size=20))
    with opened(graph) as ours:
        path = Path(ours.path).with_name("part.ocg")
        report = ours.subgraph(nodes).save(path)
        expected = graph.subgraph(nodes)
        assert (report.vertices, report.edges) == (len(expected), expected.number_of_edges())
        with oocbfs.open(path) as part:
            check(part.subgraph(part.ids()), expected)
            assert part.directed == graph.is_directed()


def test_a_limit_that_cut_says_so() -> None:
    with opened(nx.star_graph(20)) as graph:
        assert graph.ego(0, 1, limit=5).cut
        assert graph.ego(0, 1, limit=5).num_vertices == 5
        assert not graph.ego(0, 1, limit=21).cut


def test_what_has_no_subgraph() -> None:
    with opened(nx.path_graph(4)) as graph:
        calls: list[tuple[Any, str]] = [
            (lambda: graph.subgraph([]), "name at least one"),
            (lambda: graph.subgraph([1, 9]), "has no vertex 9"),
            (lambda: graph.ego([], 1), "no seeds"),
            (lambda: graph.ego(1, 0), "within 0 steps"),
        ]
        for call, message in calls:
            with pytest.raises(QueryError, match=message):
                call()
        part = graph.subgraph([1, 2])
        with pytest.raises(oocbfs.OutputError, match="no folder"):
            part.save("/nowhere/at/all.ocg")
    with pytest.raises(QueryError, match="is closed"):
        part.to_networkx()

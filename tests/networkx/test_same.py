"""The backend gives what networkx gives: values, their order and types, and errors."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.networkx import convert_from_nx
from oocbfs.networkx.info import FUNCTIONS, ON_FILES
from tests.support.exhaustive import ALL
from tests.support.networkx_graphs import KINDS, MISSING, graphs, outcome

few = settings(max_examples=100 if ALL else 20)
LIMITS = (None, 0, 1, 2, 2.5, -1, math.inf)
# Functions of a graph and of one node, and the name of their limit.
FROM_ONE = {
    "bfs_edges": "depth_limit",
    "bfs_tree": "depth_limit",
    "bfs_predecessors": "depth_limit",
    "bfs_successors": "depth_limit",
    "single_source_shortest_path": "cutoff",
    "single_source_shortest_path_length": "cutoff",
    "single_target_shortest_path": "cutoff",
    "single_target_shortest_path_length": "cutoff",
    "bfs_layers": None,
    "descendants": None,
    "ancestors": None,
    "node_connected_component": None,
    "closeness_centrality": None,
    "eccentricity": None,
}
OF_ALL = {
    "all_pairs_shortest_path": "cutoff",
    "all_pairs_shortest_path_length": "cutoff",
    "shortest_path": None,
    "shortest_path_length": None,
    "connected_components": None,
    "number_connected_components": None,
    "is_connected": None,
    "weakly_connected_components": None,
    "number_weakly_connected_components": None,
    "is_weakly_connected": None,
    "closeness_centrality": None,
    "eccentricity": None,
    "diameter": None,
    "radius": None,
    "center": None,
    "periphery": None,
}
BETWEEN_TWO = (
    "bidirectional_shortest_path",
    "has_path",
    "shortest_path",
    "shortest_path_length",
)


def compare(graph: Any, name: str, *args: Any, **kwargs: Any) -> None:
    function = getattr(nx, name)
    ours = convert_from_nx(graph)
    assert outcome(lambda: function(ours, *args, **kwargs)) == outcome(
        lambda: function(graph, *args, backend="networkx", **kwargs)
    )


@st.composite
def with_nodes(draw: st.DrawFn, /, count: int, **options: Any) -> tuple[Any, list[Any]]:
    """Draw a graph and some nodes of it, or what is no node."""
    graph = draw(graphs(**options))
    node = st.sampled_from([*graph, MISSING, 10**6]) if len(graph) else st.just(MISSING)
    return graph, [draw(node) for _ in range(count)]


@pytest.mark.parametrize(("name", "limit"), FROM_ONE.items())
@few
@given(drawn=with_nodes(1), depth=st.sampled_from(LIMITS))
def test_from_one_node(name: str, limit: str | None, drawn: Any, depth: Any) -> None:
    graph, (node,) = drawn
    compare(graph, name, node, **({} if limit is None else {limit: depth}))


@pytest.mark.parametrize(("name", "limit"), OF_ALL.items())
@few
@given(graph=graphs(), depth=st.sampled_from(LIMITS))
def test_of_all_nodes(name: str, limit: str | None, graph: Any, depth: Any) -> None:
    compare(graph, name, **({} if limit is None else {limit: depth}))


@pytest.mark.parametrize("name", BETWEEN_TWO)
@few
@given(drawn=with_nodes(2))
def test_between_two_nodes(name: str, drawn: Any) -> None:
    graph, (source, target) = drawn
    compare(graph, name, source, target)


@pytest.mark.parametrize("name", ["shortest_path", "shortest_path_length"])
@few
@given(drawn=with_nodes(1), end=st.sampled_from(["source", "target"]))
def test_of_one_end(name: str, drawn: Any, end: str) -> None:
    graph, (node,) = drawn
    compare(graph, name, **{end: node})


@few
@given(drawn=with_nodes(1, kinds=(nx.DiGraph, nx.MultiDiGraph)), depth=st.sampled_from(LIMITS))
def test_against_the_edges(drawn: Any, depth: Any) -> None:
    graph, (node,) = drawn
    compare(graph, "bfs_edges", node, reverse=True, depth_limit=depth)
    compare(graph, "bfs_tree", node, reverse=True, depth_limit=depth)


@few
@given(drawn=with_nodes(1), distance=st.sampled_from((0, 1, 2, 2.0, 2.5, -1)))
def test_at_a_distance(drawn: Any, distance: float) -> None:
    graph, (node,) = drawn
    compare(graph, "descendants_at_distance", node, distance)


@few
@given(drawn=with_nodes(3))
def test_layers_from_several(drawn: Any) -> None:
    graph, nodes = drawn
    compare(graph, "bfs_layers", nodes)


@pytest.mark.parametrize("name", ["diameter", "radius", "center", "periphery"])
@few
@given(graph=graphs(kinds=(nx.Graph, nx.DiGraph, nx.MultiGraph)))
def test_with_bounds(name: str, graph: Any) -> None:
    compare(graph, name, usebounds=True)


@few
@given(drawn=with_nodes(3))
def test_eccentricity_of_some(drawn: Any) -> None:
    graph, nodes = drawn
    compare(graph, "eccentricity", nodes)


@few
@given(drawn=with_nodes(1), improved=st.booleans())
def test_closeness(drawn: Any, improved: bool) -> None:
    graph, (node,) = drawn
    compare(graph, "closeness_centrality", node, wf_improved=improved)


@few
@given(drawn=with_nodes(6), some=st.booleans(), from_some=st.booleans())
def test_harmonic_centrality(drawn: Any, some: bool, from_some: bool) -> None:
    # networkx adds up in the order of a set, so that the last digits are not told.
    graph, nodes = drawn
    some_nodes, sources = nodes[:2] if some else None, nodes[2:] if from_some else None
    ours = nx.harmonic_centrality(convert_from_nx(graph), some_nodes, sources=sources)
    theirs = nx.harmonic_centrality(graph, some_nodes, sources=sources, backend="networkx")
    assert list(ours) == list(theirs)
    assert ours == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["dijkstra", "bellman-ford", "guess"])
def test_methods_of_paths(kind: Any, method: str) -> None:
    graph = kind([(0, 1), (1, 2), (2, 3)])
    for name in ("shortest_path", "shortest_path_length"):
        compare(graph, name, 0, 3, method=method)
        compare(graph, name, 0, method=method)


@pytest.mark.parametrize("name", [*FROM_ONE, *BETWEEN_TWO])
def test_what_cannot_be_a_node(name: str) -> None:
    graph = nx.DiGraph([(0, 1), (1, 2)])
    compare(graph, name, *([0, []] if name in BETWEEN_TWO else [[]]))
    compare(graph, name, *([{}, 0] if name in BETWEEN_TWO else [{}]))


@pytest.mark.parametrize("graph", [nx.cycle_graph(300), nx.path_graph(300), nx.grid_2d_graph(9, 9)])
@pytest.mark.parametrize("name", ["eccentricity", "diameter", "radius", "center", "periphery"])
def test_bounds_of_graphs_on_which_they_tell_little(name: str, graph: Any) -> None:
    compare(graph, name)


def test_generators_do_no_more_than_they_are_asked_for() -> None:
    ours = convert_from_nx(nx.path_graph(10**5))
    edges = nx.bfs_edges(ours, 0)
    assert next(edges) == (0, 1)
    assert not nx.bfs_layers(ours, MISSING).gi_running
    with pytest.raises(nx.NetworkXError, match="is not in the graph"):
        next(nx.bfs_layers(ours, [MISSING]))


def test_views_of_networkx() -> None:
    graph = nx.gnp_random_graph(30, 0.1, seed=2, directed=True)
    for view in (graph.reverse(copy=False), graph.subgraph(range(20)), nx.to_undirected(graph)):
        compare(view, "single_source_shortest_path", 3)


def test_every_function_is_compared() -> None:
    compared = {*FROM_ONE, *OF_ALL, *BETWEEN_TWO, "descendants_at_distance", "harmonic_centrality"}
    assert FUNCTIONS.keys() - ON_FILES == compared


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_views_of_some_edges(kind: Any) -> None:
    """Those of multigraphs count neighbours that they do not list."""
    graph = kind([(0, 1), (0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    view = graph.edge_subgraph([(0, 1, 1), (2, 3, 0)])
    if kind is nx.MultiGraph:
        compare(view, "number_connected_components")
    compare(view, "single_source_shortest_path_length", 0)
    compare(nx.restricted_view(graph, [], [(0, 1, 0), (3, 0, 0)]), "descendants", 0)

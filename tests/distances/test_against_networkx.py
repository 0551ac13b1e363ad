"""Distances of every small graph against networkx: of one vertex and of none, too."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.distances.central import Top
from oocbfs.distances.eccentricity import Eccentricities
from oocbfs.distances.scope import scope_of
from oocbfs.distances.searches import Searches
from oocbfs.errors import QueryError
from oocbfs.search.graph import open_file
from tests.support.strategies import ORDERS

_COMMON: Any = {"suppress_health_check": [HealthCheck.function_scoped_fixture], "deadline": None}

BY: dict[Any, Any] = {
    "harmonic": nx.harmonic_centrality,
    "closeness": nx.closeness_centrality,
}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    """A small graph of networkx, maybe with isolated vertices, and how to store it."""
    directed = draw(st.booleans())
    n = draw(st.integers(0, 14))
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(n))
    if n:
        vertex = st.integers(0, n - 1)
        graph.add_edges_from(draw(st.lists(st.tuples(vertex, vertex), max_size=40)))
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph, {"directed": directed, "order": draw(st.sampled_from(ORDERS))}


def store(graph: Any, path: Path, how: dict[str, Any]) -> None:
    """Store it with all of its vertices: loops keep those that have no edge."""
    every = [*graph.edges, *((v, v) for v in graph)]
    edges = np.array(every, np.uint64).reshape(-1, 2)
    oocbfs.convert(edges, path, force=True, **how)


def components(graph: Any) -> list[set[int]]:
    found = nx.strongly_connected_components if graph.is_directed() else nx.connected_components
    return sorted(found(graph), key=lambda one: (-len(one), min(one)))


@given(graphs())
@settings(max_examples=150, **_COMMON)
def test_eccentricities(tmp_path: Path, case: tuple[Any, dict[str, Any]]) -> None:
    graph, how = case
    store(graph, tmp_path / "g.ocg", how)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    with open_file(tmp_path / "g.ocg") as stored:
        assert stored.num_vertices == len(graph)
        if not len(graph):
            for ask in (stored.diameter, stored.radius, stored.center, stored.eccentricities):
                with pytest.raises(QueryError, match="no vertex"):
                    ask()
            return
        largest = components(graph)[0]
        within = graph.subgraph(largest)
        expected = nx.eccentricity(within)
        assert stored.diameter() == max(expected.values())
        assert stored.radius() == min(expected.values())
        assert stored.center().tolist() == sorted(nx.center(within))
        found = stored.eccentricities().tolist()
        assert found == [expected.get(v, -1) for v in range(len(graph))]
        everywhere = [max(lengths[v].values()) for v in range(len(graph))]
        assert stored.eccentricities(component="all").tolist() == everywhere
        assert stored.diameter(component="all") == max(everywhere)
        assert stored.radius(component="all") == min(everywhere)
        assert stored.eccentricity(0, component="all") == everywhere[0]
        (own,) = (one for one in components(graph) if 0 in one)
        assert stored.eccentricity(0) == max(lengths[0][v] for v in own)


@given(graphs())
@settings(max_examples=100, **_COMMON)
def test_distribution(tmp_path: Path, case: tuple[Any, dict[str, Any]]) -> None:
    graph, how = case
    n = len(graph)
    store(graph, tmp_path / "g.ocg", how)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    distances = [d for v in graph for u, d in lengths[v].items() if u != v]
    with open_file(tmp_path / "g.ocg") as stored:
        found = stored.distance_distribution(samples=None, component="all")
    assert found.is_exact
    assert found.pairs.tolist() == np.bincount(distances, minlength=1).tolist()
    if n > 1:
        assert found.reachable.value == pytest.approx(len(distances) / (n * (n - 1)))
    if distances:
        assert found.average.value == pytest.approx(np.mean(distances))
        assert found.median().value == sorted(distances)[(len(distances) - 1) // 2]
        assert found.effective_diameter(1.0).value == max(distances)
        inverse = sum(1 / d for d in distances)
        assert found.harmonic_mean.value == pytest.approx(n * (n - 1) / inverse)


@given(graphs(), st.booleans())
@settings(max_examples=100, **_COMMON)
def test_centralities(tmp_path: Path, case: tuple[Any, dict[str, Any]], inward: bool) -> None:
    graph, how = case
    store(graph, tmp_path / "g.ocg", how)
    expected = graph if inward or not graph.is_directed() else graph.reverse()
    with open_file(tmp_path / "g.ocg") as stored:
        vertices = list(graph)
        for improved in (True, False):
            found = stored.closeness(vertices, wf_improved=improved, inward=inward)
            theirs = nx.closeness_centrality(expected, wf_improved=improved)
            assert found.tolist() == pytest.approx([theirs[v] for v in vertices])
        harmonic = nx.harmonic_centrality(expected)
        found = stored.harmonic(vertices, inward=inward)
        assert found.tolist() == pytest.approx([harmonic[v] for v in vertices])
        largest = expected.subgraph(components(graph)[0] if vertices else ())
        for by, central in BY.items():
            for component, within in (("all", expected), ("largest", largest)):
                theirs = central(within)
                top = stored.top_central(3, by, inward=inward, component=component)
                best = sorted(theirs.values(), reverse=True)[:3]
                assert [value for _, value in top] == pytest.approx(best)
                assert [theirs[vertex] for vertex, _ in top] == pytest.approx(best)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(99),
        # A path to a clique in the middle: its end tells of all behind the path.
        nx.lollipop_graph(5, 90),
        nx.barbell_graph(4, 9),
        nx.star_graph(7),
        nx.balanced_tree(2, 5),
        nx.cycle_graph(31),
    ],
    ids=["path", "lollipop", "barbell", "star", "tree", "cycle"],
)
def test_ends_of_paths(tmp_path: Path, graph: Any, directed: bool) -> None:
    """Sources whose first levels hold one vertex each, which is more central than they are."""
    store(graph.to_directed() if directed else graph, tmp_path / "g.ocg", {"directed": directed})
    expected = nx.eccentricity(graph)
    with open_file(tmp_path / "g.ocg") as stored:
        for wanted in ("center", "periphery", "radius", "diameter", "eccentricities"):
            with Searches(stored, scope_of(stored)) as searches:
                found = Eccentricities(searches, {wanted})
                found.run()
            extremes = found.extremes()
            assert extremes.radius[0] <= min(expected.values()) <= extremes.radius[1]
            assert extremes.diameter[0] <= max(expected.values()) <= extremes.diameter[1]
            for v, eccentricity in expected.items():
                assert found.lower[v] <= eccentricity <= found.upper[v]
            if wanted == "center":
                assert found.positions_at(found.least).tolist() == sorted(nx.center(graph))
        assert stored.center().tolist() == sorted(nx.center(graph))
        assert stored.eccentricities().tolist() == [expected[v] for v in range(len(graph))]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("by", BY)
def test_top_of_a_larger_graph(tmp_path: Path, by: Any, directed: bool) -> None:
    """Large enough for searches that are cut, and for others whose levels cap the rest."""
    graph = nx.watts_strogatz_graph(700, 4, 0.05, seed=2)
    if directed:
        graph = nx.DiGraph([*graph.edges, *((v, u) for u, v in graph.edges if u % 5)])
    store(graph, tmp_path / "g.ocg", {"directed": directed})
    largest = graph.subgraph(components(graph)[0])
    best = sorted(BY[by](largest).values(), reverse=True)
    with (
        open_file(tmp_path / "g.ocg") as stored,
        Searches(stored, scope_of(stored), inward=True) as searches,
    ):
        found = Top(searches, 7, by)
        found.run()
    assert [value for _, value in found.top()] == pytest.approx(best[:7])
    assert found.cut > 0
    assert found.searched + found.cut <= len(largest)

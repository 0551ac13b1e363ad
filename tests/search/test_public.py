"""What users may use of an open graph, in one file and in shards."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs import AnyGraph, Graph, QueryError, Settings, ShardedGraph

NAMES = [
    "all_shortest_paths", "average_distance", "bfs", "bfs_many", "center", "close", "closeness",
    "components", "degree", "degree_histogram", "degrees", "diameter", "directed", "distance",
    "distance_distribution", "distances", "eccentricities", "eccentricity", "edges",
    "effective_diameter", "ego", "estimated_centralities", "harmonic", "has_edge", "ids",
    "in_neighbors", "info", "names",
    "neighborhood", "neighbors", "num_arcs", "num_edges", "num_vertices", "path", "paths",
    "positions", "radius", "release_device", "reversed", "shortest_path", "subgraph", "title",
    "to_scipy", "top_central",
]  # fmt: skip


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Graph, ShardedGraph]]:
    """One graph, in one file and in shards; its ids have gaps, and one vertex has no edge."""
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 300, (900, 2)) * 7
    path, folder = tmp_path / "g.ocg", tmp_path / "parts"
    oocbfs.convert(edges, path, directed=request.param, ids="compact", order="degree")
    oocbfs.shard(path, folder, parts=3)
    with oocbfs.open(path) as whole, oocbfs.open(folder) as parts:
        assert isinstance(whole, Graph)
        assert isinstance(parts, ShardedGraph)
        yield whole, parts


def public(graph: AnyGraph) -> list[str]:
    return [name for name in dir(graph) if not name.startswith("_")]


def test_names(both: tuple[Graph, ShardedGraph]) -> None:
    whole, parts = both
    whole.bfs(oocbfs.LARGEST_COMPONENT)  # which loads what is loaded late
    assert public(whole) == NAMES
    assert public(parts) == sorted([*NAMES, "cluster", "num_shards"])


def test_both_answer_the_same(both: tuple[Graph, ShardedGraph]) -> None:
    whole, parts = both
    for name in ("directed", "num_vertices", "num_edges", "num_arcs", "names"):
        assert getattr(whole, name) == getattr(parts, name), name
    ids = whole.ids()
    np.testing.assert_array_equal(parts.ids(), ids)
    np.testing.assert_array_equal(parts.positions(ids[::3]), whole.positions(ids[::3]))
    np.testing.assert_array_equal(parts.degrees, whole.degrees)
    assert (parts.to_scipy() != whole.to_scipy()).nnz == 0
    for inward in (False, True):
        assert parts.degree_histogram(inward=inward) == whole.degree_histogram(inward=inward)
    for vertex in ids[::50].tolist():
        assert parts.degree(vertex) == whole.degree(vertex)
        assert parts.neighbors(vertex).tolist() == whole.neighbors(vertex).tolist()
        assert parts.in_neighbors(vertex).tolist() == whole.in_neighbors(vertex).tolist()
    for graph in both:
        assert sum(batch.sources.size for batch in graph.edges()) == graph.num_edges
        assert graph.info()["edges"] == graph.num_edges
        assert f"{graph.num_edges:,} edges" in graph.title
        assert graph.title in repr(graph)
        assert "edges" in graph._repr_html_()
        graph.release_device()
    source = oocbfs.LARGEST_COMPONENT
    np.testing.assert_array_equal(whole.bfs(source).levels, parts.bfs(source).levels)
    assert whole.components().largest_component == parts.components().largest_component
    with pytest.raises(QueryError, match="is in shards: turn around the graph"):
        parts.reversed()


def test_results_know_their_graph(both: tuple[Graph, ShardedGraph]) -> None:
    for graph in both:
        assert graph.bfs(graph.ids()[:1]).graph is graph
        assert graph.components().graph is graph
        assert next(graph.bfs_many(graph.ids()[:1])).graph is graph


def test_a_result_outlives_the_name_of_its_graph(tmp_path: Path) -> None:
    oocbfs.convert([(1, 2), (2, 3)], tmp_path / "g.ocg")
    result = oocbfs.open(tmp_path / "g.ocg").bfs(1)
    assert isinstance(result.graph, Graph)
    assert result.path_to(3) == [1, 2, 3]


def test_users_decide_a_few_things() -> None:
    expected = {
        "source", "target", "parents", "max_depth", "engine", "memory", "threads", "progress",
        "validate", "tmp", "options",
    }  # fmt: skip
    assert set(inspect.signature(AnyGraph.bfs).parameters) - {"self"} == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("distance", {"source", "target", "max_depth", "memory", "options"}),
        ("paths", {"pairs", "max_depth", "memory", "threads", "options"}),
        ("subgraph", {"vertices", "memory", "threads", "options"}),
    ],
)
def test_shared_keywords_are_shown_and_no_others_taken(
    both: tuple[Graph, ShardedGraph], name: str, expected: set[str]
) -> None:
    assert set(inspect.signature(getattr(AnyGraph, name)).parameters) - {"self"} == expected
    whole, _ = both
    for other in ("engine", "max_dept"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{other}'"):
            getattr(whole, name)(*[1] * (2 if name == "distance" else 1), **{other: "disk"})


def test_options(both: tuple[Graph, ShardedGraph]) -> None:
    """What is given beside options wins; what is not given is theirs."""
    for graph in both:
        source = graph.ids()[:1]
        forced = Settings(direction="top-down", max_depth=1, threads=1)
        found = graph.bfs(source, options=forced)
        assert {level.direction for level in found.stats.levels} <= {"top-down", "stopped"}
        assert (found.depth, found.stats.threads) == (1, 1)
        assert graph.bfs(source, max_depth=2, options=forced).depth == 2
        with pytest.raises(QueryError, match="options are an oocbfs"):
            graph.bfs(source, options={"direction": "top-down"})  # type: ignore[arg-type]


def test_no_text_stands_for_the_largest_component(tmp_path: Path) -> None:
    oocbfs.convert([("a", "b"), ("giant", "@largest")], tmp_path / "n.ocg", ids="names")
    with oocbfs.open(tmp_path / "n.ocg") as graph:
        assert graph.bfs("giant").sources == ["giant"]
        assert graph.bfs("@largest").sources == ["@largest"]
        assert graph.bfs(oocbfs.LARGEST_COMPONENT).sources == ["@largest"]
    assert repr(oocbfs.LARGEST_COMPONENT) == "oocbfs.LARGEST_COMPONENT"

"""Graphs whose vertices have names: whoever asks gives names and gets names."""

import itertools
import random
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.names import NameColumn, quoted, split_names
from oocbfs.graph.verifier import verify
from oocbfs.settings import Engine
from tests.support.crafting import overwrite, rewrite, set_header
from tests.support.strategies import ORDERS, name_edges, name_of


@pytest.fixture(scope="module")
def edges() -> list[tuple[str, str]]:
    pairs = np.random.default_rng(8).integers(0, 300, (400, 2))
    return name_edges(pairs.tolist())


@pytest.fixture(scope="module", params=ORDERS)
def graph(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[tuple[str, str]],
) -> Any:
    path = tmp_path_factory.mktemp("names") / "g.ocg"
    oocbfs.convert(edges, path, ids="names", order=request.param)
    with oocbfs.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def expected(edges: list[tuple[str, str]]) -> Any:
    found = nx.Graph(edges)
    found.remove_edges_from(list(nx.selfloop_edges(found)))
    return found


def test_edges_are_between_names(graph: oocbfs.Graph, expected: Any) -> None:
    listed = [
        frozenset(pair)
        for batch in graph.edges()
        for pair in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    ]
    assert len(listed) == expected.number_of_edges()
    assert set(listed) == set(map(frozenset, expected.edges))


def test_degrees_are_in_the_order_of_the_names(graph: oocbfs.Graph, expected: Any) -> None:
    found = dict(zip(graph.ids(), graph.degrees.tolist(), strict=True))
    assert found == dict(expected.degree)
    assert graph.degree(max(found, key=lambda name: found[name])) == max(found.values())


def test_names_are_a_sequence(graph: oocbfs.Graph, expected: Any) -> None:
    known = sorted(expected)
    names = graph.names
    assert names is not None
    assert len(names) == len(known)
    assert list(names) == known == list(graph.ids())
    assert [names[i] for i in range(-3, 3)] == [known[i] for i in range(-3, 3)]
    assert names[5:40:3] == known[5:40:3]
    assert names[::-1] == known[::-1]
    assert names[7:7] == []
    assert known[9] in names
    assert "nobody" not in names
    assert names.index(known[9]) == 9
    assert names.count(known[9]) == 1
    with pytest.raises(ValueError, match="'nobody' is not among the names"):
        names.index("nobody")
    with pytest.raises(IndexError):
        names[len(known)]
    assert names.to_arrow().to_pylist() == known


def test_a_search_by_name(graph: oocbfs.Graph, expected: Any) -> None:
    assert graph.names is not None
    source = name_of(17)
    found = graph.bfs(source, parents=True)
    distances = nx.single_source_shortest_path_length(expected, source)
    assert found.sources == [source]
    assert found.levels.tolist() == [distances.get(name, -1) for name in graph.names]
    for name, distance in list(distances.items())[:20]:
        assert found.level_of(name) == distance
        path = found.path_to(name)
        assert (path[0], path[-1], len(path)) == (source, name, distance + 1)
        assert all(expected.has_edge(*pair) for pair in itertools.pairwise(path))
    reached = np.flatnonzero(found.levels > 0)
    for position in reached[:20]:
        parent = graph.names[found.parents[position]]
        assert distances[parent] == found.levels[position] - 1
        assert expected.has_edge(parent, graph.names[position])
    table = found.to_pandas()
    assert table["id"].tolist() == list(graph.names)
    assert table["parent"].isna().sum() == (found.levels < 0).sum()
    arrow = found.to_arrow()
    assert arrow["id"].to_pylist() == list(graph.names)
    named = [None if p < 0 else graph.names[p] for p in found.parents.tolist()]
    assert arrow["parent"].to_pylist() == named
    assert found.summary()["source"] == source


def test_neighbours_have_names(graph: oocbfs.Graph, expected: Any) -> None:
    for name in list(expected)[:20]:
        assert graph.neighbors(name).tolist() == sorted(expected[name])
        assert graph.in_neighbors(name).tolist() == sorted(expected[name])
        assert graph.degree(name) == expected.degree(name)


def test_components_have_names(graph: oocbfs.Graph, expected: Any) -> None:
    assert graph.names is not None
    found = graph.components()
    sets = sorted(nx.connected_components(expected), key=lambda part: (-len(part), min(part)))
    assert [tuple(c) for c in found.largest(5)] == [(min(part), len(part)) for part in sets[:5]]
    smallest = min(sets[0])
    assert found.largest_component == (smallest, len(sets[0]))
    assert found.members(max(sets[0])).tolist() == sorted(sets[0])
    assert found.label_of(max(sets[0])) == smallest
    assert graph.names[found.labels[graph._stored.position(max(sets[0]))]] == smallest
    assert graph.bfs(oocbfs.LARGEST_COMPONENT).sources == [smallest]
    assert found.largest_edges == expected.subgraph(sets[0]).number_of_edges()
    assert found.to_pandas()["component"].tolist() == [found.label_of(n) for n in graph.names]


def test_many_sources_by_name(graph: oocbfs.Graph, expected: Any) -> None:
    sources = random.Random(3).sample(sorted(expected), 12)
    distances = {name: nx.single_source_shortest_path_length(expected, name) for name in sources}
    for found, source in zip(graph.bfs_many(sources), sources, strict=True):
        assert (found.source, found.reached) == (source, len(distances[source]))
    wanted = [sources[:3]] * len(sources)
    for found in graph.bfs_many(sources, emit="pairs", targets=wanted):
        assert found.distances is not None
        steps = [distances[found.source].get(name, -1) for name in sources[:3]]
        assert found.distances.tolist() == steps
    table = graph.bfs_many(sources).to_arrow()
    assert table["source"].to_pylist() == sources


def test_positions_of_an_array_are_taken(graph: oocbfs.Graph) -> None:
    assert graph.names is not None
    assert graph.bfs(np.array([4, 9])).sources == [graph.names[4], graph.names[9]]
    assert graph.positions([graph.names[9], graph.names[4]]).tolist() == [9, 4]
    with pytest.raises(QueryError, match=f"no vertex {len(graph.names)}; its"):
        graph.bfs(np.array([len(graph.names)]))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("nobody", "has no vertex named 'nobody'; its .* names lie between"),
        ("", "has no vertex named ''"),
        ("\ud800", "has no vertex named"),
        ("x" * 70_000, "has no vertex named 'xxxx"),
        (3, "3 is not a name: the vertices of .* have names"),
        (b"vertex", "b'vertex' is not a name"),
        ([name_of(17), 3], "3 is not a name"),
        (None, "None is not a name"),
    ],
)
def test_what_is_no_name_is_refused(graph: oocbfs.Graph, asked: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        graph.bfs(asked)
    if not isinstance(asked, list):
        for ask in (graph.degree, graph.neighbors, graph.bfs(name_of(17)).level_of):
            with pytest.raises(QueryError, match=message):
                ask(asked)


def test_directed_and_from_disk(tmp_path: Path, edges: list[tuple[str, str]]) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(edges, path, ids="names", directed=True)
    expected = nx.DiGraph([edge for edge in edges if edge[0] != edge[1]])
    source = edges[0][0]
    distances = nx.single_source_shortest_path_length(expected, source)
    with oocbfs.open(path) as graph:
        assert graph.names is not None
        engines: tuple[Engine, ...] = ("cpu", "disk")
        for engine in engines:
            found = graph.bfs(source, engine=engine)
            assert found.levels.tolist() == [distances.get(name, -1) for name in graph.names]
        assert graph.neighbors(source).tolist() == sorted(expected.successors(source))
        assert graph.in_neighbors(source).tolist() == sorted(expected.predecessors(source))


def test_damaged_names(tmp_path: Path, edges: list[tuple[str, str]]) -> None:
    """What is wrong with names is found when they are asked for, and by verify."""
    path = tmp_path / "g.ocg"
    oocbfs.convert(edges, path, ids="names", order="natural")
    original = path.read_bytes()

    def refused() -> None:
        with pytest.raises(FormatError):
            verify(path, threads=1)
        with oocbfs.open(path) as graph:
            assert graph.names is not None
            with pytest.raises(FormatError, match="its names are damaged: run 'oocbfs verify'"):
                list(graph.names)

    for place, octets in ((0, b"\xff"), (1, b"\xff"), (1, b"\0"), (0, b"\x80" * 12)):
        path.write_bytes(original)
        overwrite(path, Kind.NAMES, place, octets)
        refused()
    path.write_bytes(original)
    rewrite(path, Kind.NAME_STARTS, 3, 2**63)
    refused()
    # All names of the first block begin differently now, and come after those of the second.
    path.write_bytes(original)
    overwrite(path, Kind.NAMES, 1, b"zzz")
    with pytest.raises(FormatError, match="name 16 is damaged: names do not ascend"):
        verify(path, threads=1)
    path.write_bytes(set_header(bytearray(original), version=1))
    with pytest.raises(
        FormatError, match="holds names, frames or an order that version 1 does not have"
    ):
        oocbfs.open(path)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])).filter(bool), min_size=1))
@settings(max_examples=100, deadline=None)
def test_fields_are_split_as_they_were_joined(names: list[str]) -> None:
    stripped = [name for name in names if name == name.strip()]
    assert split_names(",".join(map(quoted, stripped)) or "x") == (stripped or ["x"])


def test_columns_with_gaps() -> None:
    column = NameColumn(np.frombuffer("aé".encode(), np.uint8), np.array([0, 1, 1, 3]))
    assert column.tolist() == list(np.asarray(column)) == ["a", None, "é"]
    assert (column[0], column[1], column[-1]) == ("a", None, "é")
    assert column.__arrow_array__().to_pylist() == ["a", None, "é"]


def test_networkx_speaks_names(graph: oocbfs.Graph, expected: Any) -> None:
    from oocbfs import networkx as backend

    with backend.open(graph.path) as opened:
        assert list(opened) == sorted(expected)
        assert name_of(17) in opened
        assert 3 not in opened
        found = nx.single_source_shortest_path_length(opened, name_of(17))
        assert found == nx.single_source_shortest_path_length(expected, name_of(17))
        with pytest.raises(nx.NodeNotFound):
            nx.single_source_shortest_path_length(opened, "nobody")

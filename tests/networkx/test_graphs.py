"""Graphs of the backend: opened from files, converted there and back, and read as networkx's."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import oocbfs
import oocbfs.networkx
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.networkx import backing, convert_from_nx, convert_to_nx
from oocbfs.networkx import open as open_graph
from oocbfs.networkx.info import FUNCTIONS, ON_FILES
from tests.support import children
from tests.support.exhaustive import ALL, crossing
from tests.support.networkx_graphs import graphs, outcome

pytestmark = pytest.mark.usefixtures("verified")

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    name: ()
    for name in FUNCTIONS
    if name.startswith(("all_", "number_", "is_", "connected_", "weakly_"))
    or name in ("center", "diameter", "eccentricity", "periphery", "radius")
}
SPARSE = 3, 1_000_003


def random_edges(seed: int, *, sparse: bool) -> Any:
    """Return edges among 60 ids, consecutive ones or not, with duplicates and loops."""
    ids = np.arange(60) * SPARSE[1] + SPARSE[0] if sparse else np.arange(60)
    return np.random.default_rng(seed).choice(ids, (170, 2))


def same(ours: Any, theirs: Any, name: str, *args: Any) -> bool:
    function = getattr(nx, name)
    if name == "harmonic_centrality":  # whose last digits networkx does not tell
        found, expected = function(ours), function(theirs, backend="networkx")
        return list(found) == list(expected) and found == pytest.approx(expected, rel=1e-12)
    return bool(
        outcome(lambda: function(ours, *args))
        == outcome(lambda: function(theirs, *args, backend="networkx"))
    )


@pytest.mark.parametrize(
    ("directed", "order", "sparse", "memory"),
    crossing((False, True), ("natural", "degree", "local"), (False, True), (None, "16G")),
)
def test_all_functions_on_a_file(
    tmp_path: Path, directed: bool, order: Any, sparse: bool, memory: str | None
) -> None:
    path = tmp_path / "g.ocg"
    edges = random_edges(5, sparse=sparse)
    oocbfs.convert(edges, path, directed=directed, order=order, ids="compact")
    with open_graph(path, memory=memory) as ours:
        theirs = convert_to_nx(ours)
        assert type(theirs) is (nx.DiGraph if directed else nx.Graph)
        assert set(theirs) == set(edges.ravel().tolist())
        assert list(theirs) == sorted(theirs)
        source, target = min(theirs), max(theirs)
        for name in FUNCTIONS.keys() - ON_FILES:
            if name in ("bidirectional_shortest_path", "has_path"):
                args: tuple[Any, ...] = (source, target)
            elif name == "descendants_at_distance":
                args = (source, 2)
            elif name in ARGUMENTS or "centrality" in name or name.startswith("shortest"):
                args = ()
            else:
                args = (source,)
            assert same(ours, theirs, name, *args), name
        for name in ("shortest_path", "shortest_path_length"):
            assert same(ours, theirs, name, source, target)
        for node in theirs:
            assert same(ours, theirs, "shortest_path", source, node)


@pytest.mark.parametrize(
    ("directed", "named", "count"), crossing((False, True), (False, True), (2, 60, 300))
)
def test_functions_on_files_alone(tmp_path: Path, directed: bool, named: bool, count: int) -> None:
    drawn: Any = nx.gnm_random_graph(40, count, seed=count, directed=directed)
    nx.relabel_nodes(drawn, {n: f"n{n}" if named else 3 * n + 7 for n in drawn}, copy=False)
    oocbfs.convert(drawn, tmp_path / "g.ocg", order="degree")
    with open_graph(tmp_path / "g.ocg") as ours:
        theirs = convert_to_nx(ours)
        nodes = [*list(theirs)[:6], "nobody"]
        for name in ("average_shortest_path_length", "degree_centrality"):
            assert same(ours, theirs, name), name
        found, expected = nx.to_pandas_edgelist(ours), nx.to_pandas_edgelist(theirs)
        assert found.to_dict("list") == expected.to_dict("list")
        assert found.dtypes.tolist() == expected.dtypes.tolist()
        for source in nodes:
            for target in nodes:
                assert same(ours, theirs, "all_shortest_paths", source, target)
            for radius, center in crossing((0, 1, 2, 2.5, None, -1), (True, False)):
                args = (source, radius, center)
                assert edges_of(ours, *args) == edges_of(theirs, *args), args
        part = ours.subgraph(nodes)
        assert nx.utils.graphs_equal(type(theirs)(part), type(theirs)(theirs.subgraph(nodes)))
        assert nx.is_frozen(part)
        for name, arguments in (
            ("ego_graph", {"n": nodes[0], "undirected": True}),
            ("to_pandas_edgelist", {"nodelist": nodes[:1]}),
            ("average_shortest_path_length", {"weight": "weight"}),
        ):
            with pytest.raises(NotImplementedError):
                getattr(nx, name)(ours, **arguments)
    with pytest.raises(NotImplementedError, match="for the given arguments"):
        nx.degree_centrality(nx.path_graph(3), backend="oocbfs")


def edges_of(graph: Any, *args: Any) -> Any:
    """Return the nodes and edges of an ego graph, whose order networkx takes from a set."""

    def listed() -> list[Any]:
        found = nx.ego_graph(graph, *args)
        edges = found.edges if found.is_directed() else map(sorted, found.edges)
        return [sorted(found), sorted(map(tuple, edges)), type(found).__name__.removeprefix("Ocg")]

    return outcome(listed)


@pytest.mark.parametrize("order", ["natural", "degree"])
def test_the_order_of_a_file_is_that_of_its_ids(tmp_path: Path, order: Any) -> None:
    edges = np.array([[2, 9], [9, 4], [2, 7], [7, 1], [9, 7], [2, 1], [4, 1]])
    oocbfs.convert(edges, tmp_path / "g.ocg", order=order, ids="compact")
    with open_graph(tmp_path / "g.ocg") as graph:
        assert list(graph) == [1, 2, 4, 7, 9]
        assert list(graph[9]) == [2, 4, 7]
        assert list(nx.bfs_edges(graph, 9)) == [(9, 2), (9, 4), (9, 7), (2, 1)]
        assert list(nx.bfs_layers(graph, 9)) == [[9], [2, 4, 7], [1]]


def test_long_rows_and_many_pieces(tmp_path: Path) -> None:
    star = np.column_stack((np.zeros(30_000, np.int64), np.arange(1, 30_001)))
    ring = np.column_stack((np.arange(1, 30_001), np.roll(np.arange(1, 30_001), 5)))
    for order in ("natural", "degree"):
        oocbfs.convert(np.concatenate((star, ring)), tmp_path / f"{order}.ocg", order=order)
        with open_graph(tmp_path / f"{order}.ocg") as graph:
            theirs = convert_to_nx(graph)
            assert same(graph, theirs, "single_source_shortest_path_length", 7)
            assert same(graph, theirs, "bfs_successors", 0)


@pytest.mark.parametrize("directed", [False, True])
def test_the_interface_of_networkx(tmp_path: Path, directed: bool) -> None:
    oocbfs.convert(random_edges(1, sparse=False), tmp_path / "g.ocg", directed=directed)
    with open_graph(tmp_path / "g.ocg") as graph:
        theirs = convert_to_nx(graph)
        assert len(graph) == len(theirs)
        assert list(graph.edges) == list(theirs.edges)
        assert dict(graph.degree) == dict(theirs.degree)
        assert graph.number_of_edges() == theirs.number_of_edges() == graph.size()
        assert graph.number_of_edges(3, 4) == theirs.number_of_edges(3, 4)
        assert nx.utils.graphs_equal(graph.copy(), theirs)
        assert nx.utils.graphs_equal(graph.to_undirected(), theirs.to_undirected())
        assert list(graph.neighbors(3)) == list(theirs.neighbors(3))
        assert 3 in graph
        assert 3.0 in graph
        strangers: list[Any] = [-1, 3.5, "3", 10**30, None, [], float("nan"), float("inf")]
        assert not any(stranger in graph for stranger in strangers)
        view = graph.subgraph(range(20))
        assert nx.utils.graphs_equal(nx.Graph(view), nx.Graph(theirs.subgraph(range(20))))
        # What networkx makes of it is networkx's own.
        for other in (view, graph.copy()):
            assert other.__networkx_backend__ == "networkx"
            assert nx.single_source_shortest_path_length(
                other, 3
            ) == nx.single_source_shortest_path_length(nx.DiGraph(other), 3)
        assert nx.is_frozen(graph)
        with pytest.raises(nx.NetworkXError, match="Frozen"):
            graph.add_edge(1, 2)
        with pytest.raises(KeyError):
            graph[1000]
        assert graph.ocg.num_vertices == len(graph)


@settings(max_examples=100 if ALL else 40)
@given(graph=graphs())
def test_there_and_back(graph: Any) -> None:
    graph.graph["title"] = "kept"
    ours = convert_from_nx(graph, preserve_graph_attrs=True)
    assert ours.number_of_edges() == graph.number_of_edges() == ours.size()
    back = convert_to_nx(ours)
    assert type(back) is type(graph)
    assert back.graph == graph.graph
    for rows in ("_adj", "_pred") if graph.is_directed() else ("_adj",):
        found, expected = getattr(back, rows), getattr(graph, rows)
        assert [(node, list(row)) for node, row in found.items()] == [
            (node, list(row)) for node, row in expected.items()
        ]
    if graph.is_multigraph():
        assert sorted(map(repr, back.edges())) == sorted(map(repr, graph.edges()))
    back.add_edge("a", "b")
    assert convert_to_nx(5) == 5


def test_attributes_are_refused() -> None:
    graph = nx.Graph([(0, 1)])
    for wanted in (
        {"edge_attrs": {"weight": 1}},
        {"node_attrs": {"size": 1}},
        {"preserve_edge_attrs": True},
        {"preserve_node_attrs": True},
    ):
        with pytest.raises(NotImplementedError, match="no attributes"):
            convert_from_nx(graph, **wanted)
    with pytest.raises(TypeError, match="not list"):
        convert_from_nx([(0, 1)])


@pytest.mark.parametrize("nodes", [50, 70_000])
def test_no_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int) -> None:
    # Small files are made in memory where there is a folder for that.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(backing, "_MEMORY", str(tmp_path))
    graph = convert_from_nx(nx.path_graph(nodes, create_using=nx.DiGraph))
    assert nx.number_weakly_connected_components(graph) == 1
    assert nx.closeness_centrality(graph, 3) > 0
    # It is open and has no name; small ones are in memory, however many there are.
    assert not list(tmp_path.iterdir())
    assert (open_files(tmp_path) > 0) == (nodes > 50)
    graph.close()
    gc.collect()  # views keep the mapping alive
    assert open_files(tmp_path) == 0
    again = convert_from_nx(nx.path_graph(nodes))
    nx.is_connected(again)
    assert (open_files(tmp_path) > 0) == (nodes > 50)
    del again
    gc.collect()
    assert open_files(tmp_path) == 0


# Converts the same graph again and again, until somebody ends it.
_BUSY = """
import sys, tempfile
import networkx as nx
from oocbfs.networkx import backing, convert_from_nx
tempfile.tempdir = backing._MEMORY = sys.argv[1]
graph = nx.path_graph(int(sys.argv[2]))
while True:
    assert nx.is_connected(convert_from_nx(graph))
    print("done", flush=True)
"""


@pytest.mark.parametrize("nodes", [50, 70_000])
@pytest.mark.parametrize("signal", [signal.SIGTERM, signal.SIGKILL])
def test_no_file_stays_of_processes_that_were_ended(
    tmp_path: Path, nodes: int, signal: signal.Signals
) -> None:
    command = [sys.executable, "-c", _BUSY, str(tmp_path), str(nodes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None
        assert busy.stdout.readline() == b"done\n"
        for _ in range(200):  # there is no moment at which a name could be seen
            assert not list(tmp_path.iterdir())
        busy.send_signal(signal)
        children.finish(busy)
    assert busy.returncode == -signal
    assert not list(tmp_path.iterdir())


_MANY = """
import resource
import networkx as nx
from oocbfs.networkx import convert_from_nx
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
kept = [convert_from_nx(nx.path_graph(9, create_using=nx.DiGraph)) for _ in range(150)]
assert all(nx.is_weakly_connected(graph) for graph in kept)
assert [len(nx.ancestors(graph, 7)) for graph in kept] == [7] * len(kept)
"""


def test_more_graphs_than_a_process_may_open_files() -> None:
    children.run_python(_MANY)


def open_files(folder: Path) -> int:
    """Count the files in a folder that this process has open."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the system does not tell which files are open")
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(descriptor).startswith(str(folder))
        except FileNotFoundError:  # the one that lists them
            continue
    return found


def test_a_file_that_is_closed_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(random_edges(2, sparse=False), path, order="natural")
    graph = open_graph(path)
    graph.close()
    with pytest.raises(QueryError, match="is closed"):
        nx.shortest_path(graph, 0, 5)
    content = bytearray(path.read_bytes())
    with oocbfs.open(path) as intact:
        offset = int(intact._stored._container.sections[Kind.TAILS]["offset"])
        size = int(intact._stored._container.sections[Kind.TAILS]["raw_bytes"])
    content[offset : offset + size] = b"\xff" * size
    path.write_bytes(content)
    with open_graph(path) as graph:
        with pytest.raises(FormatError, match="damaged"):
            nx.single_source_shortest_path_length(graph, 0)
        with pytest.raises(FormatError, match="damaged"):
            nx.shortest_path(graph, 0, 59)
    with pytest.raises(FormatError, match="cannot be opened"):
        open_graph(tmp_path / "none.ocg")


def test_reversed_files(tmp_path: Path) -> None:
    for directed in (False, True):
        path = tmp_path / f"{directed}.ocg"
        oocbfs.convert(random_edges(3, sparse=True), path, directed=directed, ids="compact")
        with oocbfs.open(path) as graph, graph.reversed() as turned:
            assert turned.num_edges == graph.num_edges
            for vertex in graph.ids().tolist():
                assert turned.neighbors(vertex).tolist() == graph.in_neighbors(vertex).tolist()
                assert turned.in_neighbors(vertex).tolist() == graph.neighbors(vertex).tolist()
            matrix = graph.to_scipy()
            assert (turned.to_scipy() != matrix.T).nnz == 0
            source = int(graph.ids()[0])
            for engine in ("cpu", "disk"):
                levels = turned.bfs(source, engine=engine, validate=True).levels
                one_way = nx.single_source_shortest_path_length(nx.DiGraph(matrix.T), 0)
                assert {v: d for v, d in enumerate(levels.tolist()) if d >= 0} == one_way


def test_networkx_alone_loads_little() -> None:
    code = (
        "import sys, networkx as nx; assert 'oocbfs' in nx.config.backends; "
        "assert not {'numba', 'numpy', 'oocbfs.search'} & set(sys.modules); "
        "import oocbfs.networkx; assert 'numba' not in sys.modules; "
        "print(nx.has_path(nx.path_graph(3), 0, 2, backend='oocbfs'))"
    )
    done = children.run_python(code)
    assert done.stdout == "True\n"


def test_without_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(QueryError, match=r"pip install 'oocbfs\[networkx\]'"):
        _ = oocbfs.networkx.open
    with pytest.raises(AttributeError):
        _ = oocbfs.networkx.close

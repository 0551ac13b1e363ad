"""Connected components against SciPy and published answers."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.memory import read_bytes
from oocbfs.results.components import ComponentsResult
from oocbfs.search.graph import Graph, open_file
from tests.support.answers import scipy_components
from tests.support.crafting import section_place, sign
from tests.support.exhaustive import ALL, crossing
from tests.support.real_graphs import GRAPHS, needs_graphs, order_of, real_graphs
from tests.support.shared import SharedGraphs
from tests.support.strategies import ORDERS, Pairs, edge_lists, pair_array

pytestmark = pytest.mark.usefixtures("verified")

ENGINES: tuple[Any, ...] = ("cpu", "disk")


def check(graph: Graph, **options: Any) -> ComponentsResult:
    """Find the components, and compare labels and all that is counted with SciPy's."""
    result = graph.components(**options)
    expected = scipy_components(graph.to_scipy(), directed=graph.directed)
    np.testing.assert_array_equal(result.labels, graph.ids()[expected])
    sizes = np.unique(expected, return_counts=True)[1]
    assert result.sizes.tolist() == sorted(sizes.tolist(), reverse=True)
    assert result.num_components == sizes.size
    assert sum(size * count for size, count in result.histogram.items()) == graph.num_vertices
    return result


@pytest.mark.parametrize("engine", ENGINES)
@given(
    edges=edge_lists(),
    directed=st.booleans(),
    order=st.sampled_from(ORDERS),
    threads=st.sampled_from([1, 2, 4]),
)
@settings(
    max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_any_graph(
    tmp_path: Path, engine: str, edges: Pairs, directed: bool, order: Any, threads: int
) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pair_array(edges), path, directed=directed, order=order, force=True)
    with open_file(path) as graph:
        result = check(graph, threads=threads, engine=engine)
        assert result.stats.engine == engine
        assert (result.largest_component is None) == (graph.num_vertices == 0)
        for label, size in result.largest(3):
            members = result.members(label)
            assert members.size == size
            assert members[0] == label == result.label_of(int(members[-1]))


def pieces(num_vertices: int, num_edges: int) -> NDArray[np.int64]:
    """Random edges within 1,000 parts of the same size: no component is large."""
    rng = np.random.default_rng(4)
    width = num_vertices // 1000
    parts = rng.integers(0, 1000, num_edges)
    return rng.integers(0, width, (num_edges, 2)) + width * parts[:, None]


def long_path(num_vertices: int) -> NDArray[np.int64]:
    mixed = np.random.default_rng(1).permutation(num_vertices)
    return np.stack((mixed[:-1], mixed[1:]), axis=1)


SHAPES: dict[str, Any] = {
    "no large component": lambda: pieces(200_000, 300_000),
    "no large component, dense": lambda: pieces(50_000, 900_000),
    "path": lambda: long_path(100_000),
    "grid": lambda: generators.grid2d(300, 300),
    "kron": lambda: generators.kron(16),
    "sparse": lambda: generators.uniform(17, 1),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_threads_agree(tmp_path: Path, shape: str, directed: bool) -> None:
    """Graphs of many chunks, so that threads meet."""
    path = tmp_path / "g.ocg"
    for order in ("natural", "degree"):
        oocbfs.convert(SHAPES[shape](), path, directed=directed, order=order, force=True)
        with open_file(path) as graph:
            labels = check(graph, threads=1).labels
            for threads in (2, 4):
                for _ in range(3):
                    np.testing.assert_array_equal(graph.components(threads=threads).labels, labels)
            np.testing.assert_array_equal(graph.components(engine="disk").labels, labels)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a process's reads")
def test_counted_bytes_are_those_read(tmp_path: Path) -> None:
    oocbfs.convert(pieces(50_000, 900_000), tmp_path / "g.ocg", directed=True)
    with open_file(tmp_path / "g.ocg") as graph:
        graph.components(engine="disk")
        if not graph._stored.disk_rows.file.direct:
            pytest.skip("this file system knows no direct reads, so that some come from its cache")
        before = read_bytes()
        moved = graph.components(engine="disk").stats.slow_bytes_by_tier["disk"]
        assert read_bytes() - before == moved > 0


def test_disk_is_read_where_the_heads_do_not_answer(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(17), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        stats = graph.components(engine="disk").stats
        assert stats.slow_bytes_by_tier["disk"] < 0.05 * stats.tail_bytes


def test_heads_leave_next_to_nothing_to_decode(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(16), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        stats = graph.components().stats
        assert stats.tail_bytes == graph._stored.rows.tails.size
        assert stats.tail_bytes_decoded < 0.01 * stats.tail_bytes


def test_counts_what_is_decoded(tmp_path: Path) -> None:
    """Two triangles: their heads make two trees, and the smaller has no larger one to stop at."""
    edges = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    oocbfs.convert(edges, tmp_path / "g.ocg", order="natural")
    with open_file(tmp_path / "g.ocg") as graph:
        steps = graph.components(threads=1).stats.steps
        assert [step.name for step in steps] == ["heads", "first of tails", "tails", "compress"]
        # Each row's tail is one byte, for the one neighbour that is not its head. The second
        # triangle is taken for the largest, and vertex 0 is the only one in the sample of tails.
        assert [step.tail_bytes for step in steps] == [0, 1, 3, 0]
        assert [step.edges for step in steps] == [0, 1, 3, 0]


def test_equal_components_come_by_their_labels(tmp_path: Path) -> None:
    oocbfs.convert(
        np.array([[9, 8], [3, 7], [5, 6], [1, 2], [2, 4]]), tmp_path / "g.ocg", ids="compact"
    )
    with open_file(tmp_path / "g.ocg") as graph:
        found = graph.components()
        assert [tuple(c) for c in found.largest(10)] == [(1, 3), (3, 2), (5, 2), (8, 2)]
        assert found.histogram == {2: 3, 3: 1}
        assert found.largest_component == (1, 3)


@pytest.mark.parametrize("directed", [False, True])
def test_malformed_tails(tmp_path: Path, directed: bool) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pieces(5_000, 9_000), path, directed=directed)
    data = bytearray(path.read_bytes())
    offset, size = section_place(bytes(data), Kind.IN_TAILS if directed else Kind.TAILS)
    data[offset : offset + size] = b"\xff" * size
    path.write_bytes(sign(data))
    with open_file(path) as graph:
        for engine in ENGINES:
            with pytest.raises(FormatError, match="run 'oocbfs verify'"):
                graph.components(engine=engine)


@pytest.mark.long
@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_real_graphs(path: Path, shared_graphs: SharedGraphs) -> None:
    first = shared_graphs.convert(path, order="auto")
    with open_file(first) as graph:
        labels = check(graph, threads=1).labels
        other = "degree" if ALL or graph.num_edges < 1_000_000 else order_of(path)
    for order, threads, engine in crossing(("auto", other), (1, 2, 4), ENGINES):
        with open_file(shared_graphs.convert(path, order=order)) as graph:
            found = graph.components(threads=threads, engine=engine).labels
            np.testing.assert_array_equal(found, labels)


@needs_graphs
def test_published_answer(tmp_path: Path) -> None:
    """Names differ, so that each pair of names must occur for one component only."""
    folder = GRAPHS / "p2p"
    oocbfs.convert(folder / "p2p-31.e", tmp_path / "g.ocg", directed=True)
    rows = (line.split() for line in (folder / "p2p-31-WCC").read_text().splitlines())
    published = {int(vertex): int(label) for vertex, label in rows}
    with open_file(tmp_path / "g.ocg") as graph:
        labels = graph.components().labels.tolist()
        assert set(published) == set(graph.ids().tolist())
        pairs = {
            (published[v], label) for v, label in zip(graph.ids().tolist(), labels, strict=True)
        }
    assert len(pairs) == len(set(labels)) == len(set(published.values()))

"""From edges to a container and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.errors import BudgetError, InputError, OutputError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.edges import Declared
from oocbfs.formats.readers.memory_edges import MemoryEdges
from oocbfs.generate import generators
from oocbfs.graph.verifier import verify
from oocbfs.memory import resident_bytes
from tests.support.strategies import Pairs, edge_lists, expected_edges, pair_array, stored_edges

ORDERS = ("auto", "natural", "degree", "dbg", "local", "communities")


@given(edge_lists(), st.booleans(), st.sampled_from(ORDERS), st.sampled_from(["raw", "zstd"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_round_trip(tmp_path: Path, edges: Pairs, directed: bool, order: Any, codec: Any) -> None:
    path = tmp_path / "g.ocg"
    report = oocbfs.convert(
        pair_array(edges), path, directed=directed, order=order, codec=codec, force=True, threads=1
    )
    verify(path, threads=1)
    expected = expected_edges(edges, directed=directed)
    assert stored_edges(path) == expected
    assert (report.edges, report.arcs) == (len(expected), len(expected) * (1 if directed else 2))
    assert report.loops == sum(u == v for u, v in edges)
    assert report.duplicates == len(edges) - report.loops - len(expected)
    ids = {i for edge in edges for i in edge}
    assert report.vertices_in_input == len(ids)
    dense = max(ids, default=-1) < 4 * len(ids)
    assert report.vertices == (max(ids, default=-1) + 1 if dense else len(ids))


@given(edge_lists(), st.booleans(), st.sampled_from(ORDERS))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50
)
def test_neighbours_and_degrees(tmp_path: Path, edges: Pairs, directed: bool, order: Any) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(
        pair_array(edges), path, directed=directed, order=order, force=True, ids="compact"
    )
    arcs = expected_edges(edges, directed=directed)
    if not directed:
        arcs |= {(v, u) for u, v in arcs}
    with oocbfs.open(path) as graph:
        for vertex in {i for edge in edges for i in edge}:
            expected = sorted(v for u, v in arcs if u == vertex)
            assert graph.neighbors(vertex).tolist() == expected
            assert graph.degree(vertex) == len(expected)
        with pytest.raises(QueryError, match="has no vertex"):
            graph.neighbors(-1)


def random_graph(directed: bool) -> MemoryEdges:
    rng = np.random.default_rng(3)
    stream = MemoryEdges((rng.zipf(1.3, 400_000) % 50_021, rng.integers(0, 50_021, 400_000)))
    stream.declared.directed = directed
    return stream


@pytest.mark.parametrize("directed", [False, True])
def test_same_bytes_whatever_memory_and_threads(tmp_path: Path, directed: bool) -> None:
    files = set()
    little = resident_bytes() + (260 << 20)
    for memory, threads in ((None, 1), (None, 3), (little, 1), (little, 2)):
        path = tmp_path / "g.ocg"
        oocbfs.convert(random_graph(directed), path, memory=memory, threads=threads, force=True)
        files.add(path.read_bytes())
    assert len(files) == 1


def test_spilling_gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "plain.ocg"
    assert oocbfs.convert(random_graph(True), plain).spilled_bytes == 0
    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(2, 4 << 20, MemoryWatch())
    )
    spilled = tmp_path / "spilled.ocg"
    report = oocbfs.convert(random_graph(True), spilled)
    assert report.spilled_bytes > 2 * 400_000
    assert plain.read_bytes() == spilled.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plain.ocg", "spilled.ocg"]


def test_wide_ids_spill_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    names = np.unique(rng.integers(0, 2**64 - 1, 20_000, dtype=np.uint64, endpoint=True))
    edges = names[rng.integers(0, names.size, (200_000, 2))]
    plain, spilled = tmp_path / "plain.ocg", tmp_path / "spilled.ocg"
    oocbfs.convert(edges, plain)
    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(2, 2 << 20, MemoryWatch())
    )
    assert oocbfs.convert(edges, spilled).spilled_bytes > 0
    assert plain.read_bytes() == spilled.read_bytes()
    low, high = edges.min(axis=1), edges.max(axis=1)
    assert stored_edges(plain) == {
        (int(u), int(v)) for u, v in zip(low, high, strict=True) if u != v
    }


def test_order_is_chosen_from_the_data(tmp_path: Path) -> None:
    kron = oocbfs.convert(generators.kron(12), tmp_path / "kron.ocg")
    assert kron.order == "degree"
    small = oocbfs.convert(generators.grid2d(60, 70), tmp_path / "small.ocg")
    assert small.order == "natural"
    grid = oocbfs.convert(generators.grid2d(600, 700), tmp_path / "grid.ocg")
    assert grid.order == "local"
    uniform = oocbfs.convert(generators.uniform(12), tmp_path / "uniform.ocg")
    assert uniform.order == "natural"


@pytest.mark.parametrize("directed", [False, True])
def test_degree_order_puts_equals_by_the_size_of_heads(tmp_path: Path, directed: bool) -> None:
    edges = np.random.default_rng(3).integers(0, 300, (900, 2)) % [300, 60]
    report = oocbfs.convert(edges, tmp_path / "g.ocg", order="degree", directed=directed)
    assert report.order == "degree"
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        assert graph._stored.order is not None
        position = np.asarray(graph._stored.order)  # of each stored vertex
        ids = graph.ids()[position].tolist()
        near = {v: set(graph.in_neighbors(v).tolist()) for v in ids}
        degree = {v: len(near[v]) + (len(graph.neighbors(v)) if directed else 0) for v in ids}
    # The order that decides is that of degree and id alone.
    place = {v: i for i, v in enumerate(sorted(ids, key=lambda v: (-degree[v], v)))}
    head = {v: min((place[u] for u in near[v]), default=len(ids)) for v in ids}
    assert ids == sorted(ids, key=lambda v: (-degree[v], head[v].bit_length(), v))


def test_local_order_keeps_neighbourhoods_together(tmp_path: Path) -> None:
    """Whatever names a grid's vertices got, neighbours end up within a few clusters."""
    rows, columns = 150, 200
    rng = np.random.default_rng(5)
    names = rng.permutation(rows * columns)
    batches = [
        np.stack((batch.sources, batch.targets), axis=1)
        for batch in generators.grid2d(rows, columns).batches()
    ]
    edges = names[np.concatenate(batches)]
    report = oocbfs.convert(edges, tmp_path / "grid.ocg")
    assert report.order == "local"
    with oocbfs.open(tmp_path / "grid.ocg") as graph:
        place = np.empty(graph.num_vertices, np.int64)
        place[graph._stored.order] = np.arange(graph.num_vertices)
        apart = np.abs(place[edges[:, 0]] - place[edges[:, 1]])
    assert np.median(apart) < 64
    assert np.mean(apart < 2048) > 0.8


@pytest.mark.parametrize("directed", [False, True])
def test_local_order_does_not_depend_on_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directed: bool
) -> None:
    plain, spilled = tmp_path / "plain.ocg", tmp_path / "spilled.ocg"
    grid = generators.grid2d(200, 300)
    oocbfs.convert(grid, plain, order="local", directed=directed, threads=1)
    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(2, 2 << 20, MemoryWatch())
    )
    report = oocbfs.convert(grid, spilled, order="local", directed=directed, threads=2)
    assert report.spilled_bytes > 4 * report.arcs
    assert plain.read_bytes() == spilled.read_bytes()


def test_local_order_of_hubs_and_of_loose_vertices(tmp_path: Path) -> None:
    """It can be forced on any graph, at a cost linear in the edges."""
    # At a cost of the square of a hub's degree, this would take an hour.
    star = np.stack([np.zeros(2_000_000, np.int64), np.arange(1, 2_000_001)], axis=1)
    report = oocbfs.convert(star, tmp_path / "star.ocg", order="local")
    assert report.order == "local"
    with oocbfs.open(tmp_path / "star.ocg") as graph:
        assert graph.bfs(7).depth == 2
    stream = MemoryEdges(np.array([[5, 6]]))
    stream.declared = Declared(num_vertices=3000)
    oocbfs.convert(stream, tmp_path / "loose.ocg", order="local")
    with oocbfs.open(tmp_path / "loose.ocg") as graph:
        assert graph.neighbors(6).tolist() == [5]
        assert graph._stored.order is not None
        assert sorted(graph._stored.order.tolist()) == list(range(3000))


@pytest.mark.parametrize("order", ["natural", "degree", "dbg"])
def test_order_sample_is_exact_on_small_graphs(tmp_path: Path, order: Any) -> None:
    """What the choice rests on is what the file then takes."""
    auto = oocbfs.convert(generators.kron(10), tmp_path / "auto.ocg")
    forced = oocbfs.convert(generators.kron(10), tmp_path / "forced.ocg", order=order)
    with Container(tmp_path / "forced.ocg") as container:
        packed = 8 * container.raw_bytes(Kind.HEADS, Kind.TAILS)
        # A vertex without neighbours has a head, too.
        isolated = forced.vertices - np.count_nonzero(container.section(Kind.DEGREES))
    bits = (packed - 32 * isolated) / forced.arcs
    assert f"{order} {bits:.1f}" in auto.order_why


def test_declared_vertices(tmp_path: Path) -> None:
    stream = MemoryEdges(np.array([[1, 2], [2, 5]]))
    stream.declared = Declared(directed=True, first_id=1, num_vertices=7)
    report = oocbfs.convert(stream, tmp_path / "range.ocg")
    assert (report.vertices, report.directed) == (7, True)
    assert (report.ids, report.first_id) == ("consecutive", 1)
    with oocbfs.open(tmp_path / "range.ocg") as graph:
        assert graph.neighbors(2).tolist() == [5]
        assert graph.degree(7) == 0
        with pytest.raises(QueryError, match="its ids are 1 to 7"):
            graph.degree(0)
    stream = MemoryEdges(np.array([[10, 30]]))
    stream.declared = Declared(vertex_ids=np.array([10, 20, 30, 10**15], np.uint64))
    assert oocbfs.convert(stream, tmp_path / "listed.ocg").vertices == 4
    with oocbfs.open(tmp_path / "listed.ocg") as graph:
        assert graph.neighbors(30).tolist() == [10]
        assert graph.degree(10**15) == 0


def test_ids_can_be_forced(tmp_path: Path) -> None:
    edges = np.array([[5, 100]])
    assert oocbfs.convert(edges, tmp_path / "a.ocg").vertices == 2
    assert oocbfs.convert(edges, tmp_path / "b.ocg", ids="dense").vertices == 101
    assert oocbfs.convert(edges + 1, tmp_path / "c.ocg", ids="compact").vertices == 2
    with pytest.raises(InputError, match='ids="compact"'):
        oocbfs.convert(np.array([[0, 2**40]]), tmp_path / "d.ocg", ids="dense")


def test_arrays_and_matrices_of_every_kind(tmp_path: Path) -> None:
    pairs = np.array([[0, 1], [1, 2], [2, 0], [0, 1]])
    matrix = scipy.sparse.csr_array((np.ones(4), pairs.T), shape=(5, 5))
    expected = {(0, 1), (1, 2), (0, 2)}
    for edges in (
        pairs,
        pairs.astype(np.int32),
        pairs.tolist(),
        (pairs[:, 0], pairs[:, 1]),
        matrix,
        matrix.tocsc(),
        scipy.sparse.coo_matrix(matrix),
    ):
        report = oocbfs.convert(edges, tmp_path / "g.ocg", force=True)
        assert report.vertices == (5 if hasattr(edges, "tocoo") else 3)
        assert stored_edges(tmp_path / "g.ocg") == expected


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (np.zeros((3, 3), int), "shape"),
        (np.zeros((3, 2)), "integers"),
        (np.array([[0, -1]]), "negative"),
        ((np.arange(3), np.arange(4)), "same length"),
        (scipy.sparse.csr_array((3, 4)), "square"),
        ([], "at least one input"),
    ],
)
def test_bad_arrays_are_refused(tmp_path: Path, edges: Any, message: str) -> None:
    with pytest.raises((InputError, QueryError), match=message):
        oocbfs.convert(edges, tmp_path / "g.ocg")
    assert not list(tmp_path.iterdir())


def test_existing_output_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(np.array([[0, 1]]), path)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="force=True"):
        oocbfs.convert(np.array([[0, 2]]), path)
    assert path.read_bytes() == before
    oocbfs.convert(np.array([[0, 2]]), path, force=True)
    assert path.read_bytes() != before


def test_too_little_memory_says_how_much(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match=r"needs at least .* [MG]B"):
        oocbfs.convert(np.array([[0, 1]]), tmp_path / "g.ocg", memory="10M")
    stream = MemoryEdges(np.array([[0, 1]]))
    stream.declared = Declared(num_vertices=100_000_000)
    with pytest.raises(BudgetError, match="raise memory by at least"):
        oocbfs.convert(stream, tmp_path / "g.ocg", memory=resident_bytes() + (200 << 20))
    with pytest.raises(BudgetError, match="512M or 4G"):
        oocbfs.convert(np.array([[0, 1]]), tmp_path / "g.ocg", memory="lots")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_phases_add_up_to_the_seconds(tmp_path: Path, codec: Any) -> None:
    report = oocbfs.convert(np.array([[0, 1], [1, 2]], np.uint64), tmp_path / "g.ocg", codec=codec)
    assert sum(report.seconds_by_phase.values()) == pytest.approx(report.seconds)
    assert min(report.seconds_by_phase.values()) >= 0
    assert ("compress" in report.seconds_by_phase) == (codec == "zstd")

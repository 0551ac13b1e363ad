"""Strongly connected components against SciPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import oocbfs
from oocbfs.errors import BudgetError, FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.results.components import ComponentsResult
from oocbfs.search.graph import Graph, open_file
from tests.support.crafting import section_place, sign
from tests.support.real_graphs import GRAPHS, needs_graphs
from tests.support.strategies import ORDERS, Pairs, edge_lists, pair_array

pytestmark = pytest.mark.usefixtures("verified")


def check(graph: Graph, **options: Any) -> ComponentsResult:
    """Find the components, and compare labels and sizes with SciPy's."""
    result = graph.components(strong=True, **options)
    matrix = graph.to_scipy()
    num_components, numbers = connected_components(matrix, connection="strong")
    least = np.full(num_components, matrix.shape[0])
    np.minimum.at(least, numbers, np.arange(matrix.shape[0]))
    np.testing.assert_array_equal(result.labels, graph.ids()[least[numbers]])
    assert result.sizes.tolist() == sorted(np.bincount(numbers).tolist(), reverse=True)
    return result


@given(
    edges=edge_lists(),
    directed=st.sampled_from([True, True, False]),
    order=st.sampled_from(ORDERS),
    engine=st.sampled_from(["cpu", "disk"]),
)
@settings(
    max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_any_graph(tmp_path: Path, edges: Pairs, directed: bool, order: Any, engine: Any) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pair_array(edges), path, directed=directed, order=order, force=True)
    with open_file(path) as graph:
        assert check(graph, engine=engine).strong == directed


def chain_of_cycles(num_cycles: int, size: int) -> Any:
    """Cycles, each of which leads to the next one: no trimming finds anything."""
    first = np.arange(num_cycles * size)
    around = np.where(first % size == size - 1, first - size + 1, first + 1)
    on = np.arange(0, (num_cycles - 1) * size, size)
    arcs = np.stack((np.append(first, on), np.append(around, on + size)), axis=1)
    return np.random.default_rng(2).permutation(num_cycles * size)[arcs]


SHAPES: dict[str, Any] = {
    "cycles in a chain": lambda: chain_of_cycles(2_000, 7),
    "one cycle": lambda: chain_of_cycles(1, 50_000),
    "path": lambda: chain_of_cycles(20_000, 1)[20_000:],
    "kron": lambda: generators.kron(13),
    "sparse": lambda: generators.uniform(15, 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(tmp_path: Path, shape: str) -> None:
    oocbfs.convert(SHAPES[shape](), tmp_path / "g.ocg", directed=True)
    with open_file(tmp_path / "g.ocg") as graph:
        for options in ({}, {"threads": 1}, {"engine": "disk"}, {"memory": "16G"}):
            check(graph, **options)


def test_emulator(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(6), tmp_path / "g.ocg", directed=True)
    with open_file(tmp_path / "g.ocg") as graph:
        assert check(graph, engine="emulator").stats.engine == "emulator"


def test_what_a_refusal_asks_for_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a large component, nearly all of the graph is left after the searches."""
    monkeypatch.delenv("OOCBFS_VERIFY")  # checks take more
    oocbfs.convert(chain_of_cycles(150_000, 7), tmp_path / "g.ocg", directed=True)
    budget = 1 << 20
    refusals: list[str] = []
    with open_file(tmp_path / "g.ocg") as graph:
        while len(refusals) < 10:
            try:
                found = graph.components(strong=True, engine="disk", memory=budget)
                break
            except BudgetError as error:
                refusals.append(str(error))
                # Between two calls, the process itself may grow a little.
                budget = max(budget, error.needed_bytes or 0) + (1 << 20)
        assert found.num_components == 150_000
    assert "outside the largest" in refusals[-1]


def test_malformed_tails(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(chain_of_cycles(50, 3), path, directed=True)
    data = bytearray(path.read_bytes())
    offset, size = section_place(bytes(data), Kind.TAILS)
    data[offset : offset + size] = b"\xff" * size
    path.write_bytes(sign(data))
    with open_file(path) as graph, pytest.raises(FormatError, match="run 'oocbfs verify'"):
        graph.components(strong=True)


@needs_graphs
@pytest.mark.parametrize(
    "name", ["web/web-NotreDame", "web/cnr-2000.graph", "social/soc-Epinions1"]
)
def test_real_graphs(tmp_path: Path, name: str) -> None:
    found = min(GRAPHS.glob(f"{name}*"))
    oocbfs.convert(found, tmp_path / "g.ocg", directed=True)
    with open_file(tmp_path / "g.ocg") as graph:
        labels = check(graph).labels
        np.testing.assert_array_equal(check(graph, engine="disk").labels, labels)

"""Every method of the papers finds the levels that SciPy finds, whatever the schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.kernels.emulator.build import Checks
from tests.support.exhaustive import ALL
from tests.support.gpu.gpu_graphs import grid_graph, matrix_of, mixed_graph
from tests.support.gpu.method_checks import (
    ON_DEVICES,
    WITH_OPTIONS,
    check_method,
    hub_graph,
)

SEEDS = range(1, 11) if ALL else (1, 2, 3)
EVERY = [*ON_DEVICES, *WITH_OPTIONS]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", EVERY)
def test_rows_of_every_length(method: str, seed: int) -> None:
    directed = seed % 2 == 0
    check_method(method, hub_graph(seed, directed=directed), [9], directed=directed, seed=seed)


@pytest.mark.parametrize("method", EVERY if ALL else ON_DEVICES)
def test_large_levels(method: str) -> None:
    check_method(method, mixed_graph(1), [300], seed=4)


@pytest.mark.parametrize("method", ON_DEVICES)
def test_many_levels_of_few_vertices(method: str) -> None:
    check_method(method, grid_graph(40, 5), [0], seed=5)


@pytest.mark.parametrize("method", ON_DEVICES)
def test_several_sources(method: str) -> None:
    check_method(method, hub_graph(2), [9, 100, 880], seed=6)


@pytest.mark.parametrize("method", ["v3.3", "v3.3:pull=warp"])
def test_the_last_segment_of_a_hub_is_searched(method: str) -> None:
    """The hub's only neighbour in the frontier is its last, and not its head."""
    frontier, hub, leaves, last = range(1, 300), 300, range(301, 6300, 2), 6300
    edges = [(0, vertex) for vertex in (*frontier, last)] + [(hub, last)]
    edges += [(hub, leaf) for leaf in leaves]
    edges += [(leaf, leaf + 2) for leaf in leaves[:-1]] + [(leaf, leaf + 4) for leaf in leaves[:-2]]
    matrix = matrix_of(6301, np.array(edges))
    result = check_method(method, matrix, [0])
    assert [step.direction for step in result.steps][1] == "bottom-up"


@settings(max_examples=100 if ALL else 8)
@given(data=st.data())
@pytest.mark.parametrize("method", EVERY)
def test_any_graph(method: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 70))
    vertex = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertex, vertex), max_size=150))
    directed = data.draw(st.booleans())
    sources = data.draw(st.lists(vertex, min_size=1, max_size=3, unique=True))
    matrix = matrix_of(n, np.array(edges, np.int64), directed=directed)
    seed = data.draw(st.integers(1, 1000))
    check_method(method, matrix, sources, directed=directed, seed=seed)


@pytest.mark.parametrize("method", EVERY)
def test_no_races(method: str) -> None:
    """Those that are meant are volatile; all others are found, whether or not they do harm."""
    check_method(method, hub_graph(3), [9], seed=7, checks=Checks.RACES)
    directed = hub_graph(4, directed=True)
    check_method(method, directed, [9], directed=True, seed=8, checks=Checks.RACES)

"""The CUDA kernels of connected components and their driver, run by the emulator, against SciPy."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import FormatError, QueryError
from oocbfs.generate import generators
from oocbfs.gpu.components import GpuComponents
from oocbfs.gpu.emulator_device import align_tails
from oocbfs.graph.rows import span
from oocbfs.kernels.cuda.source import COMPONENTS_KERNELS
from oocbfs.kernels.emulator.build import Checks
from oocbfs.settings import Settings
from tests.support.gpu import emulated
from tests.support.gpu.device_checks import check_components
from tests.support.gpu.emulated import SEEDS
from tests.support.gpu.gpu_graphs import matrix_of, mixed_graph, rows_of, sparse_graph, two_worlds

device = partial(emulated.device, kernels=COMPONENTS_KERNELS)


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_under_ten_schedules(seed: int) -> None:
    check_components(device(seed), mixed_graph(1), weights_seed=seed)
    check_components(device(seed), sparse_graph(1))
    steps = check_components(device(seed), sparse_graph(2), weights_seed=seed)
    assert [step.name for step in steps] == ["heads", "first of tails", "tails", "compress"]
    assert steps[1].edges > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_directed_labels_under_ten_schedules(seed: int) -> None:
    check_components(device(seed), mixed_graph(2, directed=True), directed=True, weights_seed=seed)
    check_components(device(seed), sparse_graph(3, directed=True), directed=True)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_races(seed: int) -> None:
    made = device(seed, checks=Checks.RACES)
    check_components(made, mixed_graph(1), weights_seed=seed)
    check_components(made, sparse_graph(1))
    check_components(made, sparse_graph(2, directed=True), directed=True, weights_seed=seed)
    assert made.library.counters().accesses > 100_000


def test_rows_outside_the_largest_are_decoded_once_and_wholly() -> None:
    matrix, size = two_worlds()
    rows = rows_of(matrix)
    steps = {step.name: step for step in check_components(device(), matrix)}
    begins = [span(rows, vertex) for vertex in range(size, matrix.shape[0])]
    lengths = np.array([end - begin for begin, end in begins])
    assert lengths.max() > 2048
    assert np.count_nonzero((lengths > 32) & (lengths <= 1024)) > 10
    assert steps["tails"].tail_bytes == lengths.sum()
    degrees = np.diff(matrix.indptr[size:])
    assert steps["tails"].edges == degrees.sum() - np.count_nonzero(degrees)


def test_rows_are_read_no_further_than_the_largest() -> None:
    steps = {step.name: step for step in check_components(device(), mixed_graph(1), weights_seed=1)}
    assert 0 < steps["tails"].tail_bytes < 0.2 * rows_of(mixed_graph(1)).tails.size


@pytest.mark.parametrize("device_range", [(0, 1 << 30), (1024, 8192), (128, 128)])
def test_device_ranges(device_range: tuple[int, int]) -> None:
    made = device()
    check_components(made, two_worlds()[0], device_range=device_range)
    assert made.usage.slow_bytes is not None
    assert (made.usage.slow_bytes == 0) == (device_range[1] == 1 << 30)


@given(
    st.integers(1, 70).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=100),
        )
    ),
    st.booleans(),
    st.integers(0, 2**32),
)
@settings(max_examples=100, deadline=None)
def test_arbitrary_graphs(
    graph: tuple[int, list[tuple[int, int]]], directed: bool, seed: int
) -> None:
    n, edges = graph
    matrix = matrix_of(n, np.array(edges, np.int64), directed=directed)
    check_components(device(seed, num_blocks=2), matrix, directed=directed, weights_seed=seed)


def test_damaged_tails_are_reported() -> None:
    """A number of almost 2^32 in a row for a lane, in one for a warp, in a segment of a hub."""
    matrix, size = two_worlds()
    rows = rows_of(matrix)
    spans = [span(rows, vertex) for vertex in range(size, matrix.shape[0])]
    for least, most in ((6, 32), (33, 1024), (1025, 1 << 20)):
        begin, _ = next(row for row in spans if least <= row[1] - row[0] <= most)
        damaged = rows._replace(tails=align_tails(rows.tails))
        damaged.tails[begin : begin + 5] = (0xFF, 0xFF, 0xFF, 0xFF, 0x0F)
        with GpuComponents(device(), damaged) as found, pytest.raises(FormatError):
            found.run()


def test_damaged_heads_are_reported() -> None:
    rows = rows_of(sparse_graph(1))
    damaged = rows._replace(heads=rows.heads.copy())
    damaged.heads[5] = 6000
    with GpuComponents(device(), damaged) as found, pytest.raises(FormatError):
        found.run()


def test_no_vertices() -> None:
    with GpuComponents(device(), rows_of(matrix_of(0, np.empty((0, 2), np.int64)))) as found:
        assert found.run().size == 0


@pytest.mark.parametrize("directed", [False, True])
def test_engine(tmp_path: Path, directed: bool) -> None:
    oocbfs.convert(generators.rmat(11, 1), tmp_path / "g.ocg", directed=directed)
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        expected = graph.components(engine="cpu").labels
        moved = {}
        for share in ("0%", "40%", "100%"):
            found = graph.components(engine="emulator", options=Settings(resident_tails=share))
            np.testing.assert_array_equal(found.labels, expected)
            assert found.stats.engine == "emulator"
            moved[share] = found.stats.slow_bytes_by_tier["host"]
        assert moved["0%"] >= moved["40%"] >= moved["100%"] == 0 < moved["0%"]
        with pytest.raises(QueryError, match="no memory budget"):
            graph.components(engine="emulator", memory="1G")

"""The CUDA kernels for many sources, run by the emulator and compared with SciPy and the CPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import BudgetError, QueryError
from oocbfs.generate import generators
from oocbfs.gpu.many import GpuMany
from oocbfs.kernels.cuda.source import MANY_KERNELS
from oocbfs.kernels.emulator.build import Checks
from oocbfs.plan.many import ManyPlan
from oocbfs.search.graph import Graph, open_file
from oocbfs.search.many import Searches, plan_searches
from oocbfs.settings import Settings
from tests.support.gpu import emulated
from tests.support.gpu.cuda_double import Runtime
from tests.support.gpu.cupy_double import fake_cupy
from tests.support.gpu.device_checks import check_many
from tests.support.gpu.emulated import schedules
from tests.support.gpu.engine_graphs import opened_rmat
from tests.support.gpu.gpu_graphs import (
    long_hub_graph,
    matrix_of,
    mixed_graph,
    random_graph,
    rows_of,
    rows_that_wrap_around,
)
from tests.support.shared import SharedGraphs

# All top-down, as it comes, all bottom-up.
ALPHAS = (1e-9, 30.0, 1e9)


device = partial(emulated.device, kernels=MANY_KERNELS)
library = partial(emulated.library, MANY_KERNELS)


def some_sources(n: int, count: int = 64) -> list[int]:
    return [17, 300, 300, *np.random.default_rng(1).integers(0, n, count - 3).tolist()]


@pytest.mark.parametrize(("seed", "alpha", "directed"), schedules(ALPHAS, (False, True)))
def test_levels_under_ten_schedules(seed: int, alpha: float, directed: bool) -> None:
    matrix = mixed_graph(seed, directed=directed)
    check_many(device(seed), matrix, some_sources(9000, 6 + seed), alpha, directed=directed)


def test_sources_go_both_ways_at_once() -> None:
    matrix = mixed_graph(1)
    found = check_many(device(), matrix, some_sources(9000))
    assert any(record["top_down"] and record["bottom_up"] for record in found.records)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_no_races(alpha: float) -> None:
    made = device(checks=Checks.RACES)
    check_many(made, mixed_graph(1), some_sources(9000, 9), alpha)
    check_many(made, mixed_graph(2, directed=True), some_sources(9000, 9), alpha, directed=True)
    assert made.library.counters().accesses > 100_000


@pytest.mark.parametrize("alpha", ALPHAS)
def test_segments_with_stretched_varints(alpha: float) -> None:
    check_many(device(), long_hub_graph(1), [0, 1, 5000], alpha)


@pytest.mark.parametrize("device_range", [(0, 1 << 30), (1024, 8192)])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_device_ranges(alpha: float, device_range: tuple[int, int]) -> None:
    made = device()
    check_many(made, mixed_graph(4), some_sources(9000, 5), alpha, device_range=device_range)
    assert (made.usage.slow_bytes == 0) == (device_range[1] == 1 << 30)


def test_bytes_are_shared() -> None:
    """64 sources move less over the bus than 64 times one of them."""
    rows = rows_of(random_graph(1, 4_000, 40_000))
    moved = []
    for sources in (np.arange(64), *np.arange(64).reshape(64, 1)):
        made = device()
        with GpuMany(made, rows, with_levels=False) as many:
            assert many.run(sources.astype(np.uint32)).planes is None
        moved.append(made.usage.slow_bytes or 0)
    assert 0 < moved[0] < 0.35 * sum(moved[1:])


@given(
    st.integers(1, 70).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=200),
            st.lists(st.integers(0, n - 1), min_size=1, max_size=64),
        )
    ),
    st.booleans(),
    st.sampled_from(ALPHAS),
    st.integers(0, 2**32),
)
@examples(max_examples=50, deadline=None)
def test_arbitrary_graphs(
    graph: tuple[int, list[tuple[int, int]], list[int]], directed: bool, alpha: float, seed: int
) -> None:
    n, edges, sources = graph
    matrix = matrix_of(n, np.array(edges, np.int64), directed=directed)
    check_many(device(seed, num_blocks=2), matrix, sources, alpha, directed=directed)


def test_deep_graphs_are_given_up() -> None:
    path = matrix_of(100, np.stack((np.arange(99), np.arange(1, 100)), axis=1))
    with GpuMany(device(), rows_of(path)) as many:
        assert many.run(np.array([0], np.uint32), max_levels=99).too_deep
        assert not many.run(np.array([0], np.uint32), max_levels=100).too_deep


@pytest.fixture(scope="module")
def graph(shared_graphs: SharedGraphs) -> Iterator[Graph]:
    yield from opened_rmat(shared_graphs)


@pytest.mark.parametrize("emit", ["summary", "levels"])
def test_engine_emulator(graph: Graph, emit: Any) -> None:
    sources = list(range(70))
    expected = graph.bfs_many(sources, emit=emit, engine="cpu")
    for one, other in zip(
        graph.bfs_many(sources, emit=emit, engine="emulator"), expected, strict=True
    ):
        assert one.source == other.source
        assert one.strategy == "together"
        np.testing.assert_array_equal(one.level_sizes, other.level_sizes)
        if emit == "levels":
            np.testing.assert_array_equal(one.levels, other.levels)
    with pytest.raises(QueryError, match="no memory budget"):
        graph.bfs_many(sources, engine="emulator", memory="1G")


@pytest.mark.parametrize("directed", [False, True])
def test_resident_tails(tmp_path: Path, directed: bool) -> None:
    """What is resident decides nothing but what moves over the bus."""
    oocbfs.convert(generators.rmat(10, 1), tmp_path / "g.ocg", directed=directed)
    with open_file(tmp_path / "g.ocg") as opened:
        expected = [one.levels for one in opened.bfs_many(range(9), emit="levels", engine="cpu")]
        moved = []
        for share in ("0%", "50%", "100%"):
            plan = plan_many(opened, share)
            with Searches(opened._stored, "levels", plan) as work:
                found = [one.levels for one in work.run(range(9))]
                assert work._device is not None
                moved.append(work._device.device.usage.slow_bytes or 0)
            np.testing.assert_array_equal(found, expected)
        assert moved[0] > moved[1] > moved[2] == 0
        with pytest.raises(BudgetError, match="device memory"):
            list(opened.bfs_many(range(9), engine="emulator", options=Settings(vram="1K")))
        with pytest.raises(BudgetError, match="as a share"):
            opened.bfs_many(range(9), engine="emulator", options=Settings(resident_tails="lots%"))


def plan_many(graph: Graph, share: str) -> ManyPlan:
    """Divide as bfs_many does."""
    settings = Settings(engine="emulator", resident_tails=share)
    return plan_searches(graph._stored, "levels", "together", settings)


def test_engine_cuda(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A double of CuPy whose launches run in the emulator; nothing stays pinned."""
    runtime = Runtime(offset=0, library=library())
    launched: list[Any] = []
    cupy = fake_cupy(runtime, launched)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    sources = list(range(64))
    found = graph.bfs_many(sources, emit="levels", engine="cuda")
    for one, other in zip(found, graph.bfs_many(sources, emit="levels", engine="cpu"), strict=True):
        np.testing.assert_array_equal(one.levels, other.levels)
    assert not runtime.pinned
    names = {entry[1] if entry[0] == "compile" else entry[0] for entry in launched}
    assert len(names) >= len(MANY_KERNELS)


def test_a_gpu_that_is_too_small(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    # 128 MB are the driver's.
    runtime = Runtime(offset=0, free_bytes=(128 << 20) + 1000, library=library())
    cupy = fake_cupy(runtime, [])
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(BudgetError, match="device memory"):
        list(graph.bfs_many(range(64), engine="cuda"))


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_damaged_tails_are_reported(alpha: float) -> None:
    for vertex, damaged in rows_that_wrap_around():
        chosen = np.array([vertex if alpha < 1 else 0], np.uint32)
        with GpuMany(device(), damaged) as many:
            assert many.run(chosen, alpha=alpha).malformed

"""Kernels and level loop of several devices, run by the emulator and compared with SciPy."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.devices.cutting import cut_rows
from oocbfs.errors import FormatError
from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.result import DeviceDirection
from oocbfs.graph.rows import span
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import Control
from oocbfs.kernels.emulator.build import Checks
from oocbfs.plan.messages import bottom_up_bytes, top_down_bytes
from tests.support.exhaustive import crossing
from tests.support.gpu.block_cyclic import check_block_cyclic, emulated
from tests.support.gpu.emulated import LARGE, NORMAL, device, schedules
from tests.support.gpu.gpu_graphs import (
    grid_graph,
    levels_by_scipy,
    long_hub_graph,
    matrix_of,
    mixed_graph,
    random_graph,
    rows_of,
    rows_that_wrap_around,
)

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)

DIRECTIONS = (DeviceDirection.AUTO, DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP)


def test_more_levels_than_a_byte_holds() -> None:
    path = np.random.default_rng(2).permutation(300)
    matrix = matrix_of(300, np.stack([path[:-1], path[1:]], axis=1))
    found = check_block_cyclic(matrix, [int(path[0])], 2, limits=NORMAL)
    assert len(found.level_sizes) == 300


@given(st.integers(0, 1000), st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_every_row_is_cut_out_once(n: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = matrix_of(n, rng.integers(0, max(1, n), (3 * n, 2)))
    rows, cut = rows_of(matrix), Cut(n, count)
    seen = 0
    for part in range(count):
        own = cut_rows(rows, cut, part)
        vertices = cut.vertex_of(part, np.arange(own.heads.size))
        assert np.array_equal(own.heads, rows.heads[vertices])
        assert np.array_equal(own.degrees, rows.degrees[vertices])
        assert own.num_ids == n
        for row, vertex in enumerate(vertices.tolist()):
            ours, theirs = own.tails[slice(*span(own, row))], rows.tails[slice(*span(rows, vertex))]
            assert np.array_equal(ours, theirs)
        seen += own.heads.size
    assert seen == n


@pytest.mark.parametrize(("seed", "direction", "count"), schedules(DIRECTIONS, (2, 3)))
def test_levels_under_ten_schedules(seed: int, direction: DeviceDirection, count: int) -> None:
    check_block_cyclic(mixed_graph(1), [300], count, direction, seed=seed)


@pytest.mark.parametrize(("direction", "count"), crossing(DIRECTIONS, [1, 2, 3, 7]))
def test_directed(direction: DeviceDirection, count: int) -> None:
    check_block_cyclic(mixed_graph(2, directed=True), [17], count, direction, directed=True)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_hubs_of_several_segments(direction: DeviceDirection) -> None:
    """Their segments are shared by warps of one device, and lead to vertices of all."""
    matrix = long_hub_graph(1)
    result = check_block_cyclic(matrix, [int(matrix[3].indices[5])], 3, direction)
    if direction is DeviceDirection.TOP_DOWN:
        assert int(result.control[Control.HUB_ROWS]) == 6


@pytest.mark.parametrize(("seed", "direction"), crossing([1, 2], DIRECTIONS))
def test_no_races(seed: int, direction: DeviceDirection) -> None:
    check_block_cyclic(mixed_graph(1), [300], 2, direction, seed=seed, checks=Checks.RACES)


@given(
    st.integers(1, 400),
    st.lists(st.tuples(st.integers(0, 399), st.integers(0, 399)), max_size=300),
    st.integers(1, 4),
    st.sampled_from(DIRECTIONS),
    st.booleans(),
    st.data(),
)
@settings(max_examples=30, deadline=None)
def test_any_graph(
    n: int,
    edges: list[tuple[int, int]],
    count: int,
    direction: DeviceDirection,
    directed: bool,
    data: st.DataObject,
) -> None:
    kept = [(u % n, v % n) for u, v in edges]
    matrix = matrix_of(n, np.array(kept, np.int64), directed=directed)
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    check_block_cyclic(matrix, sources, count, direction, directed=directed)


def test_auto_uses_every_kind_of_step() -> None:
    """And decides as one device does: by the slow bytes of all."""
    kinds = set()
    result = check_block_cyclic(random_graph(1, 20_000, 160_000), [200], 2, limits=NORMAL)
    kinds |= {step.direction for step in result.steps}
    kinds |= {step.direction for step in check_block_cyclic(mixed_graph(1), [300], 2).steps}
    assert kinds == {"top-down", "heads", "bottom-up", "heads, top-down"}


@pytest.mark.parametrize("count", [1, 3])
def test_heads_answer_as_on_one_device(count: int) -> None:
    matrix = mixed_graph(1)
    with GpuBfs(device(), rows_of(matrix), limits=LARGE) as bfs:
        alone = bfs.run(np.array([300], np.uint32), DeviceDirection.BOTTOM_UP)
    found = check_block_cyclic(matrix, [300], count, DeviceDirection.BOTTOM_UP)
    for one, other in zip(alone.steps, found.steps, strict=False):
        assert (one.frontier, one.heads_answered) == (other.frontier, other.heads_answered)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_bytes_of_links_are_those_of_the_formulas(count: int) -> None:
    """Bitmaps: (p-1)/p · n/8 bytes of each device, but for what rounds its words up."""
    matrix = random_graph(1, 64 * 12 * 10, 50_000)  # all shards have as many words
    n, rows = matrix.shape[0], rows_of(matrix)
    for direction in (DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP):
        with emulated(rows, None, count) as bfs:
            steps = bfs.run(np.array([200], np.uint32), direction).steps
        # Where parents are wanted, devices tell each other what is visited before they go down.
        formula = bottom_up_bytes(n, n / 2, count)
        if direction is DeviceDirection.TOP_DOWN:
            formula += top_down_bytes(n, 4 * n, count)
        for step in steps:
            assert len(step.link_bytes) == count * (count - 1)
            for number in range(count):
                sent = sum(
                    size for link, size in step.link_bytes.items() if link.startswith(f"{number}>")
                )
                assert sent == formula


def test_one_device_sends_nothing() -> None:
    result = check_block_cyclic(mixed_graph(1), [300], 1)
    assert all(step.link_bytes == {} for step in result.steps)


def test_fewer_words_than_devices() -> None:
    """Some devices have no vertex at all."""
    matrix = matrix_of(70, np.array([(v, v + 1) for v in range(69)]))
    for direction in DIRECTIONS:
        result = check_block_cyclic(matrix, [50], 4, direction)
        assert len(result.steps) == 51


def test_stopping() -> None:
    matrix = grid_graph(20, 30)
    expected = levels_by_scipy(matrix, [0])
    with emulated(rows_of(matrix), None, 2) as bfs:
        sources = np.array([0], np.uint32)
        shallow = bfs.run(sources, max_depth=7)
        near = bfs.run(sources, target=130)
        whole = bfs.run(sources)  # what the others left is gone
    assert np.array_equal(shallow.levels, np.where(expected <= 7, expected, -1))
    assert shallow.depth == 7
    assert near.levels[130] == expected[130] == near.levels.max() == near.depth
    assert near.parents is not None
    assert (near.parents[near.levels < 0] == NO_HEAD).all()
    assert np.array_equal(whole.levels, expected)


@pytest.mark.parametrize("direction", [DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP])
def test_damage_is_found(direction: DeviceDirection) -> None:
    for vertex, rows in rows_that_wrap_around():
        source = vertex if direction is DeviceDirection.TOP_DOWN else 2999
        with (
            emulated(rows, None, 2) as bfs,
            pytest.raises(FormatError, match="a row is damaged"),
        ):
            bfs.run(np.array([source], np.uint32), direction)

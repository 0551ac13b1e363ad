"""Levels that are cut in two: where, what is counted for that, and what the cut saves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import oocbfs
from oocbfs.generate import generators
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.control import pending_bytes_from, sectors_from
from oocbfs.gpu.device import Argument
from oocbfs.gpu.emulator_device import EmulatorDevice, align_tails
from oocbfs.gpu.result import NOT_REACHED, DeviceDirection
from oocbfs.graph.rows import neighbours, span
from oocbfs.kernels.cuda.source import NUM_RANGES, Control
from oocbfs.kernels.rows import Rows
from oocbfs.plan.cuts import Cuts
from oocbfs.search.graph import open_file
from tests.support.exhaustive import ALL
from tests.support.gpu.emulated import LARGE, device, library
from tests.support.gpu.gpu_graphs import (
    levels_by_scipy,
    matrix_of,
    mixed_graph,
    random_graph,
    rows_of,
)
from tests.support.gpu.sector_count import frontier_sectors, look_at_heads
from tests.support.gpu.slow_bytes import RecordingDevice, expected_sectors


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_levels_where_heads_do_not_help(seed: int) -> None:
    """The neighbour of lowest degree is the head, so that most vertices are found by tails."""
    matrix = mixed_graph(1)
    degrees = np.diff(matrix.indptr)
    rows = rows_of(matrix, weights=(degrees.max() - degrees).astype(np.uint32))
    with GpuBfs(device(seed), rows, limits=LARGE) as bfs:
        for source in (17, 300, 4000) if ALL else (17, 300, 4000)[seed - 1 : seed]:
            result = bfs.run(np.array([source], np.uint32), DeviceDirection.SPLIT)
            assert "split" in {step.direction for step in result.steps}
            np.testing.assert_array_equal(result.levels, levels_by_scipy(matrix, [source]))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    path = tmp_path_factory.mktemp("split") / "g.ocg"
    oocbfs.convert(generators.powerlaw(60_000, 20.0, 20_000), path, order="degree")
    with open_file(path) as graph:
        found = graph._stored.rows
        return found._replace(
            heads=found.heads.copy(),
            bases=found.bases.copy(),
            starts=found.starts.copy(),
            tails=align_tails(found.tails),
            degrees=found.degrees.copy(),
        )


def test_cuts_divide_the_tails(rows: Rows) -> None:
    cuts = Cuts(rows, rows).vertices.tolist()
    assert len(cuts) == NUM_RANGES - 1
    for k, cut in enumerate(cuts, 1):
        assert cut % 32 == 0
        # The row that crosses the border of a range may be the last one before the cut.
        border = k * rows.tails.size / NUM_RANGES
        assert span(rows, max(cut - 1, 0))[0] <= border <= span(rows, cut + 32)[1]


@pytest.mark.parametrize("n", [1, 2, 31, 33])
def test_cuts_of_next_to_nothing(n: int) -> None:
    rows = rows_of(matrix_of(n, np.array([(0, v) for v in range(1, n)])))
    cuts = Cuts(rows, rows)
    assert set(cuts.vertices.tolist()) <= {0, 32}
    assert cuts.choose(np.zeros(NUM_RANGES, np.int64), np.array([100, 0])) == NUM_RANGES
    assert cuts.choose(np.full(NUM_RANGES, 100), np.array([100, 0])) == 0


def hub_and_clique(hub: int) -> object:
    """Return a hub whose row holds almost all bytes, and a clique at a leaf of it."""
    n = 4096
    leaves = np.delete(np.arange(n - 6), hub)[::2]
    edges = [(hub, leaf) for leaf in leaves]
    edges += [(leaves[-1], n - 6)]
    edges += [(u, v) for u in range(n - 6, n) for v in range(u + 1, n)]
    return matrix_of(n, np.array(edges))


@pytest.mark.parametrize(("hub", "cut"), [(0, 0), (4088, 4096)])
def test_levels_are_not_cut_where_one_side_has_no_vertices(hub: int, cut: int) -> None:
    """Neither side is launched in vain, and what moves is what a level in one direction moves."""
    matrix = hub_and_clique(hub)
    rows = rows_of(matrix)
    made = RecordingDevice(library=library(), seed=1)
    with GpuBfs(made, rows, limits=LARGE) as bfs:
        made.bfs, made.pending = bfs, []
        bfs.cuts.vertices[:] = cut
        result = bfs.run(np.array([2], np.uint32), DeviceDirection.SPLIT)
    np.testing.assert_array_equal(result.levels, levels_by_scipy(matrix, [2]))
    kinds = {step.direction for step in result.steps}
    assert kinds >= {"bottom-up" if cut else "heads, top-down"}
    assert "split" not in kinds
    moved = made.library.counters().host_sectors
    assert moved == expected_sectors(made, rows, result, (0, 0), 32)


def test_a_graph_of_one_row_has_no_cut() -> None:
    rows = rows_of(hub_and_clique(0))
    cuts = Cuts(rows, rows)
    assert not cuts.vertices.any()
    assert cuts.vertex(0) == 0
    assert cuts.vertex(3) == 0
    assert cuts.vertex(NUM_RANGES) == rows.heads.size


def saved(rows: Rows, hub: int, cut: int) -> int:
    """Count the segments of a hub all of whose neighbours lie before a cut, from its list alone."""
    tail = neighbours(rows, hub).astype(np.int64)
    tail = np.sort(tail[tail != rows.heads[hub]])
    begin, end = span(rows, hub)
    ends = np.flatnonzero(rows.tails[begin:end] < 128)
    last_of_each = np.searchsorted(ends, np.arange(1024, end - begin, 1024)) - 1
    return int((tail[last_of_each] < cut).sum())


def test_savings_are_near_those_of_all_hubs(rows: Rows) -> None:
    """Hubs weigh as often as they are a neighbour."""
    cuts = Cuts(rows, rows)
    lengths = np.array([np.subtract(*span(rows, v)[::-1]) for v in range(rows.heads.size)])
    hubs = np.flatnonzero(lengths > 1024)
    weights = rows.degrees[hubs]
    segments = ((lengths[hubs] - 1) // 1024 * weights).sum()
    before = [
        sum(saved(rows, int(hub), cut) * rows.degrees[hub] for hub in hubs) for cut in cuts.vertices
    ]
    frontier = np.array([1_000_000, 1_000_000])
    predicted = cuts.costs(np.zeros(NUM_RANGES, np.int64), frontier)[:-1]
    shares = (predicted[0] - predicted[1:]) / (1_000_000 * (1 + 1 / 32))
    np.testing.assert_allclose(shares, np.array(before) / segments, atol=0.05)


class CountingDevice(EmulatorDevice):
    """Keeps the control words after every heads pass, and what had been visited before."""

    bfs: GpuBfs
    passes: list[tuple[NDArray[np.uint64], NDArray[np.bool_]]]

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        visited = self.bfs.memory["levels"].owner[: self.bfs.num_vertices] != NOT_REACHED
        super().launch(kernel, blocks, threads, arguments)
        if kernel == "bottom_up_heads":
            self.passes.append((self.bfs.memory["control"].owner.copy(), visited))


@pytest.mark.parametrize(
    "matrix", [mixed_graph(1), random_graph(1, 20_000, 160_000)], ids=["mixed", "random"]
)
@pytest.mark.parametrize("device_range", [(0, 0), (4096, 16384)])
def test_the_device_sums_up_what_decides(matrix: object, device_range: tuple[int, int]) -> None:
    rows = rows_of(matrix)
    made = CountingDevice(library=library())
    made.passes = []
    with GpuBfs(made, rows, device_ranges=(device_range,), limits=LARGE) as bfs:
        made.bfs = bfs
        result = bfs.run(np.array([17], np.uint32), DeviceDirection.BOTTOM_UP)
    index, fast = (rows.bases, rows.starts, rows.shift), np.array(device_range) // 32
    cuts = Cuts(rows, rows).vertices
    pending = np.empty(rows.heads.size, np.int64)
    before = np.zeros(made.passes[0][0].size, np.uint64)
    assert len(made.passes) > 3
    for level, (control, visited) in enumerate(made.passes):
        growth = control - before
        before = control
        frontier = np.flatnonzero(result.levels == level)
        sectors = frontier_sectors(*index, frontier, fast)
        expected_search = 32 + rows.tails.size // (32 * int(sectors[:2].sum()) + 1)
        count, by_range = look_at_heads(
            rows.heads, *index, visited, fast, expected_search, pending, cuts
        )
        assert growth[Control.PENDING] == count
        ranges = pending_bytes_from(growth)
        np.testing.assert_array_equal(ranges, by_range)
        by_heads = visited[np.minimum(rows.heads, rows.heads.size - 1)] & ~visited
        by_heads &= rows.heads < rows.heads.size
        found = sectors_from(growth, Control.HEADS_FOUND_SECTORS)
        of_heads = frontier_sectors(*index, np.flatnonzero(by_heads), fast)
        np.testing.assert_array_equal(found, of_heads)
    # All that was found, by whatever kernel, the source included.
    total = sectors_from(control, Control.FOUND_SECTORS)
    total += sectors_from(control, Control.HEADS_FOUND_SECTORS)
    reached = np.flatnonzero(result.levels >= 0)
    np.testing.assert_array_equal(total, frontier_sectors(*index, reached, fast))


def test_segments_before_the_cut_are_not_listed(rows: Rows) -> None:
    source = np.flatnonzero(rows.heads < 100)[-1:].astype(np.uint32)  # near hubs
    listed = {}
    for direction in (DeviceDirection.TOP_DOWN, DeviceDirection.SPLIT):
        with GpuBfs(device(), rows, limits=LARGE) as bfs:
            result = bfs.run(source, direction)
        kinds = {step.direction for step in result.steps}
        assert ("split" in kinds) == (direction is DeviceDirection.SPLIT)
        hubs, segments = divmod(int(result.control[Control.HUBS]), 1 << 32)
        listed[direction] = segments / hubs
    assert listed[DeviceDirection.SPLIT] < 0.9 * listed[DeviceDirection.TOP_DOWN]


def test_auto_cuts_a_level(rows: Rows) -> None:
    kinds: list[str] = []
    with GpuBfs(device(), rows) as bfs:
        for source in np.flatnonzero(rows.degrees)[200::1000]:
            result = bfs.run(np.array([source], np.uint32))
            kinds.extend(step.direction for step in result.steps)
    assert "split" in kinds

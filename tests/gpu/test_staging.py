"""Tails that a device gets from disk, piece by piece: the same levels, no byte more than needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import BudgetError, FormatError
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection, GpuResult
from oocbfs.gpu.staging import DiskTails
from oocbfs.gpu.verification import count_broken
from oocbfs.graph.rows import rows_before, span
from oocbfs.kernels.cuda.source import BFS_KERNELS, CHECK_KERNELS, DISK_BLOCK_BYTES, Control
from oocbfs.kernels.emulator.build import Checks
from oocbfs.plan.device import NUM_SLOTS, plan, slot_bytes
from oocbfs.plan.ranges import PAGE_BYTES, ByteRange
from oocbfs.plan.search_arrays import RESULT_SLOTS, result_slot_bytes
from oocbfs.plan.shape import shape_of
from oocbfs.search.graph import Graph, open_file
from tests.support.exhaustive import crossing
from tests.support.gpu.emulated import CHECKS, device
from tests.support.gpu.gpu_graphs import check_parents, levels_by_scipy, matrix_of
from tests.support.gpu.steps import numbered

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)

N = 20_000
SOURCE = 1234


def edges(*, directed: bool) -> Any:
    """Short and long rows, and a hub whose row is longer than a block."""
    rng = np.random.default_rng(5 + directed)
    parts = [rng.integers(0, N, (70_000, 2))]
    for hub, size in ((7, 500), (9_000, 17_000), (N - 2, 4_000)):
        parts.append(np.stack([np.full(size, hub), rng.permutation(N)[:size]], axis=1))
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Graph]]:
    """Return the graphs that are not directed and directed."""
    with ExitStack() as stack:
        opened = {}
        for directed in (False, True):
            path = tmp_path_factory.mktemp("staging") / "g.ocg"
            made = edges(directed=directed)
            options = {"directed": directed, "order": "natural", "ids": "dense"}
            oocbfs.convert(made, path, codec="raw", **options)  # type: ignore[arg-type]
            opened[directed] = stack.enter_context(open_file(path))
        yield opened


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def graph(request: pytest.FixtureRequest, graphs: dict[bool, Graph]) -> Graph:
    return graphs[request.param]


def disks_of(graph: Graph) -> tuple[DiskTails, DiskTails]:
    rows = graph._stored.disk_rows
    return DiskTails(rows.file, rows.out_disk), DiskTails(rows.file, rows.in_disk)


def search(
    graph: Graph,
    host_ranges: tuple[ByteRange, ...],
    direction: DeviceDirection,
    *,
    seed: int = 1,
    checks: Checks = CHECKS,
    device_ranges: tuple[ByteRange, ...] = ((0, 0),),
) -> tuple[GpuResult, EmulatorDevice]:
    made = device(seed, checks=checks)
    with placed(graph, made, host_ranges, device_ranges) as bfs:
        return bfs.run(np.array([SOURCE], np.uint32), direction), made


def placed(
    graph: Graph,
    made: EmulatorDevice,
    host_ranges: tuple[ByteRange, ...],
    device_ranges: tuple[ByteRange, ...],
) -> GpuBfs:
    return GpuBfs(
        made,
        graph._stored.rows,
        graph._stored.in_rows if graph.directed else None,
        device_ranges=device_ranges,
        host_ranges=host_ranges,
        disks=disks_of(graph),
        slot_bytes=2 * DISK_BLOCK_BYTES,
    )


def check(graph: Graph, result: GpuResult) -> None:
    matrix = matrix_of(graph.num_vertices, edges(directed=graph.directed), directed=graph.directed)
    np.testing.assert_array_equal(result.levels, levels_by_scipy(matrix, [SOURCE]))
    assert result.parents is not None
    check_parents(matrix, [SOURCE], result.levels, result.parents)


def test_the_graph_crosses_pieces(graph: Graph) -> None:
    size = graph._stored.rows.tails.size
    assert size > 4 * DISK_BLOCK_BYTES
    begin, end = span(graph._stored.rows, 9_000)
    assert end - begin > DISK_BLOCK_BYTES


@pytest.mark.parametrize(
    ("seed", "direction"),
    [
        *zip(range(1, 11), cycle((DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP))),
        (1, DeviceDirection.AUTO),
    ],
)
def test_all_on_disk_under_ten_schedules(
    graph: Graph, seed: int, direction: DeviceDirection
) -> None:
    result, _ = search(graph, ((0, 0),), direction, seed=seed)
    check(graph, result)
    if direction is DeviceDirection.TOP_DOWN:
        assert int(result.control[Control.HUB_ROWS]) >= 1


@pytest.mark.parametrize("direction", DeviceDirection)
def test_frames_are_unpacked_on_their_way(
    graph: Graph, tmp_path: Path, direction: DeviceDirection
) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(graph.path, path, order="keep", codec="zstd")
    with open_file(path) as framed:
        found, _ = search(framed, ((0, 0),), direction)
        check(framed, found)
    assert sum(step.slow_bytes["disk"] for step in found.steps) > 0


# Host and device range of the tails.
RANGES = (
    ((0, 50_001), (0, 0)),
    ((70_000, 70_010), (0, 0)),
    ((40_007, 1 << 30), (0, 0)),
    ((40_000, 100_003), (40_064, 60_032)),
    ((0, 30_080), (0, 30_080)),
)


@pytest.mark.parametrize(
    ("directed", "ranges", "direction"), crossing([False, True], RANGES, tuple(DeviceDirection))
)
def test_host_and_device_ranges(
    graphs: dict[bool, Graph],
    directed: bool,
    ranges: tuple[ByteRange, ByteRange],
    direction: DeviceDirection,
) -> None:
    graph = graphs[directed]
    host_range, device_range = ranges
    host_ranges = tuple(
        (host_range[0], min(host_range[1], side.tails.size))
        for side in (graph._stored.rows, graph._stored.in_rows)
    )
    result, _ = search(graph, host_ranges, direction, device_ranges=(device_range,))
    check(graph, result)


@pytest.mark.parametrize("host_range", [(0, 0), (40_000, 100_003)])
def test_a_search_from_disk_is_checked(graph: Graph, host_range: ByteRange) -> None:
    """All rows are looked at, wherever they are; what is read for that counts for no level."""
    made = device(kernels=(*BFS_KERNELS, *CHECK_KERNELS))
    with placed(graph, made, (host_range,), ((0, 0),)) as bfs:
        bfs.run(np.array([SOURCE], np.uint32))
        assert count_broken(bfs) == 0
        assert bfs.staging is not None
        assert bfs.staging.take_bytes() == 0
        levels = bfs.device.download(bfs.memory["levels"])
        for vertex in (int(np.flatnonzero(levels == 1)[0]), int(np.flatnonzero(levels > 1)[-1])):
            part = bfs.memory["levels"].slice(vertex, vertex + 1)
            bfs.device.upload(part, levels[vertex : vertex + 1] + np.int32(1))
            assert count_broken(bfs) > 0
            bfs.device.upload(part, levels[vertex : vertex + 1])


@pytest.mark.parametrize("direction", [DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP])
def test_no_races(graph: Graph, direction: DeviceDirection) -> None:
    result, made = search(graph, ((60_000, 90_000),), direction, checks=Checks.RACES)
    check(graph, result)
    assert made.library.counters().accesses > 100_000


def blocks_of(graph: Graph, vertices: Any, *, searched: bool) -> set[int]:
    """Blocks that hold the tails of some vertices."""
    rows = graph._stored.in_rows if searched else graph._stored.rows
    spans = [span(rows, int(v)) for v in vertices]
    return {
        block
        for begin, end in spans
        if begin < end
        for block in range(begin // DISK_BLOCK_BYTES, (end - 1) // DISK_BLOCK_BYTES + 1)
    }


def test_bytes_are_those_of_the_blocks_needed(graph: Graph) -> None:
    result, _ = search(graph, ((0, 0),), DeviceDirection.TOP_DOWN)
    pieces = -(-graph._stored.rows.tails.size // (2 * DISK_BLOCK_BYTES))
    for level, step in numbered(result):
        frontier = np.flatnonzero(result.levels == level - 1)
        needed = len(blocks_of(graph, frontier, searched=False)) * DISK_BLOCK_BYTES
        # The last block is cut; a page after each piece may be read with it.
        assert needed - DISK_BLOCK_BYTES < step.slow_bytes["disk"] <= needed + pieces * PAGE_BYTES


def test_every_level_takes_the_cheaper_direction(graph: Graph) -> None:
    result, _ = search(graph, ((0, 0),), DeviceDirection.AUTO)
    assert {step.direction for step in result.steps} >= {"heads, top-down"}
    forced = [
        sum(step.slow_bytes["disk"] for step in search(graph, ((0, 0),), direction)[0].steps)
        for direction in (DeviceDirection.TOP_DOWN, DeviceDirection.BOTTOM_UP)
    ]
    assert sum(step.slow_bytes["disk"] for step in result.steps) <= min(forced)


def test_rows_before(graph: Graph) -> None:
    rows = graph._stored.rows
    begins = np.array([span(rows, v)[0] for v in range(graph.num_vertices)])
    offsets = np.array([0, 1, 777, 50_000, rows.tails.size, rows.tails.size + 9])
    found = rows_before(rows, offsets)
    np.testing.assert_array_equal(found, [(begins < offset).sum() for offset in offsets])


@pytest.fixture
def small_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make slots so small that the ring takes less than the tails of a small graph."""
    monkeypatch.setattr("oocbfs.plan.device.SLOT_BYTES", DISK_BLOCK_BYTES)


def ring_bytes(graph: Graph) -> int:
    largest = max(graph._stored.rows.tails.size, graph._stored.in_rows.tails.size)
    sides = 1 + graph.directed
    results = RESULT_SLOTS * -(-result_slot_bytes(graph.num_vertices) // PAGE_BYTES) * PAGE_BYTES
    return NUM_SLOTS * (slot_bytes(largest) + 3 * PAGE_BYTES) + sides * 2 * PAGE_BYTES + results


@pytest.mark.usefixtures("small_ring")
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("vram_share", [0.0, 0.25])
def test_plans_keep_to_the_host_budget(graph: Graph, share: float, vram_share: float) -> None:
    shape = shape_of(graph._stored)
    host_bytes = ring_bytes(graph) + int(share * shape.tail_bytes)
    mandatory = plan(shape, vram_bytes=None).mandatory_bytes
    vram_bytes = mandatory + int(vram_share * shape.tail_bytes)
    decided = plan(shape, vram_bytes=vram_bytes, host_bytes=host_bytes)
    if decided.disk_bytes:
        assert decided.pinned_bytes <= host_bytes
    for (begin, end), (first, last), side in zip(
        decided.device_ranges, decided.host_ranges, shape.tails, strict=True
    ):
        assert 0 <= first <= last <= side.num_bytes
        assert begin == end or (first <= begin and min(end, side.num_bytes) <= last)
    slack = len(shape.tails) * 4 * PAGE_BYTES
    held = decided.tail_bytes - decided.disk_bytes
    assert held >= min(shape.tail_bytes, (share + vram_share) * shape.tail_bytes) - slack


@pytest.mark.usefixtures("small_ring")
def test_budgets_of_the_engine(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = graph.bfs(SOURCE, engine="cpu")
    ring = ring_bytes(graph)
    monkeypatch.setattr("oocbfs.engines.gpu.pinnable_bytes", lambda *_, **__: ring + 50_000)
    graph.release_device()
    found = graph.bfs(SOURCE, engine="emulator")
    np.testing.assert_array_equal(found.levels, expected.levels)
    tiers = found.stats.slow_bytes_by_tier
    assert tiers["disk"] == sum(level.slow_bytes["disk"] for level in found.stats.levels) > 0
    assert tiers["host"] == sum(level.slow_bytes["host"] for level in found.stats.levels) > 0
    monkeypatch.setattr("oocbfs.engines.gpu.pinnable_bytes", lambda *_, **__: ring - 1)
    graph.release_device()
    with pytest.raises(BudgetError, match="pinned in host memory at least"):
        graph.bfs(SOURCE, engine="emulator")


def test_a_budget_too_small_is_refused(graph: Graph) -> None:
    with pytest.raises(BudgetError, match="only 0"):
        graph.bfs(SOURCE, engine="emulator", memory="1M")


def test_a_file_cut_short_is_one_error(graph: Graph, tmp_path: Path) -> None:
    copy = tmp_path / "cut.ocg"
    shutil.copy(graph.path, copy)
    with open_file(copy) as opened:
        _ = opened._stored.rows, opened._stored.in_rows
        disks = disks_of(opened)
        with GpuBfs(device(), opened._stored.rows, host_ranges=((0, 0),), disks=disks) as bfs:
            os.truncate(copy, disks[0].disk.offset + DISK_BLOCK_BYTES)
            with pytest.raises(FormatError, match="cut short by another program"):
                bfs.run(np.array([SOURCE], np.uint32))

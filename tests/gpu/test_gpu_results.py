"""Results that a device brings into the order of ids: the same as on the CPU, whatever the ids."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection
from oocbfs.gpu.results import Into
from oocbfs.gpu.staging import DiskTails
from oocbfs.kernels.cuda.source import DISK_BLOCK_BYTES, LEVEL_PERIOD, MAX_SMALL_LEVELS
from oocbfs.kernels.emulator.build import Checks
from oocbfs.plan.device import plan
from oocbfs.plan.shape import shape_of
from oocbfs.results.to_ids import count_sizes, levels_to_ids
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Schedule
from tests.support.gpu.cuda_double import Runtime
from tests.support.gpu.cupy_double import fake_cupy
from tests.support.gpu.emulated import LARGE, SMALL, device
from tests.support.gpu.gpu_graphs import (
    Matrix,
    check_parents,
    levels_by_scipy,
    matrix_of,
    mixed_graph,
    rows_of,
)
from tests.support.keywords import keywords
from tests.support.strategies import ORDERS, name_edges

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


def scattered() -> Any:
    """Edges of a graph with vertices that nothing reaches, and ids that are far apart."""
    pairs = np.random.default_rng(3).integers(0, 1500, (1600, 2))
    return 7 + 1_000 * pairs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def opened(folder: Path, ids: Any, order: Any, *, directed: bool) -> Graph:
    path = folder / f"{ids}-{order}-{directed}.ocg"
    if not path.exists():
        pairs = scattered()
        edges = {
            "dense": pairs // 1000,
            "compact": pairs,
            "names": name_edges(pairs.tolist()),
        }[ids]
        oocbfs.convert(edges, path, ids=ids, order=order, directed=directed)
    return open_file(path)


@pytest.fixture(params=[512, 4 << 20], ids=["many pieces", "one piece"])
def slot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let results come in pieces of so many bytes."""
    monkeypatch.setattr("oocbfs.plan.search_arrays.RESULT_SLOT_BYTES", request.param)
    return int(request.param)


def source_of(graph: Graph) -> Any:
    """Return the id of the vertex with the most neighbours."""
    return graph._stored.given(
        graph._stored.ids_of(np.argmax(graph._stored.rows.degrees, keepdims=True))
    )[0]


def same(graph: Graph, **how: Any) -> Any:
    """Search on the CPU and in the emulator; all that is told must be the same, but for parents."""
    source = source_of(graph)
    names = {"max_depth", "target", "parents"}
    given = {name: value for name, value in how.items() if name in names}
    expected = graph.bfs(source, engine="cpu", **keywords(given))
    found = graph.bfs(source, engine="emulator", validate=True, **keywords(how))
    np.testing.assert_array_equal(found.levels, expected.levels)
    assert found.level_sizes.tolist() == expected.level_sizes.tolist()
    assert found.stats.edges_traversed == expected.stats.edges_traversed
    return found


def record_to_ids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of threads whenever the host names levels."""
    recorded: list[int] = []

    def name(*arguments: Any) -> Any:
        recorded.append(arguments[-1])
        return levels_to_ids(*arguments)

    monkeypatch.setattr("oocbfs.search.run.levels_to_ids", name)
    return recorded


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("ids", ["dense", "compact", "names"])
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_and_all_kinds_of_ids(
    folder: Path, ids: str, order: str, directed: bool, slot: int
) -> None:
    with opened(folder, ids, order, directed=directed) as graph:
        for parents in (False, True):
            same(graph, parents=parents, threads=2)


@pytest.mark.parametrize("parents", [False, True])
def test_an_order_that_has_no_room_is_followed_by_the_host(
    folder: Path, parents: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_by_host = record_to_ids(monkeypatch)
    with opened(folder, "compact", "degree", directed=False) as graph:
        decided = plan(shape_of(graph._stored), vram_bytes=None, with_parents=parents)
        assert decided.order_bytes
        for missing in (0, 1):
            vram = decided.mandatory_bytes + decided.order_bytes - missing
            graph.release_device()
            same(graph, parents=parents, threads=2, vram=vram, resident_tails="0%")
            assert named_by_host == [2] * missing


@pytest.mark.parametrize("how", [{"devices": [0, 1]}, {"method": "two-phase"}], ids=str)
def test_all_threads_name_what_other_ways_to_search_find(
    folder: Path, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_by_host = record_to_ids(monkeypatch)
    with opened(folder, "compact", "degree", directed=False) as graph:
        same(graph, parents=True, threads=2, **how)
    assert named_by_host == [2]


# Deep graphs.


def caterpillar(length: int, legs: int) -> Matrix:
    """Return a path of so many vertices, each with some leaves that follow it."""
    spine = np.arange(length) * (legs + 1)
    leaves = np.stack(
        [np.repeat(spine, legs), np.arange(length * (legs + 1)).reshape(length, -1)[:, 1:].ravel()],
        1,
    )
    return matrix_of(
        length * (legs + 1), np.concatenate([np.stack([spine[:-1], spine[1:]], 1), leaves])
    )


def shuffled(size: int) -> Any:
    return np.random.default_rng(size).permutation(size).astype(np.uint32)


@pytest.mark.parametrize("length", [LEVEL_PERIOD - 1, LEVEL_PERIOD, LEVEL_PERIOD + 1, 600])
@pytest.mark.parametrize("limits", [LARGE, SMALL], ids=["large", "small"])
def test_deep_levels_in_order(length: int, limits: Any) -> None:
    matrix = caterpillar(length, 1)
    check_in_order(matrix, limits)


def test_more_levels_than_one_launch_runs() -> None:
    check_in_order(caterpillar(MAX_SMALL_LEVELS + 20, 0), SMALL)


def check_in_order(matrix: Matrix, limits: Any, checks: Checks = Checks.NONE) -> None:
    """Compare what comes in a random order of ids, with some vertices that took no part."""
    n = matrix.shape[0]
    order = shuffled(n + 33)
    expected = np.full(order.size, -1)
    expected[order[:n]] = levels_by_scipy(matrix, [0])
    into = Into(np.empty(order.size, np.int32), np.empty(order.size, np.uint32))
    with GpuBfs(device(checks=checks), rows_of(matrix), limits=limits, order=order) as bfs:
        result = bfs.run(np.array([0], np.uint32), into=into)
    np.testing.assert_array_equal(into.levels, expected)
    assert into.parents is not None
    assert (into.parents[expected < 0] == 0xFFFFFFFF).all()
    stored_at = np.argsort(order)
    parents = np.full(n, 0xFFFFFFFF, np.uint32)
    reached = np.flatnonzero(expected >= 0)
    parents[stored_at[reached]] = stored_at[into.parents[reached]]
    check_parents(matrix, [0], expected[order[:n]], parents)
    assert sum(result.level_sizes) == reached.size


def test_every_vertex_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither vertices nor positions fill words or pieces; every array comes in several pieces."""
    monkeypatch.setattr("oocbfs.plan.search_arrays.RESULT_SLOT_BYTES", 4096 - 512)
    matrix = caterpillar(5, 1330)
    matrix.resize((6658, 6658))  # by vertices without edges
    check_in_order(matrix, LARGE)


@pytest.mark.parametrize("limits", [LARGE, SMALL], ids=["large", "small"])
def test_no_races(limits: Any) -> None:
    check_in_order(caterpillar(300, 1), limits, Checks.RACES)
    check_in_order(mixed_graph(2), limits, Checks.RACES)


@pytest.mark.parametrize("target", [0, 5, 252, 253, 254, 255, 400])
def test_nothing_after_the_target_is_told(target: int) -> None:
    """One launch runs all levels, and then those after the target's are forgotten."""
    matrix = caterpillar(500, 1)
    expected = levels_by_scipy(matrix, [0])
    expected[expected > target] = -1
    with GpuBfs(device(), rows_of(matrix), limits=SMALL) as bfs:
        result = bfs.run(np.array([0], np.uint32), target=2 * target)
    np.testing.assert_array_equal(result.levels, expected)
    assert result.depth == target
    assert result.level_sizes == np.bincount(expected[expected >= 0]).tolist()
    assert result.parents is not None
    assert ((result.parents != 0xFFFFFFFF) == (expected >= 0)).all()
    visited = np.unpackbits(result.visited.view(np.uint8), bitorder="little")[: expected.size]
    assert (visited == (expected >= 0)).all()


def test_no_races_after_the_target() -> None:
    with GpuBfs(device(checks=Checks.RACES), rows_of(caterpillar(90, 2)), limits=SMALL) as bfs:
        result = bfs.run(np.array([0], np.uint32), target=9)
    assert result.depth == 3


@pytest.fixture(scope="module")
def deep_graph(folder: Path) -> Iterator[Graph]:
    """Open a graph of 400 levels whose rows fill some blocks of the file."""
    path = folder / "deep.ocg"
    coo = caterpillar(400, 150).tocoo()
    oocbfs.convert(np.stack([coo.row, coo.col], 1), path, order="natural", ids="dense")
    with open_file(path) as graph:
        yield graph


@pytest.mark.parametrize("direction", [DeviceDirection.TOP_DOWN, DeviceDirection.AUTO])
def test_deep_levels_from_disk_read_no_row_of_long_ago(
    deep_graph: Graph, direction: DeviceDirection
) -> None:
    rows = deep_graph._stored.disk_rows
    disks = (DiskTails(rows.file, rows.out_disk),)
    assert deep_graph._stored.rows.tails.size > 3 * DISK_BLOCK_BYTES
    with GpuBfs(device(), deep_graph._stored.rows, host_ranges=((0, 0),), disks=disks) as bfs:
        result = bfs.run(np.array([0], np.uint32), direction)
    np.testing.assert_array_equal(result.levels, deep_graph.bfs(0, engine="cpu").levels)
    assert len(result.level_sizes) > LEVEL_PERIOD + 100
    # A row may lie in two blocks.
    assert max(step.slow_bytes["disk"] for step in result.steps) <= 2 * DISK_BLOCK_BYTES


def test_cuts_of_a_deep_graph_with_ids(folder: Path) -> None:
    path = folder / "path.ocg"
    line = 5 + 3 * shuffled(700).astype(np.int64)
    oocbfs.convert(np.stack([line[:-1], line[1:]], 1), path, ids="compact", order="degree")
    with open_file(path) as graph:
        for how in ({}, {"max_depth": 100}, {"max_depth": 300}, {"target": int(line[3])}):
            same(graph, parents=True, schedule=Schedule(blocks=2), **how)


# Counts.


@pytest.mark.parametrize("depth", [3, 5000])
@pytest.mark.parametrize("size", [0, 1, 700_000])
def test_sizes_are_counted_by_all_threads(depth: int, size: int) -> None:
    levels = np.random.default_rng(1).integers(-1, depth + 1, size).astype(np.int32)
    expected = np.bincount(levels[levels >= 0], minlength=depth + 2)
    assert count_sizes(levels, depth, 2).tolist() == expected.tolist()


def test_results_are_copied_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goes to pinned memory of the driver's, and is there when the host takes it."""
    monkeypatch.setattr("oocbfs.plan.search_arrays.RESULT_SLOT_BYTES", 512)
    runtime = Runtime(offset=0, library=device().library)
    launched: list[Any] = []
    made = CudaDevice(cupy=fake_cupy(runtime, launched))
    matrix = caterpillar(400, 4)
    order = shuffled(2000)
    with GpuBfs(made, rows_of(matrix), limits=SMALL, order=order) as bfs:
        result = bfs.run(np.array([0], np.uint32))
    np.testing.assert_array_equal(result.levels[order], levels_by_scipy(matrix, [0]))
    sizes = [call[3] for call in runtime.calls if call[0] == "memcpyAsync"]
    assert sum(sizes) == 2 * 4 * order.size
    names = [entry[0] for entry in launched if entry[0] in ("wait", "deep_levels_to_ids")]
    assert names[:5] == ["deep_levels_to_ids", *["deep_levels_to_ids", "wait"] * 2]
    assert not runtime.pinned


def test_copies_overlap_with_what_the_host_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy of a piece is started before the host takes the piece before."""
    monkeypatch.setattr("oocbfs.plan.search_arrays.RESULT_SLOT_BYTES", 512)
    events: list[str] = []

    class Recording(EmulatorDevice):
        def start_download(self, memory: Any, out: Any) -> None:
            events.append("start")
            super().start_download(memory, out)

        def wait_for(self, mark: Any) -> None:
            events.append("wait")
            super().wait_for(mark)

    matrix = caterpillar(700, 2)
    made = Recording(library=device().library)
    with GpuBfs(made, rows_of(matrix), with_parents=True, limits=SMALL) as bfs:
        bfs.run(np.array([0], np.uint32))
    pieces = -(-2100 // 128)
    assert events == 2 * ["start", *["start", "wait"] * (pieces - 1), "wait"]

"""The cuda engine from end to end: a double of CuPy whose launches run in the emulator."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import BudgetError
from oocbfs.generate import generators
from oocbfs.gpu.cuda_device import DeviceError
from oocbfs.gpu.many import many_arrays
from oocbfs.gpu.nvidia import ask_driver
from oocbfs.kernels.cuda.source import DISK_BLOCK_BYTES
from oocbfs.plan.device import plan
from oocbfs.plan.ranges import PAGE_BYTES
from oocbfs.plan.search_arrays import RESULT_SLOTS, result_slot_bytes, search_arrays
from oocbfs.plan.shape import shape_of
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support.gpu.cuda_double import CUDARuntimeError, Runtime
from tests.support.gpu.cuda_engine import RESERVED_BYTES, end_processes, use
from tests.support.gpu.engine_graphs import opened_rmat, source_of
from tests.support.shared import SharedGraphs

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@pytest.fixture(scope="module", params=["raw", "zstd"])
def opened_graph(request: pytest.FixtureRequest, shared_graphs: SharedGraphs) -> Iterator[Graph]:
    yield from opened_rmat(shared_graphs, codec=request.param)


@pytest.fixture
def graph(opened_graph: Graph) -> Iterator[Graph]:
    yield opened_graph
    opened_graph.release_device()  # every test has a device of its own
    end_processes()


def least_for_many(graph: Graph) -> int:
    """Return the device memory that a batch without levels needs at least."""
    sizes = graph.num_vertices, (graph._stored.rows.tails.size, graph._stored.in_rows.tails.size)
    one = search_arrays(*sizes, with_parents=False)
    least = plan(shape_of(graph._stored, whole=True), vram_bytes=None).mandatory_bytes
    for sign, arrays in ((1, many_arrays(*sizes, with_levels=False)), (-1, one)):
        least += sign * sum(size * np.dtype(kind).itemsize for size, kind in arrays.values())
    return least


@pytest.mark.parametrize(
    "refusals", [{}, {"read_only": False}, {"refused": ("hostRegister",)}], ids=str
)
@pytest.mark.parametrize("share", ["0%", "30%", "100%"])
def test_every_route_gives_the_same_levels(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, refusals: dict[str, Any], share: str
) -> None:
    runtime = Runtime(offset=0, **refusals)
    launched = use(monkeypatch, runtime)
    found = graph.bfs(
        source_of(graph), engine="cuda", validate=True, options=Settings(resident_tails=share)
    )
    expected = graph.bfs(source_of(graph), engine="cpu")
    np.testing.assert_array_equal(found.levels, expected.levels)
    assert found.stats.engine == "cuda"
    assert found.stats.slow_bytes is None
    graph.release_device()
    assert not runtime.pinned
    assert ("hostRegister" in runtime.names()) == (share != "100%")
    first = next(i for i, entry in enumerate(launched) if entry[0] != "compile")
    assert not any(entry[0] == "compile" for entry in launched[first:])


def test_the_graph_stays_on_the_device(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(offset=0)
    use(monkeypatch, runtime)
    stored = graph._stored
    sources = [source_of(graph), *stored.ids_of(np.flatnonzero(stored.rows.degrees)[:3]).tolist()]
    for source in sources:
        found = graph.bfs(source, engine="cuda", options=Settings(resident_tails="10%"))
        np.testing.assert_array_equal(found.levels, graph.bfs(source, engine="cpu").levels)
    assert runtime.names().count("hostRegister") == 2  # tails of both directions
    graph.bfs(sources[0], engine="cuda", options=Settings(resident_tails="20%"))
    assert runtime.names().count("hostRegister") == 4
    assert runtime.names().count("hostUnregister") == 2


@pytest.mark.parametrize("refused", [(), ("hostRegister",)], ids=["all", "no hostRegister"])
def test_tails_that_the_host_cannot_hold_come_from_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...]
) -> None:
    """Every slot of the ring is filled again only after the kernels that read it."""
    oocbfs.convert(generators.rmat(12, seed=5), tmp_path / "g.ocg", directed=True)
    graph = open_file(tmp_path / "g.ocg")
    runtime = Runtime(offset=0, refused=refused)
    launched = use(monkeypatch, runtime)
    monkeypatch.setattr("oocbfs.plan.device.SLOT_BYTES", DISK_BLOCK_BYTES)
    monkeypatch.setattr("oocbfs.plan.device.NUM_SLOTS", 2)
    monkeypatch.setattr("oocbfs.gpu.staging.NUM_SLOTS", 2)
    results = RESULT_SLOTS * result_slot_bytes(graph.num_vertices)
    ring = 2 * (DISK_BLOCK_BYTES + 3 * PAGE_BYTES) + 4 * PAGE_BYTES + results
    monkeypatch.setattr("oocbfs.engines.gpu.pinnable_bytes", lambda *_, **__: ring)
    source = source_of(graph)
    for direction in ("top-down", "bottom-up", "auto"):
        found = graph.bfs(
            source, engine="cuda", options=Settings(resident_tails="0%", direction=direction)
        )
        np.testing.assert_array_equal(found.levels, graph.bfs(source, engine="cpu").levels)
        assert found.stats.slow_bytes_by_tier["disk"] > 0
    names = [entry[0] for entry in launched]
    assert {"mark_blocks", "top_down_staged", "bottom_up_staged", "wait"} <= set(names)
    graph.close()
    assert not runtime.pinned


def test_a_graph_that_is_forgotten_leaves_nothing_pinned(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(offset=0)
    use(monkeypatch, runtime)
    forgotten = open_file(graph.path)
    forgotten.bfs(source_of(graph), engine="cuda", options=Settings(resident_tails="0%"))
    assert runtime.pinned
    del forgotten
    gc.collect()
    assert not runtime.pinned


def test_a_gpu_that_fails_leaves_nothing_pinned(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(offset=0)
    use(monkeypatch, runtime, broken=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        graph.bfs(source_of(graph), engine="cuda", options=Settings(resident_tails="0%"))
    assert "hostRegister" in runtime.names()
    assert not runtime.pinned


@pytest.mark.parametrize("refused", [(), ("hostRegister",)], ids=["registered", "copied"])
def test_a_gpu_that_fails_for_good_is_one_line(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...]
) -> None:
    """It refuses everything that follows, also to let go of pages."""
    runtime = Runtime(offset=0, refused=refused)
    broken = CUDARuntimeError("cudaErrorIllegalAddress")
    use(monkeypatch, runtime, broken=broken, broken_after=2)
    with pytest.raises(DeviceError, match=r"cudaErrorIllegalAddress.*engine=.cpu."):
        graph.bfs(source_of(graph), engine="cuda", options=Settings(resident_tails="0%"))
    undone = sum(runtime.names().count(name) for name in ("freeHost", "hostUnregister"))
    assert undone >= len(runtime.pinned) > 0


@pytest.mark.parametrize(
    "refusals", [{}, {"read_only": False}, {"refused": ("hostRegister",)}], ids=str
)
@pytest.mark.parametrize("verb", ["bfs", "components", "bfs_many"])
def test_ctrl_c_unpins_nothing_that_kernels_read(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, refusals: dict[str, Any], verb: str
) -> None:
    source = source_of(graph)
    run: Callable[[], object] = {
        "bfs": lambda: graph.bfs(source, engine="cuda", options=Settings(resident_tails="0%")),
        "components": lambda: graph.components(
            engine="cuda", options=Settings(resident_tails="0%")
        ),
        "bfs_many": lambda: list(graph.bfs_many([source] * 3, engine="cuda")),
    }[verb]
    # There is no memory for tails on the device.
    least = plan(shape_of(graph._stored), vram_bytes=None).mandatory_bytes
    free_bytes = RESERVED_BYTES + (least_for_many(graph) if verb == "bfs_many" else least)
    interrupted = 0
    for waits in range(1, 6):
        runtime = Runtime(offset=0, free_bytes=free_bytes, **refusals)
        runtime.waits_left = waits
        launched = use(monkeypatch, runtime)
        try:
            run()
        except KeyboardInterrupt:
            assert not runtime.pinned
            interrupted += any(entry[0] != "compile" for entry in launched)
        runtime.waits_left = None
        graph.release_device()
        assert runtime.fault is None
    assert interrupted


def test_a_graph_that_is_kept_makes_room(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search kept on the device is in the way of components and of batches."""
    runtime = Runtime(offset=0)
    use(monkeypatch, runtime)
    source = source_of(graph)
    least = plan(shape_of(graph._stored), vram_bytes=None).mandatory_bytes

    def keep() -> None:
        runtime.free_bytes = 5 << 30
        graph.bfs(source, engine="cuda", options=Settings(resident_tails="50%"))
        assert runtime.pinned
        runtime.free_bytes = RESERVED_BYTES + least - 1  # too little for one more

    keep()
    found = graph.components(engine="cuda")
    np.testing.assert_array_equal(found.labels, graph.components(engine="cpu").labels)
    keep()
    sizes = [
        [result.level_sizes.tolist() for result in graph.bfs_many([source] * 2, engine=engine)]
        for engine in ("cuda", "cpu")
    ]
    assert sizes[0] == sizes[1]
    registered = [call[1] for call in runtime.calls if call[0] == "hostRegister"]
    assert len(registered) == runtime.names().count("hostUnregister")
    assert not runtime.pinned
    # A search with other options replaces what is kept.
    keep()
    graph.bfs(source, engine="cuda", parents=False, options=Settings(resident_tails="0%"))
    assert len(runtime.pinned) == 2 + RESULT_SLOTS


def test_a_search_in_the_middle_of_a_batch(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both want the same pages registered, and neither may take them from the other."""
    runtime = Runtime(offset=0, free_bytes=RESERVED_BYTES + least_for_many(graph))
    use(monkeypatch, runtime)
    source = source_of(graph)
    sizes: list[list[int]] = []
    for result in graph.bfs_many([source] * 65, engine="cuda"):
        if not sizes:
            runtime.free_bytes = 5 << 30
            found = graph.bfs(source, engine="cuda", options=Settings(resident_tails="0%"))
            graph.release_device()
        sizes.append(result.level_sizes.tolist())
    assert sizes == [list(found.level_sizes)] * 65
    assert not runtime.pinned
    assert runtime.fault is None


def test_free_memory_decides(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver and the pool have free, less a reserve, is the budget of the plan."""
    pool_bytes = 1 << 20
    least = plan(shape_of(graph._stored), vram_bytes=None).mandatory_bytes
    for spare, fits in ((0, True), (-1, False)):
        free_bytes = least + RESERVED_BYTES - pool_bytes + spare
        runtime = Runtime(offset=0, free_bytes=free_bytes, pooled_bytes=pool_bytes)
        use(monkeypatch, runtime)
        graph.release_device()
        if fits:
            graph.bfs(source_of(graph), engine="cuda")
            assert "hostRegister" in runtime.names()
        else:
            with pytest.raises(BudgetError, match="too little for this graph"):
                graph.bfs(source_of(graph), engine="cuda")


@pytest.mark.parametrize(
    ("free_bytes", "trouble", "engine", "words"),
    [
        (5 << 30, {}, "cuda", None),
        (0, {}, "cpu", "too little for this graph"),
        (5 << 30, {"uncompiled": RuntimeError("no libnvrtc")}, "cpu", "nvidia-cuda-nvrtc-cu12"),
        (5 << 30, {"headers": False}, "cpu", "nvidia-cuda-runtime-cu12"),
        (5 << 30, {"broken": CUDARuntimeError("cudaErrorUnknown")}, "cpu", "cudaErrorUnknown"),
    ],
)
def test_auto_takes_the_gpu_or_says_why_not(
    graph: Graph,
    monkeypatch: pytest.MonkeyPatch,
    driver_double: Path,
    free_bytes: int,
    trouble: dict[str, Any],
    engine: str,
    words: str | None,
) -> None:
    runtime = Runtime(offset=0, free_bytes=free_bytes)
    use(monkeypatch, runtime, **trouble)
    monkeypatch.setattr("oocbfs.engines.choice.find_spec", lambda name: name)
    monkeypatch.setattr("oocbfs.engines.choice.ask_driver", lambda: ask_driver(str(driver_double)))
    found = graph.bfs(source_of(graph))
    assert found.stats.engine == engine
    assert (found.stats.fallback is None) == (words is None)
    assert words is None or words in str(found.stats.fallback)
    np.testing.assert_array_equal(found.levels, graph.bfs(source_of(graph), engine="cpu").levels)
    graph.release_device()
    assert not runtime.pinned or runtime.fault


@pytest.mark.parametrize("share", ["0%", "30%", "100%"])
def test_components(graph: Graph, monkeypatch: pytest.MonkeyPatch, share: str) -> None:
    runtime = Runtime(offset=0)
    launched = use(monkeypatch, runtime)
    found = graph.components(engine="cuda", options=Settings(resident_tails=share))
    np.testing.assert_array_equal(found.labels, graph.components(engine="cpu").labels)
    assert found.stats.engine == "cuda"
    assert found.stats.slow_bytes_by_tier == {}
    assert not runtime.pinned
    first = next(i for i, entry in enumerate(launched) if entry[0] != "compile")
    assert not any(entry[0] == "compile" for entry in launched[first:])


@pytest.mark.parametrize(
    ("trouble", "engine"),
    [({}, "cuda"), ({"broken": CUDARuntimeError("cudaErrorUnknown")}, "cpu")],
)
def test_components_on_the_gpu_or_not(
    graph: Graph,
    monkeypatch: pytest.MonkeyPatch,
    driver_double: Path,
    trouble: dict[str, Any],
    engine: str,
) -> None:
    runtime = Runtime(offset=0)
    use(monkeypatch, runtime, **trouble)
    monkeypatch.setattr("oocbfs.engines.choice.find_spec", lambda name: name)
    monkeypatch.setattr("oocbfs.engines.choice.ask_driver", lambda: ask_driver(str(driver_double)))
    found = graph.components()
    assert found.stats.engine == engine
    assert ("cudaErrorUnknown" in str(found.stats.fallback)) == (engine == "cpu")
    np.testing.assert_array_equal(found.labels, graph.components(engine="cpu").labels)
    assert not runtime.pinned or runtime.fault

"""What meets the cuda engine out there: little that can be pinned, watchdogs, wrong answers."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.generate import generators
from oocbfs.gpu import cuda_device, verification
from oocbfs.gpu.cuda_device import CudaDevice, DeviceError
from oocbfs.gpu.nvidia import ask_driver
from oocbfs.gpu.pinned import PinError, find_pinnable
from oocbfs.kernels.cuda.source import CHECK_KERNELS
from oocbfs.plan.device import plan
from oocbfs.plan.launches import LAUNCH_SECONDS
from oocbfs.plan.rates import default_rates, keep_rates
from oocbfs.plan.shape import shape_of
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support.gpu.cuda_double import Runtime
from tests.support.gpu.cuda_engine import NAME, RESERVED_BYTES, end_processes, use
from tests.support.gpu.cupy_double import fake_cupy
from tests.support.gpu.engine_graphs import opened_rmat, source_of
from tests.support.shared import SharedGraphs

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@pytest.fixture(scope="module")
def opened_graph(shared_graphs: SharedGraphs) -> Iterator[Graph]:
    yield from opened_rmat(shared_graphs)


@pytest.fixture
def graph(opened_graph: Graph) -> Iterator[Graph]:
    yield opened_graph
    opened_graph.release_device()
    end_processes()


@pytest.fixture
def auto(monkeypatch: pytest.MonkeyPatch, driver_double: Path) -> None:
    """Let ``auto`` find the double."""
    monkeypatch.setattr("oocbfs.engines.choice.find_spec", lambda name: name)
    monkeypatch.setattr("oocbfs.engines.choice.ask_driver", lambda: ask_driver(str(driver_double)))


@pytest.mark.parametrize("limit", [0, 4095, 1 << 20, (5 << 20) + 1234, 63 << 20])
def test_what_can_be_pinned_is_found(limit: int) -> None:
    runtime = Runtime(most_pinned=limit)
    found = find_pinnable(runtime, 64 << 20)
    assert found <= limit
    assert found >= 0.9 * (limit - 8192)
    assert not runtime.pinned
    assert runtime.names().count("hostAlloc") <= 20


def test_a_refused_pin_leads_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Less is pinned, the rest is read from disk, and that is said once."""
    oocbfs.convert(generators.rmat(12, seed=5), tmp_path / "g.ocg", directed=True)
    for module in ("oocbfs.plan.device", "oocbfs.gpu.staging"):
        monkeypatch.setattr(f"{module}.NUM_SLOTS", 2)
    monkeypatch.setattr("oocbfs.plan.device.SLOT_BYTES", 1 << 14)
    with open_file(tmp_path / "g.ocg") as graph:
        tails = graph._stored.rows.tails.size + graph._stored.in_rows.tails.size
        runtime = Runtime(offset=0, most_pinned=tails * 3 // 4)
        use(monkeypatch, runtime)
        source = source_of(graph)
        expected = graph.bfs(source, engine="cpu").levels
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                found = graph.bfs(source, engine="cuda", options=Settings(resident_tails="0%"))
                np.testing.assert_array_equal(found.levels, expected)
        assert found.stats.engine == "cuda"
        assert found.stats.slow_bytes_by_tier["disk"] > 0
        assert "would not pin" in str(found.stats.engine_reason)
        assert len([text for text in caplog.messages if "would not pin" in text]) == 1
        pinned = sum(one.end - one.begin for one in runtime.pinned.values())
        assert tails // 3 < pinned <= tails * 3 // 4
    assert not runtime.pinned


@pytest.mark.parametrize("verb", ["bfs", "components", "bfs_many"])
def test_a_refused_pin_leads_to_device_memory(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Where nothing can be pinned, more is resident than was asked for."""
    runtime = Runtime(offset=0, most_pinned=0)
    use(monkeypatch, runtime)
    source = source_of(graph)

    def answer(engine: Any, **how: Any) -> Any:
        if verb == "bfs":
            return graph.bfs(source, engine=engine, **how).levels.tolist()
        if verb == "components":
            return graph.components(engine=engine, **how).labels.tolist()
        results = graph.bfs_many([source] * 2, engine=engine, **how)
        return [result.level_sizes.tolist() for result in results]

    assert answer("cuda", options=Settings(resident_tails="10%")) == answer("cpu")
    assert not runtime.pinned


@pytest.mark.usefixtures("auto")
@pytest.mark.parametrize("verb", ["bfs", "components"])
def test_no_plan_at_all_takes_the_cpu(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    least = plan(shape_of(graph._stored), vram_bytes=None).mandatory_bytes
    runtime = Runtime(offset=0, most_pinned=0, free_bytes=RESERVED_BYTES + least)
    use(monkeypatch, runtime)
    run: Callable[..., Any] = graph.components
    if verb == "bfs":
        run = partial(graph.bfs, source_of(graph))
    stats = run().stats
    assert stats.engine == "cpu"
    assert "would not pin" in str(stats.fallback)
    assert "\n" not in str(stats.fallback)
    with pytest.raises(PinError, match="would have to be pinned"):
        run(engine="cuda")
    assert not runtime.pinned


@pytest.mark.parametrize(
    ("refusals", "route", "why"),
    [
        ({"read_only": False}, "a private mapping of the file (", "cannot register read-only"),
        ({"refused": ("hostRegister",)}, "copied into pinned memory (", "hostRegister"),
    ],
)
def test_the_route_is_said(
    graph: Graph,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    refusals: dict[str, Any],
    route: str,
    why: str,
) -> None:
    use(monkeypatch, Runtime(offset=0, **refusals))
    with caplog.at_level(logging.INFO):
        graph.bfs(source_of(graph), engine="cuda", options=Settings(resident_tails="0%"))
    assert any(route in text and why in text for text in caplog.messages)


def test_memory_goes_back_to_the_driver(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(offset=0)
    use(monkeypatch, runtime)
    before = runtime.free_bytes
    graph.bfs(source_of(graph), engine="cuda", options=Settings(resident_tails="50%"))
    assert runtime.free_bytes < before
    graph.release_device()
    assert (runtime.free_bytes, runtime.pooled_bytes) == (before, 0)
    graph.components(engine="cuda")
    assert (runtime.free_bytes, runtime.pooled_bytes) == (before, 0)


def test_a_kernel_that_fits_nowhere_still_has_a_block() -> None:
    cupy = fake_cupy(Runtime(), [])
    cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor = lambda *_: 0
    assert CudaDevice(cupy=cupy).num_blocks("top_down", 256) > 0


def test_only_watched_devices_have_a_bound() -> None:
    assert CudaDevice(cupy=fake_cupy(Runtime(), [])).launch_bytes is None
    watched = CudaDevice(cupy=fake_cupy(Runtime(), [], watched=True))
    assert watched.unique_name == NAME
    expected = LAUNCH_SECONDS * 32 * default_rates((8, 6)).bus_sectors
    assert watched.launch_bytes == int(expected)


def checks_in(launched: list[Any]) -> list[str]:
    return [entry[0] for entry in launched if entry[0] in CHECK_KERNELS]


def test_the_first_search_is_checked_and_no_other(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    launched = use(monkeypatch, Runtime(offset=0), trusted=False)
    with caplog.at_level(logging.INFO):
        for share in ("0%", "0%", "50%"):
            graph.bfs(source_of(graph), engine="cuda", options=Settings(resident_tails=share))
    assert sorted(checks_in(launched)) == ["check_found", "check_hubs", "check_rows"]
    assert len([text for text in caplog.messages if "Graph500's rules" in text]) == 1


def test_a_verified_device_is_not_checked(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("oocbfs.plan.rates.cache_folder", lambda _: tmp_path)
    keep_rates(NAME, default_rates((7, 5)))
    launched = use(monkeypatch, Runtime(offset=0), trusted=False)
    graph.bfs(source_of(graph), engine="cuda")
    assert not checks_in(launched)
    assert not any(entry[:2] == ("compile", name) for entry in launched for name in CHECK_KERNELS)


@pytest.mark.usefixtures("auto")
def test_a_wrong_answer_is_loud_and_the_last(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU is refused from then on, also for other searches."""
    runtime = Runtime(offset=0)
    launched = use(monkeypatch, runtime, trusted=False)
    monkeypatch.setattr(verification, "count_broken", lambda _: 3)
    found = graph.bfs(source_of(graph))
    assert found.stats.engine == "cpu"
    assert "wrong answers" in str(found.stats.fallback)
    np.testing.assert_array_equal(found.levels, graph.bfs(source_of(graph), engine="cpu").levels)
    assert cuda_device._ANSWERS[NAME] is False
    before = len(launched)
    assert "wrong answer" in str(graph.bfs(source_of(graph)).stats.fallback)
    for run in (graph.components, partial(graph.bfs, source_of(graph))):
        with pytest.raises(DeviceError, match=r"wrong answer.*engine=.cpu."):
            run(engine="cuda")
    assert len(launched) == before
    assert not runtime.pinned

"""Several GPUs as users ask for them: in the emulator, and on a double of CUDA, CuPy and NCCL."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import BudgetError, QueryError
from oocbfs.gpu.cuda_device import DeviceError
from oocbfs.kernels.cuda.source import DEVICES_KERNELS, KernelOptions, sources
from oocbfs.kernels.emulator.library import Library
from oocbfs.search.graph import Graph
from oocbfs.settings import Settings
from tests.support.command_line import call, said
from tests.support.gpu.cuda_double import CUDARuntimeError, Runtime
from tests.support.gpu.cupy_double import fake_cupy
from tests.support.gpu.engine_graphs import opened_rmat, source_of
from tests.support.gpu.several_double import Devices, Nccl
from tests.support.keywords import keywords
from tests.support.shared import SharedGraphs
from tests.support.strategies import DIRECTIONS

pytestmark = [
    pytest.mark.usefixtures("verified"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler"),
]


@cache
def library() -> Library:
    """Return the kernels of searches with parents, which all tests with doubles ask for."""
    made = Library(KernelOptions(block_cyclic=True), sources=sources(DEVICES_KERNELS))
    made.configure(1, 2, 1 / 16)
    return made


@pytest.fixture(scope="module")
def opened(shared_graphs: SharedGraphs) -> Iterator[Graph]:
    yield from opened_rmat(shared_graphs, 10)


@pytest.fixture
def graph(opened: Graph) -> Iterator[Graph]:
    yield opened
    opened.release_device()


def check(graph: Graph, **how: Any) -> oocbfs.BfsResult:
    """Search with parents, and compare with the CPU."""
    found = graph.bfs(source_of(graph), parents=True, validate=True, **keywords(how))
    expected = graph.bfs(source_of(graph), engine="cpu")
    np.testing.assert_array_equal(found.levels, expected.levels)
    assert found.level_sizes.tolist() == expected.level_sizes.tolist()
    return found


def test_stats_and_json(graph: Graph) -> None:
    found = check(graph, engine="emulator", devices=[0, 3])
    words = -(-graph.num_vertices // 64 // 2)
    total = {"0>3": 0, "3>0": 0}
    for level in found.stats.levels:
        assert level.link_bytes["0>3"] == level.link_bytes["3>0"]
        assert level.link_bytes["0>3"] in (8 * words, 16 * words)
        for link, size in level.link_bytes.items():
            total[link] += size
    assert found.stats.link_bytes == total
    assert found.stats.engine == "emulator"
    assert found.stats.slow_bytes == sum(level.slow_bytes["host"] for level in found.stats.levels)
    done = call(
        "bfs", graph.path, "--source", source_of(graph), "--engine", "emulator", "--devices", "0,3",
        "--json",
    )  # fmt: skip
    printed = json.loads(done.stdout)
    assert set(printed["link_bytes"]) == {"0>3", "3>0"}
    assert [set(level["link_bytes"]) for level in printed["levels"]] == [
        {"0>3", "3>0"} for _ in printed["levels"]
    ]
    shown = call(
        "bfs", graph.path, "--source", source_of(graph), "--engine", "emulator", "--devices", "0,3"
    ).stdout
    assert "links bytes" in shown
    assert "between GPUs" in shown


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_resident_tails_move_nothing(graph: Graph, direction: Any) -> None:
    moved = [
        check(
            graph,
            engine="emulator",
            devices=[0, 1],
            resident_tails=share,
            vram="1G",
            direction=direction,
        ).stats.slow_bytes
        or 0
        for share in ("0%", "50%", "100%")
    ]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] != moved[1] != moved[2] == 0


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"devices": []}, "name each one once"),
        ({"devices": [0, 0]}, "name each one once"),
        ({"devices": [-1]}, "numbered from 0 on"),
        ({"devices": ["0"]}, "numbered from 0 on"),
        ({"devices": [0, 1], "engine": "cpu"}, 'engine="cpu" is none'),
        ({"devices": [0, 1], "engine": "disk"}, 'engine="disk" is none'),
        ({"devices": [0, 1], "method": "v3.3", "engine": "emulator"}, "runs on one GPU"),
    ],
    ids=str,
)
def test_refusals(graph: Graph, how: dict[str, Any], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        graph.bfs(source_of(graph), **keywords(how))


def test_budgets(graph: Graph) -> None:
    with pytest.raises(BudgetError, match="the host must hold all tails"):
        graph.bfs(
            source_of(graph), engine="emulator", memory=1 << 20, options=Settings(devices=[0, 1])
        )
    with pytest.raises(BudgetError, match="of device memory are too little"):
        graph.bfs(
            source_of(graph), engine="emulator", options=Settings(devices=[0, 1], vram=1 << 12)
        )


@pytest.mark.parametrize("text", ["", "0,", "0;1", "x", "-1", "16", "0,99"])
def test_wrong_lines(graph: Graph, text: str) -> None:
    done = call("bfs", graph.path, "--source", 1, f"--devices={text}")
    assert done.returncode == 2
    assert "--devices" in said(done)[-1]


class Host:
    """A host with some GPUs, all of them doubles."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, count: int, *, nccl: bool, **trouble: Any
    ) -> None:
        self.devices = Devices([Runtime(offset=0, library=library()) for _ in range(count)])
        self.launched: list[Any] = []
        cupy = fake_cupy(self.devices, self.launched, **trouble)  # type: ignore[arg-type]
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        self.nccl = Nccl(self.devices)
        if nccl:
            monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", self.nccl)
        else:
            monkeypatch.delitem(sys.modules, "cupy.cuda.nccl", raising=False)


@pytest.mark.parametrize("share", ["0%", "30%", "100%"])
@pytest.mark.parametrize(("nccl", "devices"), [(True, [0, 1]), (False, [2, 0]), (True, [0, 1, 2])])
def test_cuda(
    graph: Graph,
    monkeypatch: pytest.MonkeyPatch,
    nccl: bool,
    devices: list[int],
    share: str,
) -> None:
    """Each device touches its own memory only, whoever carries words between them."""
    host = Host(monkeypatch, 3, nccl=nccl)
    for direction in DIRECTIONS:
        found = check(graph, devices=devices, resident_tails=share, direction=direction)
        assert found.stats.engine == "cuda"
        assert found.stats.slow_bytes is None
        assert len(found.stats.link_bytes) == len(devices) * (len(devices) - 1)
    assert host.devices.current == 0  # as users left it
    if nccl:
        assert {"allGather", "send", "recv"} == set(host.nccl.calls)
        assert host.nccl.alive == len(devices)
        assert not host.devices.copies
    else:
        between = sum(size for sender, to, size in host.devices.copies if sender != to)
        assert between > 0
        assert {(2, 0), (0, 2)} <= {pair[:2] for pair in host.devices.copies}
    graph.release_device()
    assert host.nccl.alive == 0
    assert not any(runtime.pinned for runtime in host.devices.runtimes)


def test_peer_copies_are_counted(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is reported for each link is what the driver was asked to copy."""
    host = Host(monkeypatch, 2, nccl=False)
    found = check(graph, devices=[0, 1])
    copied = {"0>1": 0, "1>0": 0}
    for sender, receiver, size in host.devices.copies:
        if sender != receiver:
            copied[f"{sender}>{receiver}"] += size
    assert found.stats.link_bytes == copied


def test_cuda_keeps_what_it_loaded(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(monkeypatch, 2, nccl=True)
    check(graph, devices=[0, 1])
    compiled = sum(entry[0] == "compile" for entry in host.launched)
    check(graph, devices=[0, 1])
    assert sum(entry[0] == "compile" for entry in host.launched) == compiled
    check(graph, devices=[1, 0])
    assert sum(entry[0] == "compile" for entry in host.launched) > compiled


def test_a_gpu_that_is_not_there(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    Host(monkeypatch, 2, nccl=True)
    with pytest.raises(DeviceError, match="there is no GPU 2: CuPy finds GPUs 0 to 1"):
        graph.bfs(source_of(graph), options=Settings(devices=[0, 2]))
    Host(monkeypatch, 1, nccl=True)
    with pytest.raises(DeviceError, match="there is no GPU 1: CuPy finds GPU 0"):
        graph.bfs(source_of(graph), options=Settings(devices=[0, 1]))


def test_a_gpu_that_fails(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, and nothing stays pinned on any of them."""
    broken = CUDARuntimeError("cudaErrorLaunchFailure: unspecified launch failure", 719)
    host = Host(monkeypatch, 2, nccl=True, broken=broken, broken_after=20)
    with pytest.raises(DeviceError, match=r"the GPU would not start \w+ .*cudaErrorLaunchFailure"):
        check(graph, devices=[0, 1])
    assert not any(runtime.pinned for runtime in host.devices.runtimes)

"""Shards in processes of this machine: the same answers, also when workers are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.cluster import levels as watching
from oocbfs.cluster.local import MAX_RETRIES, LocalProcesses
from oocbfs.cluster.sharding import shard
from oocbfs.errors import ClusterError, QueryError
from oocbfs.search.sharded import ShardedGraph, open_sharded
from oocbfs.settings import Settings
from tests.support.exhaustive import ALL
from tests.support.strategies import DIRECTIONS

# What a worker occupies beside its shard and its bitmaps, as the design allows.
_WORKER_BYTES = 200 << 20


@pytest.fixture
def graph(folder: Path) -> Iterator[ShardedGraph]:
    """Return the graph of three shards on two processes."""
    with oocbfs.open(folder, cluster="local:2") as graph:
        yield graph


def workers(graph: ShardedGraph) -> list[int]:
    """List the processes of an open graph."""
    exchange = graph._stored.exchange(Settings())
    assert isinstance(exchange, LocalProcesses)
    return [worker.process.pid for worker in exchange._workers]


def state(process: int) -> str:
    """Return what a process does: T is stopped, Z has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def is_alive(process: int) -> bool:
    return state(process) != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_levels_parents_and_components(
    graph: ShardedGraph, social: Path, levels: np.ndarray
) -> None:
    with oocbfs.open(social) as whole:
        wanted = whole.components().labels
    for direction in DIRECTIONS:
        for parents in (False, True):
            result = graph.bfs(
                5, parents=parents, validate=parents, options=Settings(direction=direction)
            )
            np.testing.assert_array_equal(result.levels, levels)
    assert result.stats.engine == "local:2"
    np.testing.assert_array_equal(graph.components().labels, wanted)


@pytest.mark.long
def test_a_worker_killed_in_the_middle_of_every_level(
    graph: ShardedGraph, levels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is stopped before it gets its task, and killed when it has it, once a level."""
    exchange = graph._stored.exchange(Settings())
    assert isinstance(exchange, LocalProcesses)
    take_step, collect = LocalProcesses._step, LocalProcesses._collect
    hit: dict[int, int] = {}

    def stopping(self: LocalProcesses, name: str, step: Any, refs: Any) -> Any:
        doomed = self._workers[refs[-1].number % len(self._workers)]
        doomed.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(doomed.process.pid) == "T")
        return take_step(self, name, step, refs)

    def killing(self: LocalProcesses, count: int) -> Any:
        for worker in self._workers:
            for order in worker.waiting.values():
                if order.level not in hit and state(worker.process.pid) == "T":
                    worker.process.send_signal(signal.SIGKILL)
                    hit[order.level] = order.ref.number
            worker.process.send_signal(signal.SIGCONT)
        return collect(self, count)

    monkeypatch.setattr(LocalProcesses, "_step", stopping)
    monkeypatch.setattr(LocalProcesses, "_collect", killing)
    depth = int(levels.max()) + 1 if ALL else 4
    result = graph.bfs(5, parents=True, validate=True, max_depth=depth)
    assert sorted(hit) == list(range(1, depth + 1))
    np.testing.assert_array_equal(result.levels, np.where(levels > depth, -1, levels))


def test_workers_killed_between_levels(graph: ShardedGraph, levels: np.ndarray) -> None:
    for process in workers(graph):
        os.kill(process, signal.SIGKILL)
    np.testing.assert_array_equal(graph.bfs(5).levels, levels)


def test_a_shard_whose_worker_is_always_lost_is_named(
    graph: ShardedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers(graph)
    monkeypatch.setattr("oocbfs.processes._PROGRAM", "import os; os.kill(os.getpid(), 9)")
    for process in workers(graph):
        os.kill(process, signal.SIGKILL)
    with pytest.raises(ClusterError, match=r"part-\d\.ocg: its worker was lost") as caught:
        graph.bfs(5)
    assert f"{MAX_RETRIES + 1} times" in str(caught.value)
    assert "killed by SIGKILL" in str(caught.value)
    monkeypatch.undo()
    assert graph.bfs(5).reached > 1  # by new workers


def test_workers_end_with_the_graph(folder: Path) -> None:
    with oocbfs.open(folder, cluster="local:2") as graph:
        started = workers(graph)
        assert len(started) == 2
        assert all(map(is_alive, started))
    assert not any(map(is_alive, started))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_client(folder: Path, number: int) -> None:
    program = (
        "import os, sys, time, oocbfs\n"
        "from oocbfs.settings import Settings\n"
        "graph = oocbfs.open(sys.argv[1], cluster='local:2')\n"
        "found = graph._stored.exchange(Settings())._workers\n"
        "print(*(worker.process.pid for worker in found), flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(folder)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with client:
        assert client.stdout is not None
        started = [int(word) for word in client.stdout.readline().split()]
        assert len(started) == 2
        client.send_signal(number)
    wait_until(lambda: not any(map(is_alive, started)))


def test_ctrl_c_in_a_level_leaves_the_graph_usable(
    graph: ShardedGraph, levels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = workers(graph)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalProcesses, "_collect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        graph.bfs(5)
    monkeypatch.undo()
    assert not any(map(is_alive, before))
    np.testing.assert_array_equal(graph.bfs(5).levels, levels)


@pytest.mark.parametrize("cluster", ["local:0", "local:257", "local:", "local:x"])
def test_a_number_of_processes_that_is_none(folder: Path, cluster: str) -> None:
    with (
        oocbfs.open(folder, cluster=cluster) as graph,
        pytest.raises(QueryError, match="local:"),
    ):
        graph.bfs(5)


def test_deep_graphs_are_refused_where_levels_are_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = np.stack([np.arange(5000), np.arange(1, 5001)], axis=1)
    oocbfs.convert(path, tmp_path / "g.ocg")
    shard(tmp_path / "g.ocg", tmp_path / "parts", parts=2)
    with open_sharded(tmp_path / "parts") as graph:
        assert graph.bfs(0).depth == 5000
        graph._stored.exchange(Settings()).level_seconds = 0.02
        with pytest.raises(QueryError, match=r"is deep: about 4,9\d\d levels.*20 ms.*force=True"):
            graph.bfs(0)
        assert graph.bfs(0, options=Settings(force=True)).depth == 5000
        monkeypatch.setattr(watching, "_PATIENCE_SECONDS", 1000.0)
        assert graph.bfs(0).depth == 5000


@pytest.mark.long
def test_a_worker_takes_its_shard_and_three_bitmaps(tmp_path: Path) -> None:
    """Most memory that a worker ever had, against what the design allows."""
    rng = np.random.default_rng(8)
    num_vertices = 1 << 20
    edges = (rng.random((4 * num_vertices, 2)) ** 2 * num_vertices).astype(np.int64)
    oocbfs.convert(edges, tmp_path / "g.ocg", memory="1500M")
    manifest = shard(tmp_path / "g.ocg", tmp_path / "parts", parts=2)
    with oocbfs.open(tmp_path / "parts", cluster="local:2") as graph:
        source = int(graph._stored.ids_of(np.array([0]))[0])
        with oocbfs.open(tmp_path / "g.ocg") as whole:
            np.testing.assert_array_equal(graph.bfs(source).levels, whole.bfs(source).levels)
        peaks = [peak_bytes(process) for process in workers(graph)]
    allowed = [_WORKER_BYTES + part.bytes + 3 * num_vertices // 8 for part in manifest.shards]
    print(f"workers took {peaks}, {allowed} are allowed")
    assert all(peak <= most for peak, most in zip(peaks, allowed, strict=True))


def peak_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

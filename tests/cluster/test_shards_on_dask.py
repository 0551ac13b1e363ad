"""Sharded graphs on a Dask cluster: the engine's answers, whatever happens to workers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Thread, Timer

import numpy as np
import pytest
from distributed import Client, LocalCluster

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.errors import ClusterError, QueryError
from oocbfs.generate import generators
from oocbfs.workers.dask_cluster import Call, DaskCluster
from oocbfs.workers.dask_exchange import place
from tests.support.clusters.dask_processes import Killer, started, wait_for_workers, wait_until
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs


@pytest.fixture(scope="module")
def graphs(kron: Path, social: Path, shared_graphs: SharedGraphs) -> dict[str, Path]:
    """Return an undirected, a directed and a deep graph."""
    deep = shared_graphs.make("cluster-deep", lambda: generators.grid2d(2, 2000))
    return {"kron": kron, "social": social, "deep": deep}


def parts_of(graph: Path, tmp_path: Path, parts: int) -> Path:
    """Cut a graph."""
    folder = tmp_path / f"{graph.stem}-{parts}"
    shard(graph, folder, parts=parts)
    return folder


@pytest.mark.parametrize(("name", "parts"), [("kron", 2), ("social", 3), ("kron", 1)])
def test_answers_are_the_engine_s(
    graphs: dict[str, Path], name: str, parts: int, tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    folder = parts_of(graphs[name], tmp_path, parts)
    with (
        oocbfs.open(graphs[name]) as whole,
        oocbfs.open(folder, cluster=dask_cluster.scheduler_address) as graph,
    ):
        for source in (0, 1, 17):
            expected = whole.bfs(source).levels
            found = graph.bfs(source, parents=True, validate=True)
            np.testing.assert_array_equal(found.levels, expected)
            assert found.stats.engine == "dask"
        labels = graph.components().labels
        np.testing.assert_array_equal(labels, whole.components().labels)
        np.testing.assert_array_equal(found.to_dask(100).compute(scheduler="sync"), expected)


def levels_with_kill(
    folder: Path, dask_cluster: LocalCluster, level: int
) -> tuple[list[str], np.ndarray]:
    """Search from 1; the worker of the first task of a level is killed when it gets it."""
    hit: list[str] = []

    def when(key: str) -> float | None:
        if key.split("-")[2] == str(level) and not hit:
            hit.append(key)
            return 0
        return None

    with (
        Killer(dask_cluster, when) as killer,
        oocbfs.open(folder, cluster=dask_cluster.scheduler_address) as graph,
    ):
        levels = graph.bfs(1, parents=True, validate=True).levels
    return killer.lost, levels


@pytest.mark.long
def test_a_worker_that_is_killed_in_any_level_changes_nothing(
    graphs: dict[str, Path], tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    """The scheduler saw the worker go while it waited for the task of the level."""
    folder = parts_of(graphs["kron"], tmp_path, 2)
    with oocbfs.open(graphs["kron"]) as whole, oocbfs.open(folder, cluster=None) as here:
        result = whole.bfs(1)
        # The last ones may have nobody to ask any more.
        depth = sum(level.edges_examined != 0 for level in here.bfs(1).stats.levels)
    assert depth > 3
    for level in range(1, depth + 1) if ALL else (1, 3):
        wait_for_workers(dask_cluster, 2)
        lost, levels = levels_with_kill(folder, dask_cluster, level)
        assert [key.split("-")[2] for key in lost] == [str(level)]
        np.testing.assert_array_equal(levels, result.levels)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["processing", "memory"])
def test_all_workers_are_lost_at_once(
    graphs: dict[str, Path], tmp_path: Path, dask_cluster: LocalCluster, moment: str
) -> None:
    """Tasks then have nobody to go to, until new workers are there; results may be lost, too."""
    folder = parts_of(graphs["kron"], tmp_path, 2)
    hit: list[str] = []

    def when(key: str) -> float | None:
        hit.append(key)
        return 0 if len(hit) == 3 else None

    with (
        Killer(dask_cluster, when, all_at_once=True, moment=moment) as killer,
        oocbfs.open(graphs["kron"]) as whole,
        oocbfs.open(folder, cluster=dask_cluster.scheduler_address) as graph,
    ):
        np.testing.assert_array_equal(graph.bfs(1).levels, whole.bfs(1).levels)
    assert len(killer.killed) == 2


def test_a_worker_that_stops_for_a_while_is_waited_for(
    graphs: dict[str, Path], tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    """Longer than the cluster is not looked at; other workers do not get its tasks."""
    folder = parts_of(graphs["kron"], tmp_path, 2)
    stopped: list[str] = []

    def when(key: str) -> float | None:
        if not stopped:
            stopped.append(key)
            for nanny in dask_cluster.workers.values():
                os.kill(nanny.pid, signal.SIGSTOP)
                Timer(3, os.kill, (nanny.pid, signal.SIGCONT)).start()
        return None

    with (
        Killer(dask_cluster, when) as killer,
        oocbfs.open(graphs["kron"]) as whole,
        oocbfs.open(folder, cluster=dask_cluster.scheduler_address) as graph,
    ):
        began = time.monotonic()
        np.testing.assert_array_equal(graph.bfs(1).levels, whole.bfs(1).levels)
        assert time.monotonic() - began >= 3
    assert stopped
    assert not killer.killed


@pytest.mark.long
def test_a_scheduler_that_is_started_again_and_then_stops(
    graphs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks go on with workers of the new one, of which one joins late; a silent one is left."""
    folder = parts_of(graphs["kron"], tmp_path, 2)
    file, begun = tmp_path / "scheduler.json", tmp_path / "begun"
    worker = ["--scheduler-file", file, "--no-nanny", "--nthreads", 1]
    options = ["--dashboard-address", ":0", "--scheduler-file", file, "--port"]

    def maps_a_shard(process: int) -> bool:
        return str(folder) in Path(f"/proc/{process}/maps").read_text()

    with ExitStack() as processes:
        scheduler = processes.enter_context(started(tmp_path, "scheduler", *options, 0))
        wait_until(file.exists)
        processes.enter_context(started(tmp_path, "worker", *worker))
        address = json.loads(file.read_text())["address"]
        with DaskCluster(address) as cluster:
            (lost,) = cluster.workers()
            task = Call("oocbfs-nap", os.system, (f"touch {begun}; sleep 1",), lost)
            answers: list[int] = []
            thread = Thread(target=lambda: answers.extend(cluster.map([task])), daemon=True)
            thread.start()
            wait_until(begun.exists)
            file.unlink()
            os.kill(scheduler, signal.SIGKILL)
            port = address.rpartition(":")[2]
            scheduler = processes.enter_context(started(tmp_path, "scheduler", *options, port))
            wait_until(file.exists)
            old = processes.enter_context(started(tmp_path, "worker", *worker))
            thread.join(100)
            assert answers == [0]
        with oocbfs.open(graphs["kron"]) as whole, oocbfs.open(folder, cluster=address) as graph:
            expected = whole.bfs(1).levels
            np.testing.assert_array_equal(graph.bfs(1).levels, expected)
            new = processes.enter_context(started(tmp_path, "worker", *worker))
            deadline = time.monotonic() + 100
            while not maps_a_shard(new):
                np.testing.assert_array_equal(graph.bfs(1).levels, expected)
                assert time.monotonic() < deadline, "the new worker gets nothing to do"
            assert maps_a_shard(old)
            monkeypatch.setattr("oocbfs.workers.dask_connection.ANSWER_SECONDS", 2)
            os.kill(scheduler, signal.SIGSTOP)
            with pytest.raises(ClusterError, match="no answer in 2 s: look at the logs"):
                graph.bfs(1)


def test_a_shard_that_loses_every_worker_is_given_up(
    graphs: dict[str, Path],
    tmp_path: Path,
    dask_cluster: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask_cluster.scheduler, "allowed_failures", 0)
    folder = parts_of(graphs["kron"], tmp_path, 2)
    with (
        Killer(dask_cluster, lambda key: 0 if "-2-shard-1" in key else None),
        oocbfs.open(folder, cluster=dask_cluster.scheduler_address) as graph,
        pytest.raises(ClusterError, match=r"-2-shard-1 was given up: 1 workers were lost"),
    ):
        graph.bfs(1)


def test_what_workers_cannot_see_is_refused(
    graphs: dict[str, Path],
    tmp_path: Path,
    dask_cluster: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client and the workers see different folders under one name."""
    elsewhere = tmp_path / "workers"
    folder = parts_of(graphs["kron"], tmp_path, 2)
    shutil.copytree(folder, elsewhere / folder.name)
    (elsewhere / folder.name / "part-1.ocg").unlink()
    monkeypatch.chdir(tmp_path)
    with Client(dask_cluster.scheduler_address, set_as_default=False) as client:
        client.run(os.chdir, str(elsewhere))
    for message in ("part-1.ocg: .*No such file", "part-1.ocg: is not the shard 1"):
        with (
            oocbfs.open(
                f"/proc/self/cwd/{folder.name}", cluster=dask_cluster.scheduler_address
            ) as graph,
            pytest.raises(ClusterError, match=f"worker tcp://.*{message}"),
        ):
            graph.bfs(1)
        shutil.copy(folder / "part-0.ocg", elsewhere / folder.name / "part-1.ocg")


def test_deep_graphs_are_refused(
    graphs: dict[str, Path], tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    folder = parts_of(graphs["deep"], tmp_path, 2)
    with (
        oocbfs.open(folder, cluster=dask_cluster.scheduler_address) as graph,
        pytest.raises(QueryError, match=r"is deep: about .* levels are to come.*use force=True"),
    ):
        graph.bfs(0)


def test_shards_stay_where_they_are_and_are_placed_evenly() -> None:
    assert place(5, ["a", "b"], []) == ["a", "b", "a", "b", "a"]
    assert place(4, ["b", "c"], ["a", "b", "a", "b"]) == ["c", "b", "c", "b"]
    assert place(4, ["b"], ["a", "b", "a", "b"]) == ["b"] * 4
    assert place(4, ["b", "c"], ["b"] * 4) == ["b", "b", "c", "c"]
    assert place(2, ["a", "b", "c"], ["c", "c"]) == ["c", "a"]

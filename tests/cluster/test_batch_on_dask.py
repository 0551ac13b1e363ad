"""Batches on a Dask cluster: the same bytes as without one, whatever happens to its workers."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from oocbfs.batch.records import write_checked
from oocbfs.generate import generators
from tests.support.clusters.dask_processes import (
    Killer,
    at_random,
    started,
    wait_for_workers,
    wait_until,
)
from tests.support.command_line import batch, call, said, tree
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs


def refused(*arguments: object) -> str:
    """Run a batch that is refused in one line."""
    done = call("batch", *arguments)
    assert done.returncode == 1, done.stderr
    (line,) = said(done)
    return line


def test_outputs_are_those_of_one_machine(
    kron: Path, tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    pytest.importorskip("zarr", reason="Zarr arrays need zarr")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("".join(f"{k},{k * 7 % 500}\n" for k in range(200)))
    for number, job in enumerate(
        (
            ["--random", 200],
            ["--random", 130, "--from", "largest", "--emit", "levels", "--table", "jsonl"],
            ["--all-hubs", 70, "--emit", "levels", "--level-files", "zarr"],
            ["--emit", "pairs", pairs],
        )
    ):
        plain, out = tmp_path / f"plain{number}", tmp_path / f"out{number}"
        batch(kron, *job, "-o", plain)
        batch(kron, *job, "-o", out, "--cluster", dask_cluster.scheduler_address)
        assert tree(out) == tree(plain)


def test_a_job_that_was_begun_without_a_cluster_goes_on_with_one(
    kron: Path, tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    job = [kron, "--random", 200, "--emit", "levels"]
    batch(*job, "-o", tmp_path / "plain")
    begun = tmp_path / "begun"
    shutil.copytree(tmp_path / "plain", begun)
    (begun / "summary.csv").unlink()
    where = ["--cluster", dask_cluster.scheduler_address, "--resume"]
    batch(*job, "-o", begun, *where)
    assert tree(begun) == tree(tmp_path / "plain")
    done = call("batch", *job, "-o", begun, *where)
    assert "nothing was left to do" in done.stdout


def test_workers_close_the_graph_at_the_end(
    kron: Path, tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    batch(
        *(kron, "--random", 70, "-o", tmp_path / "out"),
        *("--cluster", dask_cluster.scheduler_address),
    )
    for nanny in dask_cluster.workers.values():
        assert str(kron) not in Path(f"/proc/{nanny.pid}/maps").read_text()


@pytest.mark.long
def test_lost_workers_change_nothing(
    kron: Path, tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    """Workers are killed at random moments of their tasks: twenty in all, or a few."""
    wanted = 20 if ALL else 3
    job = [kron, "--random", 500, "--emit", "levels"]
    batch(*job, "-o", tmp_path / "plain")
    expected = tree(tmp_path / "plain")
    lost = 0
    for seed in range(100):
        out = tmp_path / f"out{seed}"
        with Killer(dask_cluster, at_random(seed, 0.4, 0.2)) as killer:
            batch(*job, "-o", out, "--cluster", dask_cluster.scheduler_address)
        assert tree(out) == expected
        shutil.rmtree(out)
        lost += len(killer.lost)
        if lost >= wanted:
            return
        wait_for_workers(dask_cluster, 2)
    pytest.fail(f"only {lost} workers were lost in the middle of a task")


def test_what_workers_cannot_see_is_refused(
    kron: Path,
    tmp_path: Path,
    dask_cluster: LocalCluster,
    shared_graphs: SharedGraphs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client and the workers see different files under names that lead to their folders."""
    monkeypatch.chdir(tmp_path)
    other_folder = tmp_path / "workers"
    other_folder.mkdir()
    with Client(dask_cluster.scheduler_address, set_as_default=False) as client:
        client.run(os.chdir, str(other_folder))
    shutil.copy(kron, tmp_path / "here.ocg")
    where = ["--cluster", dask_cluster.scheduler_address]
    job = ["/proc/self/cwd/here.ocg", "--random", 70]
    line = refused(*job, "-o", tmp_path / "out", *where)
    assert "worker tcp://" in line
    assert "No such file" in line
    other = shared_graphs.make("cluster-kron10", lambda: generators.kron(10))
    shutil.copy(other, other_folder / "here.ocg")
    line = refused(*job, "-o", tmp_path / "out", *where)
    assert "is another graph there" in line
    job = [kron, "--random", 70, "--emit", "levels"]
    line = refused(*job, "-o", "/proc/self/cwd/out", *where)
    assert "does not see the folder /proc/self/cwd" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.ocg", "workers"]


def test_clusters_that_are_not_there(
    kron: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oocbfs.workers.dask_connection.CONNECT_SECONDS", 0.5)
    damaged = tmp_path / "damaged.json"
    damaged.write_text("[]")
    for cluster, message in (
        ("tcp://127.0.0.1:1", "no Dask scheduler answers there"),
        ("gopher://127.0.0.1:1", "names no cluster"),
        (tmp_path / "none.json", "No such file"),
        (damaged, "not a file that a Dask scheduler wrote"),
        ("local:0", "write local:N"),
        ("local:many", "write local:N"),
    ):
        line = refused(kron, "--random", 70, "-o", tmp_path / "out", "--cluster", cluster)
        assert message in line
        assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named(
    kron: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    line = refused(kron, "--random", 70, "-o", tmp_path / "out", "--cluster", "local:2")
    assert "pip install 'oocbfs[cluster]'" in line


def test_job_files_name_their_cluster(
    kron: Path, tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    jobs = tmp_path / "jobs.toml"
    address = dask_cluster.scheduler_address
    jobs.write_text(
        f'[[job]]\ngraph = "{kron}"\nrandom = 70\noutput = "out"\ncluster = "{address}"'
    )
    batch(jobs)
    batch(kron, "--random", 70, "-o", tmp_path / "plain")
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")
    done = call("batch", jobs, "--cluster", address, "--resume")
    assert done.returncode == 2


def test_local_processes(kron: Path, tmp_path: Path) -> None:
    batch(kron, "--random", 70, "-o", tmp_path / "plain")
    batch(kron, "--random", 70, "-o", tmp_path / "out", "--cluster", "local:1")
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")


def test_a_group_that_loses_every_worker_is_given_up(
    kron: Path, tmp_path: Path, dask_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster.scheduler, "allowed_failures", 0)
    job = [kron, "--random", 200, "-o", tmp_path / "out"]
    with Killer(dask_cluster, lambda key: 0 if "group-000001" in key else None):
        line = refused(*job, "--cluster", dask_cluster.scheduler_address)
    assert "oocbfs-batch-group-000001 was given up: 1 workers were lost" in line
    batch(*job, "--resume")
    batch(kron, "--random", 200, "-o", tmp_path / "plain")
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")


@pytest.mark.long
def test_a_cluster_by_its_file_from_its_first_worker_to_its_end(
    kron: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker, one of another version, a good one; then the scheduler is killed."""
    old = tmp_path / "old" / "oocbfs"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("__version__ = '0.0.9'")
    file = tmp_path / "scheduler.json"
    job = [kron, "--random", 500, "-o", tmp_path / "out", "--cluster", file]
    port = ["--port", 0, "--dashboard-address", ":0"]
    with started(tmp_path, "scheduler", "--scheduler-file", file, *port) as scheduler:
        wait_until(file.exists)
        with monkeypatch.context() as context:
            context.setattr("oocbfs.workers.dask_connection.WORKER_SECONDS", 0.1)
            assert "has no worker" in refused(*job)
        worker = ["--scheduler-file", file, "--no-nanny", "--nthreads", 1]
        with started(tmp_path, "worker", *worker, PYTHONPATH=str(old.parent)):
            assert "runs oocbfs 0.0.9, and this is" in refused(*job)
        assert not (tmp_path / "out").exists()
        with started(tmp_path, "worker", *worker), monkeypatch.context() as context:
            context.setattr("oocbfs.workers.dask_connection.CONNECT_SECONDS", 10.0)

            def write_and_kill(path: Path, values: dict[str, Any]) -> None:
                write_checked(path, values)
                if path.parent.name == "groups":
                    os.kill(scheduler, signal.SIGKILL)

            context.setattr("oocbfs.batch.jobs.write_checked", write_and_kill)
            assert f"{file}: the scheduler went away" in refused(*job)
    batch(*job[:-2], "--resume")
    batch(kron, "--random", 500, "-o", tmp_path / "plain")
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")

"""Batches on a sharded graph, and on the ranks of MPI: the bytes of a graph in one process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster

import oocbfs
from oocbfs.batch.records import write_checked
from oocbfs.errors import QueryError
from tests.support.clusters.mpi import MISSING, run_on_ranks
from tests.support.command_line import batch, call, run, said, tree

needs_mpi = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of pairs."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    path.write_text("".join(f"{k % 9},{k * 7 % 500}\n" for k in range(60)))
    return path


@pytest.mark.parametrize("cluster", [None, "local:2"])
def test_outputs_are_those_of_the_whole_graph(
    social: Path, folder: Path, pairs: Path, tmp_path: Path, cluster: str | None
) -> None:
    pytest.importorskip("zarr", reason="Zarr arrays need zarr")
    where = [] if cluster is None else ["--cluster", cluster]
    many = 66 if cluster is None else 6
    for number, job in enumerate(
        (
            ["--random", many],
            ["--random", many, "--from", "largest", "--emit", "levels", "--table", "jsonl"],
            ["--all-hubs", 5, "--emit", "levels", "--level-files", "zarr"],
            ["--emit", "pairs", pairs],
        )
    ):
        plain, out = tmp_path / f"plain{number}", tmp_path / f"out{number}"
        batch(social, *job, "-o", plain)
        batch(folder, *job, "-o", out, *where)
        assert tree(out) == tree(plain)


def test_a_batch_goes_on_with_shards_and_back(
    social: Path, folder: Path, tmp_path: Path, dask_cluster: LocalCluster
) -> None:
    """What was written of either is the other's."""
    job = ["--random", 5, "--emit", "levels"]
    batch(social, *job, "-o", tmp_path / "plain")
    begun = tmp_path / "begun"
    where = ["--cluster", dask_cluster.scheduler_address]
    done = call("batch", folder, *job, "-o", begun, *where, "--json")
    assert json.loads(done.stdout)["sources_by_strategy"] == {"one-by-one": 5}
    assert tree(begun) == tree(tmp_path / "plain")
    (begun / "summary.csv").unlink()
    batch(social, *job, "-o", begun, "--resume")
    assert tree(begun) == tree(tmp_path / "plain")


def test_a_killed_batch_is_resumed(
    social: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = [folder, "--random", 150, "-o", tmp_path / "out"]
    written: list[str] = []

    def write_one(path: Path, values: dict[str, object]) -> None:
        if len(written) == 2:  # the manifest and one group
            raise KeyboardInterrupt
        written.append(path.name)
        write_checked(path, values)

    with monkeypatch.context() as context:
        context.setattr("oocbfs.batch.jobs.write_checked", write_one)
        assert call("batch", *job).returncode == 130
    assert written == ["manifest.json", "000000.json"]
    done = call("batch", *job, "--resume", "--json")
    assert json.loads(done.stdout)["done_before"] == 64
    batch(social, "--random", 150, "-o", tmp_path / "plain")
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")


def test_many_in_python(social: Path, folder: Path) -> None:
    sources = [5, 0, 17, 5]
    with oocbfs.open(social) as whole, oocbfs.open(folder, cluster=None) as parts:
        for expected, found in zip(
            whole.bfs_many(sources, emit="levels"),
            parts.bfs_many(sources, emit="levels"),
            strict=True,
        ):
            assert found.row() == expected.row()
            assert found.levels is not None
            assert expected.levels is not None
            assert found.levels.dtype == expected.levels.dtype
            np.testing.assert_array_equal(found.levels, expected.levels)
        targets = [[1, 2], [], [5], [2999]]
        told = [
            [one.distances for one in graph.bfs_many(sources, emit="pairs", targets=targets)]
            for graph in (whole, parts)
        ]
        for expected_distances, distances in zip(*told, strict=True):
            np.testing.assert_array_equal(distances, expected_distances)
        assert len(parts.bfs_many(sources).to_pandas()) == 4
        with pytest.raises(QueryError, match="leave out strategy"):
            parts.bfs_many(sources, strategy="together")
        with pytest.raises(QueryError, match="pairs need targets"):
            parts.bfs_many(sources, emit="pairs")
        with pytest.raises(QueryError, match="has no vertex 5000"):
            parts.bfs_many([1, 5000])


def test_levels_and_summaries_within_a_budget(social: Path, folder: Path, tmp_path: Path) -> None:
    job = ["--random", 10, "--emit", "levels", "--memory", "600M"]
    for graph, name in ((social, "plain"), (folder, "out")):
        # The budget is for a whole process, and that of the tests may be larger.
        done = run("batch", graph, *job, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")


def test_what_shards_cannot_do_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path
) -> None:
    for more, message in (
        (["--strategy", "together"], "leave out --strategy together"),
        (["--cluster", "nowhere"], "there is no cluster 'nowhere'"),
        (["--cluster", "local:0"], "there can be 1 to"),
    ):
        done = call("batch", folder, "--random", 3, "-o", tmp_path / "out", *more)
        assert done.returncode == 1
        (line,) = said(done)
        assert message in line
        assert not (tmp_path / "out").exists()


@needs_mpi
@pytest.mark.long
def test_groups_on_ranks(
    kron: Path, social: Path, folder: Path, pairs: Path, tmp_path: Path
) -> None:
    """Of a whole graph, ranks take groups in turn; a sharded graph is searched by all."""
    jobs = tmp_path / "jobs.toml"
    text = ""
    for number, (graph, plain, sources, more) in enumerate(
        (
            (kron, kron, 300, 'emit = "levels"'),
            (kron, kron, 50, ""),  # less than a group for each rank
            (folder, social, 7, ""),
        )
    ):
        job = f'[[job]]\ngraph = "{graph}"\nrandom = {sources}\n{more}\n'
        text += f'{job}output = "out{number}"\ncluster = "mpi"\n'
        emit = ["--emit", "levels"] if more else []
        batch(plain, "--random", sources, *emit, "-o", tmp_path / f"plain{number}")
    jobs.write_text(text)
    done = run_on_ranks(2, "-m", "oocbfs", "batch", jobs, "--json")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    for number in range(3):
        assert tree(tmp_path / f"out{number}") == tree(tmp_path / f"plain{number}")


@needs_mpi
@pytest.mark.long
def test_an_error_of_any_rank_ends_the_batch_in_one_line(kron: Path, tmp_path: Path) -> None:
    """The last groups cannot be written; what came before is committed, and is gone on with."""
    out = tmp_path / "out"
    job = [kron, "--random", 300, "--emit", "levels", "-o", out]
    batch(*job[:-1], tmp_path / "plain")
    expected = tree(tmp_path / "plain")
    # A folder stands where the levels of a source of the fourth group, which is rank 1's, will be.
    (name,) = [name for name in expected if name.startswith("levels/000200-")]
    (out / name / "in the way").mkdir(parents=True)
    shutil.copy(tmp_path / "plain" / "manifest.json", out)
    run = ["-m", "oocbfs", "batch", *job, "--cluster", "mpi", "--resume"]
    done = run_on_ranks(2, *run)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "compiling" not in line]
    assert name in line
    assert (out / "groups" / "000001.json").exists()
    assert not (out / "groups" / "000003.json").exists()
    shutil.rmtree(out / name)
    done = run_on_ranks(2, *run, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done_before"] >= 64
    assert tree(out) == expected

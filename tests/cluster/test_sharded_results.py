"""Levels, parents and labels in folders with a file for each shard: what others read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

import oocbfs
from oocbfs.cluster.sharded_result import ShardedResult
from oocbfs.cluster.sharding import shard
from oocbfs.errors import OutputError, QueryError
from oocbfs.settings import Settings
from tests.support.command_line import call, said

dataset = pytest.importorskip("pyarrow.dataset", reason="Parquet needs pyarrow")


def written(*arguments: object) -> str:
    """Run a verb to a good end."""
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Dask calls pandas in a way that pandas is to give up.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize("cluster", [None, "local:2"])
def test_others_read_the_folders_of_a_graph_in_parts(
    social: Path, folder: Path, tmp_path: Path, cluster: str | None
) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="Dask has no data frames here")
    where = [] if cluster is None else ["--cluster", cluster]
    levels, parents, labels = (tmp_path / name for name in ("levels", "by.parquet", "labels.csv"))
    search = ["bfs", folder, "--source", 5, *where]
    written(*search, "--levels", f"{levels}/", "--parents", f"{parents}/")
    written("components", folder, *where, "--labels", f"{labels}/")
    assert sorted(path.name for path in levels.iterdir()) == [
        f"part-0000{part}.parquet" for part in range(3)
    ]
    with oocbfs.open(social) as whole, oocbfs.open(folder, cluster=None) as parts:
        result = whole.bfs(5)
        for table in (
            dataset.dataset(levels).to_table().to_pandas(),
            dd.read_parquet(levels).compute(),
        ):
            np.testing.assert_array_equal(table["id"], whole.ids())
            np.testing.assert_array_equal(table["level"], result.levels)
        told = dataset.dataset(levels).schema.metadata
        assert json.loads(told[b"oocbfs.reached"]) == result.reached
        assert json.loads(told[b"oocbfs.parts"]) == 3
        # Any parent one level up is right; these are what the same search has in memory.
        found = dataset.dataset(parents).to_table()["parent"].to_numpy()
        np.testing.assert_array_equal(found < 0, result.levels < 0)
        reached = found >= 0
        near = result.levels[whole.positions(found[reached].astype(np.uint64))]
        np.testing.assert_array_equal(near, np.maximum(result.levels[reached] - 1, 0))
        if cluster is None:
            np.testing.assert_array_equal(found, parts.bfs(5, parents=True).parents)
        lines = [path.read_text().splitlines() for path in sorted(labels.iterdir())]
        assert {part[0] for part in lines} == {"id,component"}
        rows = [line.split(",") for part in lines for line in part[1:]]
        np.testing.assert_array_equal(np.array(rows, np.uint64)[:, 1], whole.components().labels)


def test_arrays_in_parts_are_the_whole_array(
    social: Path, folder: Path, levels: np.ndarray, tmp_path: Path
) -> None:
    out = tmp_path / "levels.npy"
    written("bfs", folder, "--source", 5, "--levels", f"{out}/")
    found = [np.load(path) for path in sorted(out.iterdir())]
    assert [part.size for part in found] == [levels.size // 3] * 3
    np.testing.assert_array_equal(np.concatenate(found), levels)
    # A graph in one file has one shard.
    written("bfs", social, "--source", 5, "--levels", f"{tmp_path}/one.npy/")
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy" / "part-00000.npy"), levels)


@pytest.mark.parametrize("memory", [None, "2G"])
def test_levels_that_are_not_gathered(
    kron: Path, tmp_path: Path, memory: str | None, dask_cluster: LocalCluster
) -> None:
    """With a budget there are no ranks of all vertices, and ranges are found in the order."""
    shard(kron, tmp_path / "parts", parts=3)
    with (
        oocbfs.open(kron) as whole,
        oocbfs.open(tmp_path / "parts", memory=memory, cluster=None) as parts,
    ):
        expected = whole.bfs(1)
        result = parts.bfs(1, options=Settings(gather=False))
        assert isinstance(result, ShardedResult)
        array = result.to_dask(tmp_path / "levels.npy")
        with Client(dask_cluster.scheduler_address, set_as_default=False) as client:
            total, most = client.gather(client.compute([array.sum(), array.max()]))
        assert (total, most) == (expected.levels.sum(), expected.depth)
        np.testing.assert_array_equal(array.compute(scheduler="sync"), expected.levels)
        assert len(array.chunks[0]) == 3
        far = int(np.argmax(expected.levels))
        assert result.level_of(far) == expected.level_of(far)
        assert len(result.path_to(far)) == expected.depth + 1
        assert "levels" not in vars(result)
        assert result.reached == expected.reached
        assert len(result.to_pandas()) == whole.num_vertices
        np.testing.assert_array_equal(result.levels, expected.levels)
        again = parts.bfs(1, parents=True, options=Settings(gather=False))
        found = again.parents_between(0, whole.num_vertices)
        np.testing.assert_array_equal(found, again.parents)
        np.testing.assert_array_equal(found < 0, expected.levels < 0)
        for wrong in (1 << 20, "", tmp_path / "levels.csv"):
            with pytest.raises(QueryError, match=r"ends in \.npy"):
                result.to_dask(wrong)
        with pytest.raises(OutputError, match="already exists"):
            result.to_dask(tmp_path / "levels.npy")


def test_folders_are_written_whole_or_not_at_all(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oocbfs.formats.output import part_files
    from oocbfs.formats.output.vectors import write_vector

    search = ["bfs", folder, "--source", 5, "--levels", f"{tmp_path}/levels/"]
    before = sorted(tmp_path.iterdir())

    def write_one(path: Path, *arguments: object, **named: object) -> None:
        if path.name.startswith("part-00001"):
            raise OSError(28, "No space left on device")
        write_vector(path, *arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as context:
        context.setattr(part_files, "write_vector", write_one)
        done = call(*search)
        assert done.returncode == 1
        (line,) = said(done)
        assert "levels: cannot be written" in line
    assert sorted(tmp_path.iterdir()) == before
    written(*search)
    done = call(*search)
    assert done.returncode == 1
    assert "already exists; use --force" in said(done)[0]
    written(*search, "--force")
    (tmp_path / "levels" / "notes.txt").write_text("mine")
    done = call(*search, "--force")
    assert done.returncode == 1
    assert "holds something else" in said(done)[0]


def test_names_of_folders_are_checked_before_the_search(folder: Path, tmp_path: Path) -> None:
    search = ["bfs", folder, "--source", 5]
    for more, message in (
        (["--levels", f"{tmp_path}/levels.txt/"], "name it .npy"),
        (["--levels", f"{tmp_path}/none/levels/"], "there is no folder"),
        (["--levels", f"{folder}/", "--force"], "holds something else"),
        (["--levels", f"{tmp_path}/a/", "--parents", f"{tmp_path}/a/"], "is named twice"),
    ):
        done = call(*search, *more)
        assert done.returncode == 1, more
        (line,) = said(done)
        assert message in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts"]

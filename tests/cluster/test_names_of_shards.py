"""Graphs whose vertices have names, in shards: users give names and get names."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.errors import QueryError
from oocbfs.graph.any_stored import AnyStored
from oocbfs.settings import Settings
from tests.support.command_line import batch, call, said, tree

PEOPLE = 'alice,bob\nbob,carol\ncarol,dave\nerin,frank\nfrank,grace\n"o, hara",erin\n'


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a graph of names, and of some hundred more, so that every shard has some."""
    folder = tmp_path_factory.mktemp("people")
    more = "".join(f"n{k:03d},n{k * 7 % 300:03d}\n" for k in range(1, 300))
    (folder / "people.csv").write_text(PEOPLE + more, encoding="utf-8")
    done = call("convert", folder / "people.csv", "-o", folder / "people.ocg", "--ids", "names")
    assert done.returncode == 0, done.stderr
    shard(folder / "people.ocg", folder / "people.parts", parts=3)
    return folder


def answer(*arguments: object) -> str:
    """Run a verb to a good end; returns what it printed."""
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("cluster", [None, "local:2"])
def test_sources_and_outputs_are_names(people: Path, tmp_path: Path, cluster: str | None) -> None:
    whole, parts = people / "people.ocg", people / "people.parts"
    where = [] if cluster is None else ["--cluster", cluster]
    for words in (
        ["bfs", "--source", "alice", "--target", "dave"],
        ["bfs", "--source", "erin,alice"],
        ["bfs", "--source", "@largest"],
    ):
        told = [
            json.loads(answer(words[0], graph, *words[1:], *more, "--json"))
            for graph, more in ((whole, []), (parts, where))
        ]
        for name in ("source", "reached", "depth", "level_sizes", "path"):
            assert told[0][name] == told[1][name], name
    assert told[1]["source"] != 0
    # Any parent one level up is right.
    search = ["bfs", parts, "--source", "alice", *where]
    levels = answer(*search, "--levels", "-")
    assert levels == answer("bfs", whole, "--source", "alice", "--levels", "-")
    by = dict(list(csv.reader(io.StringIO(answer(*search, "--parents", "-"))))[1:])
    assert (by["bob"], by["dave"], by["alice"], by["o, hara"]) == ("alice", "carol", "alice", "")
    assert answer("components", parts, *where, "--labels", "-") == answer(
        "components", whole, "--labels", "-"
    )
    job = ["--random", 9, "--emit", "levels"]
    batch(whole, *job, "-o", tmp_path / "plain")
    batch(parts, *job, "-o", tmp_path / "out", *where)
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")
    (tmp_path / "pairs.csv").write_text('alice,dave\n"o, hara",grace\nalice,erin\n')
    for graph, more, out in ((whole, [], "pairs"), (parts, where, "pairs-in-parts")):
        batch(graph, "--emit", "pairs", tmp_path / "pairs.csv", "-o", tmp_path / out, *more)
    assert tree(tmp_path / "pairs-in-parts") == tree(tmp_path / "pairs")
    assert '"o, hara",grace,3' in (tmp_path / "pairs-in-parts" / "pairs.csv").read_text()


def test_folders_of_names(people: Path, tmp_path: Path) -> None:
    dataset = pytest.importorskip("pyarrow.dataset", reason="Parquet needs pyarrow")
    for graph in ("people.ocg", "people.parts"):
        out, by = (tmp_path / f"{graph}{kind}.parquet" for kind in ("", ".by"))
        search = ["bfs", people / graph, "--source", "alice"]
        answer(*search, "--levels", f"{out}/", "--parents", f"{by}/")
    tables = [
        dataset.dataset(tmp_path / f"{graph}.parquet").to_table()
        for graph in ("people.ocg", "people.parts")
    ]
    assert tables[0] == tables[1]
    told = dataset.dataset(tmp_path / "people.parts.by.parquet").to_table().to_pydict()
    found = dict(zip(told["id"], told["parent"], strict=True))
    assert (found["carol"], found["alice"], found["erin"]) == ("bob", "alice", None)


def edges_of(graph: AnyStored) -> set[frozenset[str]]:
    return {
        frozenset(pair)
        for batch in graph.edges()
        for pair in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    }


def test_python_speaks_names(people: Path) -> None:
    with (
        oocbfs.open(people / "people.ocg") as whole,
        oocbfs.open(people / "people.parts", cluster=None) as parts,
    ):
        found = parts.bfs("alice", options=Settings(gather=False))
        assert found.sources == whole.bfs("alice").sources == ["alice"]
        assert found.path_to("dave") == ["alice", "bob", "carol", "dave"]
        assert found.level_of("grace") == -1
        assert parts.neighbors("bob").tolist() == whole.neighbors("bob").tolist()
        np.testing.assert_array_equal(parts.ids(), whole.ids())
        np.testing.assert_array_equal(parts.degrees, whole.degrees)
        assert edges_of(parts._stored) == edges_of(whole._stored)
        assert [one.source for one in parts.bfs_many(["erin", "bob"])] == ["erin", "bob"]
        for wrong in ("nobody", 3):
            with pytest.raises(QueryError, match=r"nobody|is not a name"):
                parts.bfs(wrong)
    done = call("bfs", people / "people.parts", "--source", "nobody")
    assert done.returncode == 1
    (line,) = said(done)
    assert "has no vertex named 'nobody'" in line

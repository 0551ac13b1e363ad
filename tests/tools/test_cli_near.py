"""Neighbourhoods and parts of graphs on the command line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import networkx as nx
import pytest

import oocbfs
from tests.support.command_line import call, said

GRAPH = nx.gnm_random_graph(60, 130, seed=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("near")
    oocbfs.convert(GRAPH, folder / "g.ocg", order="degree")
    oocbfs.convert([("a,b", "c"), ("c", "d"), ("d", "e"), ('q"', "r")], folder / "names.ocg")
    (folder / "seeds").write_text("# some\n3\n5\n")
    return folder


def table(path: Path) -> list[tuple[Any, ...]]:
    return list(map(tuple, duckdb.execute(f"from '{path}'").fetchall()))


def expected(seeds: list[int], depth: int) -> list[tuple[int, int, int]]:
    return [
        (seed, node, distance)
        for seed in seeds
        for node, distance in nx.single_source_shortest_path_length(GRAPH, seed, depth).items()
    ]


@pytest.mark.parametrize("name", ["n.csv", "n.tsv.gz", "n.csv.zst", "n.parquet"])
def test_a_table_of_all_seeds(folder: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    words = ("near", "g.ocg", "--seeds", "seeds", "--depth", 2, "-o", out)
    done = call(*words, "--json", cwd=folder)
    found = json.loads(done.stdout)
    rows = expected([3, 5], 2)
    assert (found["rows"], found["seeds"], found["cut"]) == (len(rows), 2, [])
    assert sorted(table(out)) == sorted(rows)
    assert "already exists" in said(call(*words, cwd=folder))[-1]
    assert call(*words, "--force", cwd=folder).stdout.startswith("seeds    2 each")


def test_text_and_parquet_say_the_same(folder: Path, tmp_path: Path) -> None:
    words = ("near", "names.ocg", 'c,"a,b"', "--depth", 2, "--limit", 3, "--parents", "-o")
    for name in ("n.csv", "n.parquet"):
        assert call(*words, tmp_path / name, cwd=folder).returncode == 0
    assert table(tmp_path / "n.csv") == table(tmp_path / "n.parquet")
    assert table(tmp_path / "n.csv")[-1] == ("a,b", "d", 2, "c", False)
    rows = list(csv.reader((tmp_path / "n.csv").read_text().splitlines()))
    assert rows[0] == ["seed", "id", "distance", "parent", "cut"]
    assert rows[1] == ["c", "c", "0", "c", "true"]


def test_standard_output_has_the_table_alone(folder: Path) -> None:
    words = ("near", "names.ocg", "c,r", "--depth", 1, "--union", "-o", "-")
    done = call(*words, cwd=folder)
    head, *lines = done.stdout.splitlines()
    assert (head, lines[:2], lines[4:]) == ("id,distance", ["c,0", "r,0"], ['"q""",1'])
    assert sorted(lines[2:4]) == ['"a,b",1', "d,1"]
    assert "together, within 1 step\n" in done.stderr


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1,2,3", "--limit", 2), "--limit 2 has cut off what is near 3 of 3 seeds: 1, 2, 3"),
        (("1,2", "--limit", 2, "--union"), "--limit 2 has cut off what is near the seeds"),
        (("1,2", "--limit", 60), None),
    ],
)
def test_a_limit_that_cut_is_always_said(
    folder: Path, tmp_path: Path, words: Any, message: str | None, quiet: Any
) -> None:
    out = tmp_path / "n.csv"
    done = call("near", "g.ocg", *words, "--depth", 3, "-o", out, *quiet, cwd=folder)
    assert done.returncode == 0
    assert said(done)[-1:] == ([] if message is None else [message])
    assert {row[-1] for row in table(out)} == {message is not None}
    done = call(
        *("export", "g.ocg", "--near", 1, "--depth", 2, "--limit", 3, "-o", tmp_path / "e.csv"),
        *quiet,
        cwd=folder,
    )
    assert "--limit 3 has cut off what is near 1" in said(done)


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (("near", "g.ocg", "1", "--depth", 0), "--depth", 2),
        (("near", "g.ocg", "1,", "--depth", 1), "names no vertex", 2),
        (("near", "g.ocg", "1"), "--depth", 2),
        (("near", "g.ocg", "--depth", 1), "name seeds", 1),
        (("near", "g.ocg", "1", "--seeds", "seeds", "--depth", 1), "name seeds", 1),
        (("near", "g.ocg", "--seeds", "empty", "--depth", 1), "holds no seeds", 1),
        (("near", "g.ocg", "--seeds", "missing", "--depth", 1), "cannot be read", 1),
        (("near", "g.ocg", "1,99", "--depth", 1), "has no vertex 99", 1),
        (("near", "g.ocg", "x", "--depth", 1), "is not an id", 1),
        (("near", "names.ocg", "nobody", "--depth", 1), "no vertex named", 1),
        (("near", "missing.ocg", "1", "--depth", 1), "missing.ocg", 1),
        (("export", "g.ocg", "--near", "1"), "--near needs --depth", 1),
        (("export", "g.ocg", "--depth", "1"), "--depth is about --near", 1),
        (("export", "g.ocg", "--vertices", "empty"), "holds no vertices", 1),
        (("export", "g.ocg", "--component", "1,2"), "name one vertex", 1),
        (("export", "g.ocg", "--component", "99"), "has no vertex 99", 1),
        (("export", "g.ocg", "--near", "1", "--component", "1"), "not allowed with", 2),
    ],
)
def test_bad_input(folder: Path, tmp_path: Path, words: Any, message: str, code: int) -> None:
    (folder / "empty").write_text("# nobody\n")
    done = call(*words, "-o", tmp_path / "n.csv", cwd=folder)
    assert (done.returncode, message in said(done)[-1]) == (code, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    for name, message in (
        ("n.txt", "name it .csv"),
        ("no/n.csv", "no folder"),
    ):
        done = call("near", "g.ocg", "1", "--depth", 1, "-o", f"{tmp_path}/{name}", cwd=folder)
        assert (done.returncode, message in said(done)[-1]) == (1, True), done.stderr
    (folder / "seeds.csv").write_text("3\n")
    words = ("near", "g.ocg", "--seeds", "seeds.csv", "--depth", 1)
    done = call(*words, "-o", "seeds.csv", cwd=folder)
    assert "is an input too" in said(done)[-1]
    done = call("export", "g.ocg", "-o", tmp_path / "e.ocg", cwd=folder)
    assert "unknown edge-list format" in said(done)[-1]


PART = sorted(nx.ego_graph(GRAPH, 3, 2))


@pytest.mark.parametrize("name", ["e.csv", "e.txt.gz", "e.parquet", "e.ocg", "e.npz", "e.metis"])
def test_parts_in_every_form(folder: Path, tmp_path: Path, name: str) -> None:
    part = GRAPH.subgraph(PART)
    out = tmp_path / name
    done = call("export", "g.ocg", "--near", 3, "--depth", 2, "-o", out, "--json", cwd=folder)
    assert json.loads(done.stdout)["edges"] == part.number_of_edges(), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    path = out
    if name != "e.ocg":
        path = tmp_path / "again.ocg"
        assert call("convert", out, "-o", path).returncode == 0
    with oocbfs.open(path) as graph:
        assert graph.num_edges == part.number_of_edges()
        if name != "e.metis":  # whose vertices are numbered
            edges = {
                frozenset(pair)
                for batch in graph.edges()
                for pair in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
            }
            places = dict(enumerate(PART)) if name == "e.npz" else {n: n for n in PART}
            assert {frozenset(places[n] for n in e) for e in edges} == set(
                map(frozenset, part.edges)
            )


def test_the_other_ways_to_name_a_part(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "ids"
    listed.write_text("".join(f"{n}\n" for n in PART))
    call("export", "g.ocg", "--vertices", listed, "-o", tmp_path / "v.csv", cwd=folder)
    call("export", "g.ocg", "--near", 3, "--depth", 2, "-o", tmp_path / "n.csv", cwd=folder)
    lines = [(tmp_path / f"{name}.csv").read_text().splitlines()[1:] for name in "vn"]
    assert sorted(lines[0]) == sorted(lines[1]) != []
    for component, size in (("largest", 3), ("r", 1), ("e", 3)):
        out = tmp_path / f"{component}.ocg"
        done = call(
            *("export", "names.ocg", "--component", component, "-o", out, "--json"), cwd=folder
        )
        assert json.loads(done.stdout)["edges"] == size
    with oocbfs.open(tmp_path / "largest.ocg") as graph:
        assert list(graph.names or ()) == ["a,b", "c", "d", "e"]


def test_compressed_tables_have_one_head(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "n.csv.gz"
    call("near", "g.ocg", ",".join(map(str, GRAPH)), "--depth", 1, "-o", out, cwd=folder)
    lines = gzip.decompress(out.read_bytes()).decode().splitlines()
    assert lines[0] == "seed,id,distance"
    assert len(lines) == 1 + len(expected(list(GRAPH), 1))

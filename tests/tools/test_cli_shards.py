"""Sharded graphs on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command_line import call, said


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    rng = np.random.default_rng(6)
    path = tmp_path / "edges.txt"
    np.savetxt(path, rng.integers(0, 500, (1500, 2)), "%d")
    return path


def shown(*arguments: object) -> Any:
    done = call(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_cut_look_verify_search_and_export(edges: Path, tmp_path: Path) -> None:
    graph, folder = tmp_path / "g.ocg", tmp_path / "parts"
    shown("convert", edges, "-o", graph)
    made = shown("shard", graph, "-o", folder, "--parts", 3)
    assert [part["name"] for part in made["parts"]] == [f"part-{i}.ocg" for i in range(3)]
    whole, info = shown("info", graph), shown("info", folder)
    for name in ("vertices", "edges", "arcs", "directed", "order", "max_degree"):
        assert info[name] == whole[name]
    assert sum(part["arcs"] for part in info["parts"]) == whole["arcs"]
    assert "part-2.ocg" in call("info", folder).stdout
    assert "sound" in call("verify", folder).stdout
    exported = []
    for path in (graph, folder):
        shown("export", path, "-o", tmp_path / "edges.csv", "--force")
        exported.append(sorted((tmp_path / "edges.csv").read_text().splitlines()))
    assert exported[0] == exported[1]


def test_search_as_in_one_file(edges: Path, tmp_path: Path) -> None:
    graph, folder = tmp_path / "g.ocg", tmp_path / "parts"
    shown("convert", edges, "-o", graph)
    report = shown("convert", edges, "-o", folder, "--parts", 2)
    assert report["output"] == str(folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "part-0.ocg",
        "part-1.ocg",
        "vertices.ocg",
    ]
    found = {}
    for name, more in ((graph, []), (folder, []), (folder, ["--cluster", "local:2"])):
        levels, parents = tmp_path / "levels.npy", tmp_path / "parents.npy"
        outputs = ["--levels", levels, "--parents", parents, "--force", "--validate"]
        summary = shown("bfs", name, "--source", "@largest", *outputs, *more)
        labels = tmp_path / "labels.npy"
        shown("components", name, "--labels", labels, "--force", *more)
        assert np.load(parents).dtype == np.int64
        values = (summary["level_sizes"], summary["reached"], summary["edges_traversed"])
        found[summary["engine"]] = (values, levels.read_bytes(), labels.read_bytes())
    assert list(found) == ["cpu", "here", "local:2"]
    assert len(set(map(str, found.values()))) == 1


def test_tables_of_messages(edges: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    shown("convert", edges, "-o", folder, "--parts", 2)
    done = call("bfs", folder, "--source", "@largest", "--target", 7)
    assert done.returncode == 0
    assert "path to 7" in done.stdout
    level = shown("bfs", folder, "--source", "@largest")["levels"][0]
    assert level["exchange"]["edges_by_part"][0] + level["exchange"]["edges_by_part"][1] >= 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("bfs", "g.ocg", "--source", 1, "--cluster", "local:2"), "a cluster wants shards"),
        (("bfs", "parts", "--source", 1, "--cluster", "nowhere"), "there is no cluster 'nowhere'"),
        (("bfs", "parts", "--source", 1, "--method", "v3.3"), "knows no --method"),
        (("bfs", "parts", "--source", 1, "--vram", "1G"), "knows no --vram"),
        (("bfs", "parts/part-0.ocg", "--source", 1), "is a shard of a graph"),
        (("info", "."), "is a folder without a manifest.json"),
        (("shard", "g.ocg", "-o", "parts", "--parts", 2), "already exists; use --force"),
        (("shard", "g.ocg", "-o", "edges.txt", "--parts", 2), "is a file; name a folder"),
    ],
)
def test_one_line_that_says_what_is_wrong(
    edges: Path, tmp_path: Path, arguments: tuple[object, ...], line: str
) -> None:
    shown("convert", edges, "-o", tmp_path / "g.ocg")
    shown("shard", tmp_path / "g.ocg", "-o", tmp_path / "parts", "--parts", 2)
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert len(said(done)) == 1
    assert line in said(done)[0]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("parts", ["0", "-1", "x", "4097"])
def test_shards_that_are_none(edges: Path, tmp_path: Path, parts: str) -> None:
    done = call("shard", edges, "-o", tmp_path / "parts", f"--parts={parts}")
    assert done.returncode == 2
    assert "--parts" in done.stderr

"""What ``oocbfs convert`` says of columns, of the direction and of inputs without edges."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command_line import call


def shown(*arguments: object) -> dict[str, str]:
    done = call("convert", *arguments)
    assert done.returncode == 0, done
    return dict(line.split("  ", 1) for line in done.stdout.splitlines())


def test_columns_are_reported_once(tmp_path: Path) -> None:
    table, graph = tmp_path / "t.csv", tmp_path / "g.ocg"
    table.write_text("id,src,dst,weight\n7,1,2,0.5\n8,2,3,0.5\n")
    rows = shown(table, table, "-o", graph)
    assert rows["columns"].strip() == "'src' and 'dst' by their names; left out: 'id', 'weight'"
    done = call("convert", table, "-o", graph, "--force", "--json", "--columns", "4,1")
    assert "vertex id '0.5' is not a whole decimal number" in done.stderr
    done = call("convert", table, "-o", graph, "--force", "--json", "--columns", "dst,id")
    assert json.loads(done.stdout)["columns"].startswith("'dst' and 'id' as asked for")
    table.write_text("1,2\n")
    assert "columns" not in shown(table, "-o", graph, "--force")


def test_a_header_that_is_not_understood_is_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a,b\n7,1,2\n")
    done = call("convert", tmp_path / "t.csv", "-o", tmp_path / "g.ocg")
    assert done.returncode == 1
    assert "columns 'id', 'a', 'b': say which two" in done.stderr
    assert "--columns" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "g.ocg").exists()


@pytest.mark.parametrize("wrong", [("--columns", "a"), ("--columns", "0,1"), ("--delimiter", "ab")])
def test_wrong_usage(tmp_path: Path, wrong: tuple[str, str]) -> None:
    (tmp_path / "t.csv").write_text("1,2\n")
    assert call("convert", tmp_path / "t.csv", "-o", tmp_path / "g.ocg", *wrong).returncode == 2


def test_where_the_direction_is_from(tmp_path: Path) -> None:
    snap, graph = tmp_path / "snap.txt", tmp_path / "g.ocg"
    snap.write_text("# Directed graph: x\n# FromNodeId\tToNodeId\n1\t2\n")
    rows = shown(snap, "-o", graph)
    said = "line 1 says '# Directed graph: x'"
    assert rows["direction"].strip() == f"directed, with its transpose: {said}"
    rows = shown(snap, "-o", graph, "--force", "--undirected")
    assert rows["direction"].strip() == "undirected, stored both ways: as asked for"
    other = tmp_path / "other.txt"
    other.write_text("# Undirected graph\n2 3\n")
    done = call("convert", snap, other, "-o", graph, "--force")
    assert done.returncode == 1
    assert f"{other}: is undirected, but {snap} is directed: give --directed" in done.stderr
    assert "as asked for" in shown(snap, other, "-o", graph, "--force", "--directed")["direction"]
    other.write_text("2 3\n")
    rows = shown(other, "-o", graph, "--force")
    assert rows["direction"].strip().endswith(": the input does not say")


def test_exported_graphs_keep_their_direction(tmp_path: Path) -> None:
    for direction in ("--directed", "--undirected"):
        (tmp_path / "a.txt").write_text("1 2\n2 1\n")
        rows = shown(tmp_path / "a.txt", "-o", tmp_path / "a.ocg", direction, "--force")
        back = tmp_path / "back.txt"
        call("export", tmp_path / "a.ocg", "-o", back, "--force")
        again = shown(back, "-o", tmp_path / "b.ocg", "--force")
        kind = rows["direction"].split(":")[0]
        assert again["direction"].split(":")[0] == kind
        assert "line 1 says" in again["direction"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "src,dst\n", "\n\n"])
def test_inputs_without_edges(tmp_path: Path, text: str) -> None:
    empty, graph = tmp_path / "empty", tmp_path / "g.ocg"
    empty.write_text(text)
    done = call("convert", empty, "-o", graph)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        f"{empty}: no edges in it: --allow-empty takes it as it is"
    )
    assert not list(tmp_path.glob("*.ocg*"))
    assert shown(empty, "-o", graph, "--allow-empty")["edges read"].strip() == "0"
    matrix = tmp_path / "vertices.mtx"
    matrix.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 0\n")
    assert shown(matrix, "-o", graph, "--force")["vertices"].strip().startswith("3 ")


def test_which_degree_is_meant(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1 0\n2 0\n3 0\n")
    for option, words in (("--directed", "3 (of in- and out-degrees)"), ("--undirected", "3")):
        graph = tmp_path / "g.ocg"
        made = call("convert", tmp_path / "in.txt", "-o", graph, option, "--force")
        for done in (made, call("info", graph)):
            assert f"max degree {words}\n" in re.sub(" +", " ", done.stdout)

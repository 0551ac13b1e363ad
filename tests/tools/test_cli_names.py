"""Graphs with names on the command line: from text to tables and back."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command_line import call, run, said

EDGES = 'alice,bob\nbob,"carol, c."\n"carol, c.",dave\nx y,"#z"\n007,7\n'
NAMES = ["#z", "007", "7", "alice", "bob", "carol, c.", "dave", "x y"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    (folder / "edges.csv").write_text(EDGES)
    done = call("convert", "edges.csv", "-o", "g.ocg", "--ids", "names", "--json", cwd=folder)
    assert json.loads(done.stdout)["ids"] == "names"
    return folder


def rows(text: str, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(text.splitlines(), delimiter=delimiter))


def test_text_is_names_by_itself_but_not_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(EDGES)
    done = call("convert", "edges.csv", "-o", "g.ocg", "--json", cwd=tmp_path)
    assert (json.loads(done.stdout)["ids"], json.loads(done.stdout)["vertices"]) == ("names", 8)
    with (tmp_path / "edges.csv").open() as file:
        refused = run("convert", "-", "-o", "h.ocg", cwd=tmp_path, stdin=file)
    assert refused.returncode == 1
    assert "--ids names" in said(refused)[-1]


@pytest.mark.parametrize("header", ["user,friend", "follower,followee", "person1,person2"])
@pytest.mark.parametrize("ids", ["auto", "names"])
def test_usual_headers_are_no_vertices(tmp_path: Path, header: str, ids: str) -> None:
    (tmp_path / "edges.csv").write_text(f"{header}\nann,bob\nbob,cy\n")
    done = call("convert", "edges.csv", "-o", "g.ocg", "--ids", ids, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["vertices"] == 3


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_levels_parents_and_labels(folder: Path, suffix: str) -> None:
    delimiter = {"csv": ",", "tsv": "\t"}[suffix]
    levels, parents, labels = (f"{name}.{suffix}" for name in ("levels", "parents", "labels"))
    outputs = ("--levels", levels, "--parents", parents)
    done = call("bfs", "g.ocg", "--source", "alice", *outputs, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = rows((folder / levels).read_text(), delimiter)
    expected = ["-1", "-1", "-1", "0", "1", "2", "3", "-1"]
    assert found == [["id", "level"], *map(list, zip(NAMES, expected, strict=True))]
    found = rows((folder / parents).read_text(), delimiter)
    expected = ["", "", "", "alice", "alice", "bob", "carol, c.", ""]
    assert found == [["id", "parent"], *map(list, zip(NAMES, expected, strict=True))]
    assert call("components", "g.ocg", "--labels", labels, cwd=folder).returncode == 0
    found = rows((folder / labels).read_text(), delimiter)
    expected = ["#z", "007", "007", "alice", "alice", "alice", "alice", "#z"]
    assert found == [["id", "component"], *map(list, zip(NAMES, expected, strict=True))]


def test_arrays_are_aligned_with_sorted_names(folder: Path) -> None:
    outputs = ("--levels", "levels.npy", "--parents", "parents.npy")
    call("bfs", "g.ocg", "--source", "bob", *outputs, cwd=folder)
    assert np.load(folder / "levels.npy").tolist() == [-1, -1, -1, 1, 0, 1, 2, -1]
    assert np.load(folder / "parents.npy").tolist() == [-1, -1, -1, 4, 4, 4, 5, -1]


@pytest.mark.parametrize(
    ("source", "sources"),
    [
        ("alice", "alice"),
        ("carol, c.", "carol, c."),
        ("alice,7", ["alice", "7"]),
        ('"carol, c.", x y', ["carol, c.", "x y"]),
        ("007", "007"),
        ("@largest", "alice"),
    ],
)
def test_sources(folder: Path, source: str, sources: object) -> None:
    done = call("bfs", "g.ocg", "--source", source, "--json", cwd=folder)
    assert json.loads(done.stdout)["source"] == sources


def test_a_vertex_that_is_called_like_the_keyword(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("@largest,bob\nalice,carol\ncarol,dave\n")
    call("convert", "edges.csv", "-o", "g.ocg", "--ids", "names", cwd=tmp_path)
    word = call("bfs", "g.ocg", "--source", "@largest", "--json", cwd=tmp_path)
    assert json.loads(word.stdout)["source"] == "alice"
    assert "@largest is the largest component; its vertex is '\"@largest\"'" in said(word)
    for source, found in (('"@largest"', "@largest"), ('"@largest",dave', ["@largest", "dave"])):
        name = call("bfs", "g.ocg", "--source", source, "--json", cwd=tmp_path)
        assert json.loads(name.stdout)["source"] == found
        assert not [line for line in said(name) if "@largest" in line]
    target = call("bfs", "g.ocg", "--source", "bob", "--target", "@largest", "--json", cwd=tmp_path)
    assert json.loads(target.stdout)["path"] == ["bob", "@largest"]


def test_paths(folder: Path) -> None:
    target = ("--source", "alice", "--target", "carol, c.")
    done = call("bfs", "g.ocg", *target, "--json", cwd=folder)
    assert json.loads(done.stdout)["path"] == ["alice", "bob", "carol, c."]
    assert "2 steps: alice → bob → carol, c." in call("bfs", "g.ocg", *target, cwd=folder).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "nobody"], "has no vertex named 'nobody'; its 8 names lie between '#z' and"),
        (["--source", "alice,nobody"], "has no vertex named 'nobody'"),
        (["--source", "alice", "--target", "nobody"], "has no vertex named 'nobody'"),
        (["--source", "alice", "--target", "bob,dave"], "--target bob,dave: name one vertex"),
    ],
)
def test_unknown_names(folder: Path, arguments: list[str], message: str) -> None:
    done = call("bfs", "g.ocg", *arguments, cwd=folder)
    assert done.returncode == 1
    assert message in said(done)[-1]


def test_names_where_ids_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("1 2\n")
    call("convert", "edges.txt", "-o", "g.ocg", cwd=tmp_path)
    done = call("bfs", "g.ocg", "--source", "alice", cwd=tmp_path)
    assert done.returncode == 1
    assert "g.ocg: 'alice' is not an id: its vertices have whole numbers" in said(done)[-1]


def test_batches(folder: Path, tmp_path: Path) -> None:
    graph = folder / "g.ocg"
    (tmp_path / "sources").write_text('# some\nalice\n"#z"\ncarol, c.\n')
    batch = ("batch", graph, "--sources", "sources", "-o", "out", "--emit", "levels")
    assert call(*batch, cwd=tmp_path).returncode == 0
    table = rows((tmp_path / "out" / "summary.csv").read_text())
    assert [row[:2] for row in table[1:]] == [["alice", "4"], ["#z", "2"], ["carol, c.", "4"]]
    files = sorted(path.name for path in (tmp_path / "out" / "levels").iterdir())
    assert files == ["000000-alice.npy", "000001-%23z.npy", "000002-carol%2C%20c..npy"]
    (tmp_path / "pairs").write_text('source,target\nalice,dave\n"carol, c.",#z\n')
    pairs = ("--emit", "pairs", "pairs", "-o")
    assert call("batch", graph, *pairs, "pairs out", cwd=tmp_path).returncode == 0
    table = rows((tmp_path / "pairs out" / "pairs.csv").read_text())
    assert table[1:] == [["alice", "dave", "3"], ["carol, c.", "#z", "-1"]]
    assert call("batch", graph, "--random", "3", "-o", "random", cwd=tmp_path).returncode == 0
    table = rows((tmp_path / "random" / "summary.csv").read_text())
    assert {row[0] for row in table[1:]} <= set(NAMES)
    (tmp_path / "bad").write_text("alice\nnobody\n")
    done = call("batch", graph, "--sources", "bad", "-o", "never", cwd=tmp_path)
    assert "has no vertex named 'nobody'" in said(done)[-1]
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("name", ["edges.txt", "edges.csv", "edges.tsv.gz", "edges.csv.zst"])
def test_export_and_convert_again(folder: Path, tmp_path: Path, name: str) -> None:
    assert call("export", folder / "g.ocg", "-o", name, cwd=tmp_path).returncode == 0
    assert call("convert", name, "-o", "again.ocg", "--ids", "names", cwd=tmp_path).returncode == 0
    original = json.loads(call("info", folder / "g.ocg", "--json").stdout)
    again = json.loads(call("info", tmp_path / "again.ocg", "--json").stdout)
    del original["path"], again["path"]
    assert again == original
    assert (tmp_path / "again.ocg").read_bytes() == (folder / "g.ocg").read_bytes()


@pytest.mark.parametrize("name", ["edges.u64", "edges.npy"])
def test_numbers_cannot_hold_names(folder: Path, tmp_path: Path, name: str) -> None:
    done = call("export", folder / "g.ocg", "-o", name, cwd=tmp_path)
    assert done.returncode == 1
    assert "the vertices have names" in said(done)[-1]
    assert not list(tmp_path.iterdir())


def test_what_info_says(folder: Path) -> None:
    shown = call("info", "g.ocg", cwd=folder).stdout
    assert "8 (8 in the input; ids by name)" in shown
    assert "version 2" in shown
    assert "name_starts" in shown
    assert "sound" in call("verify", "g.ocg", cwd=folder).stdout


def test_a_report(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert call("report", folder / "g.ocg", "-o", page, "--sources", "3").returncode == 0
    text = page.read_text()
    assert "--source alice" in text
    assert "<td>alice</td>" in text or ">alice<" in text


def test_names_from_a_pipe(tmp_path: Path) -> None:
    done = run("convert", "-", "-o", "g.ocg", "--ids", "names", "--json", input=EDGES, cwd=tmp_path)
    assert json.loads(done.stdout)["vertices"] == len(NAMES)

"""``oocbfs batch``: outputs, job files, refusals, and jobs that are killed and resumed."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from oocbfs.search.graph import open_file
from tests.support.command_line import batch, call, run, said, tree


def test_summary(graph: Path, tmp_path: Path) -> None:
    batch(graph, "--random", 70, "--seed", 3, "-o", tmp_path / "a")
    batch(graph, "--random", 70, "--seed", 3, "-o", tmp_path / "b", "--table", "jsonl")
    with (tmp_path / "a" / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(x) for x in (tmp_path / "b" / "summary.jsonl").read_text().splitlines()]
    assert len(rows) == len(lines) == len({row["source"] for row in rows}) == 70
    with open_file(graph) as opened:
        for row, line in zip(rows, lines, strict=True):
            single = opened.bfs(int(row["source"]))
            assert line["level_sizes"] == single.level_sizes.tolist()
            assert [int(x) for x in row["level_sizes"].split()] == line["level_sizes"]
            assert int(row["reached"]) == line["reached"] == single.reached
            assert int(row["depth"]) == int(row["eccentricity"]) == single.depth
            assert float(row["closeness"]) == line["closeness"]
            assert float(row["harmonic"]) == line["harmonic"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "manifest.json",
        "summary.csv",
    ]


def test_levels_of_the_hubs(graph: Path, tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="Zarr arrays need zarr")
    import zarr

    batch(graph, "--all-hubs", 66, "-o", tmp_path / "npy", "--emit", "levels")
    batch(
        graph, "--all-hubs", 66, "-o", tmp_path / "z", "--emit", "levels", "--level-files", "zarr"
    )
    array = zarr.open_array(tmp_path / "z" / "levels.zarr", mode="r")
    files = sorted((tmp_path / "npy" / "levels").iterdir())
    assert array.shape[0] == len(files) == 66
    with open_file(graph) as opened:
        degrees = [opened.degree(int(file.stem.split("-")[1])) for file in files]
        assert degrees == sorted(opened._stored.rows.degrees.tolist(), reverse=True)[:66]
        for number, file in enumerate(files):
            expected = opened.bfs(int(file.stem.split("-")[1])).levels
            levels = np.load(file)
            assert levels.dtype == np.int8
            np.testing.assert_array_equal(levels, expected)
            np.testing.assert_array_equal(array[number], expected)


def test_sources_and_pairs(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "sources.txt").write_text("# mine\n5\n\n7\n5\n")
    batch(graph, "--sources", tmp_path / "sources.txt", "-o", tmp_path / "s")
    table = (tmp_path / "s" / "summary.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table] == ["source", "5", "7", "5"]
    rng = np.random.default_rng(2)
    pairs = rng.integers(0, 4096, (300, 2)).tolist()
    text = "from,to\n" + "".join(f"{u},{v}\n" for u, v in pairs)
    (tmp_path / "pairs.csv").write_text(text)
    batch(graph, "--emit", "pairs", tmp_path / "pairs.csv", "-o", tmp_path / "p")
    with open_file(graph) as opened:
        expected = [f"{u},{v},{opened.bfs(u).level_of(v)}" for u, v in pairs]
    found = (tmp_path / "p" / "pairs.csv").read_text().splitlines()
    assert found == ["source,target,distance", *expected]


def test_more_sources_than_there_are(tmp_path: Path) -> None:
    edges = tmp_path / "few.txt"
    edges.write_text("0 1\n1 2\n")
    call("convert", edges, "-o", tmp_path / "few.ocg")
    done = call("batch", tmp_path / "few.ocg", "--random", 9, "-o", tmp_path / "out")
    assert f"{tmp_path / 'few.ocg'}: takes all, 3 vertices with edges" in done.stderr
    assert re.search(r"^sources +3\b", done.stdout, re.MULTILINE)


def test_what_was_chosen_is_said(graph: Path, tmp_path: Path) -> None:
    shown = call("batch", graph, "--random", 70, "-o", tmp_path / "a").stdout
    assert "64 64 at a time, 6 one per core" in shown
    shown = call("batch", graph, "--random", 3, "-o", tmp_path / "b", "--json").stdout
    report = json.loads(shown)
    assert report["sources_by_strategy"] == {"one-per-core": 3}
    assert report["reason"] == "3 sources share too little"


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
def test_engines_write_the_same(graph: Path, tmp_path: Path) -> None:
    for engine in ("cpu", "emulator"):
        batch(
            *(graph, "--random", 70, "--emit", "levels"),
            *("--engine", engine, "-o", tmp_path / engine),
        )
    assert tree(tmp_path / "cpu") == tree(tmp_path / "emulator")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--random", "3", "-o", "x", "--engine", "emulator", "--memory", "1G"],
            "no memory budget",
        ),
        (["--sources", "none.txt", "-o", "x"], "cannot be read"),
        (["--sources", "bad.txt", "-o", "x"], "bad.txt:2: expected one id"),
        (["--sources", "unknown.txt", "-o", "x"], "has no vertex 99999999"),
        (["--emit", "pairs", "bad.txt", "-o", "x"], "expected two ids"),
        (["--random", "3", "-o", "none/x"], "there is no folder"),
        (["--random", "3", "-o", "bad.txt"], "is not a folder"),
        (["--random", "3", "-o", "full"], "is not empty"),
        (["--random", "3", "-o", "x", "--memory", "1K"], "a search needs"),
    ],
)
def test_refusals_are_one_line(
    graph: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "bad.txt").write_text("1\nx\n")
    (tmp_path / "unknown.txt").write_text("99999999\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    before = tree(tmp_path)
    done = call("batch", graph, *arguments, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert len(said(done)) == 1, done.stderr
    assert message in said(done)[0]
    assert tree(tmp_path) == before
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "x"],
        ["--random", "3"],
        ["--random", "3", "--all-hubs", "3", "-o", "x"],
        ["--random", "0", "-o", "x"],
        ["--random", "3", "-o", "x", "--emit", "pairs"],
        ["--random", "3", "-o", "x", "--emit", "pairs", "p.csv"],
        ["--random", "3", "-o", "x", "--emit", "parents"],
    ],
)
def test_usage(graph: Path, arguments: list[str]) -> None:
    assert call("batch", graph, *arguments).returncode == 2


def job_file(folder: Path, *jobs: str) -> Path:
    path = folder / "jobs.toml"
    path.write_text("\n".join(f"[[job]]\n{job}" for job in jobs))
    return path


def test_job_file(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("1,2\n")
    path = job_file(
        tmp_path,
        f'graph = "{graph}"\nrandom = 9\nseed = 4\noutput = "a"\ntable = "jsonl"',
        f'graph = "{graph}"\nall-hubs = 2\noutput = "b"\nemit = "levels"\nthreads = 1',
        f'graph = "{graph}"\npairs = "pairs.csv"\noutput = "c"\nemit = "pairs"',
    )
    done = run("batch", path, "--json")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["sources"] for line in done.stdout.splitlines()] == [9, 2, 1]
    assert len((tmp_path / "a" / "summary.jsonl").read_text().splitlines()) == 9
    assert len(list((tmp_path / "b" / "levels").iterdir())) == 2
    assert (tmp_path / "c" / "pairs.csv").exists()


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ('output = "a"', "job 2: graph is missing"),
        ('graph = "GRAPH"\nrandom = 3', "job 2: output is missing"),
        ('graph = "GRAPH"\nrandom = 3\noutput = "a"\nsize = 3', "job 2: unknown name 'size'"),
        ('graph = "GRAPH"\nrandom = "3"\noutput = "a"', "job 2: random cannot be '3'"),
        ('graph = "GRAPH"\nrandom = true\noutput = "a"', "job 2: random cannot be True"),
        ('graph = "GRAPH"\nrandom = 3\noutput = "a"\nemit = "all"', "job 2: emit cannot be 'all'"),
        ('graph = "GRAPH"\nrandom = 3\noutput = "first"', "job 2 writes to the folder of another"),
        ('graph = "GRAPH"\noutput = "a"', "takes one of sources"),
        ('graph = "GRAPH"\nrandom = 3\nall-hubs = 3\noutput = "a"', "takes one of sources"),
        ('graph = "none.ocg"\nrandom = 3\noutput = "a"', "none.ocg: cannot be opened"),
        ('graph = "GRAPH"\nsources = "none"\noutput = "a"', "cannot be read"),
        ("graph = ", "cannot be read as TOML"),
    ],
)
def test_a_bad_job_stops_all_before_they_start(
    graph: Path, tmp_path: Path, job: str, message: str
) -> None:
    good = f'graph = "{graph}"\nrandom = 3\noutput = "first"'
    path = job_file(tmp_path, good, job.replace("GRAPH", str(graph)))
    done = call("batch", path)
    assert done.returncode == 1
    assert len(said(done)) == 1, done.stderr
    assert message in said(done)[0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["jobs.toml"]


def test_a_failed_job_does_not_stop_the_others(graph: Path, tmp_path: Path) -> None:
    """The second graph's rows are damaged, which only its search notices."""
    from oocbfs.formats.container.layout import Kind
    from tests.support.crafting import rewrite

    damaged = tmp_path / "damaged.ocg"
    damaged.write_bytes(graph.read_bytes())
    for place in range(0, 2000, 3):
        rewrite(damaged, Kind.TAILS, place, 0xFF)
    path = job_file(
        tmp_path,
        'graph = "damaged.ocg"\nrandom = 70\noutput = "a"',
        f'graph = "{graph}"\nrandom = 70\noutput = "b"',
    )
    done = call("batch", path)
    assert done.returncode == 1
    assert "a: failed:" in said(done)[0]
    assert said(done)[-1] == "oocbfs: 1 of 2 jobs failed"
    assert (tmp_path / "b" / "summary.csv").exists()
    assert not (tmp_path / "a" / "summary.csv").exists()

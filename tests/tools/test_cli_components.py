"""``oocbfs components``, and sources from the largest, as a person or a script uses them."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from tests.support.command_line import call, run, said

HUGE = 2**64 - 2


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A star around 30, a path 10 – 40 – 20 and a pair of huge ids."""
    path = tmp_path_factory.mktemp("cli") / "g.ocg"
    edges = [(30, v) for v in range(31, 36)] + [(10, 40), (40, 20), (HUGE, HUGE - 1)]
    oocbfs.convert(np.array(edges, np.uint64), path, ids="compact", order="degree")
    return path


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "empty.ocg"
    oocbfs.convert(np.empty((0, 2), np.int64), path)
    return path


def test_json(graph: Path) -> None:
    done = run("components", graph, "--json", "--threads", 1)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = {
        "vertices": 11,
        "edges": 8,
        "arcs": 16,
        "components": 3,
        "engine": "cpu",
        "threads": 1,
    }
    assert expected.items() <= found.items()
    assert found["largest_component"] == {"label": 30, "size": 6}
    assert found["sizes"] == [[2, 1], [3, 1], [6, 1]]
    assert found["tail_bytes_decoded"] == sum(step["tail_bytes"] for step in found["steps"])


def test_tables(graph: Path) -> None:
    done = call("components", graph)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[1:4] == [
        ["30", "6", "54.5%"],
        ["10", "3", "27.3%"],
        [str(HUGE - 1), "2", "18.2%"],
    ]
    assert ["3", "…", "4", "1", "3"] in rows
    assert ["5", "…", "8", "1", "6"] in rows
    assert "3 in 11 vertices" in done.stdout


def test_many_components_fit_on_a_screen(tmp_path: Path) -> None:
    edges = np.arange(2000).reshape(-1, 2)
    oocbfs.convert(edges, tmp_path / "g.ocg")
    shown = call("components", tmp_path / "g.ocg").stdout
    assert "990 more components" in shown
    assert len(shown.splitlines()) < 25


def test_largest(graph: Path, empty: Path) -> None:
    shown = call("components", graph, "--largest").stdout
    assert [line.split()[0] for line in shown.splitlines()] == ["smallest", "vertices", "edges"]
    assert "6 of 11 (54.5%)" in shown
    assert "5 of 8 (62.5%)" in shown
    done = call("components", empty, "--largest")
    assert (done.returncode, done.stdout) == (0, "the graph has no vertices\n")
    assert json.loads(call("components", empty, "--json").stdout)["largest_component"] is None


def test_label_files(graph: Path, tmp_path: Path) -> None:
    for suffix in ("npy", "csv", "tsv"):
        done = call("components", graph, "--labels", tmp_path / f"l.{suffix}")
        assert done.returncode == 0, done.stderr
    labels = [10, 10, 30, 30, 30, 30, 30, 30, 10, HUGE - 1, HUGE - 1]
    assert np.load(tmp_path / "l.npy").tolist() == labels
    lines = (tmp_path / "l.csv").read_text().splitlines()
    assert lines[:3] == ["id,component", "10,10", "20,10"]
    assert (tmp_path / "l.tsv").read_text().splitlines()[-1] == f"{HUGE}\t{HUGE - 1}"
    again = call("components", graph, "--labels", tmp_path / "l.npy")
    assert again.returncode == 1
    assert "--force" in again.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
def test_device_memory_is_heard(graph: Path) -> None:
    done = call("components", graph, "--engine", "emulator", "--vram", "1K")
    assert done.returncode == 1
    assert "too little for this graph" in done.stderr
    done = call("components", graph, "--engine", "emulator", "--resident-tails", "200%")
    assert done.returncode == 2
    assert "cannot read '200%' as a share" in done.stderr


@pytest.mark.parametrize("engine", ["disk", "emulator"])
def test_engines(graph: Path, engine: str) -> None:
    if engine == "emulator" and shutil.which("g++") is None:
        pytest.skip("the emulator needs a C++ compiler")
    found = json.loads(call("components", graph, "--engine", engine, "--json").stdout)
    assert found["engine"] == engine
    assert found["sizes"] == [[2, 1], [3, 1], [6, 1]]
    assert found["slow_bytes"] == sum(found["slow_bytes_by_tier"].values()) > 0
    shown = call("components", graph, "--engine", engine).stdout
    assert f"{found['slow_bytes']:,} bytes" in shown


def test_plot(graph: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    for suffix in ("svg", "png"):
        plot = tmp_path / f"sizes.{suffix}"
        done = call("components", graph, "--plot", plot)
        assert done.returncode == 0, done.stderr
        assert plot.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["components", "GRAPH", "--labels", "x.txt"], "name it .npy, .csv, .tsv"),
        (["components", "GRAPH", "--labels", "none/x.npy"], "no folder"),
        (["components", "GRAPH", "--plot", "x.gif"], ".svg"),
        (["components", "none.ocg"], "cannot be opened"),
        (["components", "GRAPH", "--memory", "1M"], "finding components needs"),
        (
            ["components", "GRAPH", "--engine", "cuda"],
            "the cuda engine needs|no usable CUDA driver",
        ),
        (["bfs", "EMPTY", "--source", "@largest"], "has no vertex to start from"),
        (["batch", "EMPTY", "--random", "3", "--from", "largest", "-o", "b"], "has no vertex"),
        (["batch", "GRAPH", "--all-hubs", "3", "--from", "largest", "-o", "b"], "only random"),
    ],
)
def test_refusals_are_one_line(
    graph: Path, empty: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    paths = {"GRAPH": graph, "EMPTY": empty}
    done = call(*(paths.get(argument, argument) for argument in arguments), cwd=tmp_path)
    assert done.returncode == 1
    (line,) = said(done)
    assert any(words in line for words in message.split("|"))
    assert not list(tmp_path.iterdir())


def test_search_from_the_largest(graph: Path) -> None:
    found = json.loads(call("bfs", graph, "--source", "@largest", "--json").stdout)
    assert (found["source"], found["reached"]) == (30, 6)


def test_batch_from_the_largest(graph: Path, tmp_path: Path) -> None:
    arguments = ("batch", graph, "--random", 9, "--seed", 2, "-o", tmp_path / "out")
    done = call(*arguments, "--from", "largest")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "summary.csv").open() as file:
        assert sorted(int(row["source"]) for row in csv.DictReader(file)) == list(range(30, 36))
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["from"] == "largest"
    assert "was begun with another from" in call(*arguments, "--resume").stderr
    jobs = tmp_path / "jobs.toml"
    jobs.write_text(
        f'[[job]]\ngraph = "{graph}"\nrandom = 9\nseed = 2\nfrom = "largest"\noutput = "again"\n'
    )
    assert call("batch", jobs).returncode == 0
    summaries = [tmp_path / name / "summary.csv" for name in ("out", "again")]
    assert summaries[0].read_bytes() == summaries[1].read_bytes()


def test_sources_of_a_directed_graph_lead_somewhere(tmp_path: Path) -> None:
    edges = np.array([[1, 2], [3, 2], [4, 2], [7, 8]])
    oocbfs.convert(edges, tmp_path / "g.ocg", directed=True)
    call("batch", tmp_path / "g.ocg", "--random", 9, "--from", "largest", "-o", tmp_path / "out")
    with (tmp_path / "out" / "summary.csv").open() as file:
        assert sorted(int(row["source"]) for row in csv.DictReader(file)) == [1, 3, 4]

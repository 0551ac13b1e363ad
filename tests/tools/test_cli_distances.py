"""``oocbfs distances``: what it prints and writes, and what it refuses."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import oocbfs
from oocbfs.generate import generators
from tests.support.command_line import call


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    oocbfs.convert(generators.kron(10), tmp_path / "g.ocg")
    return tmp_path / "g.ocg"


def ask(*words: object) -> dict[str, Any]:
    done = call("distances", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_figure_says_how_certain_it_is(graph: Path) -> None:
    done = call("distances", graph, "--top", 2)
    assert done.returncode == 0, done.stderr
    rows = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    for name in ("diameter", "radius", "top 1"):
        assert rows[name].endswith(", exact")
    for name in ("average distance", "harmonic mean", "effective diameter", "median distance"):
        assert re.search(r", sampled, (± \S+|\S+ to \S+) at 95 %", rows[name])
    exact = call("distances", graph, "--samples", "all").stdout
    assert "sampled" not in exact
    assert "average distance" in exact


def test_error_and_confidence_choose_the_sources(graph: Path) -> None:
    few = ask(graph, "--error", 0.2, "--confidence", 0.5)["distribution"]
    more = ask(graph, "--error", 0.2)["distribution"]
    assert few["sources"] < more["sources"]
    assert few["error"] <= 0.2 >= more["error"]
    assert (few["confidence"], more["confidence"]) == (0.5, 0.95)


def test_what_is_written(graph: Path, tmp_path: Path) -> None:
    with oocbfs.open(graph) as opened:
        eccentricities = opened.eccentricities().tolist()
        harmonic = opened.harmonic(opened.ids(), component="all").tolist()
        ids = [
            v for v, value in zip(opened.ids().tolist(), eccentricities, strict=True) if value >= 0
        ]
    out = tmp_path / "out.jsonl"
    ask(graph, "--exact", "eccentricities,closeness", "-o", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ids
    assert [row["eccentricity"] for row in rows] == [e for e in eccentricities if e >= 0]
    of_ids = dict(enumerate(harmonic))
    assert [row["harmonic"] for row in rows] == pytest.approx([of_ids[v] for v in ids])
    found = ask(graph, "-o", tmp_path / "d.csv", "--plot", tmp_path / "d.svg")
    lines = (tmp_path / "d.csv").read_text().splitlines()
    assert lines[0] == "distance,pairs,share_within,low,high"
    assert len(lines) == len(found["distribution"]["shares_within"])
    assert "<svg" in (tmp_path / "d.svg").read_text()
    assert not list(tmp_path.glob("*.state"))


def test_estimated_closeness(graph: Path, tmp_path: Path) -> None:
    done = call("distances", graph, "--closeness", "--samples", 40, "-o", tmp_path / "c.jsonl")
    assert done.returncode == 0, done.stderr
    assert "closeness of all" in done.stdout
    assert " at 95 % for all at once" in done.stdout
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    with oocbfs.open(graph) as opened:
        ids = [row["id"] for row in rows]
        exact = {
            "closeness": opened.closeness(ids, component="largest"),
            "harmonic": opened.harmonic(ids, component="largest"),
        }
    for name, values in exact.items():
        for row, value in zip(rows, values, strict=True):
            assert row[f"{name}_low"] <= value <= row[f"{name}_high"]
    refused = call("distances", graph, "--closeness", "--exact", "closeness")
    assert refused.returncode == 1
    assert "leave one out" in refused.stderr


def test_components(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("0,1\n1,2\n2,0\n2,3\n3,4\n4,5\n5,4\n")
    oocbfs.convert(tmp_path / "e.csv", tmp_path / "d.ocg", directed=True)
    assert ask(tmp_path / "d.ocg")["scope_vertices"] == 3
    assert ask(tmp_path / "d.ocg", "--component", 5)["scope_vertices"] == 2
    everything = ask(tmp_path / "d.ocg", "--component", "all")
    assert (everything["diameter"], everything["scope_vertices"]) == (5, 6)
    assert everything["distribution"]["reachable"]["value"] == pytest.approx(19 / 30)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--exact", "girth"), 1, "girth is not found exactly"),
        (("--samples", "0"), 2, "--samples"),
        (("--samples", "5", "--error", "0.1"), 2, "not allowed with"),
        (("--error", "1"), 2, "not between 0 and 1"),
        (("--component", "4096"), 1, "has no vertex 4096"),
        (("--component", "1,2"), 1, "name one vertex"),
        (("-o", "out.npy"), 1, "name it .csv"),
        (("-o", "-"), 1, "name a file"),
    ],
)
def test_refusals(graph: Path, words: tuple[str, ...], code: int, message: str) -> None:
    done = call("distances", graph, *words)
    assert done.returncode == code
    assert message in done.stderr
    assert sorted(path.name for path in graph.parent.iterdir()) == ["g.ocg"]


def test_no_vertices(tmp_path: Path) -> None:
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n0 0 0\n")
    oocbfs.convert(tmp_path / "m.mtx", tmp_path / "e.ocg", allow_empty=True)
    done = call("distances", tmp_path / "e.ocg")
    assert done.returncode == 1
    assert "has no vertex, and so no distances" in done.stderr

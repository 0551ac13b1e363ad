"""``-q``: errors, and what was asked for by name."""

import json
from pathlib import Path

import pytest

import oocbfs
from oocbfs.generate import generators
from tests.support.command_line import call


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    oocbfs.convert(generators.kron(6), tmp_path / "g.ocg")
    return tmp_path / "g.ocg"


@pytest.mark.parametrize(
    "command",
    [
        "convert edges.txt -o e.ocg",
        "generate kron --scale 4 -o k.ocg",
        "generate kron --scale 4 -o k.txt",
        "shard g.ocg -o parts --parts 2",
        "info g.ocg",
        "verify g.ocg",
        "export g.ocg -o edges.csv",
        "bfs g.ocg --source 1 --engine cpu",
        "batch g.ocg --random 2 -o batch --engine cpu",
        "components g.ocg --engine cpu",
        "report g.ocg -o g.html --sources 1",
        "graph500 --scale 4 --roots 1",
        "plan g.ocg --samples 0",
        "doctor",
    ],
)
def test_quiet_prints_errors_only(graph: Path, command: str) -> None:
    (graph.parent / "edges.txt").write_text("1 2\n")
    done = call(*command.split(), "-q", cwd=graph.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = call(*command.replace("g.ocg", "no.ocg").split(), "-q", "--nonsense", cwd=graph.parent)
    assert done.returncode == 2
    assert "--nonsense" in done.stderr


def test_quiet_prints_what_was_asked_for_by_name(graph: Path) -> None:
    assert json.loads(call("info", graph, "--json", "-q").stdout)["vertices"] == 64
    assert call("export", graph, "-o", "-", "-q").stdout
    assert call("bfs", graph, "--source", 1, "--levels", "-", "-q").stdout.startswith("id,level")

"""``oocbfs bfs --method`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oocbfs
from oocbfs.generate import generators
from oocbfs.methods import METHODS
from tests.support.command_line import call


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("methods") / "g.ocg"
    oocbfs.convert(generators.kron(8, 8, seed=2), path)
    return path


def test_the_list_names_every_method_and_its_paper() -> None:
    done = call("bfs", "--method", "list")
    assert done.returncode == 0
    for method in METHODS.values():
        assert f"{method.name:<16} {method.line}" in done.stdout
        assert method.paper in done.stdout
    listed = json.loads(call("bfs", "--method", "list", "--json").stdout)["methods"]
    assert [one["name"] for one in listed] == list(METHODS)


def test_a_method_runs_and_counts(graph: Path) -> None:
    arguments = ("bfs", str(graph), "--source", "@largest", "--engine", "emulator", "--json")
    found = json.loads(call(*arguments, "--method", "two-phase:gather=scan").stdout)
    ours = json.loads(call(*arguments).stdout)
    assert found["method"] == "two-phase:gather=scan"
    assert found["level_sizes"] == ours["level_sizes"]
    assert found["counts"]["edge_queue_writes"] == found["counts"]["edges_examined"]
    assert len(found["levels"]) == len(found["level_sizes"])
    assert found["levels"][0]["counts"]["launches"] == 2


def test_the_method_of_lists_runs_on_the_cpu(graph: Path) -> None:
    done = call("bfs", str(graph), "--source", "@largest", "--engine", "cpu", "--method", "list")
    assert done.returncode == 0
    assert "reached" in done.stdout


@pytest.mark.parametrize(
    ("method", "words"),
    [("v9", "there is no method 'v9'"), ("v3.3:block=7", "block of method v3.3 cannot be '7'")],
)
def test_wrong_methods_are_one_line(graph: Path, method: str, words: str) -> None:
    done = call("bfs", str(graph), "--source", "1", "--engine", "emulator", "--method", method)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_graph_and_a_source_are_still_needed() -> None:
    done = call("bfs", "--method", "v1")
    assert done.returncode == 2
    assert "the following arguments are required: GRAPH.ocg, --source" in done.stderr

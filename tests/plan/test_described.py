"""Plans for graphs that are not there keep what conversions and searches of such graphs do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

import oocbfs
from oocbfs.errors import QueryError
from oocbfs.graph.stored import StoredGraph
from oocbfs.plan.described import Described, plan_described
from tests.support.command_line import call, run, said


def planned(*arguments: object) -> dict[str, Any]:
    done = run("plan", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("directed", [False, True])
def test_bounds_hold_for_such_a_graph(tmp_path: Path, directed: bool) -> None:
    text, graph = tmp_path / "edges.txt", tmp_path / "g.ocg"
    size = ("--vertices", 60_000, "--edges", 900_000)
    assert call("generate", "uniform", *size, "-o", text).returncode == 0
    report = oocbfs.convert(text, graph, memory="4G", directed=directed, codec="raw")
    kind = ["--directed"] if directed else []
    found = planned(*size, "--memory", "1G", *kind)
    assert found["arcs"] == 900_000 * (1 if directed else 2)
    assert os.path.getsize(graph) <= found["file_at_most_bytes"]
    assert 0.5 < os.path.getsize(graph) / found["file_bytes"] < 2
    assert report.disk_at_most_bytes is not None
    assert report.spilled_bytes + report.file_bytes <= found["convert"]["disk_at_most_bytes"]
    assert found["convert"]["needed_bytes"] < 1 << 30
    with oocbfs.open(graph) as opened:
        held_bytes = cast("StoredGraph", opened._stored).sizes.fast_bytes
    assert held_bytes == pytest.approx(Described(60_000, 900_000, directed).fast_bytes, rel=0.01)


def test_a_search_is_decided_as_one_of_a_graph(tmp_path: Path) -> None:
    """By the same function: the graph's own plan differs by what its file takes."""
    graph = tmp_path / "g.ocg"
    size = ("--vertices", 2_000_000, "--edges", 10_000_000)
    assert call("generate", "uniform", *size, "-o", graph, "--codec", "raw").returncode == 0
    for memory, engine in (("4G", "cpu"), ("230M", "disk")):
        own = planned(graph, "--memory", memory, "--samples", 0)["cpu"]
        found = planned(*size, "--memory", memory)["search"]
        assert own["engine"] == found["engine"] == engine
        assert abs(found["needed_bytes"] / own["needed_bytes"] - 1) < 0.15


def test_numbers_may_have_exponents() -> None:
    found = planned("--vertices", "3.5e9", "--edges", "128e9", "--memory", "64G", "--directed")
    assert (found["vertices"], found["edges"]) == (3_500_000_000, 128_000_000_000)
    assert found["search"]["engine"] is None
    assert found["convert"]["needed_bytes"] > 24 * 3_500_000_000
    shards = found["shards"]
    assert shards["held_bytes"] <= 64 << 30
    assert shards["held_bytes"] == sum(shards["worker_bytes"].values())
    text = call("plan", "--vertices", "3.5e9", "--edges", "128e9", "--memory", "64G").stdout
    assert "cannot within 64.0 GB: needs" in text
    assert "Assumed:" in text
    both = planned("--vertices", "1e6", "--edges", "5e6", "--workers", 4)
    assert both["arcs"] == 10_000_000


def test_machines_without_room_are_said() -> None:
    found = plan_described(
        Described(4_000_000_000, 10**12, False), budget_bytes=1 << 30, bandwidth=1e9, threads=2
    )
    assert found["shards"] is None
    text = call("plan", "--vertices", "4e9", "--edges", "1e12", "--memory", "1G").stdout
    assert "no number of machines of 1.0 GB has room" in text


@pytest.mark.parametrize(
    ("vertices", "edges", "words"),
    [
        (2**32 - 1, 5, "4,294,967,295 vertices are more than the 4,294,967,294"),
        (5, 11, "11 edges are more than the 10 that 5 vertices have"),
        (0, 1, "1 edges are more than the 0"),
    ],
)
def test_what_no_file_holds_is_refused(vertices: int, edges: int, words: str) -> None:
    done = call("plan", "--vertices", vertices, "--edges", edges)
    assert done.returncode == 1
    assert words in said(done)[-1]
    with pytest.raises(QueryError):
        plan_described(
            Described(vertices, edges, False), budget_bytes=1 << 30, bandwidth=1e9, threads=1
        )

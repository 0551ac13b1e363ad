"""The report: one page that needs nothing else, whose figures are those of the other verbs."""

from __future__ import annotations

import json
import re
import shlex
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import oocbfs
from oocbfs.generate import generators
from oocbfs.report.page import leaves_something_outside
from tests.support.command_line import call
from tests.support.memory_limit import run_limited
from tests.support.shared import SharedGraphs

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Collects tags and text, and refuses tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def report(folder: Path, name: str, *arguments: object) -> tuple[str, dict[str, Any]]:
    done = call("report", name, "-o", "r.html", "--json", "--force", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return (folder / "r.html").read_text(), json.loads(done.stdout)


@pytest.mark.parametrize("directed", [False, True])
def test_figures_are_those_of_the_graph(tmp_path: Path, directed: bool) -> None:
    name = "a b&<c>.ocg"
    oocbfs.convert(generators.kron(9), tmp_path / name, directed=directed)
    html, found = report(tmp_path, name, "--sources", 3)
    page = Page(html)
    words = " ".join(page.text)
    with oocbfs.open(tmp_path / name) as graph:
        assert f"{graph.num_vertices:,} vertices" in words
        degrees = [graph.degree(v) for v in graph.ids().tolist()]
        name_of = "out-degree" if directed else "degree"
        counted = dict(zip(*np.unique(degrees, return_counts=True), strict=True))
        assert dict(found["degrees"][name_of]) == counted
        if directed:
            into = [graph.in_neighbors(v).size for v in graph.ids().tolist()]
            counted = dict(zip(*np.unique(into, return_counts=True), strict=True))
            assert dict(found["degrees"]["in-degree"]) == counted
        assert found["components"]["components"] == graph.components().num_components
        assert len(found["searches"]) == 3
        for search in found["searches"]:
            assert search["level_sizes"] == graph.bfs(search["source"]).level_sizes.tolist()
        assert graph.degree(found["searches"][1]["source"]) == max(degrees)
        if directed:
            assert (found["max_out_degree"], found["max_in_degree"]) == (max(degrees), max(into))
            assert f"at most {max(degrees):,} outward and {max(into):,} inward" in words
            assert found["searches"][1]["why"] == "most out-neighbours"
        for search in found["searches"]:
            assert 0 < search["load_seconds"] < search["seconds"]
            assert f"{search['load_seconds']:.4f}" in words
        assert "also loads" not in words
        for hub in found["hubs"]:
            assert hub["degree"] == graph.degree(hub["vertex"])
            assert f"{hub['average']:.3f}" in words
            (harmonic,) = graph.harmonic([hub["vertex"]], inward=False).tolist()
            assert hub["harmonic"] == pytest.approx(harmonic)
        assert found["hubs"][0]["degree"] == max(degrees)
        distances = graph.distance_distribution(256)
        assert distances.average.text() in words
        assert distances.effective_diameter().text() in words
    # All of it would be in any GPU's memory: rows of zeros are left out.
    assert "RTX 4090" not in words
    assert found["plan"]["plans"]


def test_plans_are_shown_where_they_say_something() -> None:
    inside = {"disk_bytes": 0, "pinned_bytes": 64, "predicted": {"slow_bytes": 0}}
    assert not leaves_something_outside({"plans": [inside, inside]})
    for change in ({"predicted": {"slow_bytes": 32}}, {"disk_bytes": 1}, {"error": "too small"}):
        assert leaves_something_outside({"plans": [inside, inside | change]})


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(8), tmp_path / "g.ocg")
    html, _ = report(tmp_path, "g.ocg")
    assert Page(html).links == []
    assert "http" not in html
    assert "<script" not in html
    assert "@import" not in html
    assert "url(" not in html
    assert "prefers-color-scheme:dark" in html
    assert 'name="viewport"' in html
    drawings = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(drawings) >= 5
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_the_commands_that_it_names_run(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(8), tmp_path / "my graph.ocg")
    html, found = report(tmp_path, "my graph.ocg", "--sources", 2, "--seed", 3)
    for command in found["commands"]:
        program, *words = shlex.split(command)
        assert program == "oocbfs"
        again = ("--force",) if words[0] == "report" else ()
        done = call(*words, *again, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    def without_times(text: str) -> str:
        return re.sub(r"\d+\.\d+", "", text)

    assert without_times((tmp_path / "r.html").read_text()) == without_times(html)


def test_graphs_without_edges_have_a_page_too(tmp_path: Path) -> None:
    oocbfs.convert(np.empty((0, 2), np.int64), tmp_path / "empty.ocg")
    Page(report(tmp_path, "empty.ocg")[0])
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 0\n")
    oocbfs.convert(tmp_path / "m.mtx", tmp_path / "lonely.ocg")
    html, found = report(tmp_path, "lonely.ocg")
    Page(html)
    assert found["searches"][0]["reached"] == 1


def test_within_a_budget_nothing_is_predicted(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(8), tmp_path / "g.ocg")
    html, found = report(tmp_path, "g.ocg", "--memory", "2G")
    assert found["plan"] is None
    assert "On a GPU" not in html
    assert not any("plan" in command for command in found["commands"])


def test_the_budget_holds(shared_graphs: SharedGraphs, tmp_path: Path) -> None:
    """In a control group that kills what takes more."""
    graph = shared_graphs.make("report-kron17", lambda: generators.kron(17))
    command = [sys.executable, "-m", "oocbfs", "report", graph, "-o", tmp_path / "r.html"]
    done = run_limited([*command, "--memory", "300M"], 300 << 20)
    assert done.returncode == 0, done.stderr
    Page((tmp_path / "r.html").read_text())

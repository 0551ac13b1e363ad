"""Plots of results: what is drawn is what was found, in files and in notebooks."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import oocbfs
from oocbfs.generate import generators
from oocbfs.plot import BLUE, ORANGE
from tests.benchmarks.common import ratio_bars
from tests.support.shared import SharedGraphs

pytest.importorskip("matplotlib", reason="plots need matplotlib")


@pytest.fixture(scope="module")
def path(shared_graphs: SharedGraphs) -> Path:
    return shared_graphs.make("plots-kron10", lambda: generators.kron(10))


def texts(path: Path) -> list[str]:
    """Return the words of a drawing; they are words, not outlines of letters."""
    root = ElementTree.parse(path).getroot()
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def heights(axes: Any) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


def test_levels(path: Path, tmp_path: Path) -> None:
    with oocbfs.open(path) as graph:
        result = graph.bfs(oocbfs.LARGEST_COMPONENT, engine="disk")
        figure = result.plot(tmp_path / "l.svg")
        upper, middle, lower = figure.axes
        levels = result.stats.levels
        assert heights(upper) == [level.frontier for level in levels]
        assert heights(middle) == [level.edges_examined for level in levels]
        assert heights(lower) == [level.slow_bytes["disk"] for level in levels]
        written = texts(tmp_path / "l.svg")
        assert f"{os.path.basename(path)} from {result.sources[0]}" in written
        assert any(line.endswith("on the disk engine") for line in written)
        assert {"top-down", "level expanded", "bytes from disk"} <= set(written)
        # Every bar says its value, grids lie behind bars, and the legend lies beside them.
        values = [text.get_text() for text in upper.texts if text.get_text() in ("1", "2")]
        assert values[0] == "1"
        assert all(axes.get_axisbelow() for axes in figure.axes)
        assert upper.get_legend().get_window_extent().x0 >= upper.get_window_extent().x1
        again = tmp_path / "again.svg"
        result.plot(again)
        assert again.read_bytes() == (tmp_path / "l.svg").read_bytes()


def test_pictures_are_sharp(path: Path, tmp_path: Path) -> None:
    with oocbfs.open(path) as graph:
        figure = graph.components().plot(tmp_path / "c.png")
    png = (tmp_path / "c.png").read_bytes()
    width, height = (int.from_bytes(png[i : i + 4]) for i in (16, 20))
    assert (width, height) == tuple(200 * figure.get_size_inches())
    shown, size = figure._repr_png_()
    assert shown.startswith(b"\x89PNG")
    assert (2 * size["width"], 2 * size["height"]) == (width, height)


def test_components(path: Path) -> None:
    with oocbfs.open(path) as graph:
        found = graph.components()
        (axes,) = found.plot().axes
    assert sum(heights(axes)) == found.num_components
    assert heights(axes)[0] == found.histogram[1]
    assert heights(axes)[-1] == 1
    assert len(heights(axes)) == (max(found.histogram) - 1).bit_length() + 1


def test_sources(path: Path, tmp_path: Path) -> None:
    with oocbfs.open(path) as graph:
        sources = graph._stored.ids_of(np.flatnonzero(graph._stored.stored_degrees)[:12]).tolist()
        few = graph.bfs_many(sources[:3])
        (axes,) = few.plot(tmp_path / "few.svg").axes
        for line, source in zip(axes.lines, sources, strict=False):
            assert line.get_ydata().tolist() == graph.bfs(source).level_sizes.tolist()
        assert f"from {sources[0]}" in texts(tmp_path / "few.svg")
        (axes,) = graph.bfs_many(sources).plot().axes
        assert len(axes.lines) == 12
        assert axes.get_legend() is None
        one = next(graph.bfs_many(sources[:1]))
        assert f"from {sources[0]}" in one.plot().axes[0].get_title(loc="left")
        graph.bfs_many([]).plot()


def test_thousands_of_levels_are_dots(tmp_path: Path) -> None:
    n = 3000
    oocbfs.convert((np.arange(n - 1), np.arange(1, n)), tmp_path / "path.ocg")
    with oocbfs.open(tmp_path / "path.ocg") as graph:
        figure = graph.bfs(0).plot(tmp_path / "l.svg")
    assert len(figure.axes[0].collections[0].get_offsets()) == n
    assert (tmp_path / "l.svg").stat().st_size < 200_000


def test_ratios(tmp_path: Path) -> None:
    rows = [("kron: ours", 1.0, ORANGE), ("kron: theirs", 4.7, BLUE), ("road: theirs", 0.8, BLUE)]
    ratio_bars(rows, tmp_path / "r.svg", title="T", subtitle="S", across="times")
    written = texts(tmp_path / "r.svg")
    assert {"4.7×", "0.8×", "kron: theirs", "T", "S", "times"} <= set(written)
    ratio_bars(
        *(rows, tmp_path / "w.svg"), title="T", subtitle="S", across="%", worst=[2, 5, 1], one=False
    )
    assert "4.7× (5×)" in texts(tmp_path / "w.svg")


def test_the_picture_of_the_front_page_is_one_of_these() -> None:
    drawn = Path(oocbfs.__file__).with_name("levels.svg")
    written = texts(drawn)
    assert "kron20.ocg from 0" in written
    assert any(re.search("on the disk engine", line) for line in written)
    assert len(drawn.read_text().splitlines()) < 1000

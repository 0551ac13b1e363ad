"""Results in Python: tables of other libraries, pictures, and what notebooks show."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import numpy as np
import pandas
import polars
import pytest

import oocbfs
from oocbfs.errors import OocbfsError, QueryError
from oocbfs.search.graph import Graph, open_file
from tests.support.small_graph import convert_small


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convert_small(tmp_path_factory.mktemp("results") / "<g>.ocg")


IDS = [1, 2, 3, 4, 10, 50, 60]


def test_pandas_and_arrow(path: Path) -> None:
    with open_file(path) as graph:
        result = graph.bfs(1, parents=True)
        frame, arrow = result.to_pandas(), result.to_arrow()
        assert list(frame.columns) == arrow.column_names == ["id", "level", "parent"]
        assert frame["id"].tolist() == IDS
        assert frame.dtypes.astype(str).tolist() == ["int64", "int32", "int64"]
        pandas.testing.assert_frame_equal(arrow.to_pandas(), frame)
        assert json.loads(arrow.schema.metadata[b"oocbfs.sources"]) == [1]
        assert duckdb.execute("select max(level) from arrow").fetchall() == [(3,)]
        assert polars.from_arrow(arrow).shape == (7, 3)
        assert graph.bfs(1).to_arrow().column_names == ["id", "level"]
        found = graph.components()
        assert found.to_pandas()["component"].tolist() == [1, 1, 1, 1, 1, 50, 50]
        pandas.testing.assert_frame_equal(found.to_arrow().to_pandas(), found.to_pandas())


def test_results_of_many_sources(path: Path) -> None:
    with open_file(path) as graph:
        many = graph.bfs_many([1, 50], emit="levels")
        first = next(many)
        assert first.to_pandas()["level"].tolist() == [0, 1, 2, 2, 3, -1, -1]
        assert first.to_arrow()["id"].to_pylist() == IDS
        rest = many.to_pandas()
        assert rest["source"].tolist() == [50]
        assert rest["level_sizes"].tolist() == [[1, 1]]
        assert many.to_pandas().empty
        table = graph.bfs_many([1, 50], emit="pairs", targets=[[10, 60], [60]]).to_arrow()
        assert table["distances"].to_pylist() == [[3, -1], [1]]
        assert table["reached"].to_pylist() == [5, 2]
        empty = graph.bfs_many([]).to_arrow()
        assert (empty.num_rows, empty.schema.field("harmonic").type) == (0, "double")
        with pytest.raises(QueryError, match='emit="levels"'):
            next(graph.bfs_many([1])).to_pandas()


def test_ids_that_need_all_bits(tmp_path: Path) -> None:
    oocbfs.convert(np.array([[1, 2**64 - 1]], np.uint64), tmp_path / "g.ocg", ids="compact")
    with open_file(tmp_path / "g.ocg") as graph:
        assert graph.components().to_arrow().to_pydict() == {
            "id": [1, 2**64 - 1],
            "component": [1, 1],
        }
        assert graph.bfs_many([2**64 - 1]).to_arrow()["source"].to_pylist() == [2**64 - 1]


def test_the_largest_component_is_a_source(path: Path, tmp_path: Path) -> None:
    with open_file(path) as graph:
        for settings in ({}, {"memory": "2G"}, {"engine": "disk"}):
            result = graph.bfs(oocbfs.LARGEST_COMPONENT, **settings)  # type: ignore[arg-type]
            assert (result.sources, result.reached) == ([1], 5)
        for wrong in ("Giant", "1"):
            with pytest.raises(QueryError, match="is not an id"):
                graph.bfs(wrong)
    oocbfs.convert(np.empty((0, 2), np.int64), tmp_path / "empty.ocg")
    with open_file(tmp_path / "empty.ocg") as empty, pytest.raises(QueryError, match="no vertex"):
        empty.bfs(oocbfs.LARGEST_COMPONENT)


def shown(graph: Graph) -> list[Any]:
    return [
        *(graph, graph.bfs(1), graph.bfs([1, 50]), graph.components()),
        next(graph.bfs_many([1])),
    ]


def test_notebooks_show_a_table_and_a_picture(path: Path) -> None:
    with open_file(path) as graph:
        for item in shown(graph):
            html = item._repr_html_()
            (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
            drawn = ElementTree.fromstring(base64.b64decode(data))
            assert drawn.tag.endswith("svg")
            # All of it is well-formed, whatever the name of the file; nothing is fetched.
            ElementTree.fromstring(html.replace('">', '"/>') if "<img" not in html else close(html))
            assert "http" not in html.replace("http://www.w3.org", "")


def close(html: str) -> str:
    return re.sub(r"(<img [^>]*)>", r"\1/>", html)


def test_one_line_says_what_it_is(path: Path) -> None:
    with open_file(path) as graph:
        lines = [repr(item) for item in [*shown(graph), graph.bfs_many([1])]]
    assert lines[0] == "<Graph: <g>.ocg: 7 vertices, 5 edges, undirected, degree order>"
    assert re.fullmatch(
        r"<BfsResult: <g>.ocg from 1: 5 of 7 vertices, depth 3, [\d.,]+ ms on the \w+ engine>",
        lines[1],
    )
    assert "from 1, 50: 7 of 7" in lines[2]
    assert "2 components, 71.4% of 7 vertices in the largest" in lines[3]
    assert lines[4] == "<SourceResult: <g>.ocg from 1: 5 of 7 vertices, depth 3>"
    assert "SourceResults of <g>.ocg" in lines[5]


def test_a_closed_graph_can_still_be_named(path: Path) -> None:
    with open_file(path) as graph:
        items = shown(graph)
    for item in items:
        assert "<g>.ocg" in repr(item)
        assert "<table>" in item._repr_html_()


def test_what_is_public_can_be_found() -> None:
    assert set(oocbfs.__all__) <= set(dir(oocbfs))
    for name in oocbfs.__all__:
        assert getattr(oocbfs, name) is not None


def test_missing_packages_are_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with open_file(path) as graph:
        result = graph.bfs(1)
        for method, package in (
            (result.to_pandas, "pip install pandas"),
            (result.to_arrow, r"pip install 'oocbfs\[arrow\]'"),
            (result.plot, r"pip install 'oocbfs\[plot\]'"),
        ):
            with pytest.raises(OocbfsError, match=package):
                method()

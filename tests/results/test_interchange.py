"""Results where other libraries take them as they are: streams of Arrow, arrays, Parquet."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

import oocbfs
from oocbfs.errors import OutputError, QueryError
from oocbfs.results import tables
from oocbfs.search.graph import Graph, open_file
from tests.support.command_line import call


@pytest.fixture(scope="module", params=["ids", "names"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1 – 2 – 3 – 10, 2 – 4, and 50 – 60 apart; or the same with names that begin with v."""
    made = tmp_path_factory.mktemp("interchange") / "g.ocg"
    edges = np.array([[1, 2], [2, 3], [3, 10], [2, 4], [50, 60]])
    given: Any = edges if request.param == "ids" else np.char.add("v", edges.astype(str))
    oocbfs.convert(given, made, ids="names" if request.param == "names" else "compact")
    return made


def called(graph: Graph, number: int) -> Any:
    return number if graph.names is None else f"v{number}"


def by_duckdb(result: Any) -> dict[str, list[Any]]:
    found: Any = duckdb.sql("from result")
    return dict(found.to_arrow_table().to_pydict())


def test_libraries_take_results_as_they_are(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_PIECE", 2)  # so that there are several batches
    with open_file(path) as graph:
        one = called(graph, 1)
        for result in (
            graph.bfs(one),
            graph.bfs(one, parents=True),
            next(graph.bfs_many([one], emit="levels")),
            graph.components(),
        ):
            expected = result.to_arrow().to_pydict()
            assert pyarrow.table(result).to_pydict() == expected
            assert polars.DataFrame(result).to_dict(as_series=False) == expected
            assert result.to_polars().to_dict(as_series=False) == expected
            assert by_duckdb(result) == expected
            frame = pandas.DataFrame.from_arrow(result)
            pandas.testing.assert_frame_equal(frame, result.to_pandas(), check_dtype=False)
        metadata = pyarrow.table(graph.bfs(one)).schema.metadata
        assert json.loads(metadata[b"oocbfs.sources"]) == [one]


def test_sources_as_they_are_searched(path: Path, tmp_path: Path) -> None:
    with open_file(path) as graph:
        sources = [called(graph, number) for number in (1, 50)]
        expected = graph.bfs_many(sources).to_arrow().to_pydict()
        assert expected["reached"] == [5, 2]
        assert polars.DataFrame(graph.bfs_many(sources)).to_dict(as_series=False) == expected
        assert by_duckdb(graph.bfs_many(sources)) == expected
        graph.bfs_many(sources).to_parquet(tmp_path / "many.parquet")
        assert parquet.read_table(tmp_path / "many.parquet").to_pydict() == expected
        none = graph.bfs_many([], emit="pairs", targets=[]).to_polars()
        assert (none.height, none.columns[-1]) == (0, "distances")


def test_the_one_obvious_array(path: Path) -> None:
    with open_file(path) as graph:
        result = graph.bfs(called(graph, 1))
        assert np.shares_memory(np.asarray(result), result.levels)
        assert np.shares_memory(np.from_dlpack(result), result.levels)
        assert np.array(result, np.float64).dtype == np.float64
        many = next(graph.bfs_many([called(graph, 1)], emit="levels"))
        assert np.array_equal(np.asarray(many), result.levels)
        assert np.array_equal(np.asarray(graph.components()), graph.components().labels)


def test_only_what_was_reached(path: Path, tmp_path: Path) -> None:
    with open_file(path) as graph:
        result = graph.bfs(called(graph, 50), parents=True)
        found = result.to_arrow(reached_only=True)
        names = [called(graph, number) for number in (50, 60)]
        assert found.to_pydict() == {"id": names, "level": [0, 1], "parent": [names[0]] * 2}
        assert result.to_pandas(reached_only=True).to_dict("list") == found.to_pydict()
        assert result.to_polars(reached_only=True).rows() == polars.DataFrame(found).rows()
        written = tmp_path / "reached.parquet"
        result.to_parquet(written, reached_only=True)
        assert parquet.read_table(written).to_pydict() == found.to_pydict()
        with pytest.raises(OutputError, match="already exists"):
            result.to_parquet(written)
        result.to_parquet(written, force=True)
        assert parquet.read_table(written).to_pydict() == result.to_arrow().to_pydict()
        with pytest.raises(QueryError, match="leave out reached_only"):
            graph.components().to_pandas(reached_only=True)


def test_results_are_themselves_and_nothing_else(path: Path) -> None:
    with open_file(path) as graph:
        one = called(graph, 1)
        for result, same in (
            (graph.bfs(one), graph.bfs(one)),
            (graph.components(), graph.components()),
            tuple(graph.bfs_many([one, one], emit="levels")),
        ):
            assert result == result  # noqa: PLR0124
            assert result != same
            assert len({result, same, result}) == 2
        again = pickle.loads(pickle.dumps(graph.bfs(one)))
        assert np.array_equal(again.levels, graph.bfs(one).levels)


@pytest.mark.parametrize("name", ["l.csv", "l.tsv.gz", "l.parquet", "folder.csv/"])
def test_files_without_rows_of_what_was_not_reached(path: Path, tmp_path: Path, name: str) -> None:
    with open_file(path) as graph:
        source = called(graph, 50)
        expected = [[str(called(graph, 50)), "0"], [str(called(graph, 60)), "1"]]
    parents = tmp_path / "p.csv"
    done = call(
        *("bfs", path, "--source", source, "--reached-only", "--parents", parents),
        *("--levels", f"{tmp_path}/{name}"),
    )
    assert done.returncode == 0, done.stderr
    (found,) = [p for p in tmp_path.rglob("*") if p.is_file() and p != parents]
    rows = duckdb.execute(f"select id::text, level::text from '{found}'").fetchall()
    assert [list(row) for row in rows] == expected
    assert parents.read_text().splitlines()[1:] == [f"{row[0]},{source}" for row in expected]


def test_rows_cannot_be_left_out_of_arrays(path: Path, tmp_path: Path) -> None:
    with open_file(path) as graph:
        source = called(graph, 1)
    for levels in (tmp_path / "l.npy", f"{tmp_path}/l.npy/"):
        done = call("bfs", path, "--source", source, "--reached-only", "--levels", levels)
        assert (done.returncode, "name it .csv" in done.stderr) == (1, True)
    done = call("bfs", path, "--source", source, "--reached-only")
    assert (done.returncode, "--levels and --parents" in done.stderr) == (1, True)
    assert not list(tmp_path.iterdir())

"""Names in tables: Parquet and Arrow files of several programs, and their objects."""

from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import oocbfs
from oocbfs.errors import InputError

SOURCES = ["bob", "zoë", "alice", "bob"]
TARGETS = ["alice", "bob", "a\nb,c", "zoë"]
EDGES = {frozenset(pair) for pair in zip(SOURCES, TARGETS, strict=True)}


def edges_of(path: Path) -> set[frozenset[str]]:
    with oocbfs.open(path) as graph:
        assert graph.names is not None
        known = list(graph.names)
        assert known == sorted(known)
        return {
            frozenset(pair)
            for batch in graph.edges()
            for pair in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
        }


def table(kind: Any = None) -> pa.Table:
    columns = [pa.array(side).cast(kind or pa.string()) for side in (SOURCES, TARGETS)]
    return pa.table({"weight": [1, 2, 3, 4], "src": columns[0], "dst": columns[1]})


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
@pytest.mark.parametrize("form", ["parquet", "feather", "lz4", "stream"])
def test_files(tmp_path: Path, kind: Any, form: str) -> None:
    source, path, given = tmp_path / "edges", tmp_path / "g.ocg", table(kind)
    if form == "parquet":
        if kind == pa.string_view():
            pytest.skip("pyarrow does not write views as Parquet")
        parquet.write_table(given, source, row_group_size=3)
    elif form == "stream":
        with pa.ipc.new_stream(source, given.schema) as writer:
            writer.write_table(given, max_chunksize=2)
    else:
        compression = "lz4" if form == "lz4" else "uncompressed"
        feather.write_feather(given, source, compression=compression)
    oocbfs.convert(source, path, ids="names")
    assert edges_of(path) == EDGES


def test_files_of_other_programs(tmp_path: Path) -> None:
    given = table()
    pl.DataFrame(given).write_parquet(tmp_path / "polars.parquet")
    duckdb.sql(f"copy given to '{tmp_path / 'duckdb.parquet'}' (format parquet)")
    given.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    for name in ("polars", "duckdb", "pandas"):
        oocbfs.convert(tmp_path / f"{name}.parquet", tmp_path / f"{name}.ocg", ids="names")
        assert edges_of(tmp_path / f"{name}.ocg") == EDGES


@pytest.mark.parametrize(
    "make",
    [
        lambda: table(),
        lambda: table().to_reader(max_chunksize=1),
        lambda: pl.DataFrame(table()),
        lambda: pl.LazyFrame(table()),
        lambda: duckdb.from_arrow(table()),
        lambda: table().to_pandas(),
        lambda: dask.dataframe.from_pandas(table().to_pandas(), npartitions=2),
        lambda: nx.Graph(list(zip(SOURCES, TARGETS, strict=True))),
        lambda: igraph.Graph.TupleList(list(zip(SOURCES, TARGETS, strict=True))),
    ],
    ids=["arrow", "batches", "polars", "lazy", "duckdb", "pandas", "dask", "networkx", "igraph"],
)
def test_objects(tmp_path: Path, make: Any) -> None:
    oocbfs.convert(make(), tmp_path / "g.ocg", ids="names")
    assert edges_of(tmp_path / "g.ocg") == EDGES


def test_numbers_are_names_too(tmp_path: Path) -> None:
    source = tmp_path / "edges.parquet"
    parquet.write_table(pa.table({"src": [-5, 2**62], "dst": [7, 7]}), source)
    oocbfs.convert(source, tmp_path / "g.ocg", ids="names")
    assert edges_of(tmp_path / "g.ocg") == {frozenset(("-5", "7")), frozenset((str(2**62), "7"))}


def test_vertices_without_edges_stay(tmp_path: Path) -> None:
    graph = nx.DiGraph([("a", "b")])
    graph.add_node("alone")
    named = igraph.Graph.TupleList([("a", "b")], directed=True)
    named.add_vertices(["alone"])
    for edges in (graph, named):
        report = oocbfs.convert(edges, tmp_path / "g.ocg", ids="names", force=True)
        assert (report.vertices, report.directed) == (3, True)


def test_a_partitioned_set(tmp_path: Path) -> None:
    parquet.write_to_dataset(table(), tmp_path / "set", partition_cols=["src"])
    oocbfs.convert(tmp_path / "set", tmp_path / "g.ocg", ids="names", columns="src,dst")
    assert edges_of(tmp_path / "g.ocg") == EDGES


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"src": ["a", None], "dst": ["b", "c"]}, "row 2 has no 'src' \\(null\\)"),
        ({"src": ["a", "b"], "dst": ["b", ""]}, "row 2 has in 'dst' an empty name"),
        ({"src": ["a\0", "b"], "dst": ["b", "c"]}, "row 1 has in 'src' a name with a NUL"),
        ({"src": ["a" * 65_536], "dst": ["b"]}, "65,535 bytes"),
        ({"src": [1.5], "dst": ["b"]}, "'src' holds double: names are text or whole numbers"),
    ],
)
def test_what_is_no_name_is_refused(tmp_path: Path, columns: Any, message: str) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "edges.parquet")
    with pytest.raises(InputError, match=message):
        oocbfs.convert(tmp_path / "edges.parquet", tmp_path / "g.ocg", ids="names")
    assert not (tmp_path / "g.ocg").exists()


TEXT = {"source": ["ann", "bob"], "target": ["bob", "1"]}


@pytest.mark.parametrize(
    "given",
    [
        pa.table(TEXT),
        pa.table(TEXT).to_reader(),
        pl.DataFrame(TEXT),
        pa.table(TEXT).to_pandas(),
        pa.table(TEXT).to_pandas().astype(object),
        [("ann", "bob"), ("bob", "1")],
        np.array([["ann", "bob"], ["bob", "1"]]),
        nx.Graph([("ann", "bob"), ("bob", "1")]),
        "edges.parquet",
        "edges.csv",
        "edges.txt",
    ],
    ids=[
        "table",
        "stream",
        "polars",
        "pandas",
        "objects",
        "pairs",
        "array",
        "networkx",
        "parquet",
        "csv",
        "txt",
    ],
)
def test_text_is_names_by_itself(tmp_path: Path, given: Any) -> None:
    parquet.write_table(pa.table(TEXT), tmp_path / "edges.parquet")
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\nbob,1\n")
    (tmp_path / "edges.txt").write_text("# ann knows bob\nann bob\nbob 1\n")
    report = oocbfs.convert(
        tmp_path / given if isinstance(given, str) else given, tmp_path / "g.ocg"
    )
    assert report.ids == "names"
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        assert list(graph.names or ()) == ["1", "ann", "bob"]
        assert graph.num_edges == 2


@pytest.mark.parametrize(
    "text",
    [
        "1 2\nann bob\n",  # numbers come first
        "source,target\n1,2\nann,bob\n",
        "source,target\n1,nan\n",  # of which some are missing
        "source,target\n1.5,2\n",
        "source,target\n1e5,2\n",
        "once upon\na time there\n",  # prose
    ],
)
def test_what_is_no_text_is_refused_as_numbers(tmp_path: Path, text: str) -> None:
    (tmp_path / "edges").write_text(text)
    with pytest.raises(InputError, match="is not a whole decimal number"):
        oocbfs.convert(tmp_path / "edges", tmp_path / "g.ocg")
    assert not (tmp_path / "g.ocg").exists()


def test_files_of_numbers_and_of_names_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("1 2\n")
    (tmp_path / "2.txt").write_text("ann bob\nbob cy\n")
    with pytest.raises(InputError, match='use ids="names"'):
        oocbfs.convert([tmp_path / "1.txt", tmp_path / "2.txt"], tmp_path / "g.ocg")


def test_who_asks_for_numbers_gets_no_names(tmp_path: Path) -> None:
    for ids in ("dense", "compact"):
        with pytest.raises(InputError, match='use ids="names"'):
            oocbfs.convert(pa.table(TEXT), tmp_path / "g.ocg", ids=ids)


def test_results_as_parquet(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(table(), path, ids="names")
    with oocbfs.open(path) as graph:
        found = graph.bfs("alice", parents=True)
        frame = pl.DataFrame(found.to_arrow())
        assert frame["id"].to_list() == ["a\nb,c", "alice", "bob", "zoë"]
        assert frame["parent"].to_list() == ["alice", "alice", "alice", "bob"]
        assert isinstance(found.to_pandas(), pd.DataFrame)


@pytest.mark.parametrize(
    ("text", "edges", "said"),
    [
        ("person1,person2\nalice,bob\n", 1, "header=False"),
        ("actor_1 actor_2\nalice bob\n", 1, "header=False"),
        ("protein1 protein2 score\nalice bob 3\n", 1, "header=False"),
        ("follower,followee\nalice,bob\n", 1, "header=False"),
        ("person1,person2\nperson3,person1\n", 2, "header=True"),
        ("v1 v2\nv2 v3\n", 2, "header=True"),
        ("alice,bob\nbob,carol\n", 2, "header=True"),
    ],
)
def test_what_a_first_line_is_taken_for_is_said(
    text: str, edges: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "edges.txt").write_text(text)
    settings: Any = {"ids": "names", "force": True}
    report = oocbfs.convert(tmp_path / "edges.txt", tmp_path / "g.ocg", **settings)
    assert report.edges_read == edges
    assert f"({said} if it " in report.columns
    for header in (True, False):
        forced = oocbfs.convert(
            tmp_path / "edges.txt", tmp_path / "g.ocg", columns=(1, 2), header=header, **settings
        )
        assert forced.edges_read == 2 - header
        assert "first line" not in forced.columns

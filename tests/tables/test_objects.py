"""What Python programs hold edges in: tables, graphs and arrays of others."""

from __future__ import annotations

from collections.abc import Callable
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

import oocbfs
from oocbfs.conversion.objects import from_memory
from oocbfs.errors import InputError, OocbfsError, QueryError
from oocbfs.formats.tables.columns import make_options
from tests.support.strategies import Pairs, stored_edges

ENDS = np.random.default_rng(7).integers(0, 1 << 40, (3000, 2))
EDGES: Pairs = list(map(tuple, ENDS.tolist()))
FRAME = pd.DataFrame(ENDS, columns=["src", "dst"]).assign(weight=0.5)
TABLE = pa.Table.from_pandas(FRAME)


def taken(edges: Any, columns: object = None) -> Pairs:
    stream = from_memory(edges, make_options(columns))
    found: Pairs = []
    for batch in stream.batches():
        assert batch.sources.dtype == batch.targets.dtype == np.uint64
        found += zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    assert stream.total in (stream.done, None)
    return found


TABLES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: FRAME,
    "pandas, other types": lambda: FRAME.astype({"src": "Int64", "dst": "uint64[pyarrow]"}),
    "pandas, an index": lambda: FRAME.set_index("weight"),
    "polars": lambda: pl.DataFrame(FRAME),
    "polars, in parts": lambda: pl.concat([pl.DataFrame(FRAME[:9]), pl.DataFrame(FRAME[9:])]),
    "polars, lazy": lambda: pl.DataFrame(FRAME).lazy(),
    "duckdb": lambda: duckdb.sql("select * from TABLE_OF_EDGES"),
    "pyarrow table": lambda: TABLE,
    "pyarrow batch": lambda: TABLE.to_batches()[0],
    "pyarrow reader": lambda: TABLE.to_reader(max_chunksize=100),
    "dask": lambda: dask.dataframe.from_pandas(FRAME, npartitions=7),
}
TABLE_OF_EDGES = TABLE


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind: str) -> None:
    assert taken(TABLES[kind]()) == EDGES
    assert taken(TABLES[kind](), ("dst", "src")) == [(v, u) for u, v in EDGES]
    assert taken(TABLES[kind](), "2,1") == [(v, u) for u, v in EDGES]
    with pytest.raises(InputError, match="column 'weight'"):
        taken(TABLES[kind](), "weight,dst")


def test_a_table_becomes_a_graph(tmp_path: Path) -> None:
    columns = ("dst", "src")
    report = oocbfs.convert(FRAME, tmp_path / "g.ocg", columns=columns, directed=True)
    assert report.columns == "'dst' and 'src' as asked for; left out: 'weight'"
    assert stored_edges(tmp_path / "g.ocg") == {(v, u) for u, v in EDGES if u != v}


def test_dask_is_computed_part_by_part() -> None:
    computed: list[int] = []

    def note(part: pd.DataFrame) -> pd.DataFrame:
        computed.append(len(part))
        return part

    frame = dask.dataframe.from_pandas(FRAME, npartitions=6).map_partitions(note, meta=FRAME)
    batches = from_memory(frame, make_options()).batches()
    next(iter(batches))
    assert sum(computed) == 500


SOME = pd.DataFrame({"src": [1, 2], "dst": [3, 4]})


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (SOME.assign(src=[0.5, 1.0]), "'src' holds"),
        (SOME.assign(src=["a", "b"]), "'src' holds"),
        (SOME.assign(src=[True, False]), "'src' holds"),
        (SOME.assign(src=pd.array([1, None], "Int64")), "has no 'src'"),
        (SOME.assign(src=[1, -2]), "'src' = -2"),
        (SOME.assign(more=[1, 2]).rename(columns={"src": "a"}), "columns 'a', 'dst', 'more'"),
    ],
)
def test_frames_that_are_refused(frame: pd.DataFrame, message: str) -> None:
    for edges in (frame, pl.from_pandas(frame), dask.dataframe.from_pandas(frame, npartitions=2)):
        with pytest.raises(InputError, match=message) as caught:
            taken(edges)
        assert "\n" not in str(caught.value)


GRAPHS: dict[str, Callable[[], Any]] = {
    "Graph": lambda: nx.gnm_random_graph(30, 60, seed=1),
    "DiGraph": lambda: nx.gnm_random_graph(30, 60, seed=1, directed=True),
    "MultiGraph": lambda: nx.MultiGraph([(5, 7), (5, 7), (7, 7), (2**63, 5)]),
    "a view": lambda: nx.path_graph(9).subgraph([1, 2, 3, 7]),
    "no edges": lambda: nx.empty_graph(4),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs_of_networkx(tmp_path: Path, kind: str) -> None:
    graph = GRAPHS[kind]()
    assert sorted(taken(graph)) == sorted(graph.edges())
    report = oocbfs.convert(graph, tmp_path / "g.ocg")
    assert (report.directed, report.vertices) == (graph.is_directed(), graph.number_of_nodes())
    assert "networkx" in report.directed_why
    source = min(graph)
    with oocbfs.open(tmp_path / "g.ocg") as opened:
        levels = dict(zip(opened.ids().tolist(), opened.bfs(source).levels.tolist(), strict=True))
    expected = nx.single_source_shortest_path_length(graph, source)
    assert levels == {node: expected.get(node, -1) for node in graph}


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_of_igraph(tmp_path: Path, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oocbfs.formats.readers.memory_edges._BATCH_EDGES", 7)
    edges = [(0, 0), (0, 0), (4, 1), (1, 4), (1, 4), (2, 0), (3, 3), (5, 2)]
    graph = igraph.Graph(n=8, edges=edges, directed=directed)
    expected = edges if directed else [(min(edge), max(edge)) for edge in edges]
    assert sorted(taken(graph)) == sorted(expected)
    report = oocbfs.convert(graph, tmp_path / "g.ocg")
    assert (report.directed, report.vertices, report.edges_read) == (directed, 8, len(edges))


def test_arrays_lie_or_stand() -> None:
    assert taken(ENDS) == taken(ENDS.T) == taken(ENDS.T.astype(np.uint64)) == EDGES
    assert taken(np.array([[1, 2], [3, 4]])) == [(1, 2), (3, 4)], "of two by two, rows are edges"
    assert taken([[1, 2, 3], [4, 5, 6]]) == [(1, 4), (2, 5), (3, 6)]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (nx.Graph([("a", "b")]), "node 'a': vertex ids are whole numbers"),
        (nx.Graph([(0, -1)]), "node '-1'"),
        (np.zeros((3, 3), int), "shape"),
        (pl.LazyFrame({"src": [1], "dst": ["a"]}), "column 'dst' holds"),
        (pl.scan_parquet("nowhere.parquet"), "polars LazyFrame: cannot be collected: No such file"),
    ],
)
def test_objects_that_are_refused(edges: Any, message: str) -> None:
    with pytest.raises(OocbfsError, match=message):
        taken(edges)


def test_columns_are_for_tables() -> None:
    with pytest.raises(QueryError, match="columns is for tables, not for a ndarray"):
        taken(ENDS, "1,2")

"""Which rows of a table are edges: what is understood, what it chooses, what is not read."""

from __future__ import annotations

import datetime
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import InputError, QueryError
from oocbfs.formats.tables.arrow import LazyEdges
from oocbfs.formats.tables.columns import make_options
from oocbfs.formats.tables.where import read_where

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DAYS = [datetime.date(2025, 5, 1) + datetime.timedelta(day) for day in range(60)]
FRAME = pd.DataFrame(
    {
        "src": np.arange(60),
        "dst": np.arange(60) + 1,
        "type": ["friend", "foe", "it's"] * 20,
        "since": DAYS,
        "weight": [None if i % 10 == 0 else i / 4 for i in range(60)],
        "a b": [i % 2 == 0 for i in range(60)],
    }
)


def chosen(inputs: Any, where: str, tmp_path: Path, **settings: Any) -> list[int]:
    oocbfs.convert(
        inputs,
        tmp_path / "g.ocg",
        directed=True,
        where=where,
        force=True,
        allow_empty=True,
        **settings,
    )
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        return sorted(int(u) for batch in graph.edges() for u in batch.sources.tolist())


def rows(test: Any) -> list[int]:
    return [i for i in range(60) if test(FRAME.iloc[i])]


KINDS = [
    *("csv", "tsv", "parquet", "feather", "names"),
    *("pandas", "pyarrow", "dask", "polars", "lazy", "scan", "duckdb"),
]


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, dict[str, Any]]:
    kind, path = request.param, tmp_path / f"table.{request.param}"
    if kind in ("csv", "tsv", "names"):
        FRAME.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=10)
    elif kind == "feather":
        FRAME.to_feather(path)
    elif kind == "scan":
        pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=10)
        return pl.scan_parquet(path), {}
    else:
        return held(kind), {}
    return path, {"ids": "names"} if kind == "names" else {}


def held(kind: str, frame: pd.DataFrame = FRAME) -> Any:
    """Return a table in memory as others have it."""
    table = pa.Table.from_pandas(frame)
    makers: dict[str, Any] = {
        "pandas": lambda: frame,
        "pyarrow": lambda: table,
        "dask": lambda: dask.dataframe.from_pandas(frame, npartitions=3),
        "polars": lambda: pl.DataFrame(table),
        "lazy": lambda: pl.LazyFrame(table),
        "duckdb": lambda: duckdb.from_arrow(table),
    }
    return makers[kind]()


def test_every_table_understands_the_same(table: Any, tmp_path: Path) -> None:
    inputs, settings = table
    for where, test in (
        (
            "type = 'friend' and since >= '2025-06-01'",
            lambda r: r["type"] == "friend" and r["since"] >= datetime.date(2025, 6, 1),
        ),
        ("weight < 2.5", lambda r: r["weight"] < 2.5),
        ("NOT weight < 2.5", lambda r: r["weight"] >= 2.5),
        (
            "weight is null or weight in (1, 2.25)",
            lambda r: not r["weight"] > 0 or r["weight"] in (1, 2.25),
        ),
        (
            "weight is not null AND type not in ('foe')",
            lambda r: r["weight"] > 0 and r["type"] != "foe",
        ),
        (
            "type = 'it''s' and (src < 10 or src > 50)",
            lambda r: r["type"] == "it's" and not 10 <= r["src"] <= 50,
        ),
        (
            "type <> 'friend' and type != 'foe' and not (src <= 5)",
            lambda r: r["type"] == "it's" and r["src"] > 5,
        ),
    ):
        assert chosen(inputs, where, tmp_path, **settings) == rows(test), where


@pytest.mark.parametrize("sign", ["=", "!=", "<", "<=", ">", ">="])
def test_what_is_no_number_passes_as_in_arrow(tmp_path: Path, sign: str) -> None:
    """polars takes NaN for the largest number."""
    values = pa.array([1.0, float("nan"), 3.0, None])
    table = pa.table({"src": [1, 2, 3, 4], "dst": [5, 6, 7, 8], "w": values})
    for where in (f"w {sign} 1", f"not w {sign} 1", f"w {sign} 5 or not (w {sign} 3 and w > 0)"):
        expected = chosen(table, where, tmp_path)
        assert chosen(pl.LazyFrame(table), where, tmp_path) == expected, where


def test_a_lazy_frame_reads_what_it_needs(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "t.parquet", row_group_size=10)
    options = make_options(where="since >= '2025-06-29' or src = 3")
    edges = LazyEdges(pl.scan_parquet(tmp_path / "t.parquet"), options)
    plan = edges._frame.explain()
    assert "PROJECT 3/6 COLUMNS" in plan
    assert "SELECTION" in plan
    assert [edge for batch in edges.batches() for edge in batch.sources.tolist()] == [3, 59]


ROWS = 30_000
# Only one row is wrong, far behind others that are not chosen, or in groups that are not read.
WRONG = pd.DataFrame(
    {
        "src": pd.array([None if i == 20_001 else i for i in range(ROWS)], "Int64"),
        "dst": np.arange(ROWS) + 1,
        "day": np.arange(ROWS) // 1000,
    }
)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "pandas", "dask", "pyarrow"])
def test_errors_count_all_rows(tmp_path: Path, kind: str, named: bool, threads: int) -> None:
    path, line = tmp_path / f"t.{kind}", "row 20002 has no 'src'"
    table: Any = path
    if kind == "csv":
        path.write_text("# rows\n\n" + WRONG.to_csv(index=False))
        line = "t.csv:20005: has no 'src'"
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(WRONG), path, row_group_size=3000)
    elif kind == "feather":
        WRONG.to_feather(path)
    else:
        table = held(kind, WRONG)
        # Rows of a frame are counted as its iloc does.
        line = line if kind == "pyarrow" else "row 20001 has no 'src'"
    ids: dict[str, Any] = {"ids": "names"} if named else {}
    with pytest.raises(InputError, match=line):
        chosen(table, "day in (5, 20, 21)", tmp_path, threads=threads, **ids)


def test_columns_in_quotes_and_truths(tmp_path: Path) -> None:
    assert chosen(FRAME, '"a b" = true', tmp_path) == list(range(0, 60, 2))
    path = tmp_path / "plain.csv"
    path.write_text("1,2,x\n# a comment\n2,3,y\n3,4,x\n")
    assert chosen(path, "\"3\" = 'x'", tmp_path) == [1, 3]


def test_row_groups_that_cannot_match_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = tmp_path / "t.parquet", list[int]()
    pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=10)
    for name in ("iter_batches", "read_row_groups"):
        real = getattr(pq.ParquetFile, name)

        def spy(self: Any, *given: Any, real: Any = real, **more: Any) -> Any:
            read.extend(more.get("row_groups") or given[0])
            return real(self, *given, **more)

        monkeypatch.setattr(pq.ParquetFile, name, spy)
    assert chosen(path, "since >= '2025-06-29' or src = 3", tmp_path) == [3, 59]
    assert read == [0, 5]


def test_folders_state_columns(tmp_path: Path) -> None:
    for year in (2024, 2025, 2026):
        folder = tmp_path / "set" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(
            pa.table({"src": [year], "dst": [1], "w": [year - 2024]}), folder / "0.parquet"
        )
    where = "(year >= 2025 and w < 2) or year = '2026'"
    assert chosen(tmp_path / "set", where, tmp_path) == [2025, 2026]
    # A file that its folder rules out is not opened further than its schema.
    assert chosen(tmp_path / "set", "not year > 2024", tmp_path) == [2024]
    assert chosen(tmp_path / "set", "year is null", tmp_path) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at its end: a column is missing"),
        ("type", "at its end: one of ="),
        ("type = friend", "before 'friend': a value is missing"),
        ("type = 'friend", 'before "\'friend": no word'),
        ("type == 'x'", "before \"= 'x'\": a value"),
        ("__import__('os')", "before .*'os'.*: one of ="),
        ("src < 1 dst > 2", "before 'dst > 2': 'and' or 'or' is missing"),
        ("(src < 1", "at its end: '\\)' is missing"),
        ("src in 1", "before '1': '\\(' is missing"),
        ("src < 1; drop", "before '; drop': no word"),
        ("(" * 200 + "a = 1", "too many parentheses"),
        ("not " * 2000 + "a = 1", "too many parentheses"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        read_where(text)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(QueryError):  # and nothing else
        read_where(text)


def test_wrong_columns_and_types(tmp_path: Path) -> None:
    path, csv = tmp_path / "t.parquet", tmp_path / "t.csv"
    pq.write_table(pa.Table.from_pandas(FRAME), path)
    FRAME.to_csv(csv, index=False)
    for inputs, where, problem in (
        (path, "kind = 'x'", "no column 'kind': there are 'src', 'dst', 'type'"),
        (csv, "kind = 'x'", "no column 'kind': there are 'src', 'dst', 'type'"),
        (FRAME, "kind = 'x'", "no column 'kind': there are 'src', 'dst', 'type'"),
        (path, "type = 5", "column 'type' holds .*string, which is not compared with 5"),
        (path, "src = 'a'", "column 'src' holds int64, which is not compared with 'a'"),
        (
            path,
            "since > 'soon'",
            "column 'since' holds date32.*, which is not compared with 'soon'",
        ),
        (path, "since > true", "column 'since' holds date32.*, which is not compared with true"),
        (csv, "type < 5", "where cannot be decided: .*as a scalar of type double"),
        (csv, "type in (5, 'x')", "'type' is compared with numbers or with text, not with both"),
    ):
        with pytest.raises(InputError, match=problem):
            chosen(inputs, where, tmp_path)
    with pytest.raises(QueryError, match="where is for tables, not for a list"):
        chosen([(1, 2)], "a = 1", tmp_path)
    oocbfs.convert([(1, 2)], tmp_path / "only.ocg")
    with pytest.raises(QueryError, match="where is about rows of tables"):
        chosen(tmp_path / "only.ocg", "a = 1", tmp_path)
    (tmp_path / "g.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"
    )
    with pytest.raises(InputError, match="where is not for this format, Matrix Market"):
        chosen(tmp_path / "g.mtx", "a = 1", tmp_path, format="mtx")


@given(st.lists(st.sampled_from([1, 2, 3, None]), min_size=1, max_size=8), st.integers(0, 4))
@settings(max_examples=20, deadline=None)
def test_nothing_passes_where_there_is_no_value(values: list[int | None], limit: int) -> None:
    table = pa.table({"w": pa.array(values, pa.int64())})
    where = read_where(f"w < {limit} or not w < {limit}")
    kept = table.filter(where.bind({"w": pa.int64()}, "t")).column("w").to_pylist()
    assert kept == [value for value in values if value is not None]

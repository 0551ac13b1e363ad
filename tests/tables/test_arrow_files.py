"""Parquet, Feather and Arrow files that others wrote, in one file or in many."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, ipc

from oocbfs.errors import BudgetError, InputError
from oocbfs.formats.edges import Declared
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.readers.open import open_edges
from oocbfs.formats.tables.columns import make_options
from tests.support import children
from tests.support.command_line import call
from tests.support.strategies import Pairs

ENDS = np.random.default_rng(7).integers(0, 1 << 40, (3000, 2))
EDGES: Pairs = list(map(tuple, ENDS.tolist()))
FRAME = pd.DataFrame(ENDS, columns=["src", "dst"]).assign(weight=0.5)
NOTE = "'src' and 'dst' by their names; left out: 'weight'"


def read(*paths: Path, columns: object = None, **options: Any) -> tuple[Pairs, Declared]:
    stream = open_edges(paths, threads=2, table=make_options(columns), **options)
    found: Pairs = []
    for batch in stream.batches():
        assert batch.sources.size <= 1 << 18
        found += zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    assert stream.total in (stream.done, None)
    return found, stream.declared


def refused(*paths: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(*paths, **options)
    assert "\n" not in str(caught.value)
    assert "u32" not in str(caught.value)
    return str(caught.value)


def by_duckdb(path: Path, more: str = "") -> None:
    edges = pa.Table.from_pandas(FRAME)  # noqa: F841 (DuckDB finds it by its name)
    duckdb.sql(f"copy edges to '{path}' (format parquet{more})")


def as_file(path: Path) -> None:
    table = pa.Table.from_pandas(FRAME)
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def as_stream(path: Path) -> None:
    table = pa.Table.from_pandas(FRAME)
    with ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


WRITERS: dict[str, Callable[[Path], object]] = {
    "pandas parquet": FRAME.to_parquet,
    "pandas parquet, gzip": lambda path: FRAME.to_parquet(path, compression="gzip"),
    "pandas feather": FRAME.to_feather,
    "polars parquet": lambda path: pl.DataFrame(FRAME).write_parquet(path),
    "polars parquet, lz4": lambda path: pl.DataFrame(FRAME).write_parquet(path, compression="lz4"),
    "polars ipc": lambda path: pl.DataFrame(FRAME).write_ipc(path),
    "polars ipc, zstd": lambda path: pl.DataFrame(FRAME).write_ipc(path, compression="zstd"),
    "polars ipc stream": lambda path: pl.DataFrame(FRAME).write_ipc_stream(path),
    "duckdb parquet": by_duckdb,
    "duckdb parquet, zstd": lambda path: by_duckdb(path, ", compression zstd"),
    "pyarrow parquet": lambda path: pq.write_table(
        pa.Table.from_pandas(FRAME), path, row_group_size=999, data_page_version="2.0"
    ),
    "pyarrow feather": lambda path: feather.write_feather(FRAME, path, chunksize=800),
    "arrow file": as_file,
    "arrow stream": as_stream,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_one_file(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "no-suffix"
    WRITERS[writer](path)
    found, declared = read(path)
    assert found == EDGES
    assert declared == Declared()
    assert declared.columns == NOTE
    assert read(path, columns=(2, 1))[0] == [(v, u) for u, v in EDGES]


def test_in_archives_and_pipes(tmp_path: Path) -> None:
    for write in (FRAME.to_parquet, FRAME.to_feather):
        path = tmp_path / "x"
        write(path)
        data = path.read_bytes()
        (tmp_path / "x.gz").write_bytes(gzip.compress(data))
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            archive.writestr("inside", data)
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cp", path, pipe]):
            assert read(tmp_path / "x.gz")[0] == EDGES
            assert read(tmp_path / "x.zip")[0] == EDGES
            assert read(pipe)[0] == EDGES
        pipe.unlink()


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's own
def test_what_dask_writes(tmp_path: Path) -> None:
    frame = dask.dataframe.from_pandas(FRAME, npartitions=11)
    frame.to_parquet(tmp_path / "set", write_metadata_file=True)
    assert (tmp_path / "set" / "_metadata").exists()
    found, declared = read(tmp_path / "set")
    assert sorted(found) == sorted(EDGES)
    assert declared.columns == NOTE
    frame.to_csv(tmp_path / "csv" / "*.part")
    assert sorted(read(tmp_path / "csv")[0]) == sorted(EDGES)


def test_what_spark_writes(tmp_path: Path) -> None:
    """Its marks, checksums and folders, around files of Parquet."""
    folder = tmp_path / "set"
    for number, day in enumerate(("2026-11-16", "2026-11-17")):
        part = folder / f"day={day}"
        part.mkdir(parents=True)
        name = f"part-0000{number}-3f1c.c000.snappy.parquet"
        FRAME[number::2].to_parquet(part / name)
        (part / f".{name}.crc").write_bytes(b"crc\0\0\0")
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "half").write_bytes(b"\0")
    found, declared = read(folder)
    assert sorted(found) == sorted(EDGES)
    assert declared.columns == "'src' and 'dst' by their names; left out: 'weight', 'day'"


@pytest.mark.parametrize("writer", ["pyarrow", "duckdb", "polars"])
def test_sets_that_are_partitioned_by_an_end(tmp_path: Path, writer: str) -> None:
    few = FRAME.assign(src=FRAME.src % 5)
    if writer == "pyarrow":
        few.to_parquet(tmp_path / "set", partition_cols=["src"])
    elif writer == "polars":
        pl.DataFrame(few).write_parquet(tmp_path / "set", partition_by="src")
    else:
        duckdb.sql(f"copy few to '{tmp_path / 'set'}' (format parquet, partition_by (src))")
    found, _ = read(tmp_path / "set")
    assert sorted(found) == sorted(zip(few.src, few.dst, strict=True))
    (tmp_path / "set" / "src=x").mkdir()
    FRAME[["dst", "weight"]].to_parquet(tmp_path / "set" / "src=x" / "0.parquet")
    assert "src=x is not a whole number" in refused(tmp_path / "set")


def test_parts_may_differ_in_their_types(tmp_path: Path) -> None:
    small = pd.DataFrame({"dst": [1, 2], "src": [3, 4]}, dtype="int8")
    small.to_parquet(tmp_path / "a")
    large = pd.DataFrame({"src": [2**63], "dst": [2**64 - 1]}, dtype="uint64")
    large.to_feather(tmp_path / "b")
    assert read(tmp_path)[0] == [(3, 1), (4, 2), (2**63, 2**64 - 1)]
    FRAME[["src"]].to_parquet(tmp_path / "c")
    assert f"{tmp_path / 'c'}: " in refused(tmp_path, columns="src,dst")


def table(**columns: Any) -> pa.Table:
    return pa.table({"src": pa.array([1, 2, 3]), "dst": pa.array([4, 5, 6]), **columns})


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (table(dst=pa.array([4, None, 6])), "row 2 has no 'dst' (null)"),
        (table(src=pa.array([4, 5, -6])), "row 3 has 'src' = -6"),
        (table(src=pa.array([1.0, 2.0, 3.0])), "column 'src' holds double"),
        (table(src=pa.array(["a", "b", "c"])), "column 'src' holds string"),
        (table(src=pa.array([True, False, True])), "column 'src' holds bool"),
        (table(dst=pa.nulls(3)), "column 'dst' holds null"),
        (table(src=pa.array([[1], [2, 3], []])), "column 'src' holds list<"),
        (pa.table({"id": [1], "a": [2], "b": [3]}), "columns 'id', 'a', 'b': say which two"),
        (pa.table({"src": [1]}), "columns 'src': say which two"),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, edges: pa.Table, message: str) -> None:
    pq.write_table(edges, tmp_path / "x.parquet")
    feather.write_feather(edges, tmp_path / "x.feather")
    for name in ("x.parquet", "x.feather"):
        said = refused(tmp_path / name)
        assert said.startswith(f"{tmp_path / name}: ")
        assert message in said


def test_dictionaries_of_numbers(tmp_path: Path) -> None:
    edges = table(src=pa.array([7, 8, 7]).dictionary_encode())
    pq.write_table(edges, tmp_path / "x.parquet")
    feather.write_feather(edges, tmp_path / "x.feather")
    for name in ("x.parquet", "x.feather"):
        assert read(tmp_path / name)[0] == [(7, 4), (8, 5), (7, 6)]


@pytest.mark.parametrize("rows", [1, 7, 64, 1000, 3000])
def test_row_groups_of_any_size_by_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr("oocbfs.formats.tables.arrow.BATCH_ROWS", 100)
    path = tmp_path / "x"
    frame = FRAME.copy()
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=rows)
    sizes: list[int] = []
    stream = open_edges([path], threads=3)
    found: Pairs = []
    for batch in stream.batches():
        sizes.append(batch.sources.size)
        found += zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    assert found == EDGES
    assert max(sizes) <= 100
    assert stream.done == stream.total
    frame.loc[2345, "dst"] = -1
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=rows)
    assert "row 2346 has 'dst' = -1" in refused(path)


def test_row_groups_that_do_not_fit_are_read_by_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four row groups would be held by two threads."""
    monkeypatch.setattr("oocbfs.formats.tables.arrow.BATCH_ROWS", 100)
    path = tmp_path / "x"
    pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=1000)
    asked: list[object] = []
    read_row_groups = pq.ParquetFile.read_row_groups

    def spy(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        return read_row_groups(*arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", spy)
    assert read(path, limits=InputLimits(window_bytes=4 * 1000 * 16))[0] == EDGES
    assert len(asked) == 3
    assert read(path, limits=InputLimits(window_bytes=4 * 1000 * 16 - 1))[0] == EDGES
    assert len(asked) == 3


def test_row_numbers_count_through_the_file(tmp_path: Path) -> None:
    values = np.arange(600_000)
    values[599_998] = -1
    pq.write_table(pa.table({"src": values, "dst": values}), tmp_path / "x")
    assert "row 599999 has 'src' = -1" in refused(tmp_path / "x")


@pytest.mark.parametrize("writer", ["pandas parquet", "pandas feather", "arrow stream"])
def test_damage(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "x"
    WRITERS[writer](path)
    data = path.read_bytes()
    for size in (8, 9, 100, len(data) // 2, len(data) - 20):
        path.write_bytes(data[:size])
        assert f"{path}: " in refused(path)
    path.write_bytes(data[:200] + bytes(200) + data[400:])
    with suppress(InputError):  # pages have no checksums: other edges are possible, a crash is not
        read(path)


def test_folders_that_are_refused(tmp_path: Path) -> None:
    assert "without files" in refused(tmp_path)
    FRAME.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "_delta_log").mkdir()
    assert "a Delta table" in refused(tmp_path)
    (tmp_path / "_delta_log").rmdir()
    (tmp_path / "README.txt").write_text("about these files\n")
    assert f"{tmp_path / 'README.txt'}: " in refused(tmp_path)
    (tmp_path / "old").write_bytes(b"FEA1" + bytes(20))
    assert "version 1 of Feather" in refused(tmp_path / "old")
    for head, name in ((b"ORC", "ORC"), (b"Obj\1", "Avro"), (b"SQLite format 3\0", "SQLite")):
        (tmp_path / "other").write_bytes(head + bytes(100))
        assert f"{name} " in refused(tmp_path / "other")


def test_record_batches_that_do_not_fit(tmp_path: Path) -> None:
    ends = np.arange(1 << 20)
    edges = pa.table({"src": ends, "dst": ends})
    limits = InputLimits(window_bytes=1 << 20)
    feather.write_feather(edges, tmp_path / "packed", chunksize=1 << 20)
    with pytest.raises(BudgetError, match=r"a compressed record batch of 1,048,576 rows .*memory"):
        read(tmp_path / "packed", limits=limits)
    feather.write_feather(edges, tmp_path / "raw", compression="uncompressed", chunksize=1 << 20)
    assert len(read(tmp_path / "raw", limits=limits)[0]) == 1 << 20, "read where it is"


def test_without_pyarrow(tmp_path: Path) -> None:
    for number, write in enumerate((FRAME.to_parquet, FRAME.to_feather)):
        path = tmp_path / str(number)
        write(path)
        code = f"""
import sys
sys.modules["pyarrow"] = None
from oocbfs.cli import main
sys.exit(main(["convert", {str(path)!r}, "-o", "x.ocg"]))
"""
        done = children.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].endswith("needs pyarrow: pip install 'oocbfs[arrow]'")


def test_the_command_line(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "x")
    done = call("convert", tmp_path / "x", "-o", tmp_path / "g.ocg", "--columns", "dst,src")
    assert done.returncode == 0
    assert "'dst' and 'src' as asked for; left out: 'weight'" in done.stdout
    assert done.stdout.count("weight") == 1
    done = call("convert", tmp_path / "x", "-o", tmp_path / "h.ocg", "--header")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("--header is not for this format, Parquet\n")


@pytest.mark.parametrize("write", [pq.write_table, feather.write_feather])
def test_edges_outlive_their_file(tmp_path: Path, write: Callable[..., None]) -> None:
    ends = np.random.default_rng(3).integers(0, 1 << 40, (2, 700_000))
    path = tmp_path / "edges"
    write(pa.table(list(ends), ["src", "dst"]), str(path))
    batches = list(open_edges([path], threads=2).batches())
    path.unlink()
    found = [np.concatenate([getattr(b, end) for b in batches]) for end in ("sources", "targets")]
    assert np.array_equal(found, ends)


def test_a_mapped_file_that_is_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "edges.arrow"
    table = pa.table([np.arange(3_000_000)] * 2, ["src", "dst"])
    feather.write_feather(table, str(path), compression="uncompressed", chunksize=3_000_000)
    next(batches := open_edges([path], threads=2).batches())
    os.truncate(path, 4096)
    with pytest.raises(InputError, match="was cut short while it was read"):
        list(batches)

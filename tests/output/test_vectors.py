"""A number for each vertex, in files that others read: text, compressed text, Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from oocbfs.errors import OutputError
from oocbfs.formats.output import parquet
from oocbfs.formats.output.vectors import check_name, write_vector
from tests.support.decompress import DECOMPRESS

NUM_ROWS = 150_000  # three pieces


def ids_at(first: int, stop: int) -> NDArray[Any]:
    return np.arange(first, stop, dtype=np.int64) * 3 + 7


def levels() -> NDArray[Any]:
    return (np.arange(NUM_ROWS) % 9 - 1).astype(np.int32)


@pytest.mark.parametrize("packing", DECOMPRESS)
@pytest.mark.parametrize(("form", "separator"), [("csv", ","), ("tsv", "\t")])
def test_text(tmp_path: Path, form: str, separator: str, packing: str) -> None:
    path = tmp_path / f"l.{form}{packing}"
    write_vector(path, "level", ids_at, levels(), threads=2)
    lines = DECOMPRESS[packing](path.read_bytes()).decode().splitlines()
    assert lines[0] == f"id{separator}level"
    rows = [tuple(map(int, line.split(separator))) for line in lines[1:]]
    assert rows == list(zip(ids_at(0, NUM_ROWS).tolist(), levels().tolist(), strict=True))


def test_parquet_is_read_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 60_000)
    path = tmp_path / "l.parquet"
    about = {"graph": "g.ocg", "sources": json.dumps([7])}
    write_vector(path, "level", ids_at, levels(), about=about)
    stored = pyarrow.parquet.ParquetFile(path)
    groups = [stored.metadata.row_group(i).num_rows for i in range(stored.num_row_groups)]
    assert groups == [60_000, 60_000, 30_000]
    assert stored.schema_arrow.metadata == {b"oocbfs.graph": b"g.ocg", b"oocbfs.sources": b"[7]"}
    frame = polars.read_parquet(path)
    assert frame.schema == {"id": polars.Int64, "level": polars.Int32}
    assert frame["id"].to_numpy().tolist() == ids_at(0, NUM_ROWS).tolist()
    assert frame["level"].to_numpy().tolist() == levels().tolist()
    counted = duckdb.execute(f"select level, count(*), min(id) from '{path}' group by 1 order by 1")
    expected = [(v, int((levels() == v).sum()), 3 * (v + 1) + 7) for v in range(-1, 8)]
    assert counted.fetchall() == expected
    said = duckdb.execute(f"select key, value from parquet_kv_metadata('{path}')").fetchall()
    assert (b"oocbfs.graph", b"g.ocg") in said


def test_parquet_of_nothing(tmp_path: Path) -> None:
    write_vector(tmp_path / "l.parquet", "level", ids_at, np.empty(0, np.int32))
    assert duckdb.execute(f"select * from '{tmp_path}/l.parquet'").fetchall() == []
    assert polars.read_parquet(tmp_path / "l.parquet").columns == ["id", "level"]


def test_parquet_holds_one_group_in_memory(tmp_path: Path) -> None:
    """Arrow counts what it allocates: as much for eight groups as for three."""
    peaks = []
    before = pyarrow.default_memory_pool()
    for num_groups in (3, 8):
        pool = pyarrow.proxy_memory_pool(before)
        pyarrow.set_memory_pool(pool)
        try:
            values = np.zeros(num_groups * parquet.ROW_GROUP, np.int32)
            write_vector(tmp_path / f"{num_groups}.parquet", "level", ids_at, values)
        finally:
            pyarrow.set_memory_pool(before)
        peaks.append(pool.max_memory())
        assert pool.bytes_allocated() == 0
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 12 * 3 * parquet.ROW_GROUP


def test_unsigned_ids_stay_whole(tmp_path: Path) -> None:
    huge = np.array([1, 2**64 - 1], np.uint64)
    for form in ("csv", "parquet"):
        write_vector(tmp_path / f"l.{form}", "component", lambda i, j: huge[i:j], huge)
    assert (tmp_path / "l.csv").read_text() == f"id,component\n1,1\n{2**64 - 1},{2**64 - 1}\n"
    assert polars.read_parquet(tmp_path / "l.parquet").rows() == [(1, 1), (2**64 - 1, 2**64 - 1)]


@pytest.mark.parametrize("name", ["l", "l.txt", "l.gz", "l.npy.gz", "l.parquet.gz", "l.jsonl"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(OutputError, match=r"name it \.npy, \.csv, \.tsv"):
        check_name(name)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_what_fails_leaves_nothing(tmp_path: Path, form: str) -> None:
    def failing(first: int, stop: int) -> NDArray[Any]:
        if first:
            raise KeyboardInterrupt
        return ids_at(first, stop)

    with pytest.raises(KeyboardInterrupt):
        write_vector(tmp_path / f"l.{form}", "level", failing, levels())
    assert not list(tmp_path.iterdir())

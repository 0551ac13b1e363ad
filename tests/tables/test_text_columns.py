"""Columns of text: as the csv module reads them, chosen by name, by number or not at all."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.errors import InputError, QueryError
from oocbfs.formats.edges import Declared
from oocbfs.formats.readers.open import open_edges
from oocbfs.formats.tables.columns import make_options
from tests.support import children
from tests.support.strategies import Pairs, edge_lists

# Anything that writers of CSV put into columns that nobody asked for; one begins as comments do.
OTHERS = st.sampled_from(["", "x", "a,b", 'say "hi"', "-1.5", "1;2", " padded ", "#tag", "%", "é|"])
EDGES: Pairs = [(1, 2), (2, 3), (10**19, 0)]


def read(path: Path, **options: object) -> tuple[Pairs, Declared]:
    stream = open_edges([path], threads=2, table=make_options(**options))  # type: ignore[arg-type]
    found: Pairs = []
    for batch in stream.batches():
        found += zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    return found, stream.declared


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(path: Path, text: str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        read(write(path, text), **options)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@settings(max_examples=150, deadline=None)
@given(
    edges=edge_lists(),
    data=st.data(),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
    chunk=st.sampled_from([1, 2, 5, 16, 64, 1 << 20]),
    bom=st.booleans(),
)
def test_any_columns_of_any_csv(
    tmp_path_factory: pytest.TempPathFactory,
    edges: Pairs,
    data: st.DataObject,
    delimiter: str,
    quoting: int,
    end: str,
    chunk: int,
    bom: bool,
) -> None:
    width = data.draw(st.integers(2, 6))
    source, target = data.draw(st.permutations(range(width)))[:2]
    names = [f"c {place}" for place in range(width)]
    out = io.StringIO()
    form: dict[str, Any] = {"delimiter": delimiter, "quoting": quoting, "lineterminator": end}
    writer = csv.writer(out, **form)
    named = data.draw(st.booleans())
    if named:
        writer.writerow(names)
    for edge in edges:
        row: list[object] = [data.draw(OTHERS) for _ in range(width)]
        row[source], row[target] = edge
        if row[0] == "" or (not named and str(row[0])[0] in "#%"):  # blank lines, comments on top
            row[0] = "0"
        writer.writerow(row)
    text = ("\ufeff" if bom else "") + out.getvalue()
    path = write(tmp_path_factory.mktemp("csv") / "x.csv", text)
    columns = (names[source], names[target]) if named else (source + 1, target + 1)
    with mock.patch("oocbfs.formats.readers.chunks.CHUNK_BYTES", chunk):
        found, _ = read(path, columns=columns, delimiter=delimiter, header=named)
    assert found == edges


@pytest.mark.parametrize("options", [{}, {"sep": ";"}, {"sep": "\t"}, {"quoting": csv.QUOTE_ALL}])
@pytest.mark.parametrize("index", [True, False])
def test_what_pandas_writes(tmp_path: Path, options: dict[str, object], index: bool) -> None:
    path = tmp_path / "p.csv"
    frame = pd.DataFrame(EDGES, columns=["src", "dst"], dtype="uint64")
    for label in (None, "id"):
        frame.to_csv(path, index=index, index_label=label, **options)
        assert read(path)[0] == EDGES
    frame["weight"], frame["why"] = 0.5, 'a "b", c; d'
    frame.to_csv(path, index=index, **options)
    found, declared = read(path)
    assert found == EDGES
    assert declared.columns == "'src' and 'dst' by their names; left out: 'weight', 'why'"
    assert read(path, columns="dst,src")[0] == [(v, u) for u, v in EDGES]
    frame = frame.rename(columns={"src": "a", "dst": "b"})
    frame[["a", "b"]].to_csv(path, index=index, **options)
    assert read(path)[0] == EDGES, "beside an index there are only two"
    frame.to_csv(path, index=index, header=False, **options)
    assert read(path, columns=(2, 3) if index else (1, 2))[0] == EDGES
    pd.DataFrame(EDGES, dtype="uint64").to_csv(path, **options)  # columns 0 and 1
    assert read(path)[0] == EDGES


@pytest.mark.parametrize(
    ("header", "places"),
    [
        ("id,src,dst", (1, 2)),
        ("weight,Target,SOURCE", (2, 1)),
        ('"From","x","To"', (0, 2)),
        ("FromNodeId,ToNodeId,time", (0, 1)),
        (":START_ID,name,:END_ID", (0, 2)),
        ("~id,~from,~to", (1, 2)),
        ("# id,src,dst", (1, 2)),
        ("dst,src", (1, 0)),
    ],
)
def test_usual_names_are_taken(tmp_path: Path, header: str, places: tuple[int, int]) -> None:
    width = header.count(",") + 1
    row = ["9"] * width
    row[places[0]], row[places[1]] = "1", "2"
    found, declared = read(write(tmp_path / "x.csv", f"{header}\n{','.join(row)}\n"))
    assert found == [(1, 2)]
    assert declared.columns.split(";")[0].endswith("by their names")


def test_others_are_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for header in ("id,a,b", "a,b,weight", "src,x,y", "src,dst,from,to", "src,SRC,dst"):
        said = refused(path, f"{header}\n1,2,3,4\n")
        assert all(repr(name) in said for name in header.split(","))
        assert "columns=" in said
    assert read(write(path, "a,b\n1,2\n"))[0] == [(1, 2)], "there are only two"
    assert "no column 'c'" in refused(path, "a,b,w\n1,2,3\n", columns="a,c")
    assert "no column 4" in refused(path, "a,b,w\n1,2,3\n", columns=(1, 4))
    assert "no column 4" in refused(path, "1,2,3\n", columns=(1, 4))
    assert "no line of column names" in refused(path, "1,2,3\n", columns="a,b")
    assert "no line of column names" in refused(path, "a,b\n1,2\n", columns="a,b", header=False)
    assert "2 columns are called 'a'" in refused(path, "a,a,b\n1,2,3\n", columns="a,b")
    assert "vertex id 'a' is not" in refused(path, "a,b\n1,2\n", header=False)


def test_options_that_are_refused(tmp_path: Path) -> None:
    for columns in ("a", "a,b,c", "a,a", (1,), (0, 1), (1, True), (1.5, 2), 7):
        with pytest.raises(QueryError, match="column"):
            make_options(columns)
    for delimiter in ("", "ab", "1", "x", '"', "\n", "é", "-"):
        with pytest.raises(QueryError, match="delimiter"):
            make_options(None, delimiter)
    assert make_options("1,x").columns == (1, "x")
    assert make_options(["1", "x"]).columns == ("1", "x"), "in Python, a string is a name"
    assert make_options(None, "\\t").delimiter == make_options(None, "tab").delimiter == "\t"
    path = write(tmp_path / "x.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 0\n")
    with pytest.raises(InputError, match="columns is not for this format, Matrix Market"):
        list(open_edges([path], format="mtx", table=make_options("a,b")).batches())


def test_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert read(write(path, "7 8\n1 2\n"), header=True)[0] == [(1, 2)]
    assert read(write(path, "2 1\n0 1\n"), header=False)[0] == [(2, 1), (0, 1)], "no counts"
    assert read(write(path, "1;2\n3;4\n"))[0] == [(1, 2), (3, 4)]
    assert read(write(path, "src dst w\n1 2 5\n"), columns="w,src")[0] == [(5, 1)]
    assert read(write(path, "  1\t 2   3\n"), columns=(1, 3), delimiter=" ")[0] == [(1, 3)]
    assert read(write(path, "1,2,3\n"))[1].columns == "1 and 2; what follows them is left out"
    assert read(write(path, "1,2\n"))[1].columns == ""


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,1", "too few columns"),
        ("x,,2", "no vertex id in one of the columns"),
        ("x,1,", "no vertex id in one of the columns"),
        ("x,1.0,2", "vertex id '1.0' is not a whole decimal number"),
        ("x,-1,2", "negative vertex id -1"),
        ("x,nan,2", "vertex id 'nan'"),
        ("x,1,18446744073709551616", "is above 2^64 - 1"),
        ('"x,1,2', "a quoted field does not end on its line"),
        ('x,1,2,"two', "a quoted field does not end on its line"),
        ("x,1,2\r3", "NUL or lone carriage return"),
        ("# no comment", "too few columns"),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, row: str, message: str) -> None:
    said = refused(tmp_path / "x.csv", f'id,src,dst,text\n"a,b",5,6,\n{row}\n7,8,9,\n')
    assert "x.csv:3: " in said
    assert message in said


def test_rows_over_several_lines_are_never_edges(tmp_path: Path) -> None:
    text = 'src,dst,text\n1,2,"two\n3,4,lines"\n'
    assert "x.csv:2: a quoted field does not end" in refused(tmp_path / "x.csv", text)


@pytest.mark.parametrize(
    ("comment", "directed"),
    [
        ("# Directed graph (each unordered pair of nodes is saved once): a.txt", True),
        ("# Undirected graph: ../data/output/roadnet", False),
        ("#undirected Graph", False),
        ("% asym positive", True),
        ("% sym unweighted", False),
        ("# Nodes: 3 Edges: 3 (directed)", True),
        ("# Nodes: 3 Edges: 3 (undirected, each edge once)", False),
        ("# Directed Epinions social network", None),
        ("# an undirected graph", None),
    ],
)
def test_comments_tell_the_direction(tmp_path: Path, comment: str, directed: bool | None) -> None:
    _, declared = read(write(tmp_path / "x.txt", f"# first\n{comment}\n\n1 2\n"))
    assert declared.directed is directed
    assert declared.directed_why.startswith("line 2 says") == (directed is not None)


@pytest.mark.long
def test_large_numbers_are_refused_however_kernels_are_compiled(tmp_path: Path) -> None:
    """Compiling the parser first, before what it calls, once gave one that overflows."""
    code = (
        "import numpy as np; from oocbfs.kernels.convert.parse import parse_pairs, BAD_LINE\n"
        "ids = np.empty((2, 9), np.uint64)\n"
        "text = np.frombuffer(b'1 18446744073709551617\\n', np.uint8)\n"
        "most = np.uint64(2**64 - 1)\n"
        "code = parse_pairs(*ids, np.zeros(5, np.int64), text, 0, 2, np.uint64(0), most)\n"
        "assert code == BAD_LINE, code"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    children.run([sys.executable, "-c", code], check=True, env=environment)

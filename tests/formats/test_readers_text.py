"""Text formats against a plain parser: whatever separates, comments or cuts the lines."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.readers.open import open_edges
from tests.support.strategies import Pairs, edge_lists

SEPARATORS = st.sampled_from([" ", "\t", ",", "  ", " \t ", ", ", " , "])
NOISE = st.sampled_from(["# 1 2", "% 3 4", "// 5 6", "", "  ", "\t# indented 7 8", "#", "%%"])
EXTRA = st.sampled_from(["", " ", " 0.5", ",x,y", "\t-1\t1e9", ' "a b"', " # why"])
ENDS = st.sampled_from(["\n", "\r\n", "\r\r\n"])
CHUNKS = st.sampled_from([1, 2, 3, 5, 16, 64, 1 << 20])


def edges_of(path: Path, format: str | None = None, threads: int = 2) -> tuple[Pairs, Declared]:
    stream = open_edges([path], format=format, threads=threads)
    found: Pairs = []
    for batch in stream.batches():
        assert batch.sources.dtype == batch.targets.dtype == "uint64"
        found += zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    return found, stream.declared


@st.composite
def edge_texts(draw: st.DrawFn) -> tuple[Pairs, str]:
    edges = draw(edge_lists())
    lines = []
    for source, target in edges:
        lines += draw(st.lists(NOISE, max_size=1))
        quote = draw(st.sampled_from(["", "", '"']))
        zeros = draw(st.sampled_from(["", "", "00", "0" * 20]))
        indent = draw(st.sampled_from(["", "", " ", "\t"]))
        first, second = f"{quote}{zeros}{source}{quote}", f"{quote}{target}{quote}"
        lines.append(indent + first + draw(SEPARATORS) + second + draw(EXTRA))
    text = "".join(line + draw(ENDS) for line in lines)
    bom = draw(st.sampled_from(["", "\ufeff"]))
    return edges, bom + (text.rstrip("\r\n") if draw(st.booleans()) else text)


@settings(max_examples=150, deadline=None)
@given(sample=edge_texts(), chunk=CHUNKS)
def test_edge_lists(
    tmp_path_factory: pytest.TempPathFactory, sample: tuple[Pairs, str], chunk: int
) -> None:
    edges, text = sample
    path = tmp_path_factory.mktemp("edges") / "graph.el"
    path.write_bytes(text.encode())
    with mock.patch("oocbfs.formats.readers.chunks.CHUNK_BYTES", chunk):
        assert edges_of(path, "edges")[0] == edges


@settings(max_examples=80, deadline=None)
@given(
    edges=edge_lists(),
    chunk=CHUNKS,
    colon=st.booleans(),
    end=ENDS,
    heads=st.sets(st.integers(0, 50)),
)
def test_adjacency_lists(
    tmp_path_factory: pytest.TempPathFactory,
    edges: Pairs,
    chunk: int,
    colon: bool,
    end: str,
    heads: set[int],
) -> None:
    rows: dict[int, list[int]] = {head: [] for head in heads}
    for source, target in edges:
        rows.setdefault(source, []).append(target)
    between, after = (" ", ": ") if colon else (",", "\t")
    text = "".join(f"{u}{after}{between.join(map(str, vs))}{end}" for u, vs in rows.items())
    path = tmp_path_factory.mktemp("rows") / "graph.txt"
    path.write_bytes(text.encode())
    expected = [(u, v) for u, vs in rows.items() for v in vs or [u]]
    with mock.patch("oocbfs.formats.readers.chunks.CHUNK_BYTES", chunk):
        assert edges_of(path, "adjacency")[0] == expected
        if rows and (colon or any(len(vs) > 1 for vs in rows.values())):
            assert edges_of(path)[0] == expected


@settings(max_examples=80, deadline=None)
@given(data=st.data(), size=st.integers(1, 30), chunk=CHUNKS, end=ENDS)
def test_metis(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, size: int, chunk: int, end: str
) -> None:
    ids = st.integers(1, size)
    pairs = data.draw(
        st.sets(st.tuples(ids, ids).filter(lambda e: e[0] < e[1]), min_size=1)
        if size > 1
        else st.just(set())
    )
    both = pairs | {(v, u) for u, v in pairs}
    kind = data.draw(st.sampled_from(["", " 0", " 1", " 011", " 10 2", " 111 3"]))
    before = {" 011": "7 ", " 10 2": "7 8 ", " 111 3": "5 7 8 9 "}.get(kind, "")
    weight = " 4" if "1" in kind.split(" ")[1:2] or "11" in kind else ""
    text = f"% comment{end}{size} {len(pairs)}{kind}{end}"
    for row in range(1, size + 1):
        text += data.draw(st.sampled_from(["", "", "% more" + end]))
        text += before + " ".join(f"{v}{weight}" for u, v in sorted(both) if u == row) + end
    path = tmp_path_factory.mktemp("metis") / "g.graph"
    path.write_bytes(text.encode())
    with mock.patch("oocbfs.formats.readers.chunks.CHUNK_BYTES", chunk):
        found, declared = edges_of(path)
    assert sorted(found) == sorted(both)
    assert (declared.directed, declared.first_id, declared.num_vertices) == (False, 1, size)


@settings(max_examples=60, deadline=None)
@given(
    edges=edge_lists(),
    bad=st.sampled_from(
        [
            "-1 2",
            "1 -2",
            "1.5 2",
            "1 2.0",
            "0x1 2",
            "1",
            "a b",
            "1 b",
            "18446744073709551616 1",
            "1 99999999999999999999999",
            "1 2\r3 4",
            "1;2",
            "1 2\0",
            "/ 1 2",
            '"1 2',
            "1,,2",
            "\u0661 2",
            "+1 2",
            "1e3 2",
        ]
    ),
    at=st.integers(0, 60),
    chunk=CHUNKS,
)
def test_malformed_lines_are_named(
    tmp_path_factory: pytest.TempPathFactory, edges: Pairs, bad: str, at: int, chunk: int
) -> None:
    lines = ["# comment", "5 6", *(f"{u} {v}" for u, v in edges)]
    at = 2 + at % (len(lines) - 1)
    lines.insert(at, bad)
    path = tmp_path_factory.mktemp("bad") / "graph.el"
    path.write_text("\n".join(lines) + "\n", newline="")
    with (
        mock.patch("oocbfs.formats.readers.chunks.CHUNK_BYTES", chunk),
        pytest.raises(InputError) as caught,
    ):
        edges_of(path, "edges")
    assert f"graph.el:{at + 1}: " in str(caught.value)
    assert str(caught.value).endswith(repr(bad))


def test_the_largest_id(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text(f"{2**64 - 1} 0{2**64 - 1}\n0 1\n0 {10**19}\n")
    ends = [(0, 1), (0, 10**19), (2**64 - 1, 2**64 - 1)]
    assert sorted(edges_of(path)[0]) == ends


def test_rows_longer_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oocbfs.formats.readers.chunks.CHUNK_BYTES", 100)
    path = tmp_path / "hub"
    path.write_text("0: " + " ".join(map(str, range(50_000))) + "\n7: 1\n")
    assert edges_of(path)[0] == [(0, v) for v in range(50_000)] + [(7, 1)]
    for before, line in (("", 1), ("# first\n", 2), ("# first\n" * 40, 41), ("8: 9\n" * 40, 41)):
        (tmp_path / "long").write_text(before + path.read_text())
        with pytest.raises(InputError, match=rf"long:{line}: a line is longer than .* memory"):
            list(open_edges([tmp_path / "long"], limits=InputLimits(line_bytes=1000)).batches())


def test_batches_and_chunks_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "many"
    path.write_bytes(b"1 2\n" * (3 << 20))
    sizes = [batch.sources.size for batch in open_edges([path], threads=2).batches()]
    assert sum(sizes) == 3 << 20
    assert max(sizes) <= 1 << 18


HEADERS = {
    b"source,target\n": b"1 2\n",
    b'"from","to","w"\n': b"1,2,3\n",
    b"FromNodeId\tToNodeId\n": b"1 2\n",
    b"src dst\n": b"1 2\n",
}


@pytest.mark.parametrize(("header", "data"), HEADERS.items())
def test_column_headers(tmp_path: Path, header: bytes, data: bytes) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes(b"# made by hand\n\n" + header + data)
    assert edges_of(path)[0] == [(1, 2)]
    path.write_bytes(b"1 2\n" + header)
    with pytest.raises(InputError, match=r"graph.csv:2: vertex id"):
        edges_of(path)


def test_empty_inputs(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    for text in (b"", b"\n\r\n", b"# nothing\n", b"source,target\n", b"\xef\xbb\xbf", b"#"):
        path.write_bytes(text)
        assert edges_of(path) == ([], Declared())
    path.write_bytes(b"Not Found\n")
    with pytest.raises(InputError, match="no edges, only text"):
        edges_of(path)


@pytest.mark.parametrize(
    ("text", "edges", "first", "size"),
    [
        ("4 3\n0 1\n1 2\n2 3\n", 3, 0, 4),
        ("4 3\n1 2\n2 3\n3 4\n", 3, 1, 4),
        ("# c\n9 3\n1 2\n2 3\n3 4\n", 3, 0, 9),
        ("3 4\n1 2\n2 3\n", 2, 1, 3),
        ("2 4\n0 1\n1 0\n0 1\n1 0\n0 0\n0 0\n0 0\n0 0\n", 8, 0, 2),
        ("3 9\n0 1 7\n", 2, 0, None),
        ("3 2\n0 1\n2 5\n", 3, 0, None),
        ("3 2\n0 3\n1 2\n", 3, 0, None),
        ("2 1\n", 1, 0, None),
        ("5 2\n0 1\n1 2\n2 3\n3 4\n", 5, 0, None),
        ("3 2 1\n1 2\n2 3\n", 3, 0, None),
    ],
)
def test_a_first_line_of_counts(
    tmp_path: Path, text: str, edges: int, first: int, size: int | None
) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(text)
    found, declared = edges_of(path)
    assert len(found) == edges
    assert (declared.first_id, declared.num_vertices) == (first, size)
    if size is None:
        assert tuple(map(int, text.split()[:2])) in found


def test_gap_and_ldbc_lists_have_no_counts(tmp_path: Path) -> None:
    for name in ("a.el", "a.wel", "a.e"):
        (tmp_path / name).write_text("4 3\n1 2\n2 3\n3 4\n")
        assert len(edges_of(tmp_path / name)[0]) == 4


def test_julia_headers(tmp_path: Path) -> None:
    path = tmp_path / "graph.jlg"
    path.write_text("3,2,u,graph,2,Int64,simplegraph\n1,2\n2,3\n")
    assert edges_of(path) == (
        [(1, 2), (2, 3)],
        Declared(directed=False, first_id=1, num_vertices=3),
    )
    path.write_text("3,3,d,graph,2,Int64,simplegraph\n1,2\n2,3\n")
    with pytest.raises(InputError, match="2 edges where the header counts 3"):
        edges_of(path)


def test_text_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_bytes("1 2\n".encode("utf-16"))
    with pytest.raises(InputError, match="UTF-16"):
        edges_of(path)
    path.write_bytes("1 2\n".encode("utf-16-le"))
    with pytest.raises(InputError, match="NUL bytes"):
        edges_of(path)
    for text in (b"1 2\r3 4\r", b"# c\r1 2\r", b"1 2\n" * 50_000 + b"\0" * 9):
        path.write_bytes(text)
        with pytest.raises(InputError, match="NUL or lone carriage return"):
            edges_of(path)

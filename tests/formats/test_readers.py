"""Text formats with a header, the choice among formats, and several inputs at once."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared
from oocbfs.formats.readers.open import open_edges
from oocbfs.formats.readers.table import NAMES
from tests.support import children
from tests.support.reading import read, refuse


def test_every_format_is_read_when_forced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"")
    for format in NAMES:
        if format in ("edges", "adjacency", "u32", "u64"):
            assert read(path, format=format) == ([], Declared())
        else:
            with pytest.raises(InputError):
                read(path, format=format)
    with pytest.raises(InputError, match="unknown format 'csv'"):
        open_edges([path], format="csv")


def test_listing_formats_loads_no_compiler() -> None:
    code = "import sys, oocbfs.formats.readers.open; sys.exit('numba' in sys.modules)"
    children.run_python(code)


BANNER = "%%MatrixMarket matrix coordinate "


@pytest.mark.parametrize("field", ["pattern", "real", "integer", "complex"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
def test_matrix_market(tmp_path: Path, field: str, symmetry: str) -> None:
    value = {"pattern": "", "real": " -.5e3", "integer": " 0", "complex": " 1 nan"}[field]
    path = tmp_path / "no-suffix"
    path.write_text(
        f"{BANNER.upper()}{field} {symmetry}\n% c\n\n3 3 2\n% inside\n2 1{value}\n\n3 1{value}\n"
    )
    directed = symmetry == "general"
    assert read(path) == ([(2, 1), (3, 1)], Declared(directed, 1, 3))


def test_matrix_market_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.mtx"
    refuse(path, "3 3 1\n1 2 5\n", r"m.mtx:1: the %%MatrixMarket banner is missing")
    refuse(path, BANNER + "real general\n3 4 1\n1 2 5\n", r"m.mtx:2: the matrix is not square")
    refuse(path, BANNER + "real general\n3 3 2\n1 2 5\n", "1 entries where .* declares 2")
    refuse(path, BANNER + "real general\n3 3 1\n1 2 5\n1 3 5\n", "more entries")
    refuse(path, BANNER + "real general\n3 3 1\n1 4 5\n", r"m.mtx:3: vertex id 4 is outside of 1")
    refuse(path, BANNER + "real general\n3 3 1\n0 1 5\n", r"m.mtx:3: vertex id 0 is outside of 1")
    refuse(path, BANNER + "real general\n3 3 1\n1 2\n", r"m.mtx:3: too few columns")
    refuse(path, BANNER + "complex general\n3 3 1\n1 2 3\n", r"m.mtx:3: too few columns")
    refuse(path, BANNER + "real general\n", "the size line needs")
    refuse(path, BANNER + "real general\n3 3\n", "the size line needs")
    refuse(path, BANNER + "quaternion general\n3 3 0\n", "unknown field")


def test_matrix_market_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    banner = "%%MatrixMarket matrix array "
    path.write_text(banner + "real general\n2 2\n0\n-.1\n1e5\n0.0\n")
    assert read(path) == ([(2, 1), (1, 2)], Declared(True, 1, 2))
    path.write_text(banner + "integer symmetric\n3 3\n1\n2\n0\n0\n5\n6\n")
    assert read(path) == ([(1, 1), (2, 1), (3, 2), (3, 3)], Declared(False, 1, 3))
    path.write_text(banner + "complex skew-symmetric\n3 3\n0 0\n0 1\n2 0\n")
    assert read(path) == ([(3, 1), (3, 2)], Declared(False, 1, 3))
    refuse(path, banner + "real general\n2 3\n1\n1\n1\n1\n1\n1\n", "not square")
    refuse(path, banner + "real general\n2 2\n1\n1\n1\n", "3 entries where the size line needs 4")
    refuse(path, banner + "real general\n1 1\n1\n1\n", "more than the 1 entries")
    refuse(path, banner + "real general\n1 1\nx\n", r"a.mtx:3: an entry is not a number")
    refuse(path, banner + "pattern general\n1 1\n", "cannot be a pattern")


@pytest.mark.parametrize(("problem", "directed"), [("sp", True), ("tw", False), ("edge", False)])
@pytest.mark.parametrize("prefix", ["", "a ", "e "])
def test_dimacs(tmp_path: Path, problem: str, directed: bool, prefix: str) -> None:
    path = tmp_path / "road"
    path.write_text(f"c comment\nc\np {problem} 4 2\nn 1 s\n{prefix}1 2 9\nc\n{prefix}4 3 9\n")
    assert read(path) == ([(1, 2), (4, 3)], Declared(directed, 1, 4))


def test_dimacs_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.gr"
    refuse(path, "p sp 4 2\na 1 2 9\n", "1 edges where the problem line declares 2")
    refuse(path, "p sp 4 1\na 1 2 9\na 2 1 9\n", "more edges")
    refuse(path, "c\np sp 4 1\na 1 5 9\n", r"d.gr:3: vertex id 5 is outside of 1 … 4")
    refuse(path, "p sp 4 1\nb 1 2 9\n", r"d.gr:2: vertex id 'b' is not")
    refuse(path, "1 2\n", "need the problem line first", "dimacs")
    path.write_text("p edge 2 1\ne 1 2\ne 2 1\n")
    assert len(read(path)[0]) == 2


def test_metis_by_content(tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_text("% c\n4 2\n2\n1 3\n2\n\n")
    assert read(path) == ([(1, 2), (2, 1), (2, 3), (3, 2)], Declared(False, 1, 4))
    path.write_text("4 2\n2\n1 3\n2\n")
    assert read(path)[1] == Declared(False, 1, 4), "the last line may be missing if it is blank"


def test_metis_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.graph"
    refuse(path, "3 2\n2\n1 3\n2\n1\n", "more than 3 vertex lines")
    refuse(path, "5 2\n2\n1 3\n2\n", "3 vertex lines where the header declares 5")
    refuse(path, "3 3\n2\n1 3\n2\n", "4 neighbours where the header declares 3 edges")
    refuse(path, "3 2\n2\n1 4\n2\n", r"m.graph:3: vertex id 4 is outside of 1 … 3")
    refuse(path, "3 2 1\n2 7\n1 7 3\n2 7\n", r"m.graph:3: too few columns")
    refuse(path, "3 2 10\n1 2\n\n1 2\n", r"m.graph:3: too few columns")
    refuse(path, "1 2 x\n", "need the METIS header", "metis")


def test_metis_loops_and_vertex_sizes(tmp_path: Path) -> None:
    path = tmp_path / "m.graph"
    path.write_text("2 2\n1 2\n1\n")
    assert sorted(read(path)[0]) == [(1, 1), (1, 2), (2, 1)]
    path.write_text("2 1 100\n50 2\n60 1\n")
    assert read(path)[0] == [(1, 2), (2, 1)]


def test_ldbc(tmp_path: Path) -> None:
    edges, vertices = tmp_path / "x.e", tmp_path / "x.v"
    edges.write_text("10 20 0.5\n20 40 1\n")
    assert read(edges) == ([(10, 20), (20, 40)], Declared())
    vertices.write_text("40\n10\n20\n30\n")
    for paths in ([edges], [vertices], [edges, vertices], [vertices, edges]):
        for format in (None, "ldbc"):
            found, declared = read(*paths, format=format)
            assert found == [(10, 20), (20, 40)]
            assert declared.vertex_ids is not None
            assert declared.vertex_ids.tolist() == [10, 20, 30, 40]
            assert declared.directed is None
    (tmp_path / "x.properties").write_text("# c\ngraph.x.directed = false\n")
    assert read(edges)[1].directed is False
    vertices.unlink()
    (tmp_path / "x.v.gz").write_bytes(gzip.compress(b"10 7\n20 8\n40 9\n"))
    stream = open_edges([edges])
    assert sum(batch.sources.size for batch in stream.batches()) == 2
    assert stream.done == stream.total
    assert stream.declared.vertex_ids is not None
    assert stream.declared.vertex_ids.tolist() == [10, 20, 40]
    refuse(edges, "10 20\n20 30\n", r"x.e:2: an end of the edge is not in the vertex file: '20 30'")
    (tmp_path / "x.v.gz").unlink()
    refuse(edges, "1 2\n", "no vertex file", "ldbc")


DECIDE = "give --directed or --undirected"


def test_several_inputs(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("1", "2.mtx", "3.gz"))
    one.write_text("1 2\n")
    two.write_text(BANNER + "pattern general\n9 9 1\n3 4\n")
    three.write_bytes(gzip.compress(b"5: 6 7\n"))
    stream = open_edges([one, two, three])
    assert stream.total == sum(path.stat().st_size for path in (one, two, three))
    assert read(one, two, three) == ([(1, 2), (3, 4), (5, 6), (5, 7)], Declared(True, 1, 9))
    one.write_text("1 20\n")
    with pytest.raises(InputError, match="not one graph"):
        read(one, two)
    one.write_text(BANNER + "pattern symmetric\n9 9 1\n3 4\n")
    declared = read(one, two)[1]
    assert declared.directed is None
    assert declared.dispute == f"{one}: is undirected, but {two} is directed: {DECIDE}"
    with pytest.raises(InputError, match="no input"):
        open_edges([])
    with pytest.raises(InputError, match="only once"):
        open_edges(["-", "-"])


def test_archives_with_arrays_and_text_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("graph.mtx", BANNER + "pattern general\n2 2 1\n1 2\n")
    assert read(path) == ([(1, 2)], Declared(True, 1, 2))
    refuse(path, "1 2\n", "not a zip archive", "npz")


def test_the_choice_waits_for_the_end_of_the_comments(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("c much ado\n" * 20_000 + "p sp 4 1\na 1 2 3\n")
    assert read(path) == ([(1, 2)], Declared(True, 1, 4))
    path.write_text("% much ado\n" * 20_000 + "3 2\n2\n1 3\n2\n")
    assert read(path)[1] == Declared(False, 1, 3)
    path.write_text("# much ado\n" * 20_000 + "1: 2 3\n")
    assert read(path)[0] == [(1, 2), (1, 3)]


def test_vertex_lists_of_several_inputs(tmp_path: Path) -> None:
    for stem, ids in (("a", "1\n2\n9\n"), ("b", "3\n")):
        (tmp_path / f"{stem}.v").write_text(ids)
        (tmp_path / f"{stem}.e").write_text(f"{ids[0]} {ids[0]}\n")
    found, declared = read(tmp_path / "a.e", tmp_path / "b.e")
    assert found == [(1, 1), (3, 3)]
    assert declared.vertex_ids is not None
    assert declared.vertex_ids.tolist() == [1, 2, 3, 9]

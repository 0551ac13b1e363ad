"""Names become numbers in bounded memory, and come back: whatever they are, however they come."""

import csv
import io
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.conversion.disk import Disk
from oocbfs.conversion.names.numbering import Numbering
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.conversion.resources import Resources
from oocbfs.errors import BudgetError, InputError
from oocbfs.formats.tables.memory_names import MemoryNames
from oocbfs.graph.verifier import verify
from oocbfs.progress import Phases
from tests.support.strategies import ORDERS

Pairs = list[tuple[str, str]]

# Anything but NUL and surrogates: UTF-8 has no bytes for those.
characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
any_name = st.text(characters, min_size=1, max_size=20)
# Names that share beginnings, of lengths around eight bytes, which are compared at a time.
alike = st.builds(
    lambda size, end: "a" * size + end, st.integers(0, 17), st.sampled_from(["", "a", "b", "é"])
).filter(bool)
numbers = st.integers(-(2**70), 2**70).map(str) | st.sampled_from(["7", "07", "007", "7.0", "7 "])
names = any_name | alike | numbers
named_edges = st.lists(st.tuples(names, names), min_size=1, max_size=50)


def stored(path: Path) -> tuple[list[str], set[tuple[str, str]]]:
    """Return the names of a graph and its edges, the smaller name first if undirected."""
    with oocbfs.open(path) as graph:
        assert graph.names is not None
        known = list(graph.names)
        edges = set()
        for batch in graph.edges():
            for edge in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True):
                edges.add(edge if graph.directed else (min(edge), max(edge)))
        return known, edges


def expected(edges: Pairs, *, directed: bool = False) -> tuple[list[str], set[tuple[str, str]]]:
    kept = {edge for edge in edges if edge[0] != edge[1]}
    if not directed:
        kept = {(min(edge), max(edge)) for edge in kept}
    return sorted({name for edge in edges for name in edge}), kept


@given(
    edges=named_edges,
    order=st.sampled_from(ORDERS),
    directed=st.booleans(),
    codec=st.sampled_from(["raw", "zstd"]),
    threads=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_any_names_there_and_back(
    edges: Pairs, order: Any, directed: bool, codec: Any, threads: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.ocg"
        options = {"order": order, "directed": directed, "codec": codec, "threads": threads}
        oocbfs.convert(edges, path, ids="names", **options)
        verify(path, threads=1)
        assert stored(path) == expected(edges, directed=directed)


@given(edges=named_edges)
@example(edges=[("x", 'a "b", c'), ("#y", " z "), ("%", "//"), ("a\rb", "\t")])
@settings(max_examples=40, deadline=None)
def test_text_that_python_writes(edges: Pairs) -> None:
    """What the csv module writes is read, where names have no line breaks."""
    edges = [edge for edge in edges if not any(mark in "".join(edge) for mark in "\n\r")]
    assume(edges)
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(edges)
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "edges.csv", Path(folder) / "g.ocg"
        source.write_text(text.getvalue(), encoding="utf-8", newline="")
        oocbfs.convert(source, path, ids="names")
        assert stored(path) == expected(edges)


def numbering(folder: Path, edges: Pairs, held_bytes: int, threads: int = 2) -> Numbering:
    """Number names with little memory; all parts are those of a conversion."""
    plan = ConvertPlan(threads=threads, held_bytes=held_bytes, watch=MemoryWatch())
    return Numbering(Resources(Disk(folder), plan, Phases(show=False)), MemoryNames(edges))


@pytest.mark.parametrize("held_bytes", [3 << 20, 4 << 20, 20 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_names_that_do_not_fit_are_merged(tmp_path: Path, held_bytes: int, threads: int) -> None:
    rng = random.Random(held_bytes)
    known = [
        rng.choice("aä") * rng.randrange(12) + str(rng.randrange(10**6)) for _ in range(80_000)
    ]
    edges = [(rng.choice(known), rng.choice(known)) for _ in range(80_000)]
    with numbering(tmp_path, edges, held_bytes, threads) as numbered:
        numbered.read()
        if held_bytes < 20 << 20:
            assert len(numbered._generations) > 2
        elif threads > 1:
            assert len(numbered._runs) > 1
        numbered.merge()
        positions = sorted({name for edge in edges for name in edge})
        assert numbered.num_names == len(positions)
        found = [
            (positions[u], positions[v])
            for batch in numbered.batches()
            for u, v in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
        ]
    assert found == edges
    assert not list(tmp_path.iterdir())


def test_long_names_among_many_runs(tmp_path: Path) -> None:
    rng = random.Random(3)
    known = ["x" * rng.choice((1, 60_000, 65_535)) + str(i) for i in range(40)]
    known = [name[-65_535:] for name in known]
    edges = [(rng.choice(known), rng.choice(known)) for _ in range(200)]
    path = tmp_path / "g.ocg"
    oocbfs.convert(edges, path, ids="names")
    verify(path)
    assert stored(path) == expected(edges)
    with numbering(tmp_path, edges, 3 << 19) as numbered:
        numbered.read()
        with pytest.raises(BudgetError, match="runs of names need"):
            numbered.merge()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (b"a,b\nc\n", 2, "too few columns"),
        (b"a,b\nc,\n", 2, "an empty name"),
        (b'a,b\n"",c\n', 2, "an empty name"),
        (b"a,b\n\n# x\nc,\xff\n", 4, "not UTF-8"),
        (b"a,b\nc,\xed\xa0\x80\n", 2, "not UTF-8"),
        (b"a,b\n" * (1 << 15) + b"c,d\0e\n", (1 << 15) + 1, "NUL"),
        (b"a,b\nc\rd,e\n", 2, "lone carriage return"),
        (b'a,b\n"c,d\ne",f\n', 2, "does not end on its line"),
        (b'a,b\n"c"d,e\n', 2, "text after a quoted field"),
        (b'a,b\nc,d,"e\nf",g\n', 2, "does not end on its line"),
        (b"a,b\nc," + 65_536 * b"d" + b"\n", 2, "more than 65,535 bytes"),
    ],
)
def test_what_is_no_name_is_refused(tmp_path: Path, text: bytes, line: int, message: str) -> None:
    source, path = tmp_path / "edges.csv", tmp_path / "g.ocg"
    source.write_bytes(text)
    with pytest.raises(InputError, match=message) as refused:
        oocbfs.convert(source, path, ids="names")
    assert f"edges.csv:{line}:" in str(refused.value)
    assert [name.name for name in tmp_path.iterdir()] == ["edges.csv"]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "")], "an empty name"),
        ([("a", "b\0")], "NUL"),
        ([("a", "\ud800")], "not Unicode"),
        ([("a", "x" * 65_536)], "65,535"),
        ([("a", 1.5)], "strings or whole numbers"),
        ([("a", None)], "strings or whole numbers"),
        ([("a", "b", "c")], "not a pair"),
        ([b"ab"], "not a pair"),
        ((["a"], ["b", "c"]), "same length"),
        (3, "pairs of names"),
    ],
)
def test_what_is_no_pair_of_names_is_refused(tmp_path: Path, edges: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        oocbfs.convert(edges, tmp_path / "g.ocg", ids="names")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "edges",
    [
        [["b", "a"], ["c", "b"]],
        (["b", "c"], ["a", "b"]),
        np.array([["b", "a"], ["c", "b"]]),
        (np.array(["b", "c"], object), np.array(["a", "b"], np.dtypes.StringDType())),
        iter([("b", "a"), ("c", "b")]),
    ],
)
def test_edges_in_memory(tmp_path: Path, edges: Any) -> None:
    oocbfs.convert(edges, tmp_path / "g.ocg", ids="names")
    assert stored(tmp_path / "g.ocg") == (["a", "b", "c"], {("a", "b"), ("b", "c")})


def test_numbers_of_any_size_are_names(tmp_path: Path) -> None:
    large = 2**200
    oocbfs.convert([(large, 7), (-1, "007")], tmp_path / "g.ocg", ids="names")
    known, _ = stored(tmp_path / "g.ocg")
    assert known == sorted(map(str, (large, 7, -1, "007")))
    text = tmp_path / "edges.txt"
    text.write_text(f"{large} 7\n-1 007\n")
    oocbfs.convert(text, tmp_path / "h.ocg", ids="names")
    assert stored(tmp_path / "h.ocg")[0] == known


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("alice bob\n  carol\t\tdave  7\n", ["alice", "bob", "carol", "dave"]),
        ("alice smith\tbob\n# c\td\n% c\td\n// c\td\n", ["alice smith", "bob"]),
        (" alice , bob b. \r\n", ["alice", "bob b."]),
        ('" alice ","bob ""b"""\n"#c",d\n', [" alice ", "#c", 'bob "b"', "d"]),
        ("src,dst\nalice,bob\n", ["alice", "bob"]),
        ("\ufeffalice,bob", ["alice", "bob"]),
        ("3 4\nalice bob\n", ["3", "4", "alice", "bob"]),
        ("a;b c;7\nd|e;f;8\n", ["a", "b c", "d|e", "f"]),
        (",src,dst\n0,alice,bob\n", ["alice", "bob"]),
        ("id,from,to\n1,alice,bob\n", ["alice", "bob"]),
        ("", []),
    ],
)
def test_forms_of_text(tmp_path: Path, text: str, known: list[str]) -> None:
    source = tmp_path / "edges"
    source.write_text(text, encoding="utf-8", newline="")
    report = oocbfs.convert(source, tmp_path / "g.ocg", ids="names", allow_empty=True)
    assert stored(tmp_path / "g.ocg")[0] == known
    assert (report.vertices, report.ids) == (len(known), "names")


def test_columns_that_are_asked_for(tmp_path: Path) -> None:
    source, path = tmp_path / "edges.csv", tmp_path / "g.ocg"
    source.write_text("when|who|whom\n1|alice|bob\n#2|bob|carol\n")
    oocbfs.convert(source, path, ids="names", columns="who,whom")
    assert stored(path) == (["alice", "bob", "carol"], {("alice", "bob"), ("bob", "carol")})
    options: dict[str, Any] = {"columns": (3, 2), "delimiter": "|", "header": False}
    oocbfs.convert(source, path, ids="names", directed=True, force=True, **options)
    edges = {("bob", "alice"), ("carol", "bob"), ("whom", "who")}
    assert stored(path) == (["alice", "bob", "carol", "who", "whom"], edges)


def test_several_files_share_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("alice,bob\n")
    (tmp_path / "b.tsv").write_text("bob\tcarol c.\n")
    inputs = [tmp_path / "a.csv", tmp_path / "b.tsv"]
    oocbfs.convert(inputs, tmp_path / "g.ocg", ids="names")
    assert stored(tmp_path / "g.ocg")[1] == {("alice", "bob"), ("bob", "carol c.")}


def test_formats_without_names_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "m.mtx"
    source.write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    with pytest.raises(InputError, match="Matrix Market, in which ids are no names"):
        oocbfs.convert(source, tmp_path / "g.ocg", ids="names")


def test_a_file_is_the_same_however_it_was_made(tmp_path: Path) -> None:
    """Neither the seed of the hashes, nor threads, nor the order of edges shows in the file."""
    rng = random.Random(5)
    edges = [(str(rng.randrange(500)), str(rng.randrange(500))) for _ in range(2000)]
    oocbfs.convert(edges, tmp_path / "a.ocg", ids="names", threads=1)
    oocbfs.convert(edges[::-1], tmp_path / "b.ocg", ids="names", threads=3)
    assert (tmp_path / "a.ocg").read_bytes() == (tmp_path / "b.ocg").read_bytes()

"""Tables of pairs: in all forms, in order, on the command line, interrupted and continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest

import oocbfs
from oocbfs import Settings
from oocbfs.batch import pair_files
from oocbfs.cli import main
from oocbfs.generate import generators
from oocbfs.point import pairs, search
from oocbfs.point.pairs import Answers
from tests.support.shared import SharedGraphs

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
NUM_PAIRS = 700


@pytest.fixture
def graph(shared_graphs: SharedGraphs) -> Path:
    return shared_graphs.make("batch-kron12", lambda: generators.kron(12))


@pytest.fixture
def table() -> Any:
    """Return pairs of which most have few others of the same source, and one source has many."""
    found = np.random.default_rng(3).integers(0, 4096, (NUM_PAIRS, 2))
    found[::2, 0] = 17
    return found


def levels_of(opened: Any, table: Any) -> list[int]:
    """Return distances by a search of the whole graph from each source."""
    sources = np.unique(table[:, 0]).tolist()
    found = opened.bfs_many(sources, emit="levels")
    levels = dict(zip(sources, (result.levels.copy() for result in found), strict=True))
    return [int(levels[u][v]) for u, v in table.tolist()]


@pytest.mark.parametrize("share", [0.0, 1e9])
@pytest.mark.parametrize("asked", [{}, {"options": Settings(engine="disk")}, {"threads": 3}])
def test_pairs_are_answered_in_their_order_by_any_way(
    graph: Path, table: Any, asked: dict[str, Any], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SHARED_ARCS", share)
    with oocbfs.open(graph) as opened:
        expected = levels_of(opened, table)
        for given in (
            table,
            table.tolist(),
            iter(table.tolist()),
            (table[:, 0], table[:, 1]),
            pandas.DataFrame(table, columns=["person", "friend"]),
            pyarrow.table({"src": table[:, 0], "weight": table[:, 1], "dst": table[:, 1]}),
        ):
            results = opened.distances(given, **asked)
            assert results.distances.tolist() == expected
            assert np.asarray(results).tolist() == expected
            assert np.from_dlpack(results).tolist() == expected
        frame = results.to_pandas()
        assert frame[["source", "target"]].to_numpy().tolist() == table.tolist()
        paths = opened.paths(table, **asked)
        assert paths.distances.tolist() == expected
        assert [-1 if path is None else len(path) - 1 for path in paths.paths] == expected
        arrow = paths.to_arrow()
        assert arrow["path"].to_pylist() == [path or [] for path in paths.paths]
        assert pyarrow.table(results)["distance"].to_pylist() == expected


def test_what_is_searched_together_is_counted(
    graph: Path, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with oocbfs.open(graph) as opened:
        for share, shares in ((0.0, True), (1e9, False)):
            monkeypatch.setattr(search, "SHARED_ARCS", share)
            answers = Answers(opened._stored, Settings(), paths=False)
            list(answers.of(pairs.batches_in_memory(opened._stored, table)))
            assert (answers.search.num_shared > 0) == shares
            assert answers.num_pairs == NUM_PAIRS


@pytest.mark.parametrize("options", [[], ["--engine", "disk"], ["--paths"], ["--keep-going"]])
@pytest.mark.parametrize("form", ["csv", "tsv.gz", "jsonl", "parquet"])
def test_files_of_pairs_become_files_of_answers(
    graph: Path, table: Any, tmp_path: Path, form: str, options: list[str]
) -> None:
    given, out = tmp_path / "pairs.csv", tmp_path / f"out.{form}"
    np.savetxt(given, table, fmt="%d", delimiter=",", header="who,whom", comments="")
    assert main(["pairs", str(graph), str(given), "-o", str(out), *options, "--quiet"]) == 0
    if form == "parquet":
        found = pandas.read_parquet(out)
    elif form == "jsonl":
        found = pandas.DataFrame(map(json.loads, out.read_text().splitlines()))
    else:
        found = pandas.read_csv(out, sep="\t" if "tsv" in form else ",")
    with oocbfs.open(graph) as opened:
        expected = levels_of(opened, table)
    assert found["distance"].tolist() == expected
    assert found[["source", "target"]].to_numpy().tolist() == table.tolist()
    assert ("path" in found) == ("--paths" in options)
    if "--keep-going" in options:
        status = ["no path" if distance < 0 else "ok" for distance in expected]
        assert found["status"].tolist() == status
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_an_interrupted_table_is_continued(
    graph: Path,
    table: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was found before is not searched again, and what is written is the same."""
    given, out, whole = (tmp_path / name for name in ("p.parquet", "out.csv", "whole.csv"))
    pandas.DataFrame(table, columns=["u", "v"]).to_parquet(given)
    call = ["pairs", str(graph), str(given), "--paths", "-q", "-o"]
    monkeypatch.setattr("oocbfs.formats.tables.arrow.BATCH_ROWS", 100)
    assert main([*call, str(whole)]) == 0
    kept = pair_files.Parts.keep

    def stop_after_three(parts: Any, first: int, count: int, found: Any) -> None:
        kept(parts, first, count, found)
        if first >= 200:
            raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(pair_files.Parts, "keep", stop_after_three)
        with pytest.raises(SystemExit, match="130"):
            main([*call, str(out)])
    assert "--resume continues" in capsys.readouterr().err
    assert not out.exists()
    assert main([*call, str(out)]) == 1
    assert "continue with --resume" in capsys.readouterr().err
    assert main([*call, str(out), "--max-depth", "2", "--resume"]) == 1
    assert "was begun with another max depth" in capsys.readouterr().err
    # One part is damaged, and is searched again.
    some = sorted(tmp_path.glob("out.csv.parts/*.npz"))
    some[1].write_bytes(some[1].read_bytes()[:50])
    assert main([*call, str(out), "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done_before"] == 200
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "p.parquet", "whole.csv"]


def test_a_bad_row_far_down_keeps_what_was_found(
    capsys: pytest.CaptureFixture[str], graph: Path, table: Any, tmp_path: Path
) -> None:
    given, out = tmp_path / "p.parquet", tmp_path / "out.csv"
    pandas.DataFrame([*table, (1, 99999)], columns=["u", "v"]).to_parquet(given)
    call = ["pairs", str(graph), str(given), "-q", "-o", str(out)]
    with patch("oocbfs.formats.tables.arrow.BATCH_ROWS", 100):
        assert main(call) == 1
    said = capsys.readouterr().err
    assert f"row {len(table) + 1:,} of the pairs" in said
    assert said.endswith("use --keep-going; --resume --keep-going goes on from there\n")
    assert not out.exists()
    with patch("oocbfs.formats.tables.arrow.BATCH_ROWS", 100):
        assert main([*call, "--resume", "--keep-going", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["done_before"] == len(table) // 100 * 100 > 0
    assert found["unknown"] == 1


def test_who_interrupts_at_once_continues_nothing(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_text("1,2\n")
    monkeypatch.setattr(pair_files, "open_edges", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(SystemExit, match="130"):
        main(["pairs", str(graph), str(tmp_path / "p.csv"), "-o", str(tmp_path / "out.csv")])
    assert capsys.readouterr().err.endswith("oocbfs: interrupted; nothing was written\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,99999\n", "row 2 of the pairs: {graph} has no vertex 99999; leave the row out"),
        ("", "holds no"),
        ("1\n2\n", ""),
        ("1,2\n3,alice\n", "'alice' is not a whole decimal number, as all ids of {graph} are"),
        ("alice,bob\ncarol,dave\n", "is not a whole decimal number, as all ids"),
    ],
)
def test_bad_pairs_are_refused_in_one_line(
    graph: Path,
    tmp_path: Path,
    text: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given, out = tmp_path / "pairs.csv", tmp_path / "out.csv"
    given.write_text(text)
    assert main(["pairs", str(graph), str(given), "-o", str(out)]) == 1
    error = capsys.readouterr().err.strip()
    assert message.format(graph=graph) in error
    assert error.count("\n") == 0
    assert "--ids" not in error
    assert main(["pairs", str(graph), str(given), "-o", "-"]) == 1
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]


def test_objects_that_hold_no_pairs_are_refused(graph: Path) -> None:
    with oocbfs.open(graph) as opened:
        for bad, message in (
            ([(1, 2), (3,)], "row 2 of the pairs"),
            ([(1, 2), (3, "x")], "row 2 of the pairs: 'x' is not an id"),
            ([(1, 2), (3, True)], "row 2 of the pairs: True is not an id"),
            ([(1, 2), (3, 5000)], "row 2 of the pairs: .* has no vertex 5000; leave the row out$"),
            ("pairs.csv", "pairs are a table"),
            (None, "pairs are a table"),
        ):
            with pytest.raises(oocbfs.QueryError, match=message):
                opened.distances(bad)
        assert opened.distances([]).distances.size == 0
        with pytest.raises(oocbfs.QueryError, match="paths were not asked for"):
            _ = opened.distances([(1, 2)]).paths
        with pytest.raises(oocbfs.QueryError, match="leave engine emulator out"):
            opened.distance(1, 2, options=Settings(engine="emulator"))
        with pytest.raises(oocbfs.BudgetError, match="this search needs"):
            opened.distance(1, 2, memory="1M")


def test_names_are_paired_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges = [("alice", "bob, the 2nd"), ("bob, the 2nd", "carol"), ("dave", "erin")]
    oocbfs.convert(edges, tmp_path / "g.ocg", ids="names")
    with oocbfs.open(tmp_path / "g.ocg") as opened:
        assert opened.shortest_path("carol", "alice") == ["carol", "bob, the 2nd", "alice"]
        results = opened.paths([("alice", "carol"), ("alice", "dave")])
        assert results.paths == [["alice", "bob, the 2nd", "carol"], None]
        assert list(results.sources) == ["alice", "alice"]
        with pytest.raises(oocbfs.QueryError, match=r"row 1 .* has no vertex 'zoe'"):
            opened.distances([("zoe", "alice")])
        with pytest.raises(oocbfs.QueryError, match=r"'zoe'; leave the row out$"):
            opened.distances(pandas.DataFrame({"user": ["zoe"], "friend": ["alice"]}))
        for bad, message in (
            ([("alice", "carol"), ("alice", 3)], "row 2 of the pairs: 3 is not a name"),
            ([("alice", "carol", "dave")], "row 1 of the pairs: .* is not a pair, each end a name"),
            (["alice"], "row 1 of the pairs: 'alice' is not a pair"),
        ):
            with pytest.raises(oocbfs.QueryError, match=message):
                opened.distances(bad)
    (tmp_path / "p.csv").write_text("alice,carol\nerin,zoe\n")
    call = ["pairs", str(tmp_path / "g.ocg"), str(tmp_path / "p.csv"), "-o", "-"]
    assert main([*call, "--keep-going", "--paths", "-q"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "source,target,distance,path,status",
        'alice,carol,2,"[""alice"", ""bob, the 2nd"", ""carol""]",ok',
        "erin,zoe,-1,,unknown vertex",
    ]


def test_a_graph_in_parts_answers_the_same_or_says_why_not(
    graph: Path, table: Any, tmp_path: Path
) -> None:
    oocbfs.shard(graph, tmp_path / "parts", parts=2)
    some = table[:20]
    with oocbfs.open(graph) as opened, oocbfs.open(tmp_path / "parts") as parts:
        expected = opened.distances(some).distances.tolist()
        assert parts.distances(some).distances.tolist() == expected
        found = parts.paths(some[:4])
        assert found.distances.tolist() == expected[:4]
        one, other = some[1].tolist()
        assert parts.distance(one, other) == expected[1]
        assert len(parts.shortest_path(one, other) or []) == expected[1] + 1
        with pytest.raises(oocbfs.QueryError, match="one path is found, not all"):
            parts.all_shortest_paths(one, other)


def test_a_header_that_is_taken_for_names_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oocbfs.convert([("alice", "bob")], tmp_path / "g.ocg", ids="names")
    (tmp_path / "pairs.csv").write_text("a,b\nalice,bob\n")
    ask = ["pairs", str(tmp_path / "g.ocg"), str(tmp_path / "pairs.csv"), "-o", "-"]
    assert main(ask) == 1
    assert "no vertex 'a'; leave the row out, or use --keep-going, or say --header" in (
        capsys.readouterr().err
    )
    assert main([*ask, "--header"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["alice,bob,1"]

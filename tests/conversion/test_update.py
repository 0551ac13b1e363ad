"""A graph file is the old graph or the new one, whatever happens while it is updated."""

from __future__ import annotations

import fcntl
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.conversion.pipeline import Conversion
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.errors import FormatError, QueryError
from oocbfs.generate import generators
from oocbfs.graph.verifier import verify
from tests.support.command_line import Moments, Started, call
from tests.support.exhaustive import ALL
from tests.support.strategies import pair_array


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pair_array([(0, 1), (1, 2), (2, 3)]), path)
    return path


def edges_of(path: Path) -> list[tuple[int, int]]:
    with oocbfs.open(path) as graph:
        batches = [zip(b.sources.tolist(), b.targets.tolist(), strict=True) for b in graph.edges()]
        return sorted(edge for batch in batches for edge in batch)


def test_update_replaces_the_file_and_open_readers_keep_the_old_one(graph: Path) -> None:
    graph.chmod(0o640)
    with oocbfs.open(graph) as old:
        report = oocbfs.update(
            graph, add=pair_array([(3, 4), (0, 2)]), remove=[(2, 1), (9, 9)], remove_vertices=[0]
        )
        assert old.num_edges == 3
        assert old.bfs(0).levels.tolist() == [0, 1, 2, 3]
    assert edges_of(graph) == [(2, 3), (3, 4)]
    assert graph.stat().st_mode & 0o777 == 0o640
    # Of 0–1, 0–2 and 1–2, and of the edge that nobody has.
    assert (report.removed_edges, report.missing_edges, report.removed_vertices) == (3, 1, 1)
    assert [path.name for path in graph.parent.iterdir()] == ["g.ocg"]


def test_a_compressed_graph_stays_compressed(graph: Path, tmp_path: Path) -> None:
    oocbfs.convert(graph, tmp_path / "z.ocg", codec="zstd")
    oocbfs.update(tmp_path / "z.ocg", add=pair_array([(3, 4)]))
    with oocbfs.open(tmp_path / "z.ocg") as opened:
        encodings = {one["name"]: one["encoding"] for one in opened.info()["sections"]}
        assert encodings.pop("frames") == "raw"
        assert set(encodings.values()) == {"frames"}


def test_what_cannot_be_updated_stays(graph: Path, tmp_path: Path) -> None:
    before = graph.read_bytes()
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    (tmp_path / "no.ocg").write_text("1 2\n")
    for path, wish, error, message in (
        (graph, {}, QueryError, "nothing to update"),
        (graph, {"add": tmp_path / "bad.csv"}, oocbfs.InputError, "bad.csv:2: "),
        (graph, {"add": graph}, oocbfs.InputError, "g.ocg: is named twice"),
        (tmp_path / "no.ocg", {"add": [(1, 2)]}, FormatError, "not an .ocg file"),
        (tmp_path / "gone.ocg", {"add": [(1, 2)]}, oocbfs.OocbfsError, "gone.ocg: .*o such file"),
    ):
        with pytest.raises(error, match=message):
            oocbfs.update(path, **wish)
    assert graph.read_bytes() == before
    assert (tmp_path / "no.ocg").read_text() == "1 2\n"


def test_two_updates_at_once(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("7 8\n")
    with graph.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = call("update", graph, "--add", tmp_path / "new.txt")
    assert done.returncode == 1
    assert "g.ocg: is being updated already: try again when that is done" in done.stderr
    assert call("update", graph, "--add", tmp_path / "new.txt").returncode == 0
    assert edges_of(graph) == [(0, 1), (1, 2), (2, 3), (7, 8)]


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_at_random_moments(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, how: signal.Signals
) -> None:
    said = tmp_path_factory.mktemp("said") / "messages"
    graph, text = tmp_path / "g.ocg", tmp_path / "new.txt"
    rng = np.random.default_rng(5)
    oocbfs.convert(generators.kron(14), graph)
    np.savetxt(text, rng.integers(0, 1 << 14, (5000, 2)), "%d")
    old = graph.read_bytes()

    def start() -> Started:
        return Started(said, "update", graph, "--add", text)

    assert start().finish()[0] == 0  # loads kernels, and may have to compile them
    new = graph.read_bytes()
    graph.write_bytes(old)
    began = time.perf_counter()
    assert start().finish() == (0, "")
    moments = Moments(how, time.perf_counter() - began)
    unfinished = 0
    for _ in range(200 if ALL else 5):
        graph.write_bytes(old)
        process = start()
        moments.signal(process, how)
        code, shown = process.finish()
        unfinished += code != 0
        assert graph.read_bytes() in ((old, new) if code else (new,)), shown
        verify(graph, threads=1)
    assert unfinished > 0
    graph.write_bytes(old)
    assert start().finish() == (0, "")
    # Whatever was left is gone with the next one.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.ocg", "new.txt"]


def test_update_reads_graphs_and_names(tmp_path: Path) -> None:
    graph, more = tmp_path / "g.ocg", tmp_path / "more.ocg"
    named: dict[str, Any] = {"ids": "names"}
    oocbfs.convert([("ann", "bob"), ("bob", "cyd")], graph, **named)
    oocbfs.convert([("bob", "dan"), ("ann", "bob")], more, **named)
    (tmp_path / "dead.txt").write_text("# who left\ncyd\nnobody\n")
    done = call("update", graph, "--add", more, "--remove-vertices", tmp_path / "dead.txt")
    assert done.returncode == 0, done.stderr
    assert "1; 1 more were not there" in done.stdout
    with oocbfs.open(graph) as opened:
        assert list(opened.names or ()) == ["ann", "bob", "dan"]
        assert opened.num_edges == 2
    oocbfs.update(graph, remove=more)
    with oocbfs.open(graph) as opened:
        assert (opened.num_vertices, opened.num_edges) == (0, 0)


@given(
    st.sampled_from(["natural", "degree", "dbg", "local", "communities"]),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=30),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=10),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
def test_keep_leaves_vertices_where_they_are(
    tmp_path: Path, order: Any, old: Any, added: Any, removed: Any
) -> None:
    graph, plain = tmp_path / "g.ocg", tmp_path / "plain.ocg"
    oocbfs.convert(pair_array(old), graph, order=order, ids="compact", force=True)
    with oocbfs.open(graph) as opened:
        before = opened._stored.ids_of(np.arange(opened.num_vertices)).tolist()
    wish: dict[str, Any] = {"add": pair_array(added)}
    if removed:
        wish["remove"] = pair_array(removed)
    oocbfs.convert(
        [graph, wish["add"]], plain, remove=wish.get("remove"), force=True, ids="compact"
    )
    report = oocbfs.update(graph, order="keep", ids="compact", **wish)
    verify(graph, threads=1)
    assert edges_of(graph) == edges_of(plain)
    assert report.order_why.startswith("kept")
    with oocbfs.open(graph) as opened:
        after = opened._stored.ids_of(np.arange(opened.num_vertices)).tolist()
    stayed = [one for one in before if one in after]
    assert after[: len(stayed)] == stayed
    assert after[len(stayed) :] == sorted(set(after) - set(stayed))


def test_keep_says_when_another_order_would_pay(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.kron(12), path, order="natural")
    report = oocbfs.update(path, add=pair_array([(1, 2)]), order="keep")
    assert (report.order, "--order auto would save" in report.order_why) == ("natural", True)
    oocbfs.convert(path, tmp_path / "h.ocg")
    report = oocbfs.update(tmp_path / "h.ocg", add=pair_array([(1, 2)]), order="keep")
    assert "kept; no other saves 3 %" in report.order_why
    with pytest.raises(QueryError, match="order keep is that of a graph"):
        oocbfs.convert(pair_array([(1, 2)]), path, order="keep", force=True)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_rows_that_stay_in_place_are_those_that_are_sorted(
    tmp_path: Path, directed: bool, named: bool, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody sorts again is byte for byte what sorting all of it gives."""
    rng = np.random.default_rng(3)
    old, new = (rng.zipf(1.3, (size, 2)) % 5_003 for size in (200_000, 20_000))
    new[:2000] = old[:2000]
    ids: dict[str, Any] = {"ids": "names"} if named else {}

    def make(edges: Any) -> Any:
        return edges.astype(str).tolist() if named else edges

    paths = [tmp_path / name for name in ("g.ocg", "fast.ocg", "slow.ocg")]
    oocbfs.convert(make(old), paths[0], directed=directed, order=order, **ids)
    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(2, 4 << 20, MemoryWatch())
    )
    inputs = [paths[0], tuple(zip(*make(new), strict=True)) if named else new]
    stays, stayed = Conversion._stays_in_place, []

    def spy(self: Conversion, order: str) -> bool:
        stayed.append(stays(self, order))
        return stayed[-1]

    monkeypatch.setattr(Conversion, "_stays_in_place", spy)
    fast = oocbfs.convert(inputs, paths[1], order="keep")
    assert stayed == [True]
    monkeypatch.setattr(Conversion, "_stays_in_place", lambda *_: False)
    slow = oocbfs.convert(inputs, paths[2], order="keep")
    assert paths[1].read_bytes() == paths[2].read_bytes()
    assert (fast.duplicates, fast.edges) == (slow.duplicates, slow.edges)
    verify(paths[1], threads=1)

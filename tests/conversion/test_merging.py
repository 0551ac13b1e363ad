"""Graphs that grow and shrink: merging and removing equals converting the edges that result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.conversion.graph_run import GraphRun
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.conversion.sorted_edges import SortedEdges
from oocbfs.errors import FormatError, InputError, OutputError
from oocbfs.formats.container.layout import Kind
from oocbfs.graph.verifier import verify
from tests.support.strategies import (
    ORDERS,
    Pairs,
    expected_edges,
    name_edges,
    pair_array,
)

_ids = st.integers(0, 40) | st.integers(0, 400) | st.integers(0, 2**64 - 1)
_edge = st.tuples(_ids, _ids)
_edges = st.lists(_edge, max_size=40)
_steps = st.lists(
    st.tuples(_edges, st.lists(_edge, max_size=20), st.lists(_ids, max_size=2)), max_size=4
)


def as_input(edges: Any, *, named: bool) -> Any:
    sides: Any = tuple(zip(*name_edges(edges), strict=True)) or ([], [])
    return sides if named else pair_array(edges)


def convert(inputs: Any, path: Path, **settings: Any) -> Any:
    return oocbfs.convert(inputs, path, force=True, allow_empty=True, threads=2, **settings)


@given(
    base=_edges,
    steps=_steps,
    directed=st.booleans(),
    named=st.booleans(),
    order=st.sampled_from(["auto", *ORDERS]),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
def test_any_sequence_equals_converting_what_results(
    tmp_path: Path, base: Pairs, steps: Any, directed: bool, named: bool, order: Any
) -> None:
    ids: dict[str, Any] = {"ids": "names"} if named else {}
    path, other = tmp_path / "g.ocg", tmp_path / "other.ocg"
    edges = expected_edges(base, directed=directed)
    convert(as_input(sorted(edges), named=named), path, directed=directed, order=order, **ids)
    for added, removed, vertices in steps:
        # A vertex that is named by a loop alone is one, in a text.
        added = [edge for edge in added if edge[0] != edge[1]]
        gone, dead = expected_edges(removed, directed=directed), set(vertices)

        def stays(edge: Any, gone: Any = gone, dead: Any = dead) -> bool:
            key = edge if directed else (min(edge), max(edge))
            return key not in gone and not set(edge) & dead

        wish = {
            "remove": as_input(removed, named=named) if removed else None,
            "remove_vertices": [name_edges([(v, v)])[0][0] for v in vertices]
            if named
            else vertices,
        }
        # An edge that is taken out counts as read once too often, if it came twice.
        added = (
            added
            if not (removed or vertices)
            else sorted(expected_edges(added, directed=directed) - edges)
        )
        report = convert([str(path), as_input(added, named=named)], other, order=order, **wish)
        was = edges | expected_edges(added, directed=directed)
        rest = [edge for edge in [*sorted(edges), *added] if stays(edge)]
        plain = tmp_path / "plain.ocg"
        convert(as_input(rest, named=named), plain, directed=directed, order=order, **ids)
        assert other.read_bytes() == plain.read_bytes()
        edges = {edge for edge in was if stays(edge)}
        assert report.removed_edges == len(was) - len(edges)
        loops_or_strangers = [e for e in removed if e[0] == e[1] or not set(e) <= _ends(was)]
        missing = {e for e in gone - was if set(e) <= _ends(was)}
        assert report.missing_edges == len(loops_or_strangers) + len(missing)
        assert report.removed_vertices == len(set(vertices) & _ends(was))
        path, other = other, path
    verify(path, threads=1)


def _ends(edges: Any) -> set[int]:
    return {v for edge in edges for v in edge}


def random_edges(seed: int, num_edges: int) -> Any:
    rng = np.random.default_rng(seed)
    edges = np.stack((rng.zipf(1.3, num_edges) % 50_021, rng.integers(0, 50_021, num_edges)), 1)
    return edges[edges[:, 0] != edges[:, 1]].astype(np.uint64)


def keys_of(edges: Any, directed: bool) -> Any:
    edges = edges if directed else np.sort(edges, axis=1)
    return np.unique(edges[:, 0] << np.uint64(32) | edges[:, 1])


@pytest.mark.parametrize("directed", [False, True])
def test_merging_in_little_memory_gives_the_same_file(
    tmp_path: Path, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, gone = random_edges(1, 300_000), random_edges(2, 50_000), random_edges(3, 100_000)
    graph, merged, plain = (tmp_path / name for name in ("g.ocg", "merged.ocg", "plain.ocg"))
    convert(old, graph, directed=directed)
    both, gone_keys = keys_of(np.concatenate((old, new)), directed), keys_of(gone, directed)
    left = np.setdiff1d(both, gone_keys)
    kept = np.stack((left >> np.uint64(32), left & np.uint64(2**32 - 1)), 1)
    convert(kept, plain, directed=directed)
    convert([graph, new], tmp_path / "all.ocg")
    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(2, 4 << 20, MemoryWatch())
    )
    report = convert([tmp_path / "all.ocg"], merged, remove=gone)
    assert report.spilled_bytes > 0
    assert merged.read_bytes() == plain.read_bytes()


def test_graphs_alone_with_text_and_open(tmp_path: Path) -> None:
    one, two = [(0, 1), (1, 2)], [(2, 3), (0, 1)]
    paths = [tmp_path / name for name in ("one.ocg", "two.ocg", "all.ocg", "plain.ocg")]
    convert(pair_array(one), paths[0])
    convert(pair_array(two), paths[1])
    (tmp_path / "three.txt").write_text("3 4\n4 0\n")
    convert(pair_array([*one, *two, (3, 4), (4, 0), (9, 3)]), paths[3])
    with oocbfs.open(paths[0]) as graph:
        frame = pd.DataFrame({"src": [9], "dst": [3]})
        convert([graph, paths[1], tmp_path / "three.txt", frame], paths[2])
        assert graph.num_edges == 2
    assert paths[2].read_bytes() == paths[3].read_bytes()
    report = convert(paths[0], paths[2], codec="zstd")
    assert (report.edges, report.edges_read, report.duplicates) == (2, 2, 0)
    convert([paths[2], paths[1]], paths[3])  # of a compressed one
    with oocbfs.open(paths[3]) as graph:
        assert graph.num_edges == 3


def test_vertices_without_edges_stay_where_an_input_named_them(tmp_path: Path) -> None:
    (tmp_path / "g.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern symmetric\n5 5 2\n2 1\n3 1\n"
    )
    convert(tmp_path / "g.mtx", tmp_path / "g.ocg")
    convert([tmp_path / "g.ocg", pair_array([(7, 1)])], tmp_path / "h.ocg")
    with oocbfs.open(tmp_path / "h.ocg") as graph:
        assert graph.ids().tolist() == [1, 2, 3, 4, 5, 7]  # ids from 1 on, as before
    convert(tmp_path / "h.ocg", tmp_path / "g.ocg", remove=[(1, 2)], remove_vertices=[4, 99])
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        assert graph.ids().tolist() == [1, 3, 5, 7]
        assert graph.num_edges == 2


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    plain, arcs, names = (tmp_path / name for name in ("plain.ocg", "arcs.ocg", "names.ocg"))
    out = tmp_path / "out.ocg"
    convert(pair_array([(0, 1)]), plain)
    convert(pair_array([(0, 1)]), arcs, directed=True)
    convert([("a", "b")], names, ids="names")
    for inputs, wish, message in (
        ([plain, arcs], {}, "arcs.ocg: is directed, and .*plain.ocg is undirected: export"),
        ([plain], {"directed": True}, "plain.ocg: is undirected: leave out directed=True"),
        ([names, plain], {}, "names.ocg: has names, and .*plain.ocg has numbers"),
        ([names], {"ids": "compact"}, 'names.ocg: has names: leave out ids="compact"'),
        ([plain], {"ids": "names"}, 'plain.ocg: has numbers as ids: leave out ids="names"'),
        ([plain, tmp_path / "." / "plain.ocg"], {}, "plain.ocg: is named twice"),
        ([plain], {"remove": arcs}, "arcs.ocg: is directed, and .*plain.ocg is undirected"),
        ([plain], {"remove_vertices": ["x"]}, "vertices to remove are ids"),
    ):
        with pytest.raises(InputError, match=message):
            convert(inputs, out, **wish)
    with pytest.raises(OutputError, match=r"plain.ocg: is an input too"):
        convert([plain, arcs], plain)
    (tmp_path / "cut.ocg").write_bytes(plain.read_bytes()[:-1])
    with pytest.raises(FormatError, match="truncated or still being copied"):
        convert([plain, tmp_path / "cut.ocg"], out)
    assert not out.exists()


# Ids of a graph of hubs, and those of the edges that come to it.
NEW_IDS: dict[str, Any] = {
    "the same": lambda ids: ids,
    "larger ones": lambda ids: ids + np.uint64(30_000),
    "between": lambda ids: ids * np.uint64(1000) + ids % np.uint64(2),
    "wide": lambda ids: ids + np.uint64(2**40),
}


@pytest.mark.parametrize("name", NEW_IDS)
@pytest.mark.parametrize("stored", ["natural", "degree", "dbg"])
@pytest.mark.parametrize("directed", [False, True])
def test_rows_of_hubs_are_put_into_the_new_order(
    tmp_path: Path, directed: bool, stored: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chosen order is that of all edges, whatever order the graph was stored in."""
    old, new = random_edges(1, 200_000), NEW_IDS[name](random_edges(2, 9_000))
    new = new[new[:, 0] != new[:, 1]]
    old = old * np.uint64(1000) if name == "between" else old
    every = keys_of(old, directed)
    known = np.stack((every >> np.uint64(32), every & np.uint64(2**32 - 1)), 1)
    graph, merged, plain = (tmp_path / part for part in ("g.ocg", "merged.ocg", "plain.ocg"))
    convert(known, graph, directed=directed, order=stored)
    for order in ("auto", "natural", "degree", "dbg"):
        all_edges = np.concatenate((known, new))
        assert convert(all_edges, plain, directed=directed, order=order).spilled_bytes == 0
        with monkeypatch.context() as little:
            plan = ConvertPlan(2, 4 << 20, MemoryWatch())
            little.setattr("oocbfs.conversion.converter.make_plan", lambda *_, plan=plan: plan)
            report = convert([graph, new], merged, order=order)
        assert merged.read_bytes() == plain.read_bytes()
        # Vertices without an edge are none where ids are wide, so that others move up.
        if name != "wide":
            assert report.spilled_bytes < 8 * len(new) < known.nbytes / 8


@pytest.mark.parametrize("directed", [False, True])
def test_communities_are_those_of_all_edges(
    tmp_path: Path, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that stay in their file, too, which are most of what the order is made of."""
    rng = np.random.default_rng(5)
    one, other = np.triu_indices(30, 1)
    first = 30 * np.arange(250)[:, None]
    inside = np.stack(((first + one).ravel(), (first + other).ravel()), 1)
    # A hub, without which it might be a mesh.
    edges = np.concatenate((inside, [(0, 7 * v) for v in range(5, 105)]))
    edges = rng.permutation(rng.permutation(7500)[edges])
    new = np.concatenate((edges[:5000], [(7501, 3), (7502, 7501)])).astype(np.uint64)
    old = edges[5000:].astype(np.uint64)
    graph, merged, plain = (tmp_path / part for part in ("g.ocg", "merged.ocg", "plain.ocg"))
    convert(old, graph, directed=directed, order="degree")
    convert(np.concatenate((old, new)), plain, directed=directed)
    left = []
    leave = SortedEdges.leave_in_place

    def spy(self: SortedEdges, base: GraphRun) -> None:
        left.append(base.num_edges)
        leave(self, base)

    monkeypatch.setattr(SortedEdges, "leave_in_place", spy)
    plan = ConvertPlan(2, 4 << 20, MemoryWatch())
    monkeypatch.setattr("oocbfs.conversion.converter.make_plan", lambda *_: plan)
    report = convert([graph, new], merged)
    assert (report.order, left) == ("communities", [len(old)])
    assert merged.read_bytes() == plain.read_bytes()


def test_a_row_that_is_damaged_is_not_put_elsewhere(tmp_path: Path) -> None:
    graph, out = tmp_path / "g.ocg", tmp_path / "out.ocg"
    convert(random_edges(1, 200_000), graph)
    with oocbfs.open(graph) as opened:
        section = opened._stored._container.sections[Kind.TAILS]
    data = bytearray(graph.read_bytes())
    data[section["offset"] + 5000 : section["offset"] + 5100] = b"\xff" * 100
    graph.write_bytes(data)
    with pytest.raises(FormatError, match="verify"):
        convert([graph, [(1, 2)]], out)
    assert not out.exists()

"""Distances, paths and all shortest paths between two vertices, against networkx."""

from __future__ import annotations

import errno
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs import Settings
from oocbfs.cli import main
from oocbfs.graph import lookup
from oocbfs.point import search
from tests.support.networkx_graphs import opened
from tests.support.strategies import ORDERS, Pairs, edge_lists, name_edges, pair_array

# From the mapped file, and each row by itself from disk.
STORAGES: tuple[dict[str, Any], ...] = ({}, {"options": Settings(engine="disk")})


@contextmanager
def bounded_to(edges: int) -> Iterator[None]:
    """Let pairs go over to a search of the whole graph when they look at more edges."""
    kept = search.ARCS_SHARE, search.LEAST_EDGES
    search.ARCS_SHARE, search.LEAST_EDGES = 0, edges
    try:
        yield
    finally:
        search.ARCS_SHARE, search.LEAST_EDGES = kept


def networkx_of(edges: Any, *, directed: bool) -> Any:
    graph: Any = nx.DiGraph() if directed else nx.Graph()
    graph.add_edges_from((u, v) for u, v in edges if u != v)
    graph.add_nodes_from(u for pair in edges for u in pair)
    return graph


def check_pair(graph: Any, expected: Any, one: Any, other: Any, **asked: Any) -> None:
    """Compare all that can be asked about two vertices."""
    try:
        paths = sorted(nx.all_shortest_paths(expected, one, other))
    except nx.NetworkXNoPath:
        paths = []
    distance = len(paths[0]) - 1 if paths else -1
    assert graph.distance(one, other, **asked) == distance
    path = graph.shortest_path(one, other, **asked)
    assert (path in paths) if paths else (path is None)
    every = graph.all_shortest_paths(one, other, **asked)
    assert (every.distance, every.count, bool(every)) == (distance, len(paths), bool(paths))
    assert sorted(every) == paths
    assert every.first(1) == list(every)[:1]
    steps = {step for path in paths for step in pairwise(path)}
    found = every.edges()
    assert set(zip(found["source"].tolist(), found["target"].tolist(), strict=True)) == steps
    assert every.num_edges == len(steps)


@settings(max_examples=20, deadline=None)
@given(
    edges=edge_lists().filter(bool),
    directed=st.booleans(),
    order=st.sampled_from(ORDERS),
    asked=st.sampled_from(STORAGES),
    named=st.booleans(),
    bound=st.sampled_from([0, 3, 20, 1 << 20]),
    data=st.data(),
)
def test_paths_are_those_of_networkx(
    edges: Pairs,
    directed: bool,
    order: Any,
    asked: dict[str, Any],
    named: bool,
    bound: int,
    data: st.DataObject,
) -> None:
    given_edges: Any = name_edges(edges) if named else edges
    expected = networkx_of(given_edges, directed=directed)
    vertices = sorted(expected)
    inputs = given_edges if named else pair_array(edges)
    ids: dict[str, Any] = {"ids": "names"} if named else {}
    with opened(inputs, directed=directed, order=order, **ids) as graph, bounded_to(bound):
        for _ in range(4):
            one, other = (data.draw(st.sampled_from(vertices)) for _ in range(2))
            check_pair(graph, expected, one, other, **asked)
        check_pair(graph, expected, vertices[0], vertices[0], **asked)
        pairs = [(u, v) for u in vertices[:9] for v in vertices[-9:]]
        results = graph.paths(pairs, **asked)
        distances = graph.distances(pairs, **asked).distances
        assert results.distances.tolist() == distances.tolist()
        for (one, other), distance, path in zip(pairs, distances, results.paths, strict=True):
            assert distance == graph.distance(one, other, **asked)
            assert (path is None) == (distance < 0)
            if path is not None:
                assert (path[0], path[-1], len(path)) == (one, other, distance + 1)
                assert all(expected.has_edge(*step) for step in pairwise(path))


@pytest.mark.parametrize("asked", STORAGES)
@pytest.mark.parametrize("bound", [1 << 20, 8])
def test_paths_are_counted_that_nobody_could_list(asked: dict[str, Any], bound: int) -> None:
    """A chain of diamonds has 3^k paths: 10^30 of them, and more than 64 bits hold."""
    length, width = 63, 3
    edges = []
    for i in range(length):
        first = i * (width + 1)
        edges += [(first, first + 1 + k) for k in range(width)]
        edges += [(first + 1 + k, first + width + 1) for k in range(width)]
    last = length * (width + 1)
    with opened(pair_array(edges)) as graph, bounded_to(bound):
        every = graph.all_shortest_paths(0, last, **asked)
        assert every.distance == 2 * length
        assert every.count == width**length > 10**30
        assert every.num_edges == 2 * width * length
        some = every.first(5)
        assert len({tuple(path) for path in some}) == 5
        assert all(len(path) == 2 * length + 1 for path in some)
        back = graph.all_shortest_paths(last, 0, **asked)
        assert back.count == every.count


@pytest.mark.parametrize("asked", STORAGES)
def test_a_depth_bounds_what_is_found(asked: dict[str, Any]) -> None:
    path = pair_array([(i, i + 1) for i in range(10)])
    with opened(path) as graph:
        for bound in (1 << 20, 0):
            with bounded_to(bound):
                for depth in (0, 4, 5, 6):
                    found = 5 if depth >= 5 else -1
                    assert graph.distance(2, 7, max_depth=depth, **asked) == found
                    pairs = [(2, 7), (3, 3), *((i, i + 5) for i in range(4))]
                    results = graph.distances(pairs, max_depth=depth, **asked)
                    assert results.distances.tolist() == [found, 0, *[found] * 4]


@pytest.mark.parametrize("ids", ["dense", "compact"])
@pytest.mark.parametrize("order", ORDERS)
def test_vertices_are_found_however_often_they_are_asked_for(
    tmp_path: Path, ids: Any, order: Any
) -> None:
    """Ids that lie apart, in any order; what was decided for some questions is decided anew."""
    edges = pair_array([(3 * i + 1, 3 * i + 4) for i in range(20)])
    oocbfs.convert(edges, tmp_path / "g.ocg", ids=ids, order=order)
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        for number in range(600):
            near, depth = 1 + 3 * (number % 20), number % 3 or None
            expected = number % 20 if depth is None or number % 20 <= depth else -1
            assert graph.distance(1, near, max_depth=depth) == expected
        for unknown in (63, 64, 2**63, 2**70, -1):
            with pytest.raises(oocbfs.QueryError, match=f"has no vertex {unknown}"):
                graph.distance(1, unknown)
        if ids == "compact":
            with pytest.raises(oocbfs.QueryError, match="has no vertex 2; its 21 ids lie between"):
                graph.shortest_path(2, 1)
    with pytest.raises(oocbfs.QueryError, match="is closed"):
        graph.distance(1, 4)


def test_nothing_as_large_as_the_graph_is_allocated(tmp_path: Path) -> None:
    """Of a graph whose arrays take megabytes, a pair takes some kilobytes, counted by Python."""
    n = 1 << 19
    rng = np.random.default_rng(5)
    edges = rng.integers(0, n, (4 * n, 2)).astype(np.uint64)
    oocbfs.convert(edges, tmp_path / "g.ocg", order="natural")
    for asked in STORAGES:
        with oocbfs.open(tmp_path / "g.ocg") as graph:
            graph.all_shortest_paths(1, 2, **asked)  # what is imported and compiled
            graph.shortest_path(1, 2, **asked)
        with oocbfs.open(tmp_path / "g.ocg") as graph:
            tracemalloc.start()
            try:
                assert graph.shortest_path(5, 7, **asked) is not None
                assert graph.distance(1, 9, **asked) > 2
                assert graph.all_shortest_paths(3, 4, **asked).count >= 1
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        assert peak < n  # a byte for each vertex; a search of the whole graph takes 13


def test_passes_over_the_order_end_in_turning_it_around(tmp_path: Path) -> None:
    """Both ways of finding a stored vertex agree, by one pass for few vertices and for many."""
    rng = np.random.default_rng(7)
    edges = rng.integers(0, 90_000, (200_000, 2)).astype(np.uint64)
    oocbfs.convert(edges, tmp_path / "g.ocg", order="degree")
    for from_disk in (False, True):
        with oocbfs.open(tmp_path / "g.ocg") as graph:
            stored: Any = graph._stored
            wanted = [rng.integers(0, graph.num_vertices, size) for size in (1, 2, 3, 1000)] * 6
            found = [stored.lookup.stored(some, from_disk=from_disk) for some in wanted[:8]]
            assert "stored_at" not in stored.__dict__
            found += [stored.lookup.stored(some, from_disk=from_disk) for some in wanted[8:]]
            assert "stored_at" in stored.__dict__
            for some, vertices in zip(wanted, found, strict=True):
                assert stored.stored_at[some].tolist() == vertices.tolist()
                ids = stored.lookup.ids_of(vertices.astype(np.uint32))
                assert ids.tolist() == stored.ids_at_positions(some).tolist()


@pytest.mark.parametrize("from_disk", [False, True])
@pytest.mark.parametrize("size", [1, 255, 5000, 70_000])
def test_an_order_without_room_is_turned_around_in_a_file(
    tmp_path: Path, size: int, from_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = np.stack([np.arange(size), np.roll(np.arange(size), 7)], axis=1)
    oocbfs.convert(edges, tmp_path / "g.ocg", order="degree", ids="dense")
    monkeypatch.setattr(lookup, "_SMALL", 0)
    monkeypatch.setattr(lookup, "_PIECE", 1 << 12)
    monkeypatch.setattr(lookup.Lookup, "_may_turn", lambda self, from_disk: False)
    # Several windows, the last of them not full.
    monkeypatch.setattr(lookup.Lookup, "window_bytes", lambda self, _: 4 * (size // 7 + 1))
    with oocbfs.open(tmp_path / "g.ocg", memory="8G") as graph:
        stored: Any = graph._stored
        rng = np.random.default_rng(size)
        for number in range(20):
            wanted = rng.integers(0, size, 1 + number % 3)
            found = stored.lookup.stored(wanted, from_disk=from_disk)
            assert stored.order[found].tolist() == wanted.tolist()
            assert (stored.lookup._turned_file is not None) == (
                number >= stored.lookup._most_passes
            )
        many = rng.integers(0, size, 3000)
        found = stored.lookup.stored(many, from_disk=from_disk)
        assert stored.order[found].tolist() == many.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["g.ocg"]


@pytest.mark.parametrize("why", ["no room on the disk", "no memory for a window", "damaged"])
def test_an_order_that_is_not_turned_around_in_a_file(
    tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 5000
    edges = np.stack([np.arange(size), np.roll(np.arange(size), 7)], axis=1)
    oocbfs.convert(edges, tmp_path / "g.ocg", order="degree", ids="dense")
    monkeypatch.setattr(lookup, "_SMALL", 0)
    monkeypatch.setattr(lookup.Lookup, "_may_turn", lambda self, from_disk: False)
    window = 100 if why == "no memory for a window" else size
    monkeypatch.setattr(lookup.Lookup, "window_bytes", lambda self, _: 4 * window)
    if why == "no room on the disk":
        full = OSError(errno.ENOSPC, "full")
        monkeypatch.setattr(os, "posix_fallocate", Mock(side_effect=full))
    with oocbfs.open(tmp_path / "g.ocg", memory="8G") as graph:
        stored: Any = graph._stored
        if why == "damaged":
            twice = stored.order.copy()
            twice[0] = twice[1]
            over = Mock(side_effect=lambda call, from_disk: [call(0, twice)])
            monkeypatch.setattr(lookup.Lookup, "_over_order", over)
            stored.lookup._num_passes = lookup._PASSES
            with pytest.raises(oocbfs.FormatError, match="order is damaged"):
                stored.lookup.stored(np.array([1]))
            return
        for position in range(40):
            found = stored.lookup.stored(np.array([position, 2 * position]))
            assert stored.order[found].tolist() == [position, 2 * position]
        assert stored.lookup._turned_file is None


def test_a_bound_is_told_where_no_path_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oocbfs.convert([(0, 1), (1, 2), (3, 4)], tmp_path / "g.ocg")
    for asked, said in (
        (["0", "2"], "2 steps: 0 → 1 → 2"),
        (["0", "1", "--all"], "1 shortest path\n1 step: 0 → 1"),
        (["0", "2", "--max-depth", "1"], "no path of at most 1 step"),
        (["0", "2", "--max-depth", "0", "--all"], "no path of at most 0 steps"),
        (["0", "3"], "no path"),
    ):
        assert main(["path", str(tmp_path / "g.ocg"), *asked]) == 0
        assert capsys.readouterr().out.strip() == said

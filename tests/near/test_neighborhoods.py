"""Who is near, against networkx: seeds apart and together, limits, names, any storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.near.result import Near
from tests.support.networkx_graphs import DISK, opened, random_graphs
from tests.support.strategies import ORDERS


def check(near: Near, expected: Any, depth: int, limit: int | None) -> None:
    """Check what is near one seed, or several, by the distances that networkx finds."""
    distances = nx.multi_source_dijkstra_path_length(expected, near.seeds, cutoff=depth)
    found = dict(zip(near.ids.tolist(), near.distances.tolist(), strict=True))
    assert near.ids.size == len(found)
    assert list(found.values()) == sorted(found.values())  # the nearest first
    assert found.items() <= distances.items()
    size = len(distances) if limit is None else min(limit, len(distances))
    assert len(found) == size
    assert near.cut == (len(distances) > size)
    # Nobody who is nearer was cut off.
    assert sorted(distances.values())[:size] == list(found.values())
    if near.parents is not None:
        for vertex, parent in zip(near.ids.tolist(), near.parents.tolist(), strict=True):
            if found[vertex] == 0:
                assert parent == vertex
            else:
                assert expected.has_edge(parent, vertex)
                assert found[parent] == found[vertex] - 1


@settings(max_examples=30, deadline=None)
@given(
    graph=random_graphs(),
    order=st.sampled_from(ORDERS),
    depth=st.integers(1, 5),
    limit=st.none() | st.integers(1, 12),
    data=st.data(),
)
def test_neighbourhoods(
    graph: Any, order: Any, depth: int, limit: int | None, data: st.DataObject
) -> None:
    seeds = data.draw(st.lists(st.sampled_from(list(graph)), min_size=1, max_size=6))
    with opened(graph, order=order) as ours:
        for where in ({}, DISK):
            asked: Any = {"limit": limit, "parents": data.draw(st.booleans()), **where}
            apart = ours.neighborhood(seeds, depth, **asked)
            found = list(apart)
            assert [near.seeds for near in found] == [[seed] for seed in seeds]
            for near in found:
                check(near, graph, depth, limit)
            assert apart.cut == [near.seeds[0] for near in found if near.cut]
            table = apart.to_polars()
            assert table["id"].to_list() == [v for near in found for v in near.ids.tolist()]
            assert table["seed"].to_list() == [near.seeds[0] for near in found for _ in near.ids]
            assert ("cut" in table.columns) == (limit is not None)
            together = ours.neighborhood(seeds, depth, union=True, **asked)
            (near,) = together
            check(near, graph, depth, limit)
            assert together.cut == (near.seeds if near.cut else [])


@pytest.mark.parametrize("limit", [None, 40])
@pytest.mark.parametrize("most", [0, 3, 50])
def test_seeds_that_take_the_whole_graph(most: int, limit: int | None) -> None:
    """A search of all of it gives what is not found in tables, in the order of the seeds."""
    graph = nx.disjoint_union(nx.gnm_random_graph(150, 300, seed=4), nx.path_graph(9))
    seeds = [0, 155, 1, 158, 2]
    with opened(graph, order="degree") as ours:
        for union in (False, True):
            near = ours.neighborhood(seeds, 3, limit=limit, parents=True, union=union)
            near._search._most_entries = most
            found = list(near)
            assert [v for one in found for v in one.seeds] == seeds
            for one in found:
                check(one, graph, 3, limit)


def test_many_seeds_are_taken_some_at_a_time() -> None:
    """Small neighbourhoods by the hundred, and one that has no room beside others."""
    graph = nx.disjoint_union(nx.star_graph(200_000), nx.cycle_graph(3000))
    seeds = [0, *range(200_001, 203_001), 0, 5]
    with opened(graph, order="natural") as ours:
        near = ours.neighborhood(seeds, 2, threads=2)
        near._search._most_entries = graph.number_of_nodes()
        sizes = [one.ids.size for one in near]
        assert sizes == [200_001, *[5] * 3000, 200_001, 200_001]
        small = ours.neighborhood(seeds[1:3001], 2, limit=3)
        assert len(small.cut) == 3000
        assert polars.DataFrame(small)["cut"].all()


def test_parts_are_asked_as_a_whole(tmp_path: Path) -> None:
    graph = nx.gnm_random_graph(60, 120, seed=1)
    oocbfs.convert(graph, tmp_path / "g.ocg")
    oocbfs.shard(tmp_path / "g.ocg", tmp_path / "parts", parts=2)
    with oocbfs.open(tmp_path / "parts") as parts:
        for near in parts.neighborhood([3, 4], 2, limit=9, parents=True):
            check(near, graph, 2, 9)
        ego = parts.ego(3, 1).to_networkx()
        assert nx.utils.graphs_equal(ego, nx.ego_graph(graph, 3))
        assert parts.has_edge(0, [*graph]).tolist() == [graph.has_edge(0, v) for v in graph]


def test_backwards_and_within_a_budget(tmp_path: Path) -> None:
    graph = nx.gnm_random_graph(80, 200, seed=2, directed=True)
    oocbfs.convert(graph, tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg", memory="2G") as ours:
        for near in ours.reversed().neighborhood([1, 2], 2):
            check(near, graph.reverse(), 2, None)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"seeds": []}, "there are no seeds"),
        ({"seeds": [1, 99]}, "has no vertex 99"),
        ({"seeds": ["x"]}, "is not an id"),
        ({"depth": 0}, "nothing is within 0 steps"),
        ({"depth": -1}, "depth cannot be -1"),
        ({"depth": 1.5}, "depth cannot be 1.5"),
        ({"limit": 0}, "limit cannot be 0"),
        ({"threads": 0}, "threads cannot be 0"),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, Any], message: str) -> None:
    with opened(nx.path_graph(5)) as graph, pytest.raises(QueryError, match=message):
        graph.neighborhood(**{"seeds": [1], "depth": 1, **asked})


def test_a_damaged_row_and_a_closed_graph(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(nx.star_graph(500), path, order="natural")
    with oocbfs.open(path) as graph:
        record = graph._stored._container.sections[Kind.TAILS]
        near = graph.neighborhood(0, 1)
    with pytest.raises(QueryError, match="is closed"):
        list(near)
    data = bytearray(path.read_bytes())
    begin = int(record["offset"])
    data[begin : begin + 500] = bytes([255]) * 500
    path.write_bytes(data)
    with oocbfs.open(path) as graph, pytest.raises(FormatError, match="oocbfs verify"):
        list(graph.neighborhood(0, 1))


def test_no_more_memory_for_many_seeds_than_for_few() -> None:
    """Rows are handed on: what is in memory does not grow with them."""
    graph = nx.complete_graph(300)
    with opened(graph) as ours:
        near = ours.neighborhood(list(graph) * 30, 2)
        most = max(found.ids.size for _, found in near._found())
        assert most < 300 * 9_000 / 4
        assert sum(found.ids.size for _, found in near._found()) == 300 * 9_000


def test_the_answer_is_that_of_a_search_of_all(tmp_path: Path) -> None:
    graph = nx.gnm_random_graph(500, 900, seed=8)
    with opened(graph, order="degree") as ours:
        for near in ours.neighborhood([0, 7, 30], 4):
            levels = ours.bfs(near.seeds[0], max_depth=4).levels
            assert np.array_equal(np.sort(near.ids), np.flatnonzero(levels >= 0))
            assert np.array_equal(near.distances, levels[near.ids.astype(np.int64)])

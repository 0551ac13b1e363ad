"""The contract of all engines: any graph, any question, one answer."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.engines import MODULES, engine_named
from oocbfs.engines.base import Engine
from oocbfs.gpu.nvidia import ask_driver
from tests.support.keywords import keywords
from tests.support.strategies import DIRECTIONS, ORDERS, Pairs, edge_lists, expected_edges
from tests.support.strategies import pair_array as pairs_of

# How each engine is asked for.
WAYS: dict[str, tuple[dict[str, Any], ...]] = {
    "cpu": ({"engine": "cpu"}, {"engine": "cpu", "memory": "2G"}),
    "disk": ({"engine": "disk"}, {"engine": "disk", "memory": "2G"}),
    "point": ({"engine": "point"}, {"engine": "point", "memory": "2G"}),
    "cuda": ({"engine": "cuda"},),
    "emulator": ({"engine": "emulator"}, {"engine": "emulator", "resident_tails": "0%"}),
    "devices": tuple(
        {"engine": "emulator", "devices": names} for names in ((0,), (0, 1), (1, 0), (0, 1, 2))
    ),
    "shards": ({}, {"engine": "disk"}, {"gather": False}),
    "lab": ({"engine": "cpu", "method": "csr"}, {"engine": "emulator", "method": "v3.3"}),
}

# What results name where that is not the engine alone: what reaches too much goes over to the CPU.
ANSWERED = {
    "point": {"point", "cpu"},
    "devices": {"emulator"},
    "shards": {"here"},
    "lab": {"cpu", "emulator"},
}


def plain_levels(edges: Pairs, sources: list[int], *, directed: bool) -> dict[int, int]:
    """Search as a textbook does; returns the level of each id that is reached."""
    neighbours = defaultdict(list)
    for u, v in expected_edges(edges, directed=directed):
        neighbours[u].append(v)
        if not directed:
            neighbours[v].append(u)
    levels, frontier = dict.fromkeys(sources, 0), sources
    while frontier:
        found = {v for u in frontier for v in neighbours[u]} - levels.keys()
        levels.update(dict.fromkeys(found, levels[frontier[0]] + 1))
        frontier = sorted(found)
    return levels


def check_parents(result: Any, edges: Pairs, *, directed: bool) -> None:
    """A parent is one level nearer, by an edge of the graph; sources are their own."""
    known = expected_edges(edges, directed=directed)
    ids = result.graph.ids().tolist()
    levels = dict(zip(ids, result.levels.tolist(), strict=True))
    for vertex, parent in zip(ids, result.parents.tolist(), strict=True):
        if levels[vertex] <= 0:
            assert parent == (vertex if levels[vertex] == 0 else -1)
            continue
        assert levels[parent] == levels[vertex] - 1
        assert (parent, vertex) in known or (not directed and (vertex, parent) in known)


def test_every_engine_is_here_and_says_its_name() -> None:
    assert WAYS.keys() == MODULES.keys()
    for name in MODULES:
        engine = engine_named(name)
        assert isinstance(engine, Engine)
        assert engine.name == name


@pytest.mark.parametrize("asked", [{"devices": (0, 1)}, {"method": "csr"}])
def test_engines_that_find_no_components_say_so(tmp_path: Path, asked: dict[str, Any]) -> None:
    oocbfs.convert(pairs_of([(0, 1)]), tmp_path / "g.ocg")
    with (
        oocbfs.open(tmp_path / "g.ocg") as graph,
        pytest.raises(oocbfs.QueryError, match="leave out devices and method"),
    ):
        graph.components(options=oocbfs.Settings(**asked))


@pytest.mark.parametrize("name", MODULES)
@given(
    edges=edge_lists(),
    directed=st.booleans(),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(DIRECTIONS),
    threads=st.sampled_from([1, 2, 4, 20]),
    parents=st.booleans(),
    data=st.data(),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
def test_any_graph_any_question(
    tmp_path: Path,
    name: str,
    edges: Pairs,
    directed: bool,
    order: Any,
    direction: Any,
    threads: int,
    parents: bool,
    data: st.DataObject,
) -> None:
    if name == "cuda" and (reason := ask_driver().problem) is not None:
        pytest.skip(f"no GPU: {reason}")
    if name not in ("cpu", "disk", "point", "shards") and shutil.which("g++") is None:
        pytest.skip("the emulator needs a C++ compiler")
    path = tmp_path / "g.ocg"
    oocbfs.convert(pairs_of(edges), path, directed=directed, order=order, force=True)
    if name == "shards":
        path = tmp_path / "parts"
        oocbfs.shard(tmp_path / "g.ocg", path, parts=data.draw(st.integers(1, 3)), force=True)
    with oocbfs.open(path) as graph:
        ids = graph.ids().tolist()
        if not ids:
            return
        sources = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3))
        asked = {
            "threads": threads,
            # Where ids have no room in 63 bits, parents are refused.
            "parents": parents and max(ids) < 2**63,
            "max_depth": data.draw(st.none() | st.integers(0, 4)),
            "target": data.draw(st.none() | st.sampled_from(ids)),
            **({} if name == "lab" else {"direction": direction}),
            **data.draw(st.sampled_from(WAYS[name])),
        }
        result = graph.bfs(sources, validate=True, **keywords(asked))
        assert result.stats.engine in ANSWERED.get(name, {name})
        levels = plain_levels(edges, sources, directed=directed)
        stops = [asked["max_depth"], levels.get(asked["target"])]
        last = min((stop for stop in stops if stop is not None), default=len(ids))
        expected = [levels.get(one, -1) if levels.get(one, -1) <= last else -1 for one in ids]
        assert result.levels.tolist() == expected
        sizes = [expected.count(level) for level in range(max(expected) + 1)]
        assert result.level_sizes.tolist() == sizes
        assert sum(level.frontier for level in result.stats.levels) == sum(sizes)
        assert (result.reached, result.depth) == (sum(sizes), len(sizes) - 1)
        if asked["parents"]:
            check_parents(result, edges, directed=directed)
            way = result.path_to(farthest := ids[expected.index(result.depth)])
            assert len(way) == len(sizes)
            assert [levels[one] for one in way] == list(range(len(sizes)))
            assert way[-1] == farthest


@pytest.mark.parametrize("step", [1, 3], ids=["consecutive", "listed"])
@pytest.mark.parametrize("name", MODULES)
def test_parents_whose_ids_no_float_holds(tmp_path: Path, name: str, step: int) -> None:
    """Of a search that reaches few, and of one that reaches many."""
    if name == "cuda" and (reason := ask_driver().problem) is not None:
        pytest.skip(f"no GPU: {reason}")
    if name not in ("cpu", "disk", "point", "shards") and shutil.which("g++") is None:
        pytest.skip("the emulator needs a C++ compiler")
    few, many = range(7), range(7, 3000)
    ids = [2**60 + 1 + step * i for i in range(3000)]
    edges = [(ids[i], ids[i + 1]) for some in (few, many) for i in some[:-1]]
    edges += [(ids[7], ids[i]) for i in many[2:]]
    path = tmp_path / "g.ocg"
    oocbfs.convert(pairs_of(edges), path)
    if name == "shards":
        path = tmp_path / "parts"
        oocbfs.shard(tmp_path / "g.ocg", path, parts=2)
    for way in WAYS[name]:
        with oocbfs.open(path) as graph:
            for source in (ids[few[1]], ids[many[1]]):
                found = graph.bfs(source, parents=True, validate=True, **keywords(way))
                check_parents(found, edges, directed=False)
                assert found.path_to(source) == [source]

"""Searches of real graphs against SciPy and published answers."""

import re
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support.answers import scipy_levels
from tests.support.exhaustive import ALL, crossing
from tests.support.real_graphs import GRAPHS, needs_graphs, order_of, real_graphs
from tests.support.shared import SharedGraphs
from tests.support.strategies import DIRECTIONS, ORDERS

# Order, threads, direction, engine, and whether there are parents, which are then checked.
WAYS = crossing(ORDERS, (1, 2, 4), DIRECTIONS, ("cpu", "disk"), (False, True))


def published(path: Path) -> dict[int, int]:
    rows = (line.split() for line in path.read_text().splitlines())
    return {int(i): -1 if int(x) == 2**63 - 1 else int(x) for i, x in rows}


@needs_graphs
@pytest.mark.parametrize(
    ("graph", "answer", "source", "directed"),
    [
        ("p2p/p2p-31.e", "p2p/p2p-31-BFS", 6, False),
        ("truth/example-directed.e", "truth/example-directed-BFS", 1, None),
        ("truth/example-undirected.e", "truth/example-undirected-BFS", 2, None),
    ],
)
def test_published_answers(
    shared_graphs: SharedGraphs, graph: str, answer: str, source: int, directed: bool | None
) -> None:
    properties = (GRAPHS / graph).with_suffix(".properties")
    if properties.exists():
        (line,) = [x for x in properties.read_text().splitlines() if "bfs.source-vertex" in x]
        assert source == int(line.split("=")[1])
    expected = published(GRAPHS / answer)
    for order in ORDERS:
        converted = shared_graphs.convert(GRAPHS / graph, directed=directed, order=order)
        with open_file(converted) as opened:
            for direction in DIRECTIONS:
                result = opened.bfs(source, validate=True, options=Settings(direction=direction))
                found = dict(zip(opened.ids().tolist(), result.levels.tolist(), strict=True))
                assert found == expected


@needs_graphs
def test_karate(tmp_path: Path) -> None:
    """Every level, and a parent among the valid ones, from vertex 30 counted from 0."""
    text = (GRAPHS / "truth" / "lagraph-karate-source30-levels-parents.txt").read_text()
    oocbfs.convert(GRAPHS / "formats" / "mtx" / "karate.mtx", tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        result = graph.bfs(31, parents=True, validate=True)
    levels, parents = karate_answers(text)
    assert result.levels.tolist() == levels
    for vertex, parent in enumerate(result.parents.tolist()):
        assert parent - 1 in parents[vertex]


def karate_answers(text: str) -> tuple[list[int], list[list[int]]]:
    """Read the levels and the valid parents from the C source that states them."""
    levels = text.split("LEVELS30[] = {")[1].split("}")[0]
    parents = text.split("PARENT30 [34][3] = {")[1].split("} ;")[0]
    rows = re.findall(r"\{([^}]*)", parents)
    return (
        [int(x) for x in levels.split(",")],
        [[int(x) for x in row.split(",") if x.strip() != "xx"] for row in rows],
    )


@pytest.mark.long
@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_real_graphs_in_every_way(path: Path, shared_graphs: SharedGraphs) -> None:
    """Against SciPy, from 20 sources: the ways in turn, or with --all every way from each of them.

    Graphs of over 100,000 vertices always go through the ways in turn; unless --all says otherwise,
    each has four sources and two orders, and the next one goes on with the ways. Deep ones end
    after 60 levels when forced bottom-up, where each level looks at every vertex.
    """
    with ExitStack() as stack:

        @cache
        def opened(order: str) -> Graph:
            return stack.enter_context(open_file(shared_graphs.convert(path, order=order)))

        graph = opened("natural")
        matrix = graph.to_scipy()
        rng = np.random.default_rng(20)
        is_large = graph.num_vertices > 100_000
        in_turn = WAYS
        count = 20
        if is_large and not ALL:
            in_turn = [way for way in WAYS if way[0] in ("natural", order_of(path))]
            count = 4
        first = real_graphs().index(path) * count
        sources = rng.choice(graph.ids(), count, replace=graph.num_vertices < count)
        for number, source in enumerate(sources.tolist(), first):
            expected = scipy_levels(matrix, graph._stored.position(source), directed=graph.directed)
            every_way = ALL and not is_large
            ways = WAYS if every_way else [in_turn[number % len(in_turn)]]
            for order, threads, direction, engine, parents in ways:
                cut = 60 if direction == "bottom-up" and expected.max() > 100 else 2**30
                result = opened(order).bfs(
                    source,
                    threads=threads,
                    engine=engine,
                    parents=parents,
                    validate=parents,
                    max_depth=cut,
                    options=Settings(direction=direction),
                )
                np.testing.assert_array_equal(
                    result.levels, np.where(expected <= cut, expected, -1)
                )

"""Traversals of real graphs against SciPy and published answers."""

import itertools
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from tests.formats.test_round_trip import real_graphs
from tests.support.scipy_levels import scipy_levels

DIRECTIONS: tuple[Any, ...] = ("auto", "top-down", "bottom-up")
ORDERS: tuple[Any, ...] = ("natural", "degree", "dbg", "local")
GRAPHS = os.environ.get("OOCBFS_GRAPHS")
needs_graphs = pytest.mark.skipif(
    GRAPHS is None, reason="OOCBFS_GRAPHS names no folder of public graphs"
)


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
    tmp_path: Path, graph: str, answer: str, source: int, directed: bool | None
) -> None:
    folder = Path(str(GRAPHS))
    properties = (folder / graph).with_suffix(".properties")
    if properties.exists():
        (line,) = [x for x in properties.read_text().splitlines() if "bfs.source-vertex" in x]
        assert source == int(line.split("=")[1])
    expected = published(folder / answer)
    for order in ORDERS:
        oocbfs.convert(
            folder / graph, tmp_path / "g.ocg", directed=directed, order=order, force=True
        )
        with oocbfs.open(tmp_path / "g.ocg") as opened:
            for direction in DIRECTIONS:
                result = opened.bfs(source, direction=direction, validate=True)
                found = dict(zip(opened.ids().tolist(), result.levels.tolist(), strict=True))
                assert found == expected


@needs_graphs
def test_karate(tmp_path: Path) -> None:
    """Every level, and a parent among the valid ones, from vertex 30 counted from 0."""
    folder = Path(str(GRAPHS))
    text = (folder / "truth" / "lagraph-karate-source30-levels-parents.txt").read_text()
    oocbfs.convert(folder / "formats" / "mtx" / "karate.mtx", tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
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


@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_real_graphs_from_twenty_sources(path: Path, tmp_path: Path) -> None:
    """Against SciPy: 20 sources, all orders, 1, 2 and 4 threads, every direction.

    Graphs of over 100,000 vertices go through the ways in turn, one for each source, and deep ones
    end after 60 levels when forced bottom-up, where each level looks at every vertex.
    """
    ways = list(itertools.product((1, 2, 4), DIRECTIONS))
    rng = np.random.default_rng(20)
    for order in ORDERS:
        oocbfs.convert(path, tmp_path / "g.ocg", order=order, force=True)
        with oocbfs.open(tmp_path / "g.ocg") as graph:
            few = graph.num_vertices <= 100_000
            matrix = graph.to_scipy()
            sources = rng.choice(graph.ids(), 20, replace=graph.num_vertices < 20)
            for number, source in enumerate(sources.tolist()):
                expected = scipy_levels(matrix, graph.position(source), directed=graph.directed)
                for threads, direction in ways if few else [ways[number % len(ways)]]:
                    cut = 60 if direction == "bottom-up" and expected.max() > 100 else 2**30
                    result = graph.bfs(
                        source,
                        threads=threads,
                        direction=direction,
                        parents=number % 5 == 0,
                        validate=number % 5 == 0,
                        max_depth=cut,
                    )
                    np.testing.assert_array_equal(
                        result.levels, np.where(expected <= cut, expected, -1)
                    )

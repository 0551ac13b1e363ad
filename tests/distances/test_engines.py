"""Every engine that answers many sources answers this, and so do sharded graphs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.distances.job import Job, Question
from oocbfs.distances.scope import scope_of
from oocbfs.distances.searches import Searches
from oocbfs.errors import QueryError
from oocbfs.generate import generators
from oocbfs.search.any_graph import AnyGraph
from tests.support.strategies import name_edges


def measured(graph: AnyGraph, **how: Any) -> dict[str, Any]:
    """What is asked most."""
    return {
        "diameter": graph.diameter(**how),
        "radius": graph.radius(**how),
        "center": graph.center(**how).tolist(),
        "eccentricities": graph.eccentricities(**how).tolist(),
        "pairs": graph.distance_distribution(20, **how).pairs.tolist(),
        "top": graph.top_central(3, **how),
    }


SHAPES: dict[str, Callable[[], Any]] = {
    "kron": lambda: generators.kron(9),
    # Deeper than searches that share their work go.
    "long": lambda: generators.grid2d(3, 60),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_engines_agree(tmp_path: Path, shape: str, directed: bool) -> None:
    oocbfs.convert(SHAPES[shape](), tmp_path / "g.ocg", directed=directed)
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        expected = measured(graph)
        for how in ({"threads": 1}, {"memory": "16G"}):
            assert measured(graph, **how) == expected
        if shape == "kron":
            found = graph.diameter(engine="emulator"), graph.radius(engine="emulator")
            assert found == (expected["diameter"], expected["radius"])


def test_from_disk(tmp_path: Path) -> None:
    """A budget below what the file takes: tails stay on disk, and many sources share a pass."""
    oocbfs.convert(generators.uniform(18, 48), tmp_path / "g.ocg", codec="raw")
    question = Question(exact=(), samples=64, closeness=True)
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        expected = Job(graph, question).run()
    budget = 1 << 26
    while True:
        try:
            with oocbfs.open(tmp_path / "g.ocg", memory=budget) as graph:
                found = Job(graph, question).run()
            break
        except oocbfs.BudgetError as error:
            budget = (error.needed_bytes or 2 * budget) + (1 << 20)
    assert found.distribution is not None
    assert expected.distribution is not None
    assert found.distribution.pairs.tolist() == expected.distribution.pairs.tolist()
    assert found.harmonic is not None
    assert expected.harmonic is not None
    assert found.harmonic.values.tolist() == expected.harmonic.values.tolist()
    assert found.disk_bytes > 0
    assert expected.disk_bytes == 0


def test_bytes_from_disk_are_those_of_the_searches(tmp_path: Path) -> None:
    """One search from disk reads what the same search says it reads; in memory there is none."""
    oocbfs.convert(generators.kron(14), tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        assert Job(graph, Question(samples=64)).run().disk_bytes == 0
        scope = scope_of(graph)
        source = scope.positions()[:1]
        with Searches(graph, scope, engine="disk") as searches:
            list(searches.around(source))
        alone = graph.bfs(int(graph.ids()[source[0]]), engine="disk").stats
    assert searches.disk_bytes == alone.slow_bytes_by_tier["disk"] > 0


def test_parts(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(8), tmp_path / "g.ocg")
    oocbfs.shard(tmp_path / "g.ocg", tmp_path / "parts", parts=2)
    with oocbfs.open(tmp_path / "g.ocg") as whole, oocbfs.open(tmp_path / "parts") as parts:
        assert measured(parts) == measured(whole)
    oocbfs.convert(generators.kron(6), tmp_path / "d.ocg", directed=True)
    oocbfs.shard(tmp_path / "d.ocg", tmp_path / "directed", parts=2)
    with oocbfs.open(tmp_path / "directed") as parts:
        with pytest.raises(QueryError, match="in one file"):
            parts.diameter()
        with oocbfs.open(tmp_path / "d.ocg") as whole:
            assert parts.diameter(component="all") == whole.diameter(component="all")


def test_names(tmp_path: Path) -> None:
    edges = np.random.default_rng(1).integers(0, 30, (50, 2)).tolist()
    oocbfs.convert(name_edges(edges), tmp_path / "n.ocg", ids="names")
    with oocbfs.open(tmp_path / "n.ocg") as graph:
        names = graph.ids().tolist()
        assert set(graph.center().tolist()) <= set(names)
        (best, value), *_ = graph.top_central(1)
        assert graph.harmonic([best]).tolist() == [value] == [max(graph.harmonic(names))]
        assert graph.eccentricity(best) in graph.eccentricities().tolist()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda graph: graph.diameter(component=99), "has no vertex 99"),
        (lambda graph: graph.eccentricity(98), "has no vertex 98"),
        (lambda graph: graph.distance_distribution(0), "samples cannot be 0"),
        (lambda graph: graph.distance_distribution(5, confidence=95), "confidence cannot be 95"),
        (lambda graph: graph.effective_diameter(90), "share cannot be 90"),
        (lambda graph: graph.top_central(0), "count cannot be 0"),
        (lambda graph: graph.top_central(1, by="degree"), "one of closeness, harmonic"),
        (lambda graph: graph.harmonic([3], component="largest"), "3 is not in the largest"),
        (lambda graph: graph.radius(engine="magic"), "engine cannot be"),
    ],
)
def test_refusals(tmp_path: Path, ask: Callable[[AnyGraph], object], message: str) -> None:
    oocbfs.convert(np.array([[0, 1], [1, 2], [3, 4]]), tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph, pytest.raises(QueryError, match=message):
        ask(graph)

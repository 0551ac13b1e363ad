"""Rows of small graphs are kept decoded from the second search on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.graph import stored
from oocbfs.search.graph import Graph, open_file
from tests.support.crafting import rewrite


@pytest.fixture
def kron(tmp_path: Path) -> Path:
    path = tmp_path / "kron.ocg"
    oocbfs.convert(generators.kron(12), path)
    return path


def reads_tails(graph: Graph, source: int) -> bool:
    """Return whether a search decodes tails."""
    return sum(level.tail_bytes for level in graph.bfs(source, engine="cpu").stats.levels) > 0


def source_of(graph: Graph) -> int:
    return int(graph.ids()[0])


def test_the_second_search_decodes_and_finds_the_same(kron: Path) -> None:
    with open_file(kron) as graph:
        source = source_of(graph)
        first = graph.bfs(source, engine="cpu", parents=True)
        again = graph.bfs(source, engine="cpu", parents=True, validate=True)
        assert reads_tails(graph, source) is False
        np.testing.assert_array_equal(first.levels, graph.bfs(source, engine="cpu").levels)
        np.testing.assert_array_equal(first.levels, again.levels)
        rows, _ = graph._stored.decoded_rows
        assert rows.neighbours.size >= graph.num_arcs
    # What was decoded is gone with the graph.
    assert "decoded_rows" not in graph._stored.__dict__


def test_a_graph_that_is_large_stays_as_it_is(kron: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_MOST_DECODED_BYTES", 1000)
    with open_file(kron) as graph:
        assert [reads_tails(graph, source_of(graph)) for _ in range(3)] == [True] * 3


def test_memory_that_is_scarce_is_not_taken(kron: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "available_bytes", lambda: 8000)
    with open_file(kron) as graph:
        assert [reads_tails(graph, source_of(graph)) for _ in range(3)] == [True] * 3


def test_a_budget_has_no_room_for_decoded_rows(kron: Path) -> None:
    with open_file(kron, memory="8G") as graph:
        assert [reads_tails(graph, source_of(graph)) for _ in range(3)] == [True] * 3
    with open_file(kron) as graph:
        for _ in range(3):
            graph.bfs(source_of(graph), engine="cpu", memory="8G")
        assert "decoded_rows" not in graph._stored.__dict__


def test_damage_that_no_search_meets_stays_harmless(tmp_path: Path) -> None:
    """Searches that do not reach a damaged row go on without decoded rows."""
    path = tmp_path / "damaged.ocg"
    pairs = [(0, 1), (1, 2), (10, 11), (10, 12), (10, 13), (11, 12)]
    oocbfs.convert(np.array(pairs, np.uint64), path, order="natural")
    with open_file(path) as graph:
        last = int(graph._stored.rows.starts[graph._stored.stored_one(10) + 1]) - 1
    rewrite(path, Kind.TAILS, last, 0xFF)
    with open_file(path) as graph:
        for _ in range(3):
            assert graph.bfs(0, engine="cpu").reached == 3
        with pytest.raises(FormatError, match="damaged"):
            graph.bfs(10, engine="cpu")

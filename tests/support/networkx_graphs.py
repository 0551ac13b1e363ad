"""Graphs of networkx for tests: of all four kinds, with loops, and nodes of any type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
from hypothesis import strategies as st

import oocbfs
from oocbfs import Settings

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
MISSING = "nobody"


def named(number: int, style: str) -> Any:
    """Return a node for a number."""
    if style == "mixed":
        return (number, str(number), (number, "x"), number + 0.5, frozenset([number]))[number % 5]
    return {"number": number, "text": f"node {number}", "sparse": 7 * number + 3}[style]


@st.composite
def graphs(draw: st.DrawFn, kinds: tuple[Any, ...] = KINDS, most: int = 12) -> Any:
    """Draw a graph whose nodes and edges come in any order."""
    graph = draw(st.sampled_from(kinds))()
    count = draw(st.integers(0, most))
    style = draw(st.sampled_from(("number", "text", "sparse", "mixed")))
    numbers = draw(st.permutations(range(count)))
    graph.add_nodes_from(named(number, style) for number in numbers)
    ends = st.integers(0, count - 1) if count else st.nothing()
    edges = draw(st.lists(st.tuples(ends, ends), max_size=3 * count)) if count else []
    graph.add_edges_from((named(u, style), named(v, style)) for u, v in edges)
    return graph


def outcome(call: Any) -> Any:
    """Return all that a call tells, with the order of what it gives; or how it fails."""
    try:
        return _ordered(call())
    except nx.NetworkXException as error:
        return type(error), str(error)
    except (KeyError, TypeError, ValueError) as error:  # whose words are Python's
        return type(error)


def _ordered(value: Any) -> Any:
    if isinstance(value, nx.Graph):
        return [(node, list(row)) for node, row in value._adj.items()], type(value)
    if isinstance(value, dict):
        return [(key, _ordered(item)) for key, item in value.items()]
    if isinstance(value, (str, bytes, int, float, tuple, frozenset, set, bool)):
        return value
    if isinstance(value, list):
        return value
    return [
        (item[0], _ordered(item[1]))
        if isinstance(item, tuple) and isinstance(item[1], dict)
        else item
        for item in value
    ]


# Rows read from disk one by one.
DISK = {"options": Settings(engine="disk")}


@contextmanager
def opened(graph: Any, **options: Any) -> Iterator[Any]:
    """Open what edges, or a graph of networkx, are converted to."""
    with TemporaryDirectory() as folder:
        oocbfs.convert(graph, Path(folder) / "g.ocg", **options)
        with oocbfs.open(Path(folder) / "g.ocg") as found:
            yield found


@st.composite
def random_graphs(draw: st.DrawFn) -> Any:
    """Draw a graph of networkx whose nodes are ids with gaps, or names."""
    count, directed = draw(st.integers(1, 30)), draw(st.booleans())
    edges = draw(st.integers(0, 3 * count))
    graph: Any = nx.gnm_random_graph(count, edges, seed=draw(st.integers(0, 99)), directed=directed)
    named = draw(st.booleans())
    return nx.relabel_nodes(graph, {n: f"n{n}" if named else 5 * n + 2 for n in graph})

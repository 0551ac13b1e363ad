"""Graphs for property tests, and how to look at what a container holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs

ORDERS: tuple[Any, ...] = ("natural", "degree", "dbg", "local", "communities")
DIRECTIONS: tuple[Any, ...] = ("auto", "top-down", "bottom-up")
Pairs = list[tuple[int, int]]

_small = st.integers(0, 40)
_huge = st.integers(0, 2**64 - 1)


@st.composite
def edge_lists(draw: st.DrawFn) -> Pairs:
    """Edges with loops and duplicates: few ids, huge ids, or one hub."""
    kind = draw(st.sampled_from(["small", "huge", "hub"]))
    if kind == "hub":
        hub = draw(_small)
        return [(hub, v) for v in draw(st.lists(st.integers(0, 3000), max_size=60))]
    ids = _small if kind == "small" else st.one_of(_small, _huge)
    edges: Pairs = draw(st.lists(st.tuples(ids, ids), max_size=60))
    return edges + draw(st.lists(st.sampled_from(edges), max_size=10)) if edges else edges


def name_of(vertex: int) -> str:
    """Name a vertex, so that names share beginnings and are not in the order of the ids."""
    return f"vertex {'äöü'[vertex % 3]}{vertex % 7}/{vertex}"


def name_edges(edges: list[Any]) -> list[tuple[str, str]]:
    """Edges between names."""
    return [(name_of(u), name_of(v)) for u, v in edges]


def pair_array(edges: Pairs) -> NDArray[np.uint64]:
    """Edges as an (m, 2) array."""
    return np.array(edges, np.uint64).reshape(-1, 2)


def expected_edges(edges: Pairs, *, directed: bool) -> set[tuple[int, int]]:
    """Distinct edges without loops, undirected ones with the smaller end first."""
    kept = {(u, v) for u, v in edges if u != v}
    return kept if directed else {(min(e), max(e)) for e in kept}


def stored_edges(path: Path) -> set[tuple[int, int]]:
    """Edges of a container in input ids, and a check that none comes twice."""
    with oocbfs.open(path) as graph:
        batches = list(graph._stored.id_edges())
        directed = graph.directed
    listed = [(int(u), int(v)) for b in batches for u, v in zip(b.sources, b.targets, strict=True)]
    if not directed:
        listed = [(min(e), max(e)) for e in listed]
    assert len(listed) == len(set(listed))
    return set(listed)

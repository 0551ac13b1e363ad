"""Graphs made of others: with ids that say nothing, and as large as they are wanted."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oocbfs
from oocbfs.generate.generators import GeneratedEdges

# Edges from a copy of a graph to the next.
_BRIDGES = 8


def positions_of_edges(graph: str | os.PathLike[str]) -> tuple[list[NDArray[np.uint64]], int, bool]:
    """Return the ends of a graph's edges as positions, how many there are, and its direction."""
    with oocbfs.open(graph) as opened:
        ids = np.asarray(opened.ids())
        batches = list(opened.edges())
        directed = opened.directed
    ends = [
        np.concatenate([np.empty(0, np.uint64), *(getattr(batch, side) for batch in batches)])
        for side in ("sources", "targets")
    ]
    return [np.searchsorted(ids, some).astype(np.uint64) for some in ends], ids.size, directed


def shuffle(graph: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write the edges of a graph between ids that say nothing, as an array."""
    ends, size, _ = positions_of_edges(graph)
    names = np.random.default_rng(5).permutation(size)
    np.save(path, np.stack([names[some] for some in ends], axis=1))


def repeat(graph: str | os.PathLike[str], path: str | os.PathLike[str], copies: int | str) -> None:
    """Write copies of a graph beside each other, with a few edges from each to the next."""
    (sources, targets), size, directed = positions_of_edges(graph)
    count, num_edges = int(copies), sources.size + _BRIDGES

    def fill(u: Any, v: Any, first: Any) -> None:
        copy, edge = np.divmod(np.arange(int(first), int(first) + u.size), num_edges)
        some = np.minimum(edge, sources.size - 1)
        u[:], v[:] = sources[some], targets[some]
        bridge = edge >= sources.size
        u[bridge], v[bridge] = np.random.default_rng(int(first)).integers(
            0, size, (2, int(bridge.sum()))
        )
        u += (copy * size).astype(np.uint64)
        v += ((copy + bridge) % count * size).astype(np.uint64)

    stream = GeneratedEdges("copies", size * count, num_edges * count, fill, directed=directed)
    oocbfs.convert(stream, path, order="natural", codec="raw", force=True)

"""Graphs for the kernel tests: small, but with every class of row, as rows and SciPy matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from oocbfs.gpu.emulator_device import align_tails
from oocbfs.graph.rows import span
from oocbfs.kernels import varint
from oocbfs.kernels.rows import Rows

# SciPy comes without types.
Matrix: TypeAlias = Any


def matrix_of(n: int, edges: NDArray[np.int64], *, directed: bool = False) -> Matrix:
    """Return the adjacency matrix of an edge list without loops and duplicates."""
    edges = np.asarray(edges, np.int64).reshape(-1, 2)
    if not directed:
        edges = np.concatenate([edges, edges[:, ::-1]])
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    ones = np.ones(len(edges), np.int8)
    return sparse.csr_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(n, n))


def rows_of(matrix: Matrix, shift: int = 4, weights: NDArray[np.uint32] | None = None) -> Rows:
    """Encode a matrix as the converter does, in natural order; by default degrees choose heads."""
    n = matrix.shape[0]
    if weights is None:
        weights = (np.diff(matrix.indptr) + np.diff(matrix.tocsc().indptr)).astype(np.uint32)
    coo = matrix.tocoo()
    keys = np.sort(coo.row.astype(np.uint64) << np.uint64(32) | coo.col.astype(np.uint64))
    heads, lengths, degrees = (np.zeros(n, np.uint32) for _ in range(3))
    tails = np.empty(9 * keys.size + 64, np.uint8)
    size = varint.encode_rows(tails, heads, lengths, degrees, keys, weights, 0, 32)
    begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)]).astype(np.uint64)
    blocks = np.arange(n + 1) >> shift
    bases = begins[:: 1 << shift][: (n >> shift) + 1].copy()
    starts = (begins - bases[blocks]).astype(np.uint32)
    return Rows(
        heads=heads,
        bases=bases,
        starts=starts,
        tails=align_tails(tails[:size]),
        degrees=degrees,
        shift=shift,
        num_arcs=keys.size,
        max_degree=int(degrees.max(initial=0)),
        num_ids=heads.size,
    )


def levels_by_scipy(matrix: Matrix, sources: list[int]) -> NDArray[np.int32]:
    """Return the distance from the nearest source, -1 where there is no path."""
    distances = sparse.csgraph.dijkstra(matrix, indices=sources, unweighted=True, min_only=True)
    levels = np.full(matrix.shape[0], -1, np.int32)
    reached = np.isfinite(distances)
    levels[reached] = distances[reached].astype(np.int32)
    return levels


def rows_that_wrap_around() -> Iterator[tuple[int, Rows]]:
    """Yield vertices with a gap of almost 2^32, which leads back to a vertex, and their rows.

    They have a row for one lane, for a warp, and a segment of a hub; nothing but the tails answers.
    """
    n = 3000
    edges = [(0, v) for v in range(1, n)] + [(2, v) for v in range(10, 16)]
    edges += [(3, v) for v in range(100, 160)] + [(4, v) for v in range(200, 2900)]
    rows = rows_of(matrix_of(n, np.array(edges)))
    for vertex, least_bytes in ((2, 5), (3, 32), (4, 1024)):
        damaged = rows._replace(tails=align_tails(rows.tails), heads=np.full(n, 5, np.uint32))
        begin, end = span(rows, vertex)
        assert end - begin > least_bytes
        damaged.tails[begin : begin + 6] = (3, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F)
        yield vertex, damaged


def random_graph(seed: int, n: int, m: int, *, directed: bool = False) -> Matrix:
    """Return a uniform random graph."""
    edges = np.random.default_rng(seed).integers(0, n, (m, 2))
    return matrix_of(n, edges, directed=directed)


def mixed_graph(seed: int, *, directed: bool = False) -> Matrix:
    """Return a graph with isolated vertices, short and long rows and hubs of several segments.

    The hubs' neighbours lie 1 to 150 apart, so that their varints have one or two bytes and some
    segments end in a stretched one. A path keeps the number of levels up: every level costs the
    emulator a launch of all lanes, so it is no longer than it takes to tell levels apart.
    """
    rng = np.random.default_rng(seed)
    n = 9000
    parts = [rng.integers(0, 4000, (3000, 2))]
    for hub in (17, 4000, 7999):
        targets = np.cumsum(rng.choice([1, 2, 3, 150], 3000, p=[0.5, 0.3, 0.17, 0.03]))
        targets = targets[targets < n - 200]
        extra = rng.integers(0, n - 200, 1500)
        targets = np.union1d(targets, extra) if hub == 17 else targets
        parts.append(np.stack([np.full(targets.size, hub), targets], axis=1))
    for vertex in range(100, 140):
        targets = rng.integers(0, 8000, int(rng.integers(30, 400)))
        parts.append(np.stack([np.full(targets.size, vertex), targets], axis=1))
    path = np.arange(n - 150, n - 126)
    parts.append(np.stack([path[:-1], path[1:]], axis=1))
    parts.append(np.array([[path[0], 5]]))
    return matrix_of(n, np.concatenate(parts), directed=directed)


def sparse_graph(seed: int, *, directed: bool = False) -> Matrix:
    """Return a random graph of many components, one of them large."""
    return random_graph(seed, 6000, 5000, directed=directed)


def two_worlds() -> tuple[Matrix, int]:
    """Return a star and, apart from it, rows of every class; and the star's number of vertices."""
    mixed, size = mixed_graph(3).tocoo(), 20_000
    star = np.stack([np.zeros(size - 1, np.int64), np.arange(1, size)], axis=1)
    others = np.stack([mixed.row, mixed.col], axis=1) + size
    return matrix_of(size + mixed.shape[0], np.concatenate([star, others])), size


def long_hub_graph(seed: int) -> Matrix:
    """Return a graph whose hubs have tails of several segments with many two-byte varints."""
    rng = np.random.default_rng(seed)
    n = 230_000
    parts = []
    for hub in range(6):
        gaps = rng.choice([1, 90, 127, 128, 129, 140], 2200)
        targets = np.cumsum(gaps) + 10 + hub
        targets = targets[targets < n]
        parts.append(np.stack([np.full(targets.size, hub), targets], axis=1))
    return matrix_of(n, np.concatenate(parts))


def grid_graph(height: int, width: int) -> Matrix:
    """Return a lattice with 4 neighbours."""
    cells = np.arange(height * width).reshape(height, width)
    right = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
    down = np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)
    return matrix_of(height * width, np.concatenate([right, down]))


def check_parents(
    matrix: Matrix,
    sources: list[int],
    levels: NDArray[np.int32],
    parents: NDArray[np.uint32],
) -> None:
    """Assert that parents are a tree: sources own themselves, others have an edge one level up."""
    reached = levels >= 0
    assert (parents[sources] == np.asarray(sources)).all()
    assert (parents[~reached] == 0xFFFFFFFF).all()
    inner = np.flatnonzero(levels > 0)
    above = parents[inner].astype(np.int64)
    assert (levels[above] == levels[inner] - 1).all()
    if inner.size:
        assert (np.asarray(matrix[above, inner]).ravel() == 1).all()

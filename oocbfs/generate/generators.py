"""Synthetic graphs, as streams of edges for a converter or a writer.

Every edge depends only on the parameters, the seed and its own index, so that the number of threads
and the size of the batches do not change the output. Memory is a few batches, for any graph.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator
from contextlib import closing

import numpy as np

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Declared, Edges, EdgeStream, Ids
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.formats.output.atomic import check_space
from oocbfs.formats.output.writers import MIN_EDGE_BYTES, choose_format, write_edges
from oocbfs.generate.powerlaw import degree_classes
from oocbfs.kernels.convert import generate as kernels

BATCH_EDGES = 1 << 18
_MAX = 1 << 62

# Each purpose has its own random stream, so that edges and labels are independent.
_EDGES, _LABELS, _STUBS = 0, 1, 2

Fill = Callable[[Ids, Ids, np.uint64], None]


class GeneratedEdges:
    """An EdgeStream whose batch that begins at edge k is ``fill(sources, targets, k)``."""

    unit = "edge"

    def __init__(
        self,
        name: str,
        num_vertices: int,
        num_edges: int,
        fill: Fill,
        *,
        directed: bool | None = False,
        threads: int | None = None,
        batch_edges: int = BATCH_EDGES,
    ) -> None:
        _require(num_vertices <= _MAX, f"{name}: there can be at most 2^62 vertices")
        _require(num_edges <= _MAX, f"{name}: there can be at most 2^62 edges")
        self.name = name
        self.declared = Declared(directed=directed, first_id=0, num_vertices=num_vertices)
        self.total: int | None = num_edges
        self.done = 0
        self._num_edges = num_edges
        self._fill = fill
        self._threads = available_threads(threads)
        self._batch_edges = batch_edges

    def batches(self) -> Generator[Edges]:
        """Yield the edges in order."""
        self.done = 0
        starts = range(0, self._num_edges, self._batch_edges)
        with closing(ordered_map(self._batch, starts, self._threads)) as results:
            for edges in results:
                self.done += edges.sources.size
                yield edges

    def _batch(self, first: int) -> Edges:
        """Make the batch that begins at edge ``first``."""
        size = min(self._batch_edges, self._num_edges - first)
        sources, targets = np.empty(size, np.uint64), np.empty(size, np.uint64)
        self._fill(sources, targets, np.uint64(first))
        return Edges(sources, targets)


def kron(
    scale: int, edge_factor: int = 16, *, seed: int = 1, threads: int | None = None
) -> GeneratedEdges:
    """Graph500's Kronecker graph: 2^scale vertices in random order, edge_factor edges for each."""
    name = f"kron scale={scale} edge_factor={edge_factor} seed={seed}"
    fill = _quadrants(name, scale, edge_factor, (0.57, 0.19, 0.19), seed, shuffle=True)
    return GeneratedEdges(name, 1 << scale, edge_factor << scale, fill, threads=threads)


def rmat(
    scale: int,
    edge_factor: int = 16,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    shuffle: bool = False,
    seed: int = 1,
    threads: int | None = None,
) -> GeneratedEdges:
    """R-MAT graph with given quadrant probabilities, the fourth being 1 - a - b - c.

    Without ``shuffle``, labels keep the recursive structure: small ids, and ids with few one bits,
    have high degrees. Whether edges are directed is left to the converter.
    """
    name = f"rmat scale={scale} edge_factor={edge_factor} a={a:g} b={b:g} c={c:g}"
    name += f" shuffle={'yes' if shuffle else 'no'} seed={seed}"
    fill = _quadrants(name, scale, edge_factor, (a, b, c), seed, shuffle=shuffle)
    return GeneratedEdges(
        name, 1 << scale, edge_factor << scale, fill, directed=None, threads=threads
    )


def uniform(
    scale: int | None = None,
    edge_factor: int = 16,
    *,
    vertices: int | None = None,
    edges: int | None = None,
    seed: int = 1,
    threads: int | None = None,
) -> GeneratedEdges:
    """Graph whose edges join two vertices drawn independently and uniformly.

    The size is either ``scale`` (2^scale vertices) or ``vertices``; there are ``edges`` edges, or
    edge_factor for each vertex.
    """
    _require((scale is None) != (vertices is None), "uniform: give either a scale or vertices")
    if vertices is None:
        assert scale is not None
        _require(0 <= scale <= 62, f"uniform: the scale must be 0 to 62, not {scale}")
        vertices = 1 << scale
    if edges is None:
        edges = edge_factor * vertices
    _require(vertices >= 1, f"uniform: there must be at least 1 vertex, not {vertices}")
    _require(edges >= 0, f"uniform: the number of edges cannot be negative, as {edges} is")
    name = f"uniform vertices={vertices} edges={edges} seed={seed}"
    _require(vertices <= _MAX, f"{name}: there can be at most 2^62 vertices")
    key, bound = _key(seed, _EDGES), np.uint64(vertices)

    def fill(sources: Ids, targets: Ids, first: np.uint64) -> None:
        kernels.uniform(sources, targets, first, key, bound)

    return GeneratedEdges(name, vertices, edges, fill, threads=threads)


def grid2d(
    rows: int, columns: int, *, wrap: bool = False, threads: int | None = None
) -> GeneratedEdges:
    """Lattice with 4 neighbours for each vertex; ids are row-major, ``wrap`` makes a torus."""
    return _lattice(f"grid2d rows={rows} columns={columns}", (1, rows, columns), wrap, threads)


def grid3d(
    x: int, y: int, z: int, *, wrap: bool = False, threads: int | None = None
) -> GeneratedEdges:
    """Lattice of x by y by z with 6 neighbours each; ids are row-major (z fastest)."""
    return _lattice(f"grid3d x={x} y={y} z={z}", (x, y, z), wrap, threads)


def powerlaw(
    vertices: int,
    mean_degree: float,
    max_degree: int,
    min_degree: int = 1,
    *,
    seed: int = 1,
    threads: int | None = None,
) -> GeneratedEdges:
    """Random graph with a power-law degree sequence of given mean, maximum and minimum.

    The stubs of an exact degree sequence are paired at random. Degrees are exact while loops and
    repeated edges are counted, and lower once they are dropped.
    """
    name = f"powerlaw vertices={vertices} mean_degree={mean_degree:g} max_degree={max_degree}"
    name += f" min_degree={min_degree} seed={seed}"
    classes = degree_classes(vertices, mean_degree, max_degree, min_degree)
    stubs = kernels.permutation(classes.num_stubs, _key(seed, _STUBS))
    labels = kernels.permutation(vertices, _key(seed, _LABELS))
    tables = (classes.first_stubs(), classes.first_vertices(), classes.degrees, *classes.guide())

    def fill(sources: Ids, targets: Ids, first: np.uint64) -> None:
        kernels.match_stubs(sources, targets, first, stubs, *tables)
        kernels.permute(sources, labels)
        kernels.permute(targets, labels)

    return GeneratedEdges(name, vertices, classes.num_stubs // 2, fill, threads=threads)


def write_stream(
    stream: EdgeStream,
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    force: bool = False,
    progress: Callable[[int], object] | None = None,
) -> int:
    """Write a stream as an edge list that names its origin and size; see ``write_edges``."""
    layout, packing = choose_format(path)
    if stream.total is not None and packing is None and os.fspath(path) != "-":
        check_space(path, stream.total * MIN_EDGE_BYTES[layout])
    comment = stream.name
    if stream.declared.num_vertices is not None and stream.total is not None:
        comment += f"\nNodes: {stream.declared.num_vertices} Edges: {stream.total}"
    return write_edges(
        stream.batches(),
        path,
        threads=threads,
        header_comment=comment,
        force=force,
        progress=progress,
    )


def _quadrants(
    name: str,
    scale: int,
    edge_factor: int,
    probabilities: tuple[float, float, float],
    seed: int,
    *,
    shuffle: bool,
) -> Fill:
    """Check the parameters of a recursive matrix and give the function that fills a batch."""
    _require(1 <= scale <= 62, f"{name}: the scale must be 1 to 62")
    _require(edge_factor >= 1, f"{name}: the edge factor must be at least 1")
    a, b, c = probabilities
    valid = all(math.isfinite(p) and p >= 0 for p in probabilities) and a + b + c <= 1 + 1e-9
    _require(valid, f"{name}: a, b and c must not be negative and add up to at most 1")
    thresholds = [np.uint64(round(min(p, 1.0) * 2**32)) for p in (a, a + b, a + b + c)]
    key = _key(seed, _EDGES)
    labels = kernels.permutation(1 << scale, _key(seed, _LABELS)) if shuffle else None

    def fill(sources: Ids, targets: Ids, first: np.uint64) -> None:
        kernels.kronecker(sources, targets, first, key, scale, *thresholds)
        if labels is not None:
            kernels.permute(sources, labels)
            kernels.permute(targets, labels)

    return fill


def _lattice(
    name: str, shape: tuple[int, int, int], wrap: bool, threads: int | None
) -> GeneratedEdges:
    """Lattice in up to three dimensions; sides of 1 or 2 do not wrap, which would repeat edges."""
    _require(min(shape) >= 1, f"{name}: every side must be at least 1")
    num_vertices = math.prod(shape)
    _require(num_vertices <= _MAX // 3, f"{name}: there can be at most 2^62 edges")
    num_edges = sum(
        num_vertices // side * (side if wrap and side > 2 else side - 1) for side in shape
    )
    sides = np.array(shape, np.uint64)

    def fill(sources: Ids, targets: Ids, first: np.uint64) -> None:
        kernels.lattice(sources, targets, first, sides, wrap)

    name += " wrap=yes" if wrap else ""
    return GeneratedEdges(name, num_vertices, num_edges, fill, threads=threads)


def _key(seed: int, purpose: int) -> np.uint64:
    """Key of one random stream of a seed."""
    _require(0 <= seed < 1 << 64, f"the seed must be 0 to 2^64 - 1, not {seed}")
    return kernels.stream_key(seed, purpose)


def _require(condition: bool, message: str) -> None:
    """Refuse parameters that make no graph."""
    if not condition:
        raise QueryError(message)

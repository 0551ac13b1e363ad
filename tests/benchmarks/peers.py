"""What searches are compared with: something that runs from each source, and those of PyPI."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Runner = Callable[[list[int]], list[float]]


@dataclass
class Peer:
    """Something that searches from each source and tells the seconds of each."""

    name: str
    run: Runner
    seconds: list[float] = field(default_factory=list)

    def median(self) -> float:
        """Median over all sources and rounds."""
        return float(np.median(self.seconds))


def timed_each(work: Callable[[int], object], sources: list[int]) -> list[float]:
    """Time each call by itself."""
    seconds = []
    for source in sources:
        start = time.perf_counter()
        work(source)
        seconds.append(time.perf_counter() - start)
    return seconds


def python_peers(matrix: Any, threads: int) -> Iterator[Peer]:
    """Whatever of the peers on PyPI is installed."""
    from scipy.sparse.csgraph import breadth_first_order

    yield Peer(
        "scipy", lambda sources: timed_each(lambda s: breadth_first_order(matrix, s), sources)
    )
    try:
        import networkit

        networkit.setNumberOfThreads(threads)
        coo = matrix.tocoo()
        upper = coo.row < coo.col
        made = networkit.GraphFromCoo(
            (coo.row[upper], coo.col[upper]), n=matrix.shape[0], directed=False
        )
        yield Peer(
            "networkit",
            lambda sources: timed_each(
                lambda s: networkit.distance.BFS(made, s, storePaths=False).run(), sources
            ),
        )
    except ImportError:
        pass
    try:
        import igraph

        coo = matrix.tocoo()
        upper = coo.row < coo.col
        linked = igraph.Graph(
            n=matrix.shape[0], edges=np.stack((coo.row[upper], coo.col[upper]), axis=1)
        )
        yield Peer("igraph", lambda sources: timed_each(lambda s: linked.bfs(s), sources))
    except ImportError:
        pass
    try:
        import graphblas

        yield Peer("graphblas", _graphblas(graphblas, matrix, threads))
    except ImportError:
        pass


def _graphblas(graphblas: Any, matrix: Any, threads: int) -> Runner:
    """Push and pull by masked products, the level of each vertex kept."""
    graphblas.ss.config["nthreads"] = threads
    graph = graphblas.io.from_scipy_sparse(matrix.astype(bool))
    any_pair = graphblas.semiring.any_pair

    def search(source: int) -> None:
        levels = graphblas.Vector(int, graph.nrows)
        frontier = graphblas.Vector(bool, graph.nrows)
        frontier[source] = True
        depth = 0
        while frontier.nvals:
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << any_pair(frontier @ graph)
            depth += 1

    return lambda sources: timed_each(search, sources)

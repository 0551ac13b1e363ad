"""The Graph500 benchmark: construction, then breadth-first search from 64 roots, each validated."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oocbfs.batch.sources import choose_random
from oocbfs.conversion.converter import convert
from oocbfs.errors import QueryError
from oocbfs.generate import generators
from oocbfs.search import graph

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Graph500Result:
    """Times of the construction, and of the traversal and validation of each root."""

    scale: int
    edge_factor: int
    threads: int
    generation_seconds: float
    construction_seconds: float
    roots: list[int]
    seconds: Values
    validation_seconds: Values
    edges: Values

    @property
    def teps(self) -> Values:
        """Traversed edges per second of each root: input edges in its component / its time."""
        return self.edges / self.seconds

    def statistics(self) -> dict[str, float]:
        """Give the official block of statistics, in its order and under its names."""
        block: dict[str, float] = {
            "SCALE": self.scale,
            "edgefactor": self.edge_factor,
            "NBFS": len(self.roots),
            "graph_generation": self.generation_seconds,
            "num_threads": self.threads,
            "construction_time": self.construction_seconds,
        }
        for name, values in (
            ("time", self.seconds),
            ("nedge", self.edges),
            ("TEPS", self.teps),
            ("validate", self.validation_seconds),
        ):
            block |= _quartiles(name, values)
            block |= _harmonic(name, values) if name == "TEPS" else _arithmetic(name, values)
        return block


def _quartiles(name: str, values: Values) -> dict[str, float]:
    points = np.quantile(values, (0, 0.25, 0.5, 0.75, 1))
    words = ("min", "firstquartile", "median", "thirdquartile", "max")
    return {f"{word}_{name}": float(point) for word, point in zip(words, points, strict=True)}


def _arithmetic(name: str, values: Values) -> dict[str, float]:
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return {f"mean_{name}": float(values.mean()), f"stddev_{name}": spread}


def _harmonic(name: str, values: Values) -> dict[str, float]:
    """Harmonic mean and its standard error, by the delta method as in the specification's code."""
    inverse = 1 / values
    mean = 1 / inverse.mean()
    spread = inverse.std(ddof=1) / np.sqrt(values.size - 1) * mean**2 if values.size > 1 else 0.0
    return {f"harmonic_mean_{name}": float(mean), f"harmonic_stddev_{name}": float(spread)}


def run(
    scale: int,
    edge_factor: int = 16,
    *,
    num_roots: int = 64,
    seed: int = 1,
    threads: int,
    memory: str | None = None,
    folder: str | None = None,
    progress: Callable[[str], object] = lambda message: None,
) -> Graph500Result:
    """Generate a Kronecker graph, construct (kernel 1) and traverse it (kernel 2)."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        edges, path = Path(made) / "edges.u64", Path(made) / "graph.ocg"
        progress(f"generating 2^{scale} vertices, {edge_factor << scale:,} edges")
        start = time.perf_counter()
        stream = generators.kron(scale, edge_factor, seed=seed, threads=threads)
        generators.write_stream(stream, edges, threads=threads)
        generation = time.perf_counter() - start
        progress("constructing")
        start = time.perf_counter()
        convert(edges, path, format="u64", ids="dense", memory=memory, threads=threads)
        construction = time.perf_counter() - start
        with graph.open(path) as opened:
            roots = _roots(opened, num_roots, seed)
            if not roots:
                raise QueryError("no vertex has an edge: take a larger scale or another seed")
            opened.bfs(roots[0], threads=threads, validate=True, parents=True)  # compiles
            rows = []
            for number, root in enumerate(roots, 1):
                progress(f"root {number} of {len(roots)}")
                start = time.perf_counter()
                result = opened.bfs(root, threads=threads, parents=True, validate=True)
                rest = time.perf_counter() - start - result.stats.seconds
                rows.append((result.stats.seconds, rest, result.stats.edges_traversed))
    columns = np.array(rows, np.float64).T
    return Graph500Result(
        scale=scale,
        edge_factor=edge_factor,
        threads=threads,
        roots=roots,
        seconds=columns[0],
        validation_seconds=columns[1],
        edges=columns[2],
        generation_seconds=generation,
        construction_seconds=construction,
    )


def _roots(opened: graph.Graph, count: int, seed: int) -> list[int]:
    """Choose distinct roots at random among the vertices that have an edge."""
    with opened.reading():
        chosen = choose_random(opened.degrees, count, seed)
        return [int(vertex) for vertex in opened.ids_of(chosen)]

"""The Graph500 benchmark: construction, then breadth-first search from 64 roots, each validated.

What is timed, counted, checked and printed follows the specification and its reference code:

- construction is all that leads from the generated edges to a graph that can be searched;
- a search is a whole call, up to levels and parents by the numbers that the edges have;
- the edges of a search are those that were generated in its component, duplicates and loops too;
- a search is validated with the edges as they were generated, not with the graph made of them.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oocbfs.batch.sources import choose_random
from oocbfs.conversion.converter import convert
from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.generate import generators
from oocbfs.kernels.results import tuples as kernels
from oocbfs.progress import Phases
from oocbfs.search import graph
from oocbfs.search.any_graph import AnyGraph
from oocbfs.settings import Engine

Values = NDArray[np.float64]
Ends = NDArray[np.uint64]


@dataclass(frozen=True)
class Graph500Result:
    """Times of the construction, and of the search and validation of each root."""

    scale: int
    edge_factor: int
    threads: int
    engine: str
    generation_seconds: float
    construction_seconds: float
    roots: list[int]
    seconds: Values
    validation_seconds: Values
    edges: Values

    @property
    def teps(self) -> Values:
        """Searched edges per second of each root: generated edges in its component / its time."""
        return self.edges / self.seconds

    def statistics(self) -> dict[str, float]:
        """Return the block of statistics, in its order, under the names of the specification."""
        block: dict[str, float] = {
            "SCALE": self.scale,
            "edgefactor": self.edge_factor,
            "NBFS": len(self.roots),
            "graph_generation": self.generation_seconds,
            "num_mpi_processes": 1,
            "construction_time": self.construction_seconds,
        }
        block |= _quartiles("time", self.seconds) | _mean("time", self.seconds)
        block |= _quartiles("nedge", self.edges) | _mean("nedge", self.edges)
        # Rates are compared by the time of an edge, the shortest of which is the highest rate.
        each = self.seconds / self.edges
        rates = [1 / value for value in reversed(_quartiles("", each).values())]
        block |= dict(zip(_quartiles("TEPS", each), rates, strict=True)) | _harmonic("TEPS", each)
        validation = self.validation_seconds
        return block | _quartiles("validate", validation) | _mean("validate", validation)

    def lines(self) -> list[str]:
        """Write the block as the reference code prints it."""
        return [_line(name, value) for name, value in self.statistics().items()]


def _line(name: str, value: float) -> str:
    if name.endswith("nedge"):
        return f"{name.removeprefix('bfs_') + ':':<32}{value:.11g}"
    shown = f"bfs  {name.removeprefix('bfs_')}:" if name.startswith("bfs_") else f"{name}:"
    mark = "!" if name == "bfs_harmonic_mean_TEPS" else " "
    return f"{shown:<29}{mark}  {value:g}"


def _quartiles(name: str, values: Values) -> dict[str, float]:
    """Return order statistics; a quartile between two values is their mean."""
    ordered, last = np.sort(values), values.size - 1
    quarter, half = (last // 4, values.size // 4), (last // 2, values.size // 2)
    places = {
        "min": (0, 0),
        "firstquartile": quarter,
        "median": half,
        "thirdquartile": (last - quarter[0], last - quarter[1]),
        "max": (last, last),
    }
    return {
        f"bfs_{word}_{name}": float(ordered[below] + ordered[above]) / 2
        for word, (below, above) in places.items()
    }


def _mean(name: str, values: Values) -> dict[str, float]:
    return {f"bfs_mean_{name}": float(values.mean()), f"bfs_stddev_{name}": _deviation(values)}


def _harmonic(name: str, each: Values) -> dict[str, float]:
    """Harmonic mean of rates and its standard error, by the delta method."""
    mean = float(each.mean())
    error = _deviation(each) / (mean**2 * max(1, each.size - 1) ** 0.5)
    return {f"bfs_harmonic_mean_{name}": 1 / mean, f"bfs_harmonic_stddev_{name}": error}


def _deviation(values: Values) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else 0.0


def run(
    scale: int,
    edge_factor: int = 16,
    *,
    num_roots: int = 64,
    seed: int = 1,
    threads: int,
    engine: Engine = "auto",
    memory: str | None = None,
    folder: str | None = None,
    progress: bool = False,
) -> Graph500Result:
    """Generate a Kronecker graph, construct (kernel 1) and search it (kernel 2)."""
    phases = Phases(show=progress)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        edges, path = Path(made) / "edges.u64", Path(made) / "graph.ocg"
        _compile(Path(made), engine, threads)
        stream = generators.kron(scale, edge_factor, seed=seed, threads=threads)
        with phases("generate", stream.total, "edge") as bar:
            generators.write_stream(stream, edges, threads=threads, progress=bar.update)
        start = time.perf_counter()
        convert(
            edges,
            path,
            format="u64",
            ids="dense",
            memory=memory,
            threads=threads,
            progress=progress,
        )
        with graph.open(path) as opened:
            construction = time.perf_counter() - start
            roots = _roots(opened, num_roots, seed)
            if not roots:
                raise QueryError("no vertex has an edge: take a larger scale or another seed")
            first = opened.bfs(roots[0], threads=threads, engine=engine, parents=True)
            # What the first search copied into memory serves all others.
            construction += first.stats.load_seconds
            ends = np.asarray(np.memmap(edges, np.uint64, "r"))
            rows = []
            with phases("search", len(roots), "root") as bar:
                for root in roots:
                    start = time.perf_counter()
                    found = opened.bfs(root, threads=threads, engine=engine, parents=True)
                    between = time.perf_counter()
                    num_edges = validate(root, found.levels, found.parents, ends, threads)
                    rows.append((between - start, time.perf_counter() - between, num_edges))
                    bar.update()
    columns = np.array(rows, np.float64).T
    return Graph500Result(
        scale=scale,
        edge_factor=edge_factor,
        threads=threads,
        engine=first.stats.engine,
        roots=roots,
        seconds=columns[0],
        validation_seconds=columns[1],
        edges=columns[2],
        generation_seconds=phases.seconds["generate"],
        construction_seconds=construction,
    )


def _compile(folder: Path, engine: Engine, threads: int) -> None:
    """Let all kernels be compiled, on a graph of no matter, before anything is timed."""
    small = folder / "small.ocg"
    ends = np.array([[0, 1]], np.uint64)
    convert(ends, small, ids="dense", threads=threads)
    with graph.open(small) as opened:
        found = opened.bfs(0, threads=threads, engine=engine, parents=True)
        validate(0, found.levels, found.parents, ends.ravel(), threads)
    small.unlink()


def _roots(opened: AnyGraph, count: int, seed: int) -> list[int]:
    """Choose distinct roots at random among the vertices that have an edge."""
    stored = opened._stored
    with stored.reading():
        chosen = choose_random(stored.stored_degrees, count, seed)
        return [int(vertex) for vertex in stored.ids_of(chosen)]


def validate(
    root: int, levels: NDArray[np.int32], parents: NDArray[np.int64], ends: Ends, threads: int
) -> int:
    """Check a search by the five rules of the specification; returns the edges in its component.

    1. the tree has no cycles;
    2. an edge of the tree leads from one level to the next;
    3. levels of the ends of a generated edge differ by one at most, or neither is in the tree;
    4. the tree spans the component;
    5. a vertex and its parent are joined by a generated edge.

    Raises
    ------
    QueryError
        If a rule is broken.
    """
    levels, parents = np.ascontiguousarray(levels), np.ascontiguousarray(parents)
    problems = over_ranges(kernels.check_tree, levels.size, threads, levels, parents, root)
    confirmed = np.zeros(levels.size, np.uint8)
    counted = over_ranges(
        kernels.check_tuples, ends.size // 2, threads, confirmed, levels, parents, ends
    )
    for problem, where in (*problems, *(part[:2] for part in counted)):
        if problem:
            explained = kernels.PROBLEMS[problem].format(where)
            raise QueryError(f"validation of root {root} failed: {explained}")
    confirmed[root] = 1
    orphans = np.flatnonzero((levels >= 0) & (confirmed == 0))
    if orphans.size:
        raise QueryError(
            f"validation of root {root} failed: no edge joins vertex {orphans[0]} and its parent"
        )
    return int(sum(part[2] for part in counted))
